//! Tests of abandoned data in states that they set up.

use super::side::Side;
use super::state::{Gap, MessageError};
use crate::connection::state::Connection;
use crate::connection::tests::{config, connected};
use crate::connection::timer_table::Timer;
use crate::record::{Framing, MessageOptions};
use crate::subflow::receiver::AckDue;
use crate::{ConnectionConfig, Policies};
use anabranch_policy::ids::SubflowId;
use anabranch_policy::reliability::{self, Reason};
use anabranch_policy::table::{Settings, build};
use anabranch_policy::time::{Duration, Instant};
use anabranch_wire::message::MessageHeader;
use anabranch_wire::mptcp::notice::Notice;
use anabranch_wire::tcp::Timestamps;
use anabranch_wire::{Segment, SeqNumber};
use bytes::Bytes;
use std::sync::Arc;

fn giving_up(framing: Framing) -> Connection {
    let too_late = || build(reliability::TABLE, "too_late", &Settings::new()).unwrap();
    let policies = Policies { reliability: Arc::new(too_late), ..config().policies };
    connected(ConnectionConfig { framing, policies, ..config() }, 1)
}

#[test]
fn a_withdrawn_range_takes_the_last_byte_of_its_message_along() {
    let withdrawn = |framing: Framing, data_seq: u64| {
        let mut connection = giving_up(framing);
        connection.partial.as_mut().unwrap().notices.peer_withdrawn.push((10, 20));
        connection.withdrawn_by_peer(data_seq)
    };
    assert_eq!(withdrawn(Framing::Messages, 10), Some(21));
    assert_eq!(withdrawn(Framing::Bytes, 19), Some(20), "there are no messages");
    assert_eq!(withdrawn(Framing::Messages, 20), None);
}

#[test]
fn the_sender_has_acted_half_a_round_trip_after_it_heard_of_the_first_duplicate() {
    let acted = |later: u32| {
        let mut connection = giving_up(Framing::Messages);
        let handle = connection.subflows.first_handle().unwrap();
        let rule = connection.config.tcp.rto;
        connection.subflows[handle].rtt.sample(Duration::from_millis(100), rule);
        let side = Side { told: Some(40), ..Side::new() };
        connection.partial.as_mut().unwrap().skips.sides.insert(SubflowId(0), side);
        for value in [1_000, 1_000 + later] {
            let mut segment = Segment::default();
            segment.options.timestamps = Some(Timestamps { value, echo: 41 });
            connection.record_stamps(handle, &segment);
        }
        connection.partial.as_ref().unwrap().skips.sides.get(SubflowId(0)).unwrap().acted
    };
    assert_eq!(acted(50), None);
    assert_eq!(acted(51), Some(1_051));
}

#[test]
fn withdrawn_ranges_are_forgotten_when_the_stream_has_passed_them() {
    let left = |next: u64| {
        let mut connection = giving_up(Framing::Messages);
        let notices = &mut connection.partial.as_mut().unwrap().notices;
        notices.peer_knows = true;
        notices.peer_withdrawn.push((10, 20));
        connection.receiver.buffer.insert(Instant::ZERO, 0, Bytes::from(vec![0; next as usize]));
        let data_seq = connection.identity.remote.data_seq(1_000) as u32;
        connection.handle_notice(Instant::ZERO, &Notice::Withdrawn { data_seq, length: 5 }.option());
        connection.partial.as_ref().unwrap().notices.peer_withdrawn.clone()
    };
    assert_eq!(left(19), [(10, 20), (1_000, 1_005)], "a byte of it is to come");
    assert_eq!(left(20), [(1_000, 1_005)]);
}

#[test]
fn nothing_is_abandoned_before_the_peer_has_shown_that_it_understands() {
    let may = |receiver: bool, peer_knows: bool| {
        let mut connection = giving_up(Framing::Messages);
        let partial = connection.partial.as_mut().unwrap();
        assert!(partial.abandons());
        (partial.terms.receiver, partial.notices.peer_knows) = (receiver, peer_knows);
        connection.may_abandon()
    };
    assert!(!may(false, false));
    assert!(may(false, true) && may(true, false), "the peer knows, or need not");
}

#[test]
fn only_segments_that_overlap_what_was_skipped_repeat_it() {
    let repeats = |start: u32, end: u32| {
        let mut connection = giving_up(Framing::Messages);
        let handle = connection.subflows.first_handle().unwrap();
        let skipped = [(SeqNumber(100), SeqNumber(200))].into();
        connection.partial.as_mut().unwrap().skips.sides.insert(SubflowId(0), Side { skipped, ..Side::new() });
        let payload = Bytes::from(vec![0; (end - start) as usize]);
        connection.record_late_on_subflow(handle, &Segment { seq: SeqNumber(start), payload, ..Segment::default() });
        connection.partial.as_ref().unwrap().skips.sides.get(SubflowId(0)).unwrap().repeats
    };
    assert_eq!([repeats(50, 100), repeats(200, 250)], [0, 0]);
    assert_eq!([repeats(50, 101), repeats(199, 250), repeats(120, 150)], [1, 1, 1]);
}

#[test]
fn the_scheduler_is_told_of_missing_data_if_the_peer_has_reported_some() {
    let mut connection = giving_up(Framing::Messages);
    assert!(!connection.has_reports());
    let missing = (SubflowId(0), SeqNumber(10), SeqNumber(20));
    connection.partial.as_mut().unwrap().notices.missing.push(missing);
    assert!(connection.has_reports());
    assert!(!connected(config(), 1).has_reports());
}

#[test]
fn a_message_that_is_taken_out_ends_the_stream_only_if_it_is_the_last_of_it() {
    let ends = |closed: bool, behind: bool| {
        let policy = || build(reliability::TABLE, "mo_pr", &Settings::new().with("lifetime", 200)).unwrap();
        let policies = Policies { reliability: Arc::new(policy), ..config().policies };
        let mut connection = connected(ConnectionConfig { framing: Framing::Messages, policies, ..config() }, 1);
        let handle = connection.subflows.first_handle().unwrap();
        let lasting = MessageOptions { lifetime: Some(Duration::from_secs(60)), ..MessageOptions::default() };
        for options in [Some(MessageOptions::default()), behind.then_some(lasting)].into_iter().flatten() {
            let written = connection.write_message(Instant::ZERO, Bytes::from(vec![0; 5_000]), &options);
            assert!(matches!(written, Ok(Some(_))));
        }
        if closed {
            connection.close(Instant::ZERO);
        }
        // The window of the connection is closed: none of it was assigned.
        connection.judge_written(Instant::ZERO + Duration::from_millis(250));
        assert_eq!(connection.sender.buffer.end() > 0, behind, "the first was taken out");
        connection.subflows[handle].due.data_fin
    };
    assert!(ends(true, false));
    assert!(!ends(false, false), "the application may go on");
    assert!(!ends(true, true), "there is more to send");
}

#[test]
fn messages_may_be_withdrawn_in_mptcp_without_checksums_while_the_connection_is_open() {
    use crate::connection::association::Protocol;
    let may = |change: fn(&mut Connection)| {
        let mut connection = giving_up(Framing::Messages);
        let notices = &mut connection.partial.as_mut().unwrap().notices;
        notices.peer_knows = true;
        change(&mut connection);
        (connection.may_withdraw(), connection.may_tell())
    };
    assert_eq!(may(|_| {}), (true, true));
    assert_eq!(may(|connection| connection.association.protocol = Protocol::Tcp), (false, false));
    assert_eq!(may(|connection| connection.association.checksum = true), (false, false));
    assert_eq!(may(|connection| connection.life.closed = Some(crate::CloseCause::Finished)), (false, false));
    let deaf = |connection: &mut Connection| connection.partial.as_mut().unwrap().notices.peer_knows = false;
    assert_eq!(may(deaf), (true, false));
    let ignores =
        |connection: &mut Connection| connection.partial.as_mut().unwrap().withdrawals.peer_ignores_notices = true;
    assert_eq!(may(ignores), (true, false));
}

#[test]
fn of_messages_there_is_something_to_read_when_one_is_whole_and_of_bytes_at_once() {
    let readable = |framing: Framing| {
        let mut connection = giving_up(framing);
        connection.receiver.buffer.insert(Instant::ZERO, 0, Bytes::from_static(b"da"));
        connection.has_something_to_read()
    };
    assert!(!readable(Framing::Messages) && readable(Framing::Bytes));
}

#[test]
fn a_gap_is_over_when_what_comes_next_is_another_byte() {
    let mut side = Side::new();
    let mut come = |start: u32, next: u32| {
        let range = (SeqNumber(start), SeqNumber(start + 1_000));
        side.note((Instant::ZERO, 1), range, SeqNumber(next), u64::from(start));
        (side.gap.map(|(gap, _)| gap.0), side.in_order)
    };
    assert_eq!(come(2_000, 1_000), (Some(1_000), 0));
    assert_eq!(come(500, 1_000), (Some(1_000), 0), "a part of it is old, and the hole is still there");
    assert_eq!(come(1_000, 3_000), (None, 1_000), "it is filled");
    assert_eq!(come(3_000, 4_000), (None, 3_000));
}

#[test]
fn a_reset_soon_after_a_skip_is_put_down_to_it() {
    use anabranch_policy::path_manager::CloseReason;
    let is_off = |after: u64, why: CloseReason| {
        let mut connection = giving_up(Framing::Messages);
        let handle = connection.subflows.first_handle().unwrap();
        let subflow = &mut connection.subflows[handle];
        let (seq, ack) = (subflow.receiver.next, subflow.send.una);
        let heard = Segment { seq, ack, flags: anabranch_wire::Flags::ACK, ..Segment::default() };
        subflow.judge(Instant::ZERO + Duration::from_millis(after), &heard, 1_000);
        let side = Side { last_skip: Some(Instant::ZERO), ..Side::new() };
        connection.partial.as_mut().unwrap().skips.sides.insert(SubflowId(7), side);
        connection.record_subflow_gone(SubflowId(7), why);
        connection.partial.as_ref().unwrap().skips.skipping_is_off
    };
    assert!(is_off(9_999, CloseReason::Reset));
    assert!(!is_off(10_000, CloseReason::Reset) && !is_off(9_999, CloseReason::TimedOut));
}

#[test]
fn what_the_peer_misses_is_reinjected_once_unless_it_arrived_meanwhile() {
    use crate::event::SendKind;
    let ranges = |acknowledged: u64, sacked: bool| {
        let mut connection = giving_up(Framing::Messages);
        connection.sender.buffer.write(Bytes::from(vec![0; 2_000]));
        let handle = connection.subflows.first_handle().unwrap();
        let subflow = &mut connection.subflows[handle];
        let start = subflow.send.end;
        for at in [0, 1_000] {
            subflow.push(at, Bytes::from(vec![0; 1_000]), SendKind::New);
            assert!(subflow.scoreboard.send_next(Instant::ZERO).is_some());
        }
        if sacked {
            let mut blocks = anabranch_wire::tcp::SackBlocks::new();
            blocks.push(anabranch_wire::tcp::SackBlock { start: start + 1_000, end: start + 2_000 });
            subflow.scoreboard.acknowledge(Instant::ZERO, start, &blocks, &crate::subflow::scoreboard::Proofs::NONE);
        }
        connection.sender.buffer.acknowledge(acknowledged);
        let mut all = Vec::new();
        for _ in 0..2 {
            let missing = &mut connection.partial.as_mut().unwrap().notices.missing;
            missing.push((SubflowId(0), start, start + 2_000));
            connection.reinject_missing();
            all = connection.sender.reinjections.ranges.iter().map(|range| (range.start, range.end)).collect();
        }
        all
    };
    assert_eq!(ranges(0, false), [(0, 2_000)]);
    assert_eq!((ranges(999, false), ranges(1_000, false)), (vec![(0, 2_000)], vec![(1_000, 2_000)]));
    assert_eq!(ranges(0, true), [(0, 1_000)]);
}

#[test]
fn a_withdrawal_is_unheeded_until_the_data_ack_has_passed_it() {
    let unheeded = |acknowledged: u64| {
        let mut connection = giving_up(Framing::Messages);
        connection.sender.buffer.write(Bytes::from(vec![0; 100]));
        connection.partial.as_mut().unwrap().withdrawals.withdrawn.push_back((10, 20));
        connection.sender.buffer.acknowledge(acknowledged);
        connection.has_unheeded_withdrawals()
    };
    assert!(unheeded(0) && unheeded(19) && !unheeded(20));
    assert!(!giving_up(Framing::Messages).has_unheeded_withdrawals());
}

#[test]
fn messages_are_judged_when_that_is_due_and_only_where_they_may_be_withdrawn() {
    let judged = |millis: u64, checksum: bool| {
        let policy = || build(reliability::TABLE, "mo_pr", &Settings::new().with("lifetime", 200)).unwrap();
        let policies = Policies { reliability: Arc::new(policy), ..config().policies };
        let mut connection = connected(ConnectionConfig { framing: Framing::Messages, policies, ..config() }, 1);
        let message = Bytes::from(vec![0; 5_000]);
        let written = connection.write_message(Instant::ZERO, message, &MessageOptions::default());
        assert!(matches!(written, Ok(Some(_))));
        connection.association.checksum = checksum;
        let due = Instant::ZERO + Duration::from_millis(250);
        connection.partial.as_mut().unwrap().withdrawals.judge_written_at = due;
        connection.timers.stop(Timer::Missing);
        connection.judge_written(Instant::ZERO + Duration::from_millis(millis));
        (connection.sender.buffer.end() == 0, connection.timers.runs(Timer::Missing))
    };
    assert_eq!(judged(249, false), (false, true), "too late since 200 ms, but not due");
    assert!(judged(250, false).0);
    assert_eq!(judged(250, true), (false, false), "with checksums nothing is withdrawn");
}

#[test]
fn the_application_is_told_once_that_there_is_something_to_read() {
    let mut connection = giving_up(Framing::Bytes);
    while connection.output.poll_notice(connection.id).is_some() {}
    let mut told = |bytes: &'static [u8]| {
        let next = connection.receiver.buffer.next();
        connection.receiver.buffer.insert(Instant::ZERO, next, Bytes::from_static(bytes));
        connection.take_in_records(Instant::ZERO);
        core::iter::from_fn(|| connection.output.poll_notice(connection.id)).count()
    };
    assert_eq!([told(b""), told(b"some"), told(b"more")], [0, 1, 0]);
}

#[test]
fn a_gap_is_something_to_read_where_there_are_no_messages() {
    let mut connection = giving_up(Framing::Bytes);
    let partial = connection.partial.as_mut().unwrap();
    assert!(!partial.has_record());
    partial.gaps.push_back(Gap { offset: 0, length: 1_000, reason: Reason::ALL[0] });
    assert!(partial.has_record());
}

#[test]
fn a_message_may_be_as_long_as_the_send_buffer_and_one_that_does_not_fit_now_waits() {
    let connection = || {
        let config = ConnectionConfig { framing: Framing::Messages, send_buffer: 5_000, ..config() };
        connected(config, 1)
    };
    let header = anabranch_wire::message::HEADER;
    let write = |connection: &mut Connection, length: usize| {
        connection.write_message(Instant::ZERO, Bytes::from(vec![0; length - header]), &MessageOptions::default())
    };
    let mut whole = connection();
    assert!(matches!(write(&mut whole, 5_001), Err(MessageError::TooLong)));
    assert!(matches!(write(&mut whole, 5_000), Ok(Some(0))));
    let mut parts = connection();
    assert!(matches!(write(&mut parts, 2_000), Ok(Some(0))));
    assert!(matches!(write(&mut parts, 3_001), Ok(None)) && parts.life.write_was_short);
    assert!(matches!(write(&mut parts, 3_000), Ok(Some(1))) && !parts.life.write_was_short);
}

#[test]
fn a_send_buffer_that_grows_does_so_for_a_message_with_its_header() {
    let config =
        ConnectionConfig { framing: Framing::Messages, send_buffer: 5_000, send_buffer_max: 8_000, ..config() };
    let mut connection = connected(config, 1);
    let message = Bytes::from(vec![0; 6_000]);
    assert!(matches!(connection.write_message(Instant::ZERO, message, &MessageOptions::default()), Ok(Some(0))));
    assert_eq!(connection.sender.buffer.limit(), 6_000 + anabranch_wire::message::HEADER as u64);
}

#[test]
fn a_message_that_is_longer_than_the_window_opens_it_when_it_is_next_and_no_sooner() {
    let told = |before: Option<&[u8]>| {
        let mut connection = giving_up(Framing::Messages);
        let handle = connection.subflows.first_handle().unwrap();
        let header = |number, length| {
            let importance = MessageOptions::default().importance;
            MessageHeader { number, importance, length, play_out: 0 }.encode().unwrap().to_vec()
        };
        let mut stream =
            before.map_or_else(Vec::new, |payload| [header(0, payload.len() as u32).as_slice(), payload].concat());
        stream.extend(header(1, 1_000_000));
        let next = connection.receiver.buffer.next();
        connection.receiver.buffer.insert(Instant::ZERO, next, Bytes::from(stream));
        connection.subflows[handle].receiver.due = AckDue::No;
        connection.output.pending = false;
        connection.take_in_records(Instant::ZERO);
        (connection.subflows[handle].receiver.due == AckDue::Now, connection.output.pending)
    };
    assert_eq!(told(None), (true, true));
    assert_eq!(told(Some(b"not read yet")), (false, false));
}
