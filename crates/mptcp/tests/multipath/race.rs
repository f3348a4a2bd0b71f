//! A connection starts on the path that answers first (RFC 8305, section 5).

use super::orders::obedient_pair;
use crate::pair::{Fate, PORT, Pair, address, address_v6, config, pattern};
use anabranch_mptcp::{CloseCause, ConnectionConfig, Event, InitialPath, Protocol};
use anabranch_policy::ids::{AddressId, ConnectionId, SubflowId};
use anabranch_policy::time::{Duration, Instant};
use anabranch_wire::{Flags, IcmpError, MptcpOption, Packet, Trouble, Unreachable};
use std::net::{IpAddr, SocketAddr};

const SYN_ONLY: fn(&Packet) -> bool =
    |packet| packet.segment.flags.contains(Flags::SYN) && !packet.segment.flags.contains(Flags::ACK);

fn ms(millis: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(millis)
}

/// The client's end of a packet's path.
fn client_of(from: usize, packet: &Packet) -> IpAddr {
    if from == 0 { packet.ip.source } else { packet.ip.destination }
}

/// Everything from and to these addresses of the client is lost before `until`.
fn kill(pair: &mut Pair, dead: &[IpAddr], until: Instant) {
    let dead = dead.to_vec();
    pair.judge =
        Box::new(
            move |from, now, packet| {
                if now < until && dead.contains(&client_of(from, packet)) { Fate::Drop } else { Fate::Deliver }
            },
        );
}

/// A router on the first path makes resets of the server's answers.
fn refuse_on_the_first_path(from: usize, _: Instant, packet: &Packet) -> Fate {
    if from == 0 || client_of(from, packet) != address(0, 0) {
        return Fate::Deliver;
    }
    let mut reset = packet.clone();
    reset.segment.flags = Flags::RST | Flags::ACK;
    reset.segment.options = Default::default();
    Fate::Instead(Box::new(reset))
}

/// When and from where the client sent SYNs, without joins.
fn asked(pair: &Pair) -> Vec<(Instant, IpAddr)> {
    let opens = |packet: &Packet| {
        SYN_ONLY(packet) && !packet.segment.options.mptcp.iter().any(|o| matches!(o, MptcpOption::JoinSyn { .. }))
    };
    pair.sent[0].iter().filter(|(_, packet)| opens(packet)).map(|(at, packet)| (*at, packet.ip.source)).collect()
}

fn resets(pair: &Pair, host: usize) -> Vec<&Packet> {
    let each = pair.sent[host].iter().map(|(_, packet)| packet);
    each.filter(|packet| packet.segment.flags.contains(Flags::RST)).collect()
}

fn server() -> SocketAddr {
    SocketAddr::new(address(1, 0), PORT)
}

fn again(pair: &mut Pair, config: ConnectionConfig) -> ConnectionId {
    let id = pair.hosts[0].connect(pair.now, Some(address(0, 0)), server(), config).unwrap();
    pair.settle();
    id
}

fn again_from_any(pair: &mut Pair) {
    pair.hosts[0].connect(pair.now, None, server(), config()).unwrap();
    pair.settle();
}

/// Advances time until an event of the client.
fn until_event(pair: &mut Pair, event: Event, limit: Duration) -> Option<Instant> {
    let end = pair.now + limit;
    loop {
        if pair.events[0].contains(&event) {
            return Some(pair.now);
        }
        if !pair.step(end) {
            return None;
        }
    }
}

#[test]
fn a_dead_first_path_costs_250_ms_and_what_was_written_before_goes_with_the_winner() {
    let mut pair = Pair::new(2);
    kill(&mut pair, &[address(0, 0)], Instant::NEVER);
    let id = pair.connect(config(), config());
    assert_eq!(pair.write_all(0, id, &pattern(50_000), Duration::ZERO), 0);
    assert_eq!(until_event(&mut pair, Event::Connected(id), Duration::from_secs(2)), Some(ms(250 + 20)));
    assert_eq!(asked(&pair), [(ms(0), address(0, 0)), (ms(250), address(0, 1))]);
    pair.run(Duration::from_secs(1));
    assert_eq!(pair.received[1], pattern(50_000));
    assert_eq!(pair.hosts[0].protocol(id), Some(Protocol::Multipath));
    let first = pair.hosts[0].subflow_reports(id)[0].clone();
    assert_eq!((first.view.id, first.local.ip()), (SubflowId(0), address(0, 1)));
    // The loser is reset, and the application sees only one subflow.
    let losers: Vec<_> = resets(&pair, 0).iter().map(|packet| packet.ip.source).collect();
    assert_eq!(losers, [address(0, 0)]);
    let ended = |event: &Event| matches!(event, Event::SubflowClosed(..) | Event::Closed(..));
    assert!(!pair.events[0].iter().any(ended), "{:?}", pair.events[0]);
}

#[test]
fn with_all_paths_dead_but_the_last_it_is_asked_before_300_ms() {
    let mut pair = Pair::new(4);
    let dead: Vec<_> = (0..3).map(|at| address(0, at)).collect();
    kill(&mut pair, &dead, Instant::NEVER);
    let id = pair.connect(config(), config());
    assert_eq!(until_event(&mut pair, Event::Connected(id), Duration::from_secs(2)), Some(ms(290 + 20)));
    let times: Vec<_> = asked(&pair).iter().map(|(at, _)| *at).collect();
    assert_eq!(times, [ms(0), ms(250), ms(270), ms(290)]);
}

#[test]
fn a_first_path_that_answers_in_time_has_the_connection_to_itself() {
    let mut pair = Pair::new(3);
    pair.delay[0] = Duration::from_millis(124);
    let id = pair.connect(config(), config());
    pair.run(Duration::from_secs(2));
    assert_eq!(asked(&pair), [(ms(0), address(0, 0))]);
    assert!(resets(&pair, 0).is_empty());
    assert_eq!(pair.hosts[0].subflow_reports(id)[0].local.ip(), address(0, 0));
}

#[test]
fn the_next_connection_begins_on_the_path_that_a_join_has_shown_to_be_much_shorter_unless_an_address_is_named() {
    let mut pair = Pair::new(2);
    pair.judge = Box::new(|from, _, packet| {
        let slow = client_of(from, packet) == address(0, 0);
        if slow { Fate::Late(Duration::from_millis(90)) } else { Fate::Deliver }
    });
    let id = pair.connect(config(), config());
    pair.write_all(0, id, &pattern(1_000), Duration::ZERO);
    pair.run(Duration::from_secs(1));
    assert_eq!(asked(&pair), [(ms(0), address(0, 0))]);
    for (named, begins) in [(None, 1), (Some(address(0, 0)), 0)] {
        let (before, now) = (asked(&pair).len(), pair.now);
        let id = pair.hosts[0].connect(now, named, server(), config()).unwrap();
        pair.settle();
        assert!(until_event(&mut pair, Event::Connected(id), Duration::from_secs(1)).is_some());
        assert_eq!(asked(&pair)[before..], [(now, address(0, begins))]);
    }
}

#[test]
fn a_late_syn_ack_of_a_loser_is_answered_with_a_reset_and_the_peer_accepts_one_connection() {
    let (mut pair, _) = obedient_pair(2);
    pair.judge = Box::new(|from, _, packet| {
        let slow = client_of(from, packet) == address(0, 0);
        if slow { Fate::Late(Duration::from_millis(190)) } else { Fate::Deliver }
    });
    let id = pair.connect(config(), config());
    // The round trip is 400 ms on the first path and 20 ms on the second.
    pair.run(Duration::from_secs(2));
    assert!(pair.events[0].contains(&Event::Connected(id)));
    assert_eq!(pair.hosts[0].subflow_reports(id)[0].local.ip(), address(0, 1));
    // At 270 ms the first is reset; at 400 ms its SYN/ACK arrives.
    let of_loser = |(at, packet): &&(Instant, Packet)| *at > ms(0) && packet.ip.source == address(0, 0);
    let after: Vec<_> = pair.sent[0].iter().filter(of_loser).map(|(at, packet)| (*at, packet.segment.flags)).collect();
    assert_eq!(after, [(ms(270), Flags::RST), (ms(400), Flags::RST)]);
    let accepted = pair.events[1].iter().filter(|event| matches!(event, Event::Accepted { .. })).count();
    assert_eq!(accepted, 1);
    assert_eq!(pair.hosts[1].connection_count(), 1);
}

#[test]
fn an_earlier_attempt_that_answers_first_wins() {
    let (mut pair, _) = obedient_pair(2);
    pair.delay[0] = Duration::from_millis(150);
    let id = pair.connect(config(), config());
    pair.run(Duration::from_secs(2));
    assert_eq!(asked(&pair).len(), 2);
    assert_eq!(pair.hosts[0].subflow_reports(id)[0].local.ip(), address(0, 0));
    assert!(pair.events[0].contains(&Event::Connected(id)));
    assert_eq!(pair.hosts[1].connection_count(), 1);
}

#[test]
fn the_other_addresses_join_the_winner_and_a_path_that_answers_is_asked_first_again() {
    let mut pair = Pair::new(2);
    kill(&mut pair, &[address(0, 0)], ms(260));
    let id = pair.connect(config(), config());
    pair.write_all(0, id, &pattern(1_000), Duration::ZERO);
    pair.run(Duration::from_secs(2));
    let mut locals: Vec<_> = pair.hosts[0].subflow_reports(id).iter().map(|report| report.local.ip()).collect();
    locals.sort_unstable();
    locals.dedup();
    assert_eq!(locals, [address(0, 0), address(0, 1)]);
    let before = asked(&pair).len();
    again(&mut pair, config());
    pair.run(Duration::from_secs(1));
    assert_eq!(asked(&pair)[before..], [(ms(2_000), address(0, 0))]);
}

#[test]
fn an_address_that_was_not_answered_is_asked_last_and_after_a_while_first_again() {
    let (mut pair, _) = obedient_pair(2);
    kill(&mut pair, &[address(0, 0)], Instant::NEVER);
    pair.connect(config(), config());
    pair.run(Duration::from_secs(1));
    for (wait, from) in [(0, 1), (10, 1), (10, 0)] {
        pair.run(Duration::from_secs(wait));
        let (before, now) = (asked(&pair).len(), pair.now);
        let id = again(&mut pair, config());
        assert!(until_event(&mut pair, Event::Connected(id), Duration::from_secs(1)).is_some());
        assert_eq!(asked(&pair)[before], (now, address(0, from)), "after {wait} s more");
        let attempts = asked(&pair).len() - before;
        assert_eq!(attempts, if from == 1 { 1 } else { 2 });
    }
}

#[test]
fn when_all_paths_are_dead_and_one_comes_back_the_connection_is_opened_over_that() {
    let mut pair = Pair::new(2);
    kill(&mut pair, &[address(0, 0)], Instant::NEVER);
    let kill_first = std::mem::replace(&mut pair.judge, Box::new(|_, _, _| Fate::Deliver));
    let mut kill_first = kill_first;
    pair.judge =
        Box::new(move |from, now, packet| if now < ms(4_000) { Fate::Drop } else { kill_first(from, now, packet) });
    let id = pair.connect(config(), config());
    // SYNs from the second address at 0.25, 1.25, 3.25 and 7.25 s.
    assert_eq!(until_event(&mut pair, Event::Connected(id), Duration::from_secs(30)), Some(ms(7_270)));
}

#[test]
fn when_nobody_ever_answers_the_application_hears_once_that_it_timed_out() {
    let mut pair = Pair::new(3);
    let dead: Vec<IpAddr> = (0..3).map(|path| address(0, path)).collect();
    kill(&mut pair, &dead, Instant::NEVER);
    let mut config = config();
    config.tcp.syn_attempts = 3;
    let id = pair.connect(config.clone(), config);
    pair.run(Duration::from_secs(60));
    let ends: Vec<_> = pair.events[0].iter().filter(|event| matches!(event, Event::Closed(..))).collect();
    assert_eq!(ends, [&Event::Closed(id, CloseCause::TimedOut)]);
    assert_eq!(pair.hosts[0].connection_count(), 0);
    assert_eq!(pair.hosts[0].poll_timeout(), Instant::NEVER);
}

#[test]
fn after_a_refusal_the_next_is_asked_at_once_and_a_silent_path_does_not_hide_it() {
    // The port is closed.
    let mut pair = Pair::new(2);
    let id = pair.hosts[0].connect(pair.now, Some(address(0, 0)), server(), config()).unwrap();
    pair.settle();
    let refused = Event::Closed(id, CloseCause::Refused);
    assert_eq!(until_event(&mut pair, refused, Duration::from_secs(1)), Some(ms(40)));
    assert_eq!(asked(&pair), [(ms(0), address(0, 0)), (ms(20), address(0, 1))]);

    let mut pair = Pair::new(2);
    kill(&mut pair, &[address(0, 0)], Instant::NEVER);
    let id = pair.hosts[0].connect(pair.now, Some(address(0, 0)), server(), config()).unwrap();
    pair.settle();
    let refused = Event::Closed(id, CloseCause::Refused);
    assert_eq!(until_event(&mut pair, refused, Duration::from_secs(10)), Some(ms(250 + 20 + 1_500)));
    assert_eq!(pair.hosts[0].connection_count(), 0);
}

#[test]
fn a_path_whose_router_refuses_does_not_keep_another_from_answering() {
    let mut pair = Pair::new(2);
    pair.judge = Box::new(refuse_on_the_first_path);
    let id = pair.connect(config(), config());
    assert_eq!(until_event(&mut pair, Event::Connected(id), Duration::from_secs(1)), Some(ms(40)));
}

#[test]
fn the_attempt_after_a_refusal_has_time_of_its_own() {
    let mut pair = Pair::new(2);
    pair.delay[1] = Duration::from_millis(290);
    pair.judge = Box::new(refuse_on_the_first_path);
    let id = pair.connect(config(), config());
    // Refused after 20 ms; the other round trip takes 300 ms, longer than the first attempt had at the start.
    assert_eq!(until_event(&mut pair, Event::Connected(id), Duration::from_secs(1)), Some(ms(320)));
}

/// Answers the latest SYN from this address with an ICMP error; returns whether the client believed it.
fn report(pair: &mut Pair, from: IpAddr, what: Unreachable) -> bool {
    let of_it = |(_, packet): &&(Instant, Packet)| SYN_ONLY(packet) && packet.ip.source == from;
    let (_, syn) = pair.sent[0].iter().rev().find(of_it).expect("a SYN");
    let (source, destination) = (syn.ip.source, syn.ip.destination);
    let error = IcmpError {
        source: SocketAddr::new(source, syn.segment.source_port),
        destination: SocketAddr::new(destination, syn.segment.destination_port),
        seq: syn.segment.seq,
        trouble: Trouble::Unreachable(what),
    };
    let believed = pair.hosts[0].handle_icmp_error(pair.now, &error);
    pair.settle();
    believed
}

#[test]
fn a_path_that_does_not_reach_the_peer_ends_its_own_attempt_and_the_next_begins_at_once() {
    for what in [Unreachable::Network, Unreachable::Host, Unreachable::Port] {
        let mut pair = Pair::new(2);
        kill(&mut pair, &[address(0, 0)], Instant::NEVER);
        let id = pair.connect(config(), config());
        pair.run(Duration::from_millis(5));
        assert!(report(&mut pair, address(0, 0), what));
        assert!(!report(&mut pair, address(0, 0), what), "the attempt is over");
        assert_eq!(until_event(&mut pair, Event::Connected(id), Duration::from_secs(2)), Some(ms(25)));
        assert_eq!(asked(&pair), [(ms(0), address(0, 0)), (ms(5), address(0, 1))]);
        let ended = |event: &Event| matches!(event, Event::SubflowClosed(..) | Event::Closed(..));
        assert!(!pair.events[0].iter().any(ended), "{what:?}: {:?}", pair.events[0]);
    }
}

#[test]
fn a_path_that_does_not_reach_the_peer_takes_no_time_from_another_that_has_not_answered_yet() {
    let mut pair = Pair::new(2);
    kill(&mut pair, &[address(0, 0), address(0, 1)], ms(6_000));
    let id = pair.connect(config(), config());
    pair.run(Duration::from_millis(260));
    assert_eq!(asked(&pair), [(ms(0), address(0, 0)), (ms(250), address(0, 1))]);
    assert!(report(&mut pair, address(0, 1), Unreachable::Host));
    // SYNs from the first address at 1, 3 and 7 s.
    assert_eq!(until_event(&mut pair, Event::Connected(id), Duration::from_secs(30)), Some(ms(7_020)));
}

#[test]
fn when_no_path_reaches_the_peer_the_application_hears_the_most_that_any_has_shown() {
    use Unreachable::{Host, Network, Port};
    let causes = [CloseCause::NetworkUnreachable, CloseCause::HostUnreachable, CloseCause::Refused];
    for (first, second, cause) in [(Network, Network, 0), (Host, Network, 1), (Network, Host, 1), (Port, Host, 2)] {
        let mut pair = Pair::new(2);
        kill(&mut pair, &[address(0, 0), address(0, 1)], Instant::NEVER);
        let id = pair.connect(config(), config());
        assert!(report(&mut pair, address(0, 0), first) && report(&mut pair, address(0, 1), second));
        let ends: Vec<_> = pair.events[0].iter().filter(|event| matches!(event, Event::Closed(..))).collect();
        assert_eq!(ends, [&Event::Closed(id, causes[cause])]);
        pair.run(Duration::from_secs(1));
        assert_eq!((pair.hosts[0].connection_count(), pair.hosts[0].poll_timeout()), (0, Instant::NEVER));
    }
}

#[test]
fn a_distrusted_address_is_asked_a_second_after_the_others_and_again_first_once_it_is_trusted() {
    let mut pair = Pair::new(2);
    kill(&mut pair, &[address(0, 1)], Instant::NEVER);
    assert!(pair.hosts[0].distrust(pair.now, address(0, 0)), "there is another");
    let id = pair.connect(config(), config());
    // An impostor that is near would win after 250 ms against a peer 300 ms away.
    assert_eq!(until_event(&mut pair, Event::Connected(id), Duration::from_secs(5)), Some(ms(1_020)));
    let distrusted = |(_, from): &&(Instant, IpAddr)| *from == address(0, 0);
    assert_eq!(asked(&pair).iter().find(distrusted), Some(&(ms(1_000), address(0, 0))));
    pair.hosts[0].trust(address(0, 0));
    let before = asked(&pair).len();
    again(&mut pair, config());
    assert_eq!(asked(&pair)[before], (pair.now, address(0, 0)));
    // Of two, the one that was wrong longer ago.
    pair.hosts[0].distrust(pair.now, address(0, 0));
    pair.run(Duration::from_secs(1));
    pair.hosts[0].distrust(pair.now, address(0, 1));
    again_from_any(&mut pair);
    assert_eq!(asked(&pair).last(), Some(&(pair.now, address(0, 0))));
    pair.run(Duration::from_secs(1));
    pair.hosts[0].distrust(pair.now, address(0, 0));
    again_from_any(&mut pair);
    assert_eq!(asked(&pair).last(), Some(&(pair.now, address(0, 1))));
}

#[test]
fn the_families_of_a_peer_race_too() {
    let mut pair = Pair::new(1);
    for host in 0..2 {
        pair.hosts[host].handle_address_up(Instant::ZERO, AddressId(8), address_v6(host, 0));
    }
    kill(&mut pair, &[address_v6(0, 0)], Instant::NEVER);
    pair.hosts[1].listen(PORT, config()).unwrap();
    let remotes = [SocketAddr::new(address_v6(1, 0), PORT), server()];
    let id = pair.hosts[0].connect_to_any(pair.now, None, &remotes, config()).unwrap();
    pair.settle();
    assert_eq!(until_event(&mut pair, Event::Connected(id), Duration::from_secs(2)), Some(ms(270)));
    assert_eq!(asked(&pair), [(ms(0), address_v6(0, 0)), (ms(250), address(0, 0))]);
    assert_eq!(pair.hosts[0].remote(id), Some(server()));
}

#[test]
fn linux_and_plain_tcp_stay_on_the_first_path() {
    let stays = ConnectionConfig { initial_path: InitialPath::First, ..config() };
    let plain = ConnectionConfig { multipath: false, ..config() };
    for client in [stays, plain] {
        let mut pair = Pair::new(2);
        kill(&mut pair, &[address(0, 0)], ms(500));
        let id = pair.connect(client, config());
        assert_eq!(until_event(&mut pair, Event::Connected(id), Duration::from_secs(5)), Some(ms(1_020)));
        assert!(asked(&pair).iter().all(|(_, from)| *from == address(0, 0)));
    }
}

#[test]
fn an_application_that_gives_up_ends_all_attempts() {
    let mut pair = Pair::new(3);
    let dead: Vec<IpAddr> = (0..3).map(|path| address(0, path)).collect();
    kill(&mut pair, &dead, Instant::NEVER);
    let id = pair.connect(config(), config());
    pair.run(Duration::from_millis(260));
    assert_eq!(asked(&pair).len(), 2);
    pair.hosts[0].abort(pair.now, id).unwrap();
    pair.settle();
    pair.run(Duration::from_secs(10));
    assert_eq!(asked(&pair).len(), 2);
    assert_eq!(pair.hosts[0].connection_count(), 0);
    let ends: Vec<_> = pair.events[0].iter().filter(|event| matches!(event, Event::Closed(..))).collect();
    assert_eq!(ends, [&Event::Closed(id, CloseCause::Aborted)]);
}

#[test]
fn when_the_address_of_the_only_attempt_goes_the_next_begins_at_once() {
    let mut pair = Pair::new(2);
    kill(&mut pair, &[address(0, 0)], Instant::NEVER);
    let id = pair.connect(config(), config());
    pair.run(Duration::from_millis(50));
    pair.hosts[0].handle_address_down(pair.now, AddressId(1));
    pair.settle();
    assert_eq!(until_event(&mut pair, Event::Connected(id), Duration::from_secs(1)), Some(ms(70)));
    assert_eq!(asked(&pair), [(ms(0), address(0, 0)), (ms(50), address(0, 1))]);
}

#[test]
fn no_more_than_eight_attempts_are_made() {
    let mut pair = Pair::new(12);
    let dead: Vec<IpAddr> = (0..12).map(|path| address(0, path)).collect();
    kill(&mut pair, &dead, Instant::NEVER);
    pair.connect(config(), config());
    pair.run(Duration::from_secs(8));
    let mut from: Vec<_> = asked(&pair).iter().map(|(_, from)| *from).collect();
    from.sort_unstable();
    from.dedup();
    assert_eq!(from.len(), 8);
}
