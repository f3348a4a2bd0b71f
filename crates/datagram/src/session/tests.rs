//! A client and a server with a simulated network between them.

mod quality;
mod sizes;

use super::*;
use crate::datagram::{Datagram, Kind, Reason, Unreachable};
use crate::share::{ClientKey, Crowd};
use anabranch_policy::datagram::TABLE;
use anabranch_policy::table::{Settings, build};
use anabranch_policy::time::{Duration, Instant};
use bytes::Bytes;
use core::net::SocketAddr;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

const KEY: [u8; 32] = [7; 32];

/// A path of the network.
#[derive(Clone, Copy)]
struct Link {
    up: bool,
    delay: Duration,
    /// The client's address as the server sees it.
    address: SocketAddr,
    /// Transmission time per byte towards the server, and when the link is free.
    per_byte: Duration,
    free: Instant,
    /// The path's MTU: longer sealed datagrams are lost.
    carries: usize,
}

/// The longest queue; datagrams beyond are lost.
const LONGEST_QUEUE: Duration = Duration::from_millis(100);

/// Direction (true: to the server), path, bytes, and the client's address.
type OnTheWay = (bool, u8, Vec<u8>, SocketAddr);

struct Net {
    now: Instant,
    client: ClientSession,
    server: ServerSessions,
    links: Vec<Link>,
    /// Datagrams in flight, by arrival time and order.
    way: BTreeMap<(Instant, u64), OnTheWay>,
    count: u64,
    /// All datagrams sent, for an attacker to replay.
    seen: Vec<(Instant, bool, Vec<u8>)>,
    to_client: Vec<Datagram>,
    to_server: Vec<Datagram>,
    /// When those arrived.
    came: Vec<Instant>,
}

fn millis(value: u64) -> Duration {
    Duration::from_millis(value)
}

fn address(path: usize) -> SocketAddr {
    SocketAddr::new([10, 0, path as u8, 1].into(), 4_000)
}

fn policy(name: &str) -> Box<dyn anabranch_policy::datagram::DatagramPolicy> {
    build(TABLE, name, &Settings::new()).expect("a policy")
}

fn server(keys: &[[u8; 32]], run: u64) -> ServerSessions {
    let mut drawn = run;
    let draw = move || {
        drawn += 1;
        drawn
    };
    ServerSessions::new(keys.iter().map(|key| (*key).into()).collect(), Arc::new(|| policy("duplicate")), 8, draw)
}

impl Net {
    fn new(delays: &[u64], name: &str) -> Self {
        let now = Instant::ZERO + Duration::from_secs(5);
        let link = |(path, delay): (usize, &u64)| Link {
            up: true,
            delay: millis(*delay),
            address: address(path),
            per_byte: Duration::ZERO,
            free: now,
            carries: 1_472,
        };
        let links: Vec<Link> = delays.iter().enumerate().map(link).collect();
        let mut client = ClientSession::new(KEY, 99, policy(name), now);
        (0..links.len()).for_each(|path| client.open_path(path as u8, now));
        let (way, seen) = (BTreeMap::new(), Vec::new());
        let server = server(&[KEY], 1_000);
        Self {
            now,
            client,
            server,
            links,
            way,
            count: 0,
            seen,
            to_client: Vec::new(),
            to_server: Vec::new(),
            came: Vec::new(),
        }
    }

    /// Moves the output of both ends into the network.
    fn collect(&mut self) {
        let mut sent = Vec::new();
        for (path, link) in self.links.iter().enumerate() {
            let Some(outbox) = self.client.outbox(path as u8) else { continue };
            outbox.drain(1, |batch| sent.push((true, path as u8, batch.bytes.to_vec(), link.address)));
        }
        let links = self.links.clone();
        self.server.outbox().drain(1, |batch| {
            let path = links.iter().position(|link| link.address == batch.to.client);
            // A datagram to a former address of the client is lost.
            sent.extend(path.map(|path| (false, path as u8, batch.bytes.to_vec(), batch.to.client)));
        });
        for entry in sent {
            self.seen.push((self.now, entry.0, entry.2.clone()));
            let carries = |link: &&mut Link| link.up && entry.2.len() <= link.carries;
            let Some(link) = self.links.get_mut(usize::from(entry.1)).filter(carries) else { continue };
            let mut at = self.now;
            if entry.0 {
                if link.free.since(self.now) > LONGEST_QUEUE {
                    continue;
                }
                let bytes = entry.2.len() as u64 + 28;
                link.free = link.free.max(self.now) + Duration::from_nanos(link.per_byte.as_nanos() * bytes);
                at = link.free;
            }
            self.count += 1;
            self.way.insert((at + link.delay, self.count), entry);
        }
        self.to_client.extend(core::iter::from_fn(|| self.client.poll_datagram()));
        let fresh = core::iter::from_fn(|| self.server.poll_datagram()).map(|(_, datagram)| datagram);
        let before = self.to_server.len();
        self.to_server.extend(fresh);
        self.came.resize(self.to_server.len(), self.now);
        self.came[before..].fill(self.now);
    }

    fn run(&mut self, span: Duration) {
        let end = self.now + span;
        loop {
            self.collect();
            let arrival = self.way.keys().next().map_or(Instant::NEVER, |(at, _)| *at);
            let next = arrival.min(self.client.poll_timeout()).min(self.server.poll_timeout());
            if next > end {
                break;
            }
            self.now = self.now.max(next);
            if arrival <= self.now
                && let Some((_, (up, path, mut bytes, from))) = self.way.pop_first()
            {
                match up {
                    true => self.server.handle_datagram(self.now, Whereabouts { client: from, ours: None }, &mut bytes),
                    false => self.client.handle_datagram(self.now, path, &mut bytes),
                }
            }
            if self.client.poll_timeout() <= self.now {
                self.client.handle_timeout(self.now);
            }
            if self.server.poll_timeout() <= self.now {
                self.server.handle_timeout(self.now);
            }
        }
        self.now = end;
    }

    /// The client sends a datagram each `pause` for `span`. Returns how many were accepted.
    fn stream(&mut self, span: Duration, pause: Duration) -> u32 {
        let (end, mut taken) = (self.now + span, 0);
        while self.now < end {
            taken += u32::from(self.client.send(self.now, &datagram(taken)));
            self.run(pause);
        }
        taken
    }

    fn uses(&self) -> Vec<bool> {
        (0..self.links.len()).map(|path| self.client.path(path as u8).is_some_and(|path| path.usable)).collect()
    }
}

fn datagram(number: u32) -> Datagram {
    let address = |text: &str| text.parse().expect("an address");
    let payload = Bytes::copy_from_slice(&number.to_be_bytes());
    Datagram { kind: Kind::Udp, inside: address("10.9.0.1:9"), outside: address("192.0.2.1:53"), payload }
}

#[test]
fn datagrams_go_both_ways_after_one_round_trip() {
    let mut net = Net::new(&[10, 30], "duplicate");
    assert!(!net.client.send(net.now, &datagram(0)), "there are no keys yet");
    net.run(millis(41));
    assert_eq!(net.client.state(), ClientState::Connected);
    assert!(net.client.send(net.now, &datagram(1)));
    net.run(millis(31));
    assert_eq!(net.to_server, [datagram(1)], "one of two copies");
    assert!(net.server.send(net.now, 99, &datagram(2)));
    net.run(millis(31));
    assert_eq!(net.to_client, [datagram(2)]);
    assert_eq!(net.client.path(1).and_then(|path| path.round_trip), Some(millis(60)));
    assert_eq!(net.server.counters().clients, 1);
}

#[test]
fn messages_of_the_handshake_that_are_lost_are_sent_again() {
    let mut net = Net::new(&[10], "duplicate");
    net.links[0].up = false;
    net.run(millis(700));
    net.links[0].up = true;
    // Sent at 0, 250 and 750 ms.
    net.run(millis(100));
    assert_eq!(net.client.state(), ClientState::Connected);
    let hellos: Vec<_> = net.seen.iter().filter(|(_, _, bytes)| bytes[0] == 0x10).map(|(at, ..)| *at).collect();
    assert_eq!(hellos, [0, 250, 750].map(|at| Instant::ZERO + Duration::from_secs(5) + millis(at)));
}

#[test]
fn a_client_with_another_key_gets_no_answer_and_takes_no_memory() {
    let mut net = Net::new(&[10], "duplicate");
    net.server = server(&[[8; 32], [9; 32]], 0);
    net.run(Duration::from_secs(20));
    assert_eq!(net.client.state(), ClientState::Beginning);
    assert!(net.seen.iter().all(|(_, up, _)| *up), "nothing came back");
    assert!(net.server.counters().unproven > 5);
    assert_eq!(net.server.clients(), 0);
    net.server = server(&[[8; 32], KEY], 0);
    net.run(Duration::from_secs(3));
    assert_eq!(net.client.state(), ClientState::Connected);
}

#[test]
fn a_path_that_fails_is_left_within_a_second_and_a_quarter_and_used_again_when_it_is_back() {
    let mut net = Net::new(&[10, 30], "duplicate");
    net.stream(Duration::from_secs(2), millis(20));
    assert_eq!(net.uses(), [true, true]);
    net.links[0].up = false;
    net.stream(millis(1_100), millis(20));
    assert_eq!(net.uses(), [false, true]);
    net.to_client.clear();
    net.server.send(net.now, 99, &datagram(7));
    let sent = net.seen.len();
    net.run(millis(1));
    let down = net.seen[sent..].iter().filter(|(_, up, _)| !up).count();
    assert_eq!(down, 1, "the server has left it too");
    net.links[0].up = true;
    net.stream(millis(400), millis(20));
    assert_eq!(net.uses(), [true, true]);
}

#[test]
fn the_server_leaves_a_path_as_soon_as_it_can_know_that_the_client_closed_it() {
    let mut net = Net::new(&[10, 30], "duplicate");
    net.stream(Duration::from_secs(2), millis(20));
    net.client.close_path(0, net.now);
    net.run(millis(31));
    let sent = net.seen.len();
    net.server.send(net.now, 99, &datagram(7));
    net.collect();
    let paths: Vec<_> = net.seen[sent..].iter().map(|(_, up, bytes)| (*up, bytes[1])).collect();
    assert_eq!(paths, [(false, 1)]);
}

#[test]
fn a_path_in_reserve_carries_nothing_either_way_until_no_other_is_usable() {
    let mut net = Net::new(&[30, 10], "duplicate");
    // The paths (the header's second byte) used by each end, the client first.
    let carry = |net: &mut Net| {
        net.collect();
        let sent = net.seen.len();
        net.client.send(net.now, &datagram(1));
        net.server.send(net.now, 99, &datagram(7));
        net.collect();
        let paths = |up: bool| {
            let sent = net.seen[sent..].iter().filter(|(_, way, _)| *way == up);
            sent.map(|(_, _, bytes)| bytes[1]).collect::<Vec<_>>()
        };
        [paths(true), paths(false)]
    };
    net.client.set_reserve(1, true, net.now);
    net.stream(Duration::from_secs(2), millis(20));
    assert_eq!(carry(&mut net), [[0], [0]]);
    net.links[0].up = false;
    net.stream(millis(1_400), millis(20));
    assert_eq!(carry(&mut net), [[1], [1]]);
    net.links[0].up = true;
    net.stream(millis(600), millis(20));
    assert_eq!(carry(&mut net), [[0], [0]]);
    net.client.set_reserve(1, false, net.now);
    net.stream(millis(600), millis(20));
    assert_eq!(carry(&mut net), [[0, 1], [0, 1]]);
}

#[test]
fn a_stream_leaves_a_path_that_fails_when_reports_are_overdue_and_does_not_wait_for_probes() {
    let mut net = Net::new(&[10, 30], "lowest_delay");
    net.run(millis(100));
    net.stream(Duration::from_secs(2), millis(10));
    net.run(millis(100));
    (net.links[0].up, net.to_server) = (false, Vec::new());
    let taken = net.stream(Duration::from_secs(1), millis(10)) as usize;
    net.run(millis(100));
    // The peer usually reports within the round trip of 20 ms and one report interval of 25 ms; three more intervals
    // pass before datagrams are overdue.
    let lost = taken - net.to_server.len();
    assert!((8..=14).contains(&lost), "{lost} of {taken}");
}

#[test]
fn a_stream_is_back_on_the_quicker_path_soon_after_an_outage() {
    let mut net = Net::new(&[10, 30], "lowest_delay");
    net.run(millis(100));
    net.stream(Duration::from_secs(2), millis(10));
    net.links[0].up = false;
    net.stream(Duration::from_secs(5), millis(10));
    net.links[0].up = true;
    net.stream(Duration::from_secs(1), millis(10));
    net.seen.clear();
    net.stream(Duration::from_secs(1), millis(10));
    let on_the_quicker = net.seen.iter().filter(|(_, up, bytes)| *up && bytes[0] == 0x12 && bytes[1] == 0).count();
    assert!(on_the_quicker >= 100, "{on_the_quicker}");
}

#[test]
fn a_path_that_fails_in_one_direction_is_left_by_both_ends() {
    // The server's datagrams to path 0 are lost.
    let mut net = Net::new(&[10, 30], "duplicate");
    net.stream(Duration::from_secs(2), millis(20));
    let end = net.now + millis(1_500);
    while net.now < end {
        net.way.retain(|_, (up, path, ..)| *up || *path != 0);
        net.client.send(net.now, &datagram(0));
        net.run(millis(5));
    }
    assert_eq!(net.uses(), [false, true]);
    let sent = net.seen.len();
    net.server.send(net.now, 99, &datagram(7));
    net.collect();
    assert_eq!(net.seen.len(), sent + 1);
}

#[test]
fn a_client_that_has_something_to_tell_and_no_usable_path_sleeps_until_it_probes_again() {
    // The server's datagrams arrive, the client's do not.
    let mut net = Net::new(&[10], "duplicate");
    net.run(millis(100));
    let begun = net.now;
    let hear = |net: &mut Net| {
        net.now += millis(1);
        net.server.send(net.now, 99, &datagram(0));
        net.server.outbox().drain(1, |batch| net.client.handle_datagram(net.now, 0, &mut batch.bytes.to_vec()));
    };
    while net.uses() == [true] {
        assert!(net.now < begun + Duration::from_secs(2));
        hear(&mut net);
        net.client.handle_timeout(net.now);
    }
    hear(&mut net);
    // A report is due after 25 ms, a probe after 250.
    net.now += millis(30);
    net.client.handle_timeout(net.now);
    assert!(net.client.poll_timeout() > net.now);
}

#[test]
fn a_client_whose_address_changes_is_followed() {
    let mut net = Net::new(&[10], "duplicate");
    net.run(millis(100));
    net.links[0].address = "198.51.100.7:1024".parse().expect("an address");
    net.client.send(net.now, &datagram(0));
    net.run(millis(20));
    net.server.send(net.now, 99, &datagram(1));
    net.run(millis(20));
    assert_eq!(net.to_client, [datagram(1)]);
    assert_eq!(net.server.counters().moved, 1);
}

#[test]
fn a_server_that_was_restarted_is_noticed_in_three_seconds() {
    let mut net = Net::new(&[10, 30], "duplicate");
    net.stream(Duration::from_secs(60), millis(20));
    net.server = server(&[KEY], 5_000);
    net.to_server.clear();
    let taken = net.stream(Duration::from_secs(3), millis(20));
    assert_eq!(net.client.state(), ClientState::Connected);
    // Datagrams of almost 2.5 s are lost; then they arrive again, and none is mistaken for a duplicate.
    net.run(millis(50));
    assert!(net.to_server.len() >= 25 && net.to_server.len() < taken as usize, "{}", net.to_server.len());
    net.to_client.clear();
    net.server.send(net.now, 99, &datagram(9));
    net.run(millis(50));
    assert_eq!(net.to_client, [datagram(9)]);
    assert_eq!(net.client.path(0).map(|path| path.sending.loss() < 0.5), Some(true), "its counts begin anew");
}

#[test]
fn an_idle_client_notices_it_too_and_says_little() {
    let mut net = Net::new(&[10], "duplicate");
    net.run(Duration::from_secs(20));
    net.seen.clear();
    net.run(Duration::from_secs(60));
    // A probe and its answer every 5 s.
    assert_eq!(net.seen.len(), 24);
    net.server = server(&[KEY], 5_000);
    // 5 s until the next probe, 2 s of silence, and at most 250 ms until that is detected.
    net.run(millis(7_300));
    assert_eq!(net.client.state(), ClientState::Connected);
    assert_eq!(net.server.clients(), 1);
}

#[test]
fn a_long_round_trip_is_not_taken_for_silence() {
    let mut net = Net::new(&[400], "duplicate");
    for _ in 0..10 {
        net.run(Duration::from_secs(14));
        net.client.send(net.now, &datagram(0));
    }
    net.run(Duration::from_secs(1));
    // The second handshake is the one due after two minutes.
    assert_eq!((net.client.state(), net.client.handshakes), (ClientState::Connected, 2));
}

#[test]
fn keys_are_renewed_every_two_minutes_and_nothing_is_lost() {
    let mut net = Net::new(&[10, 30], "duplicate");
    net.run(millis(100));
    let mut taken = 0;
    for number in 0..40_000 {
        taken += u32::from(net.client.send(net.now, &datagram(number)));
        net.server.send(net.now, 99, &datagram(number));
        net.run(millis(10));
    }
    net.run(millis(100));
    assert_eq!(taken, 40_000);
    assert_eq!((net.to_server.len(), net.to_client.len()), (40_000, 40_000));
    assert_eq!(net.client.handshakes, 4, "at 0, 120, 240 and 360 s of 400");
    let sessions: BTreeSet<&[u8]> =
        net.seen.iter().filter(|(_, _, bytes)| bytes[0] == 0x12).map(|(_, _, bytes)| &bytes[2..10]).collect();
    assert_eq!(sessions.len(), 4);
    assert_eq!((net.client.rejected, net.server.counters().rejected), (0, 0));
}

#[test]
fn a_key_that_is_taken_back_opens_nothing_after_the_lifetime_of_its_sessions_keys() {
    let mut net = Net::new(&[10], "duplicate");
    net.run(millis(100));
    net.server.set_keys(vec![[9; 32].into()]);
    net.stream(Duration::from_secs(320), millis(100));
    net.to_server.clear();
    net.stream(Duration::from_secs(20), millis(100));
    assert_eq!((net.to_server.len(), net.client.handshakes), (0, 1));
}

#[test]
fn what_was_recorded_and_is_sent_again_moves_nobody_and_is_passed_on_to_nobody() {
    let mut net = Net::new(&[10, 30], "duplicate");
    net.stream(Duration::from_secs(2), millis(20));
    net.run(millis(100));
    let attacker = Whereabouts { client: "203.0.113.1:666".parse().expect("an address"), ours: None };
    net.to_server.clear();
    let before = net.server.counters();
    let mut in_bytes = 0;
    for (_, up, bytes) in net.seen.clone() {
        if up {
            net.server.handle_datagram(net.now, attacker, &mut bytes.clone());
            in_bytes += bytes.len();
        } else {
            net.client.handle_datagram(net.now, 0, &mut bytes.clone());
        }
    }
    let mut out_bytes = 0;
    net.server.outbox().drain(64, |batch| out_bytes += batch.bytes.len());
    assert!(out_bytes <= 2 * 57 && in_bytes > 10_000, "only the recorded hellos are answered: {out_bytes} bytes");
    net.collect();
    assert_eq!(net.to_server, []);
    let after = net.server.counters();
    assert_eq!((after.moved, after.clients, after.handshakes), (before.moved, 1, before.handshakes));
    assert!(net.client.rejected > 50);
    net.run(Duration::from_secs(1));
    assert_eq!(net.uses(), [true, true]);
}

#[test]
fn garbage_of_any_length_is_counted_and_not_answered() {
    let mut net = Net::new(&[10], "duplicate");
    net.run(millis(100));
    net.server.outbox().drain(64, |_| ());
    let from = Whereabouts { client: address(0), ours: None };
    for length in 0..200_u32 {
        for first in [0_u8, 0x10, 0x11, 0x12, 0xff] {
            let mut bytes: Vec<u8> = (0..length).map(|at| (at * 31 + u32::from(first)) as u8).collect();
            bytes.iter_mut().take(1).for_each(|byte| *byte = first);
            net.server.handle_datagram(net.now, from, &mut bytes.clone());
            net.client.handle_datagram(net.now, 0, &mut bytes);
        }
    }
    assert!(net.server.outbox().is_empty());
    let counters = net.server.counters();
    assert_eq!(counters.rejected + counters.unproven, 1_000);
    assert_eq!(net.client.state(), ClientState::Connected);
}

#[test]
fn a_flood_of_first_messages_is_answered_at_a_bounded_rate_and_a_client_keeps_its_session() {
    let mut net = Net::new(&[10], "duplicate");
    net.run(millis(100));
    let from = Whereabouts { client: "203.0.113.1:666".parse().expect("an address"), ours: None };
    let mut answered = 0;
    for number in 0..300_u64 {
        let (_, message) = super::noise::Initiator::new(&KEY, number).expect("random numbers");
        net.server.handle_datagram(net.now, from, &mut crate::format::hello(&message));
        net.server.outbox().drain(64, |batch| answered += batch.bytes.len());
    }
    assert!(answered <= 101 * 57, "{answered}");
    assert_eq!(net.server.clients(), 1);
    assert!(net.client.send(net.now, &datagram(5)));
    net.run(millis(20));
    assert_eq!(net.to_server, [datagram(5)]);
}

#[test]
fn a_server_has_no_more_clients_than_it_may() {
    let mut net = Net::new(&[10], "duplicate");
    net.run(millis(100));
    for number in 0..9_u64 {
        net.client = ClientSession::new(KEY, number, policy("duplicate"), net.now);
        net.client.open_path(0, net.now);
        net.run(millis(200));
    }
    assert_eq!(net.server.clients(), 8);
    assert!(net.server.counters().refused > 0);
    // Silent clients are removed.
    net.links[0].up = false;
    net.run(Duration::from_secs(182));
    assert_eq!(net.server.clients(), 0);
}

#[test]
fn one_key_does_not_keep_clients_with_another_out() {
    let mut net = Net::new(&[10], "duplicate");
    let named = |key, owner: &str| ClientKey { key, owner: Some(owner.into()) };
    net.server.set_keys(vec![named(KEY, "busy"), named([9; 32], "other")]);
    for number in 0..8_u64 {
        net.client = ClientSession::new(KEY, number, policy("duplicate"), net.now);
        net.client.open_path(0, net.now);
        net.run(millis(200));
    }
    net.client = ClientSession::new([9; 32], 8, policy("duplicate"), net.now);
    net.client.open_path(0, net.now);
    net.run(millis(200));
    assert_eq!((net.client.state(), net.server.clients()), (ClientState::Connected, 8));
    assert_eq!(net.server.counters().refused, 0);
    assert_eq!(net.server.poll_gone(), Some(0), "the one heard longest ago");
    assert_eq!(net.server.poll_crowd(), Some(Crowd { owner: Some("busy".into()), count: 8 }));
}

#[test]
fn where_there_is_no_room_a_silent_client_makes_some() {
    let mut net = Net::new(&[10], "duplicate");
    for number in 0..8_u64 {
        net.client = ClientSession::new(KEY, number, policy("duplicate"), net.now);
        net.client.open_path(0, net.now);
        net.run(millis(200));
    }
    net.run(Duration::from_secs(15));
    net.client = ClientSession::new(KEY, 8, policy("duplicate"), net.now);
    net.client.open_path(0, net.now);
    net.run(millis(200));
    assert_eq!((net.client.state(), net.server.clients()), (ClientState::Connected, 8));
}

#[test]
fn goodbyes_are_heard_at_both_ends() {
    let mut net = Net::new(&[10, 30], "duplicate");
    net.run(millis(100));
    net.server.close(net.now);
    net.server.outbox().drain(64, |_| ());
    net.client.close(net.now);
    net.run(millis(50));
    assert_eq!(net.server.clients(), 0);
    assert_eq!(net.server.poll_gone(), Some(99));
}

#[test]
fn an_uplink_that_goes_and_comes_back_is_a_path_again() {
    let mut net = Net::new(&[10, 30], "duplicate");
    net.run(millis(100));
    net.client.close_path(0, net.now);
    assert_eq!(net.uses(), [false, true]);
    assert!(net.client.send(net.now, &datagram(1)));
    net.run(millis(100));
    net.client.open_path(0, net.now);
    net.run(millis(100));
    assert_eq!(net.uses(), [true, true]);
    assert_eq!(net.to_server, [datagram(1)]);
}
