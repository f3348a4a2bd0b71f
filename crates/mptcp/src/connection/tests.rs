//! Decisions of a connection in states that the tests set up, because packets alone do not lead to them.

mod plain_tcp;

use super::agenda::Task;
use super::association::Protocol;
use super::opening::{Join, Opening};
use super::opportunity::Opportunity;
use super::output::Workspace;
use super::scheduling::Blocked;
use super::state::Connection;
use super::subflows::Handle;
use super::timer_table::Timer;
use crate::config::{BufferSize, ConnectionConfig, Policies};
use crate::event::{CloseCause, Event, SendKind, TraceRecord};
use crate::keys::Key;
use crate::subflow::{Identity, State, Subflow};
use anabranch_policy::ids::{AddressId, ConnectionId, SubflowId};
use anabranch_policy::path_manager::{ForwardDelays, Measurements};
use anabranch_policy::scheduler::Work;
use anabranch_policy::table::{Settings, build};
use anabranch_policy::time::{Duration, Instant};
use anabranch_policy::view::SubflowView;
use anabranch_policy::{congestion, scheduler};
use anabranch_wire::mptcp::{DataSequence, Dss, Mapping};
use anabranch_wire::tcp::Timestamps;
use anabranch_wire::{MptcpOption, Packet, Segment, SeqNumber};
use bytes::Bytes;
use std::sync::Arc;

/// The first sequence number of each subflow.
const INITIAL: SeqNumber = SeqNumber(1_000);

pub(super) fn config() -> ConnectionConfig {
    ConnectionConfig::new(Policies {
        congestion: Arc::new(|| build(congestion::TABLE, "new_reno", &Settings::new()).unwrap()),
        scheduler: Arc::new(|| build(scheduler::TABLE, "lowest_rtt", &Settings::new()).unwrap()),
        reliability: crate::config::fully_reliable(),
    })
}

/// An MPTCP connection with established subflows whose windows are open for 60,000 bytes; the window of the connection
/// is closed.
pub(super) fn connected(config: ConnectionConfig, subflows: u32) -> Connection {
    let opening = Opening {
        id: ConnectionId(1),
        config: Arc::new(config),
        key: Key(7),
        derived: Key(7).derive(),
        initial: INITIAL,
        stamp_offset: 0,
        local: ([10, 0, 0, 1], 5_000).into(),
        remote: ([10, 0, 0, 2], 80).into(),
        local_address: AddressId(1),
        measurements: Measurements::Never,
        forward_delays: ForwardDelays::OfAcknowledgements,
    };
    let mut connection = Connection::connect(Instant::ZERO, opening);
    connection.association.protocol = Protocol::Multipath;
    connection.association.confirmed = true;
    for id in 1..subflows {
        let identity = Identity {
            id: SubflowId(id),
            local: ([10, 0, id as u8, 1], 5_000).into(),
            remote: ([10, 0, 0, 2], 80).into(),
            local_address: AddressId(1 + id as u8),
            remote_address: AddressId(0),
        };
        connection.subflows.push(Subflow::new(identity, State::Established, INITIAL, Instant::ZERO));
    }
    let mut next = connection.subflows.first_handle();
    while let Some(handle) = next {
        let subflow = &mut connection.subflows[handle];
        subflow.state = State::Established;
        subflow.handshake.due = false;
        subflow.send.una = subflow.send.nxt;
        subflow.window.edge = subflow.send.nxt + 60_000;
        connection.establish(Instant::ZERO, handle);
        next = connection.subflows.after(handle);
    }
    connection
}

fn first(connection: &Connection) -> Handle {
    connection.subflows.first_handle().unwrap()
}

fn write(connection: &mut Connection, length: usize) {
    assert_eq!(connection.write(Bytes::from(vec![0; length])), length);
}

/// Assigns new data to a subflow, which does not send it.
fn put_new(connection: &mut Connection, handle: Handle, length: usize) {
    let data_seq = connection.sender.data_nxt;
    connection.sender.data_nxt += length as u64;
    connection.subflows[handle].push(data_seq, Bytes::from(vec![0; length]), SendKind::New);
}

fn views(connection: &Connection) -> Vec<SubflowView> {
    let mut views = Vec::new();
    connection.subflow_views(&mut views);
    views
}

fn is_shut(connection: &mut Connection) -> bool {
    Opportunity::new(connection, Instant::ZERO, &mut Workspace::default()).is_shut()
}

#[test]
fn nothing_new_can_go_where_there_is_none_or_the_window_is_closed_or_blocked() {
    let mut connection = connected(config(), 1);
    connection.sender.window_edge = 10_000;
    assert!(is_shut(&mut connection), "there is nothing");
    write(&mut connection, 5_000);
    assert!(!is_shut(&mut connection));
    connection.scheduling.blocked = Some(Blocked::new(Instant::ZERO, 0, None));
    assert!(is_shut(&mut connection), "blocked, though there is a window");
    connection.scheduling.blocked = None;
    connection.sender.window_edge = 0;
    assert!(is_shut(&mut connection), "closed");
}

#[test]
fn a_closed_window_is_blocked_only_if_a_subflow_has_room_and_bytes_behind_the_hole_arrived() {
    let hole = |window: u64, delivered_end: u64, room: bool| {
        let mut connection = connected(config(), 1);
        connection.sender.window_edge = window;
        write(&mut connection, 20_000);
        let handle = first(&connection);
        put_new(&mut connection, handle, 1_000);
        connection.sender.delivered_end = delivered_end;
        let views = if room { views(&connection) } else { Vec::new() };
        let hole = connection.consider_blocked(Instant::ZERO, 1_000, &views).map(|hole| hole.data_seq);
        assert_eq!(connection.timers.runs(Timer::Blocked), hole.is_some());
        hole
    };
    assert_eq!(hole(1_500, 1_000, true), Some(0));
    assert_eq!(hole(1_500, 1_000, false), None, "no room");
    assert_eq!(hole(9_000, 1_000, true), None, "a window");
    assert_eq!((hole(1_999, 1_000, true), hole(2_000, 1_000, true)), (Some(0), None), "a segment just fits it");
    assert_eq!(hole(1_500, 0, true), None, "nothing arrived behind the hole");
}

#[test]
fn who_waits_for_the_window_of_one_subflow_or_for_the_scheduler_alone_is_shut_out() {
    // All data is assigned to the second subflow, whose window is closed; the connection's is open.
    let mut connection = connected(config(), 2);
    connection.sender.window_edge = 50_000;
    write(&mut connection, 1_000);
    let second = connection.subflows.after(first(&connection)).unwrap();
    let next = connection.subflows[second].send.nxt;
    connection.subflows[second].window.edge = next;
    put_new(&mut connection, second, 1_000);
    assert!(connection.sender.all_assigned());
    connection.watch_window(Instant::ZERO);
    assert!(connection.timers.runs(Timer::Persist));

    // New data could be sent, but the scheduler has no subflow for it.
    let mut connection = connected(config(), 2);
    connection.sender.window_edge = 50_000;
    write(&mut connection, 1_000);
    connection.watch_window(Instant::ZERO);
    assert!(connection.timers.runs(Timer::Persist));

    // Nothing waits.
    let mut connection = connected(config(), 2);
    connection.sender.window_edge = 50_000;
    connection.watch_window(Instant::ZERO);
    assert!(!connection.timers.runs(Timer::Persist));
}

#[test]
fn a_subflow_that_its_window_keeps_idle_is_not_asked_for_data_that_arrived_elsewhere() {
    let is_asked = |arrived: u64| {
        let mut connection = connected(config(), 2);
        connection.sender.window_edge = 50_000;
        write(&mut connection, 2_000);
        let (handle, second) = (first(&connection), connection.subflows.after(first(&connection)).unwrap());
        put_new(&mut connection, handle, 1_000);
        let next = connection.subflows[second].send.nxt;
        connection.subflows[second].window.edge = next;
        put_new(&mut connection, second, 1_000);
        // The first subflow is busy: it sends its half.
        assert!(connection.poll_transmit(Instant::ZERO, &mut Workspace::default(), &mut Packet::default()));
        connection.sender.buffer.acknowledge(arrived);
        connection.watch_window(Instant::ZERO);
        connection.timers.runs(Timer::Persist)
    };
    assert!(is_asked(1_000));
    assert!(!is_asked(2_000));
}

#[test]
fn a_subflow_is_measured_only_with_data_that_is_outstanding_and_after_its_handshake() {
    let mut connection = connected(config(), 2);
    write(&mut connection, 1_000);
    assert!(!connection.probe(SubflowId(1)), "nothing was sent on any subflow");
    let handle = first(&connection);
    put_new(&mut connection, handle, 1_000);
    let second = connection.subflows.after(first(&connection)).unwrap();
    connection.subflows[second].handshake.confirmed = false;
    assert!(!connection.probe(SubflowId(1)), "its join is not confirmed");
    connection.subflows[second].handshake.confirmed = true;
    assert!(connection.probe(SubflowId(1)));
    assert!(connection.subflows[second].has_something_to_send());
}

#[test]
fn segments_share_a_mapping_only_where_mptcp_is_confirmed_and_there_are_no_checksums() {
    let place = |confirmed: bool, checksum: bool, protocol: Protocol| {
        let mut connection = connected(config(), 1);
        connection.scheduling.needs.segments_per_mapping = 4;
        (connection.association.confirmed, connection.association.checksum) = (confirmed, checksum);
        connection.association.protocol = protocol;
        let handle = first(&connection);
        let subflow = &mut connection.subflows[handle];
        subflow.negotiated.sack = true;
        subflow.counters.bytes_acked = 1_000_000;
        connection.place_under_mapping(SubflowId(0))
    };
    assert!(place(true, false, Protocol::Multipath).is_some());
    assert!(place(false, false, Protocol::Multipath).is_none());
    assert!(place(true, true, Protocol::Multipath).is_none());
    assert!(place(true, false, Protocol::Tcp).is_none());
}

#[test]
fn the_delay_of_acknowledgements_is_measured_where_they_echo_a_timestamp() {
    let meters = |echo: u32| {
        let mut connection = connected(config(), 1);
        let handle = first(&connection);
        connection.subflows[handle].negotiated.timestamps = true;
        let mut segment = Segment::default();
        segment.options.timestamps = Some(Timestamps { value: 100, echo });
        connection.record_acknowledged_delay(Instant::ZERO, handle, &segment);
        connection.measurement.watch.as_ref().unwrap().meters.iter().count()
    };
    assert_eq!(meters(60), 1);
    assert_eq!(meters(0), 0, "it echoes nothing");
}

#[test]
fn a_receive_buffer_is_blocked_when_less_than_a_segment_fits_behind_what_it_holds() {
    let is_blocked = |free: usize, protocol: Protocol| {
        let mut connection = connected(ConnectionConfig { receive_buffer: BufferSize::Fixed(10_000), ..config() }, 1);
        connection.association.protocol = protocol;
        connection.measurement.watch.as_mut().unwrap().of = ForwardDelays::OfArrivals;
        connection.receiver.buffer.set_segment_size(1_000);
        assert_eq!(connection.receiver.offer_window(), 10_000);
        // A hole of a thousand bytes at the left edge.
        connection.receiver.buffer.insert(Instant::ZERO, 1_000, Bytes::from(vec![0; 9_000 - free]));
        connection.watch_receive_buffer(Instant::ZERO);
        connection.measurement.watch.as_ref().unwrap().repeat_at != Instant::NEVER
    };
    assert!(is_blocked(999, Protocol::Multipath));
    assert!(!is_blocked(1_000, Protocol::Multipath));
    assert!(!is_blocked(0, Protocol::Tcp), "TCP has nothing to choose");
}

#[test]
fn what_is_done_to_each_subflow_is_done_to_all_that_are_left() {
    let mut connection = connected(config(), 3);
    assert!(connection.subflows.only().is_none());
    let handle = first(&connection);
    connection.subflows.remove(handle);
    let mut met = Vec::new();
    connection.subflows.each_changed(|subflow| {
        met.push(subflow.id().0);
        false
    });
    assert_eq!(met, [1, 2]);
    let second = first(&connection);
    connection.subflows.remove(second);
    assert_eq!(connection.subflows.only().map(Subflow::id), Some(SubflowId(2)));
}

/// The subflows that have data to send now.
fn sending(connection: &mut Connection, now: Instant) -> Vec<u32> {
    let mut ids = Vec::new();
    let mut next = connection.subflows.next_for(now, Task::Data, None);
    while let Some(handle) = next {
        ids.push(connection.subflows[handle].id().0);
        next = connection.subflows.next_for(now, Task::Data, next);
    }
    ids
}

#[test]
fn of_many_subflows_those_with_data_are_found_and_those_that_are_paced_when_pacing_lets_them_send() {
    let at = |ms: u64| Instant::from_nanos(ms * 1_000_000);
    // More than have a bit of their own.
    let mut connection = connected(config(), 40);
    connection.subflows.iter_mut().for_each(|subflow| subflow.handshake.due = false);
    assert_eq!(sending(&mut connection, at(0)), [0; 0]);
    for id in [2, 7, 29, 30, 38] {
        connection.subflow_mut(SubflowId(id)).unwrap().push(0, Bytes::from_static(b"data"), SendKind::New);
    }
    assert_eq!(sending(&mut connection, at(0)), [2, 7, 29, 30, 38]);
    for (id, ms) in [(2, 5), (29, 9)] {
        let handle = connection.subflows.handle_of(SubflowId(id)).unwrap();
        connection.subflows[handle].set_paced_until(at(ms));
        assert!(sending(&mut connection, at(0)).contains(&id), "a change is looked at");
        connection.subflows.wait_for_pacing(handle);
    }
    assert_eq!(sending(&mut connection, at(4)), [7, 30, 38]);
    // A query after a wake-up looks at all subflows.
    assert_eq!(sending(&mut connection, at(5)), [2, 7, 29, 30, 38]);
    let seventh = connection.subflows.handle_of(SubflowId(7)).unwrap();
    connection.subflows.remove(seventh);
    assert_eq!(sending(&mut connection, at(5)), [2, 29, 30, 38]);
    connection.sweep();
    assert_eq!(sending(&mut connection, at(5)), [2, 29, 30, 38], "numbers are not those of the slots any more");
    connection.subflow_mut(SubflowId(30)).unwrap().drop_unsent(0);
    assert_eq!(sending(&mut connection, at(5)), [2, 29, 38]);
}

#[test]
fn a_subflow_is_a_backup_if_either_side_says_so_and_others_are_not_for_it() {
    let mut connection = connected(config(), 2);
    assert!(!connection.is_backup(SubflowId(0)) && !connection.is_backup(SubflowId(1)));
    connection.subflow_mut(SubflowId(1)).unwrap().priority.backup_remote = true;
    assert!(!connection.is_backup(SubflowId(0)) && connection.is_backup(SubflowId(1)));
    assert!(!connection.is_backup(SubflowId(7)), "there is none");
}

#[test]
fn outstanding_data_that_a_subflow_lost_is_unrepaired_until_it_is_sent_again() {
    let mut connection = connected(config(), 2);
    connection.sender.window_edge = 50_000;
    write(&mut connection, 1_000);
    let handle = first(&connection);
    put_new(&mut connection, handle, 1_000);
    assert!(connection.poll_transmit(Instant::ZERO, &mut Workspace::default(), &mut Packet::default()));
    let state = |connection: &mut Connection| {
        let found = connection.next_outstanding(0, None).unwrap();
        (found.data_seq, found.length, found.lost, found.unrepaired)
    };
    assert_eq!(state(&mut connection), (0, 1_000, false, false));
    let end = connection.subflows[handle].send.nxt;
    assert_eq!(connection.subflows[handle].scoreboard.mark_lost_before(end), 1_000);
    assert_eq!(state(&mut connection), (0, 1_000, true, true));
    assert!(connection.next_outstanding(0, Some(0)).is_none(), "nothing is outstanding behind it");
}

#[test]
fn a_join_that_is_confirmed_is_open_no_longer_and_the_others_are() {
    let mut connection = connected(config(), 3);
    let join = |id: u32| Join { subflow: SubflowId(id), local_nonce: id, remote_nonce: id };
    connection.joins.open = vec![join(1), join(2)];
    let second = connection.subflows.after(first(&connection)).unwrap();
    connection.subflows[second].handshake.confirmed = false;
    connection.confirm_join(Instant::ZERO, second);
    assert!(connection.subflows[second].handshake.confirmed);
    assert_eq!(connection.joins.open.iter().map(|join| join.subflow.0).collect::<Vec<u32>>(), [2]);
}

#[test]
fn an_option_waits_until_the_join_that_is_to_carry_it_is_confirmed() {
    let mut connection = connected(config(), 2);
    let second = connection.subflows.after(first(&connection)).unwrap();
    connection.subflows[second].handshake.confirmed = false;
    connection.joins.open = vec![Join { subflow: SubflowId(1), local_nonce: 1, remote_nonce: 2 }];
    let option = MptcpOption::Priority { backup: true };
    assert!(connection.subflows[second].control.push(option.clone()));
    let mut place = Packet::default();
    assert!(!connection.next_acknowledgement(Instant::ZERO, &mut place), "it would carry the HMAC again, without end");
    connection.confirm_join(Instant::ZERO, second);
    assert!(connection.next_acknowledgement(Instant::ZERO, &mut place));
    assert_eq!(place.segment.options.mptcp.iter().collect::<Vec<_>>(), [&option]);
    assert!(!connection.next_acknowledgement(Instant::ZERO, &mut place));
}

#[test]
fn a_view_that_was_made_anew_has_another_number_and_one_that_is_the_same_keeps_its_own() {
    let mut connection = connected(config(), 2);
    let mut workspace = Workspace::default();
    let mut numbers = |connection: &mut Connection| {
        connection.refresh_views(&mut workspace);
        workspace.views.iter().map(|view| view.counters.changes).collect::<Vec<_>>()
    };
    let before = numbers(&mut connection);
    assert_eq!(numbers(&mut connection), before, "nothing has changed");
    connection.subflow_mut(SubflowId(1)).unwrap().mss = 500;
    let after = numbers(&mut connection);
    assert_eq!(after[0], before[0]);
    assert_ne!(after[1], before[1]);
}

#[test]
fn a_connection_is_readable_while_bytes_in_order_wait() {
    let mut connection = connected(config(), 1);
    assert!(!connection.is_readable());
    connection.receiver.buffer.insert(Instant::ZERO, 3, Bytes::from_static(b"later"));
    assert!(!connection.is_readable(), "behind a hole");
    connection.receiver.buffer.insert(Instant::ZERO, 0, Bytes::from_static(b"now"));
    assert!(connection.is_readable());
    assert_eq!(connection.read(Instant::ZERO, 100).as_deref(), Some(&b"now"[..]));
    assert_eq!(connection.read(Instant::ZERO, 100).as_deref(), Some(&b"later"[..]));
    assert!(!connection.is_readable());
}

#[test]
fn a_call_has_an_effect_on_others_if_something_is_to_be_sent_told_or_traced() {
    let rests = |change: fn(&mut Connection)| {
        let mut connection = connected(ConnectionConfig { trace: true, ..config() }, 1);
        while connection.output.poll_notice(ConnectionId(1)).is_some() {}
        while connection.output.poll_trace().is_some() {}
        connection.output.pending = false;
        change(&mut connection);
        connection.is_at_rest()
    };
    assert!(rests(|_| {}));
    assert!(!rests(|connection| connection.output.pending = true));
    assert!(!rests(|connection| connection.output.notify(Event::Readable(ConnectionId(1)))));
    assert!(!rests(|connection| connection.life.closed = Some(CloseCause::Finished)));
    assert!(!rests(|connection| {
        connection.output.record(TraceRecord::Blocked { connection: ConnectionId(1), hole: 0 });
    }));
}

#[test]
fn a_connection_rests_a_minute_after_its_last_segment_and_never_while_something_is_outstanding() {
    let minute = Instant::ZERO + Duration::from_secs(60);
    let due = |connection: &Connection| connection.timers.at(Timer::Rest);
    let mut connection = connected(config(), 2);
    assert_eq!(due(&connection), minute);
    connection.handle_timeout(minute);
    assert_eq!(due(&connection), Instant::NEVER);
    let mut busy = connected(config(), 2);
    let handle = first(&busy);
    put_new(&mut busy, handle, 1_000);
    assert!(busy.poll_transmit(Instant::ZERO, &mut Workspace::default(), &mut Packet::default()));
    busy.handle_timeout(minute);
    assert_eq!(due(&busy), minute + Duration::from_secs(60));
}

#[test]
fn what_moves_wakes_measurements_that_rest_and_no_others() {
    let wakes = |moved: u32, protocol: Protocol, closed: Option<CloseCause>| {
        let mut connection = connected(config(), 1);
        connection.measurement.every = Duration::from_millis(10);
        (connection.measurement.moved, connection.association.protocol) = (moved, protocol);
        connection.life.closed = closed;
        assert!(!connection.timers.runs(Timer::Measure));
        connection.wake_measurement(Instant::ZERO);
        connection.timers.runs(Timer::Measure)
    };
    assert!(wakes(1, Protocol::Multipath, None));
    assert!(!wakes(0, Protocol::Multipath, None), "they never began");
    assert!(!wakes(1, Protocol::Tcp, None), "there is nothing to choose");
    assert!(!wakes(1, Protocol::Multipath, Some(CloseCause::Finished)));
}

#[test]
fn an_attempt_waits_until_its_syn_is_answered() {
    let attempts = |state: State, id: u32| {
        let mut connection = connected(config(), 2);
        connection.subflow_mut(SubflowId(id)).unwrap().state = state;
        connection.has_attempts()
    };
    assert!(attempts(State::SynSent, 0));
    assert!(!attempts(State::Established, 0));
    assert!(!attempts(State::SynSent, 1), "a join is none");
}
