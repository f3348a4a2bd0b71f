use super::Steering;
use crate::command::{Command, Outcome};
use crate::event::{Event, Interface};
use crate::sample::{
    Bytes, CaState, Chronographs, ConnectionSample, Endpoints, HostSample, Last, Owner, Segments, SubflowSample,
    TcpState, Token,
};
use crate::settings::{Control, Settings};
use crate::status::Occasion;
use anabranch_policy::ids::{AddressId, ConnectionId, SubflowId};
use anabranch_policy::path_manager::{Measurements, PathAction, PathEvent, PathManager, TABLE};
use anabranch_policy::rate::Rate;
use anabranch_policy::table::{Settings as PolicySettings, build};
use anabranch_policy::time::{Duration, Instant};
use core::net::{IpAddr, SocketAddr};
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

mod attempts;
mod endings;
mod families;
mod renewal;

const TOKEN: Token = Token(7);

fn at(millis: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(millis)
}

fn endpoints(local: u8, port: u16) -> Endpoints {
    Endpoints { local: SocketAddr::from(([10, 0, local, 1], port)), remote: SocketAddr::from(([192, 0, 2, 1], 443)) }
}

/// A subflow at half of its window.
fn subflow(local: u8, port: u16) -> SubflowSample {
    SubflowSample {
        endpoints: endpoints(local, port),
        local_id: local - 1,
        remote_id: 0,
        backup_local: false,
        backup_remote: false,
        owner: Owner::default(),
        state: TcpState::Established,
        ca_state: CaState::Open,
        snd_mss: 1000,
        snd_cwnd: 20,
        snd_ssthresh: 0x7fff_ffff,
        segments: Segments { unacked: 10, ..Segments::default() },
        retransmits: 0,
        rtt: Duration::from_millis(20),
        rttvar: Duration::from_millis(2),
        min_rtt: Some(Duration::from_millis(18)),
        rto: Duration::from_millis(220),
        backoff: 0,
        last: Last::default(),
        pacing_rate: Rate::from_bits_per_second(8_000_000),
        delivery_rate: None,
        delivery_rate_app_limited: false,
        bytes: Bytes::default(),
        chronographs: Chronographs::default(),
        snd_wnd: Some(100_000),
    }
}

fn sample(at: Instant, subflows: Vec<SubflowSample>) -> HostSample {
    let (write_seq, snd_una) = (200_000, 0);
    let (fallback, closing) = (false, false);
    let connection = ConnectionSample { token: TOKEN, fallback, closing, write_seq, snd_una, rcv_nxt: 0, subflows };
    HostSample { at, connections: vec![connection] }
}

fn nothing(at: Instant) -> HostSample {
    HostSample { at, connections: Vec::new() }
}

/// What the path manager was told, and what it does next.
#[derive(Default)]
struct Script {
    heard: Vec<String>,
    next: Vec<PathAction>,
}

#[derive(Clone, Default)]
struct Scripted(Arc<Mutex<Script>>);

impl Scripted {
    fn heard(&self) -> Vec<String> {
        core::mem::take(&mut self.0.lock().unwrap().heard)
    }
    fn then(&self, action: PathAction) {
        self.0.lock().unwrap().next.push(action);
    }
}

impl PathManager for Scripted {
    fn handle(&mut self, _: Instant, event: &PathEvent<'_>, actions: &mut Vec<PathAction>) {
        let mut script = self.0.lock().unwrap();
        script.heard.push(match event {
            PathEvent::ConnectionEstablished { connection, role, .. } => format!("{connection:?} {role:?}"),
            PathEvent::ConnectionClosed { connection } => format!("{connection:?} closed"),
            PathEvent::SubflowEstablished { subflow, local, remote, .. } => {
                format!("{subflow:?} {} to {}", local.0, remote.0)
            }
            PathEvent::SubflowClosed { subflow, reason, .. } => format!("{subflow:?} {reason:?}"),
            PathEvent::Measured { subflows, .. } => format!("measured {}", subflows.len()),
            PathEvent::SubflowTimeout { subflow, .. } => format!("{subflow:?} timeout"),
            PathEvent::AddressAnnounced { id, remote, .. } => format!("{} is {remote}", id.0),
            other => format!("{other:?}"),
        });
        actions.append(&mut script.next);
    }
    fn measurements(&self) -> Measurements {
        Measurements::EveryRoundTrip
    }
}

fn scripted() -> (Scripted, Steering) {
    let script = Scripted::default();
    (script.clone(), Steering::new(Box::new(script), Settings::default()))
}

#[test]
fn a_connection_that_no_event_announced_is_adopted_with_its_subflows() {
    let (script, mut steering) = scripted();
    steering.handle_sample(&sample(at(0), vec![subflow(1, 40_000), subflow(2, 40_001)]));
    let heard = script.heard();
    assert_eq!(heard, ["connection 0 Client", "subflow 0 1 to 0", "subflow 1 2 to 0", "measured 2"]);
    assert_eq!(steering.counters().adopted, 1);
    // Events that say the same later change nothing.
    let (initial, joined) = (endpoints(1, 40_000), endpoints(2, 40_001));
    for event in [
        Event::Created { token: TOKEN, endpoints: initial, server: false },
        Event::Established { token: TOKEN, endpoints: initial, server: false, remote_denies_joins: false },
        Event::SubflowEstablished { token: TOKEN, endpoints: joined, local_id: 1, remote_id: 0, backup: false },
    ] {
        steering.handle_event(at(50), &event);
        assert!(script.heard().is_empty(), "{event:?}");
    }
}

/// Its program closed it before we began, and the peer has not yet.
#[test]
fn what_no_program_has_is_adopted_only_while_it_has_data_to_deliver() {
    for (snd_una, absent, count) in [(0, true, 1), (199_999, true, 0), (199_999, false, 1)] {
        let mut steering = scripted().1;
        let mut socket = subflow(1, 40_000);
        socket.owner.absent = absent;
        let mut sample = sample(at(0), vec![socket]);
        sample.connections[0].snd_una = snd_una;
        steering.handle_sample(&sample);
        assert_eq!(steering.counters().adopted, count, "{snd_una} {absent}");
    }
}

/// What a sample shows first may be announced after it; but not if events were lost.
#[test]
fn a_connection_that_begins_later_is_adopted_by_the_second_sample_that_has_it() {
    let created = Event::Created { token: TOKEN, endpoints: endpoints(1, 40_000), server: false };
    for (heard, counts) in [(None, [0, 1]), (Some(created), [0, 0])] {
        let mut steering = scripted().1;
        steering.handle_sample(&nothing(at(0)));
        let adopted = [100, 200].map(|millis| {
            steering.handle_sample(&sample(at(millis), vec![subflow(1, 40_000)]));
            let adopted = steering.counters().adopted;
            heard.iter().for_each(|event| steering.handle_event(at(millis + 50), event));
            adopted
        });
        assert_eq!((adopted, steering.connection_count()), (counts, 1), "{heard:?}");
    }
    let mut steering = scripted().1;
    steering.handle_sample(&nothing(at(0)));
    steering.handle_event(at(50), &Event::Overrun);
    steering.handle_sample(&sample(at(100), vec![subflow(1, 40_000)]));
    assert_eq!(steering.counters().adopted, 1);
}

#[test]
fn an_accepted_connection_is_known_by_its_lower_port() {
    let (script, mut steering) = scripted();
    steering.handle_sample(&sample(at(0), vec![subflow(1, 80)]));
    assert_eq!(script.heard()[0], "connection 0 Server");
}

#[test]
fn what_two_samples_lack_is_closed_and_after_lost_events_what_one_lacks() {
    let (script, mut steering) = scripted();
    steering.handle_sample(&sample(at(0), vec![subflow(1, 40_000), subflow(2, 40_001)]));
    script.heard();
    steering.handle_sample(&sample(at(100), vec![subflow(1, 40_000)]));
    assert_eq!(script.heard(), ["measured 2"]);
    steering.handle_sample(&sample(at(200), vec![subflow(1, 40_000)]));
    // No event said that the address is up.
    assert_eq!(script.heard(), ["subflow 1 AddressGone", "measured 1"]);
    steering.handle_event(at(250), &Event::Overrun);
    steering.handle_sample(&nothing(at(300)));
    assert_eq!(script.heard(), ["connection 0 closed"]);
    assert_eq!(steering.connections().count(), 0);
}

/// The kernel tells that the program has closed it, and keeps the socket until the peer does so too.
#[test]
fn what_its_program_has_closed_is_taken_up_again_only_while_it_has_data_to_deliver() {
    let (script, mut steering) = scripted();
    let created = Event::Created { token: TOKEN, endpoints: endpoints(1, 40_000), server: false };
    let left = |millis: u64, snd_una: u64| {
        let mut sample = sample(at(millis), vec![subflow(1, 40_000)]);
        sample.connections[0].snd_una = snd_una;
        sample
    };
    let known = |steering: &mut Steering, samples: [u64; 3]| {
        steering.handle_sample(&nothing(at(0)));
        steering.handle_event(at(10), &created);
        steering.handle_sample(&left(100, 0));
        steering.handle_event(at(110), &Event::Closed { token: TOKEN });
        assert_eq!(steering.connection_count(), 0);
        let mut millis = 100;
        let known = samples.map(|snd_una| {
            millis += 100;
            steering.handle_sample(&left(millis, snd_una));
            steering.connection_count()
        });
        script.heard();
        known
    };
    // Of 200,000 bytes the last is the end of the stream.
    assert_eq!(known(&mut steering, [199_999, 199_999, 200_000]), [0, 0, 0]);
    assert_eq!(steering.counters().adopted, 0);
    assert_eq!(known(&mut steering, [100_000, 150_000, 199_999]), [0, 1, 0]);
    assert_eq!(steering.counters().adopted, 0, "it was known before");
}

#[test]
fn closes_that_come_again_or_without_our_address_are_matched_or_counted() {
    let (script, mut steering) = scripted();
    let address = IpAddr::from([10, 0, 2, 1]);
    steering.handle_event(at(0), &Event::AddressUp { address, interface: Interface(2) });
    steering.handle_sample(&sample(at(0), vec![subflow(1, 40_000), subflow(2, 40_001)]));
    script.heard();
    let mut known = endpoints(2, 40_001);
    known.local.set_ip(IpAddr::from([0, 0, 0, 0]));
    let closed = Event::SubflowClosed { token: TOKEN, endpoints: known, error: 110 };
    steering.handle_event(at(10), &closed);
    assert_eq!(script.heard(), ["subflow 1 TimedOut"]);
    steering.handle_event(at(20), &closed);
    steering.handle_event(at(20), &Event::Closed { token: Token(99) });
    assert!(script.heard().is_empty());
    assert_eq!(steering.counters().unmatched_events, 2);
}

#[test]
fn a_token_and_ports_that_are_used_again_are_new() {
    let (script, mut steering) = scripted();
    let mut first = subflow(1, 40_000);
    first.bytes.acked = 5_000;
    let mut host = sample(at(0), vec![first]);
    host.connections[0].snd_una = 5_000;
    steering.handle_sample(&host);
    script.heard();
    steering.handle_sample(&sample(at(100), vec![subflow(1, 41_000)]));
    assert_eq!(script.heard()[..2], ["connection 0 closed", "connection 1 Client"]);
    let mut later = subflow(1, 41_000);
    later.bytes.acked = 900;
    steering.handle_sample(&sample(at(200), vec![later]));
    script.heard();
    steering.handle_sample(&sample(at(300), vec![subflow(1, 41_000)]));
    assert_eq!(script.heard(), ["subflow 0 AddressGone", "subflow 1 1 to 0", "measured 1"]);
    assert_eq!(steering.counters().reused, 2);
}

#[test]
fn a_connection_that_falls_back_is_left_alone() {
    let (script, mut steering) = scripted();
    steering.handle_sample(&sample(at(0), vec![subflow(1, 40_000)]));
    script.heard();
    let mut host = sample(at(100), vec![subflow(1, 40_000)]);
    host.connections[0].fallback = true;
    steering.handle_sample(&host);
    host.at = at(200);
    steering.handle_sample(&host);
    assert_eq!(script.heard(), ["connection 0 closed"]);
    assert!(steering.connections().next().unwrap().fallback);
}

#[test]
fn suspend_and_resume_are_the_backup_flag_and_a_probe_lifts_it_for_an_interval() {
    let (script, mut steering) = scripted();
    steering.handle_sample(&sample(at(0), vec![subflow(1, 40_000), subflow(2, 40_001)]));
    let connection = anabranch_policy::ids::ConnectionId(0);
    let (id, second) = (SubflowId(1), endpoints(2, 40_001));
    let set = |backup| Some(Command::SetBackup { token: TOKEN, endpoints: second, backup });
    script.then(PathAction::Suspend { connection, subflow: id });
    steering.handle_sample(&sample(at(100), vec![subflow(1, 40_000), subflow(2, 40_001)]));
    assert_eq!(steering.poll_command(), set(true));
    steering.handle_outcome(at(101), set(true).unwrap(), Outcome::Done);
    let mut demoted = subflow(2, 40_001);
    (demoted.backup_local, demoted.segments.unacked) = (true, 0);
    // Not before the pause of 2 s.
    script.then(PathAction::Probe { connection, subflow: id });
    steering.handle_sample(&sample(at(1000), vec![subflow(1, 40_000), demoted.clone()]));
    script.then(PathAction::Probe { connection, subflow: id });
    steering.handle_sample(&sample(at(1100), vec![subflow(1, 40_000), demoted.clone()]));
    assert_eq!(steering.poll_command(), None);
    script.then(PathAction::Probe { connection, subflow: id });
    steering.handle_sample(&sample(at(2200), vec![subflow(1, 40_000), demoted.clone()]));
    assert_eq!(steering.poll_command(), set(false));
    assert_eq!(steering.poll_timeout(), Some(at(2300)));
    steering.handle_timeout(at(2300));
    assert_eq!(steering.poll_command(), set(true));
    assert_eq!(steering.decisions().last().unwrap().why.occasion, Occasion::Probe);
    script.then(PathAction::Resume { connection, subflow: id });
    steering.handle_sample(&sample(at(2400), vec![subflow(1, 40_000), demoted]));
    assert_eq!(steering.poll_command(), set(false));
    assert_eq!(steering.poll_timeout(), None);
}

/// Full mesh on a host with two addresses and no connection.
fn without_connections(control: Control) -> Steering {
    let manager = build(TABLE, "full_mesh", &PolicySettings::new()).unwrap();
    let mut steering = Steering::new(manager, Settings { control, ..Settings::default() });
    for last in [1, 2] {
        let address = IpAddr::from([10, 0, last, 1]);
        steering.handle_event(at(0), &Event::AddressUp { address, interface: Interface(u32::from(last)) });
    }
    steering
}

fn full_mesh(control: Control) -> Steering {
    let mut steering = without_connections(control);
    let event =
        Event::Established { token: TOKEN, endpoints: endpoints(1, 40_000), server: false, remote_denies_joins: false };
    steering.handle_event(at(0), &event);
    steering
}

#[test]
fn full_mesh_joins_from_the_second_address_and_again_after_a_refusal() {
    let mut steering = full_mesh(Control::Subflows);
    let join = Command::CreateSubflow {
        token: TOKEN,
        local: IpAddr::from([10, 0, 2, 1]),
        local_id: 2,
        remote: SocketAddr::from(([192, 0, 2, 1], 443)),
        backup: false,
    };
    assert_eq!(steering.poll_command(), Some(join));
    assert_eq!(steering.poll_command(), None);
    steering.handle_outcome(at(10), join, Outcome::Refused(101));
    steering.handle_timeout(at(1010));
    assert_eq!(steering.poll_command(), Some(join));
    assert_eq!(steering.counters().refused, 1);
}

#[test]
fn a_join_that_is_there_is_not_opened_again() {
    let mut steering = without_connections(Control::Subflows);
    steering.handle_sample(&sample(at(0), vec![subflow(1, 40_000), subflow(2, 40_001)]));
    assert_eq!(steering.counters().adopted, 1);
    assert_eq!(steering.poll_command(), None);
    assert_eq!(steering.counters().impossible_actions, 0);
}

#[test]
fn a_subflow_that_ends_without_our_doing_is_opened_again() {
    for by_us in [true, false] {
        let mut steering = without_connections(Control::Subflows);
        steering.handle_sample(&sample(at(0), vec![subflow(1, 40_000), subflow(2, 40_001)]));
        let endpoints = endpoints(2, 40_001);
        if by_us {
            steering.push(at(100), Occasion::Change, TOKEN, Command::DestroySubflow { token: TOKEN, endpoints });
            steering.poll_command();
        }
        steering.handle_event(at(200), &Event::SubflowClosed { token: TOKEN, endpoints, error: 0 });
        steering.handle_timeout(at(5_000));
        let again = matches!(steering.poll_command(), Some(Command::CreateSubflow { .. }));
        assert_eq!(again, !by_us);
    }
}

#[test]
fn the_socket_that_a_closed_subflow_leaves_is_none() {
    let (script, mut steering) = scripted();
    for last in [1, 2] {
        let address = IpAddr::from([10, 0, last, 1]);
        steering.handle_event(at(0), &Event::AddressUp { address, interface: Interface(u32::from(last)) });
    }
    steering.handle_sample(&sample(at(0), vec![subflow(1, 40_000), subflow(2, 40_001)]));
    let endpoints = endpoints(2, 40_001);
    steering.handle_event(at(50), &Event::SubflowClosed { token: TOKEN, endpoints, error: 0 });
    let mut left = subflow(2, 40_001);
    left.state = TcpState::Closing;
    steering.handle_sample(&sample(at(100), vec![subflow(1, 40_000), left]));
    assert_eq!(steering.connections().next().map(|connection| connection.subflows.len()), Some(1));
    script.then(PathAction::CreateSubflow {
        connection: ConnectionId(0),
        local: AddressId(2),
        remote: AddressId(0),
        backup: false,
    });
    script.heard();
    steering.handle_sample(&sample(at(200), vec![subflow(1, 40_000)]));
    assert_eq!(steering.counters().impossible_actions, 0);
    assert!(matches!(steering.poll_command(), Some(Command::CreateSubflow { .. })));
}

#[test]
fn an_attempt_whose_next_syn_would_be_late_gives_way_to_a_new_one() {
    let (script, mut steering) = scripted();
    let addresses = [(1, 2), (2, 3)].map(|(net, interface)| Event::AddressUp {
        address: IpAddr::from([10, 0, net, 1]),
        interface: Interface(interface),
    });
    addresses.iter().for_each(|event| steering.handle_event(at(0), event));
    let attempt = |rto| SubflowSample { state: TcpState::Opening, rto: Duration::from_secs(rto), ..subflow(2, 40_001) };
    let mut then = |millis, attempt: SubflowSample| {
        script.then(PathAction::CreateSubflow {
            connection: ConnectionId(0),
            local: AddressId(2),
            remote: AddressId(0),
            backup: false,
        });
        steering.handle_sample(&sample(at(millis), vec![subflow(1, 40_000), attempt]));
        core::iter::from_fn(|| steering.poll_command()).collect::<Vec<_>>()
    };
    assert_eq!(then(0, attempt(1)), []);
    assert_eq!(then(1_000, attempt(2)), []);
    let commands = then(3_000, attempt(4));
    let destroyed = Command::DestroySubflow { token: TOKEN, endpoints: endpoints(2, 40_001) };
    assert_eq!(commands.first(), Some(&destroyed), "{commands:?}");
    assert!(matches!(commands[1..], [Command::CreateSubflow { .. }]), "{commands:?}");
}

#[test]
fn where_only_priorities_can_be_changed_joins_are_dropped_and_counted() {
    let mut steering = full_mesh(Control::Priorities);
    assert_eq!(steering.poll_command(), None);
    assert_eq!(steering.counters().impossible_actions, 1);
}

#[test]
fn timeouts_are_counted_by_what_grows() {
    let (script, mut steering) = scripted();
    let mut second = subflow(2, 40_001);
    steering.handle_sample(&sample(at(0), vec![subflow(1, 40_000), second.clone()]));
    script.heard();
    (second.retransmits, second.backoff) = (1, 1);
    steering.handle_sample(&sample(at(100), vec![subflow(1, 40_000), second.clone()]));
    assert_eq!(script.heard(), ["subflow 1 timeout", "measured 2"]);
    steering.handle_sample(&sample(at(200), vec![subflow(1, 40_000), second]));
    assert_eq!(script.heard(), ["measured 2"]);
}

#[test]
fn subflows_of_a_reserved_address_are_backups_until_it_is_not_reserved_any_more() {
    let (script, mut steering) = scripted();
    let second = IpAddr::from([10, 0, 2, 1]);
    steering.handle_event(at(0), &Event::AddressUp { address: second, interface: Interface(2) });
    steering.reserve(at(0), [second].into());
    let both = || vec![subflow(1, 40_000), subflow(2, 40_001)];
    steering.handle_sample(&sample(at(0), both()));
    let set = |backup| Some(Command::SetBackup { token: TOKEN, endpoints: endpoints(2, 40_001), backup });
    assert_eq!(steering.poll_command(), set(true));
    assert_eq!(steering.decisions().last().unwrap().why.occasion, Occasion::Role);
    // It is refused, so it is said again, but not at once.
    steering.handle_outcome(at(1), set(true).unwrap(), Outcome::Refused(22));
    steering.handle_sample(&sample(at(100), both()));
    assert_eq!(steering.poll_command(), None);
    steering.handle_sample(&sample(at(1_100), both()));
    assert_eq!(steering.poll_command(), set(true));
    // The path manager cannot promote it.
    let (connection, id) = (ConnectionId(0), SubflowId(1));
    script.then(PathAction::SetBackup { connection, subflow: id, backup: false });
    let mut reserve = subflow(2, 40_001);
    reserve.backup_local = true;
    steering.handle_sample(&sample(at(1_200), vec![subflow(1, 40_000), reserve]));
    assert_eq!(steering.poll_command(), None);
    steering.reserve(at(2_000), [].into());
    assert_eq!((steering.poll_command(), steering.poll_command()), (set(false), None));
}

#[test]
fn what_is_opened_from_a_reserved_address_is_a_backup() {
    let (script, mut steering) = scripted();
    let second = IpAddr::from([10, 0, 2, 1]);
    steering.handle_event(at(0), &Event::AddressUp { address: second, interface: Interface(2) });
    steering.reserve(at(0), [second].into());
    let (connection, remote) = (ConnectionId(0), AddressId(0));
    script.then(PathAction::CreateSubflow { connection, local: AddressId(1), remote, backup: false });
    steering.handle_sample(&sample(at(0), vec![subflow(1, 40_000)]));
    assert!(matches!(steering.poll_command(), Some(Command::CreateSubflow { backup: true, .. })));
}

#[test]
fn subflows_of_an_address_that_is_gone_are_closed_but_for_the_last() {
    let (_, mut steering) = scripted();
    for last in [1, 2] {
        let address = IpAddr::from([10, 0, last, 1]);
        steering.handle_event(at(0), &Event::AddressUp { address, interface: Interface(u32::from(last)) });
    }
    steering.handle_sample(&sample(at(0), vec![subflow(1, 40_000), subflow(2, 40_001)]));
    steering.handle_event(at(10), &Event::AddressDown { address: IpAddr::from([10, 0, 2, 1]) });
    let close = Command::DestroySubflow { token: TOKEN, endpoints: endpoints(2, 40_001) };
    assert_eq!(steering.poll_command(), Some(close));
    let event = Event::SubflowClosed { token: TOKEN, endpoints: endpoints(2, 40_001), error: 0 };
    steering.handle_event(at(20), &event);
    steering.handle_event(at(30), &Event::AddressDown { address: IpAddr::from([10, 0, 1, 1]) });
    assert_eq!(steering.poll_command(), None);
}

/// RFC 8684, 3.4.1: the address of the first subflow has identifier 0.
#[test]
fn an_address_is_withdrawn_by_the_identifiers_that_the_peer_has_of_it() {
    let removed = |subflows: &[(u8, u16, u8)], announced: bool, gone: u8| {
        let (script, mut steering) = scripted();
        for last in [1, 2] {
            let address = IpAddr::from([10, 0, last, 1]);
            steering.handle_event(at(0), &Event::AddressUp { address, interface: Interface(last.into()) });
        }
        let (connection, local) = (ConnectionId(0), AddressId(gone));
        if announced {
            script.then(PathAction::Announce { connection, local });
        }
        let (endpoints, server) = (endpoints(1, 40_000), false);
        let event = Event::Established { token: TOKEN, endpoints, server, remote_denies_joins: false };
        steering.handle_event(at(1), &event);
        let subflows =
            subflows.iter().map(|(local, port, id)| SubflowSample { local_id: *id, ..subflow(*local, *port) });
        let subflows: Vec<SubflowSample> = subflows.collect();
        for millis in [100, 200] {
            steering.handle_sample(&sample(at(millis), subflows.clone()));
        }
        script.then(PathAction::Remove { connection, local });
        steering.handle_event(at(300), &Event::AddressDown { address: IpAddr::from([10, 0, gone, 1]) });
        let commands = core::iter::from_fn(|| steering.poll_command());
        let removals = commands.filter_map(|command| match command {
            Command::Remove { local_id, .. } => Some(local_id),
            _ => None,
        });
        (removals.collect::<Vec<u8>>(), steering.counters().impossible_actions)
    };
    assert_eq!(removed(&[(1, 40_000, 0), (2, 40_001, 2)], false, 1), (vec![0], 0));
    assert_eq!(removed(&[(1, 40_000, 0), (2, 40_001, 2)], false, 2), (vec![2], 0));
    // A join that was accepted at the first address, and one that we opened from it.
    assert_eq!(removed(&[(1, 40_000, 0), (1, 40_002, 0)], false, 1), (vec![0], 0));
    assert_eq!(removed(&[(1, 40_000, 0), (1, 40_002, 1)], false, 1), (vec![0, 1], 0));
    // The first one has ended, and another was opened from its address.
    assert_eq!(removed(&[(1, 40_002, 1), (2, 40_001, 2)], false, 1), (vec![1], 0));
    // Nobody uses it: the peer knows it if it was announced.
    assert_eq!(removed(&[(1, 40_000, 0)], true, 2), (vec![2], 0));
    assert_eq!(removed(&[(1, 40_000, 0)], false, 2), (vec![], 0));
}

/// Further addresses of an interface lead over the same path.
#[test]
fn one_address_of_an_interface_is_announced_and_joined_from() {
    let manager = build(TABLE, "full_mesh", &PolicySettings::new()).unwrap();
    let mut steering = Steering::new(manager, Settings::default());
    for last in 1..=3 {
        let address = IpAddr::from([10, 0, last, 1]);
        steering.handle_event(at(0), &Event::AddressUp { address, interface: Interface(if last < 3 { 1 } else { 2 }) });
    }
    for (token, server) in [(TOKEN, false), (Token(8), true)] {
        let event = Event::Established { token, endpoints: endpoints(1, 40_000), server, remote_denies_joins: false };
        steering.handle_event(at(1), &event);
    }
    let commands: Vec<_> = core::iter::from_fn(|| steering.poll_command()).collect();
    let third = IpAddr::from([10, 0, 3, 1]);
    let beside = |command: &Command| match *command {
        Command::Announce { address, .. } => address != third,
        Command::CreateSubflow { local, .. } => local != third,
        _ => false,
    };
    assert!(!commands.is_empty() && !commands.iter().any(beside), "{commands:?}");
}

/// The machine before made a backup of one for its role, and demoted the other.
#[test]
fn what_the_machine_before_held_back_is_used_again() {
    let held = |local: u8, port: u16| SubflowSample { backup_local: true, ..subflow(local, port) };
    let both = || sample(at(0), vec![held(1, 40_000), held(2, 40_001)]);
    let (script, mut before) = scripted();
    before.reserve(at(0), BTreeSet::from([IpAddr::from([10, 0, 1, 1])]));
    script.then(PathAction::Suspend { connection: ConnectionId(0), subflow: SubflowId(1) });
    before.handle_sample(&both());
    let promotions = |steering: &mut Steering| {
        core::iter::from_fn(|| steering.poll_command())
            .filter(|command| matches!(command, Command::SetBackup { backup: false, .. }))
            .count()
    };
    assert_eq!(before.held_back().len(), 2);
    for (reserved, count) in [(BTreeSet::new(), 2), (BTreeSet::from([IpAddr::from([10, 0, 1, 1])]), 1)] {
        let mut next = scripted().1;
        next.reserve(at(50), reserved);
        next.inherit(before.held_back());
        next.handle_sample(&both());
        assert_eq!(promotions(&mut next), count);
        // Once: later backups are others' doing.
        next.handle_sample(&sample(at(100), vec![held(1, 40_000), held(2, 40_001)]));
        assert_eq!(promotions(&mut next), 0);
    }
}
