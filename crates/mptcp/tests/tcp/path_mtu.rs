//! Path MTU discovery (RFC 4821, RFC 8899; RFC 1191 and RFC 8201 for messages of routers).

use super::transcript::{Transcript, plain_with};
use anabranch_mptcp::{ConnectionConfig, EndpointConfig};
use anabranch_wire::{IcmpError, Packet, SeqNumber, Trouble};

/// Segments of 1400 bytes in packets of 1440, without timestamps.
fn long(change: impl FnOnce(&mut ConnectionConfig)) -> Transcript {
    let config = plain_with(|c| {
        (c.tcp.mtu, c.tcp.path_mtu_discovery) = (1440, true);
        change(c);
    });
    Transcript::accepted_from(config, "S 0:0 mss 1400 sackok")
}

/// The same without SACK, so that no tail loss probe precedes the timeout.
fn long_without_sack() -> Transcript {
    long(|c| (c.tcp.options.sack, c.tcp.nagle) = (false, false))
}

fn mss(t: &Transcript) -> u32 {
    t.host.subflow_views(t.now, t.id())[0].mss
}

/// A path that passes packets of at most `limit` bytes of payload, and a peer behind it.
struct Narrow {
    t: Transcript,
    limit: usize,
    /// Received bytes: everything before `next`, and these.
    next: u32,
    beyond: Vec<(u32, u32)>,
    /// Lengths of all segments so far.
    lengths: Vec<usize>,
}

impl Narrow {
    fn new(t: Transcript, limit: usize) -> Self {
        Self { t, limit, next: 1, beyond: Vec::new(), lengths: Vec::new() }
    }

    fn arrive(&mut self, packet: &Packet) {
        let start = packet.segment.seq.0.wrapping_sub(self.t.initial);
        let length = packet.segment.payload.len();
        self.lengths.push(length);
        if length == 0 || length > self.limit {
            return;
        }
        self.beyond.retain(|range| range.0 != start);
        self.beyond.insert(0, (start, start + length as u32));
        while let Some(at) = self.beyond.iter().position(|range| range.0 <= self.next) {
            self.next = self.next.max(self.beyond.remove(at).1);
        }
        let blocks: Vec<String> = self.beyond.iter().take(3).map(|(from, to)| format!("{from}-{to}")).collect();
        let sack = if blocks.is_empty() { String::new() } else { format!(" sack {}", blocks.join(",")) };
        self.t.peer(&format!("A 1:1 ack {}{sack}", self.next));
    }

    /// Advances by round trips of 100 ms: segments of one are answered in the next, one per millisecond.
    fn rounds(&mut self, count: usize) {
        for _ in 0..count {
            let said = self.t.take();
            self.t.wait(100);
            for packet in &said {
                self.t.wait(1);
                self.arrive(packet);
            }
        }
    }

    /// Writes this much and lets it arrive.
    fn carry(&mut self, length: usize, rounds: usize) {
        let end = self.next + length as u32;
        self.t.write(length);
        self.rounds(rounds);
        assert_eq!((self.next, self.beyond.len()), (end, 0));
    }
}

#[test]
fn two_timeouts_in_a_row_of_a_long_segment_cut_it_to_the_base_size() {
    let mut t = long_without_sack();
    t.write(1400);
    t.expect("A 1:1401 ack 1");
    t.expect_in(300, "A 1:1401 ack 1");
    // 1200 bytes minus 40 of headers; the window is one such segment.
    t.expect_in(600, "A 1:1161 ack 1");
    assert_eq!((mss(&t), t.host.subflow_views(t.now, t.id())[0].cwnd), (1160, 1160));
    t.peer("A 1:1 ack 1161");
    t.expect("A 1161:1401 ack 1");
    t.peer("A 1:1 ack 1401");
    t.write(2000);
    t.expect("A 1401:2561 ack 1");
    t.expect("A 2561:3401 ack 1");
    t.peer("A 1:1 ack 3401");
}

#[test]
fn two_more_timeouts_cut_it_to_what_every_host_takes_and_no_more_shorten_it_further() {
    let mut t = long_without_sack();
    t.write(1400);
    t.expect("A 1:1401 ack 1");
    t.expect_in(300, "A 1:1401 ack 1");
    t.expect_in(600, "A 1:1161 ack 1");
    t.expect_in(1200, "A 1:1161 ack 1");
    for wait in [2400, 4800, 9600, 19_200] {
        t.expect_in(wait, "A 1:537 ack 1");
    }
    assert_eq!(mss(&t), 536);
}

#[test]
fn a_short_segment_that_is_not_acknowledged_says_nothing_of_the_path() {
    let mut t = long_without_sack();
    t.write(500);
    t.expect("A 1:501 ack 1");
    for wait in [300, 600, 1200, 2400, 4800] {
        t.expect_in(wait, "A 1:501 ack 1");
    }
    assert_eq!(mss(&t), 1400);
}

#[test]
fn a_closed_window_is_no_black_hole() {
    let mut t = long_without_sack();
    t.write(1400);
    t.expect("A 1:1401 ack 1");
    for wait in [300, 600, 1200, 2400] {
        t.wait(50);
        t.peer("A 1:1 ack 1 win 0");
        t.expect_in(wait - 50, "A 1:1401 ack 1");
    }
    assert_eq!(mss(&t), 1400);
}

#[test]
fn without_path_mtu_discovery_a_long_segment_stays_whole() {
    let mut t = long(|c| (c.tcp.path_mtu_discovery, c.tcp.options.sack) = (false, false));
    t.write(1400);
    t.expect("A 1:1401 ack 1");
    for wait in [300, 600, 1200, 2400] {
        t.expect_in(wait, "A 1:1401 ack 1");
    }
    assert!(!t.host.handle_icmp_error(t.now, &too_big(&t, 1, 1300)));
}

#[test]
fn over_ipv6_no_packet_is_shorter_than_1280_bytes() {
    let config = plain_with(|c| (c.tcp.path_mtu_discovery, c.tcp.options.sack, c.tcp.mtu) = (true, false, 1460));
    let host = EndpointConfig { seed: [7; 32], ..EndpointConfig::default() };
    let mut t = Transcript::on(config, host, [0xfd00, 0, 0, 0, 0, 0, 0, 1].into());
    t.peer("S 0:0 mss 1400");
    t.hear();
    t.wait(100);
    t.peer("A 1:1 ack 1");
    t.write(1400);
    t.expect("A 1:1401 ack 1");
    t.expect_in(300, "A 1:1401 ack 1");
    for wait in [600, 1200, 2400, 4800] {
        t.expect_in(wait, "A 1:1221 ack 1");
    }
    // 1280 with 60 of headers.
    assert_eq!(mss(&t), 1220);
    assert!(!t.host.handle_icmp_error(t.now, &too_big(&t, 1, 1279)));
}

/// A transfer of 14 long segments on a path that passes 1300 bytes of payload; returns its state after the search.
fn fallen() -> Narrow {
    let mut path = Narrow::new(long(|_| ()), 1300);
    path.carry(14 * 1400, 60);
    assert!(mss(&path.t) < 1400);
    path
}

#[test]
fn all_arrives_on_a_path_that_swallows_long_segments() {
    let path = fallen();
    // The tail loss probe and two timeouts; the rest is retransmitted without another.
    assert_eq!(path.t.counted().1, 2);
}

#[test]
fn the_size_that_a_path_passes_is_found_by_probes_of_new_data_whose_loss_is_no_congestion() {
    let mut path = fallen();
    path.lengths.clear();
    let views = |path: &Narrow| path.t.host.subflow_views(path.t.now, path.t.id())[0].clone();
    let before = views(&path);
    for _ in 0..60 {
        path.carry(10_000, 12);
    }
    // Sizes that fail are probed three times: first the old one, then each in the middle of the remaining range.
    let probes: Vec<usize> = path.lengths.iter().copied().filter(|length| *length > 1160).collect();
    let mut asked = Vec::new();
    probes.iter().for_each(|size| {
        if !asked.contains(size) {
            asked.push(*size)
        }
    });
    assert_eq!(asked, [1400, 1280, 1340, 1310, 1295, 1302]);
    assert!([1400, 1340, 1310, 1302].iter().all(|size| probes.iter().filter(|probe| *probe == size).count() == 3));
    assert_eq!(views(&path).mss, 1295);
    let after = views(&path);
    assert_eq!((after.counters.timeouts, after.ssthresh), (before.counters.timeouts, before.ssthresh));
    // Nothing is left: no more probes.
    path.lengths.clear();
    path.carry(100_000, 20);
    assert!(path.lengths.iter().all(|length| *length <= 1295));
}

#[test]
fn ten_minutes_after_the_search_larger_sizes_are_tried_again() {
    let mut path = fallen();
    for _ in 0..60 {
        path.carry(10_000, 12);
    }
    path.limit = 9000;
    path.t.wait(500_000);
    path.carry(20_000, 20);
    assert_eq!(mss(&path.t), 1295);
    path.t.wait(100_000);
    path.carry(20_000, 20);
    assert_eq!(mss(&path.t), 1400);
}

#[test]
fn after_an_outage_the_first_probe_restores_the_old_size() {
    let mut path = Narrow::new(long(|_| ()), 0);
    path.t.write(1400);
    path.rounds(15);
    assert!(mss(&path.t) < 1400);
    path.limit = 9000;
    path.rounds(60);
    path.carry(20_000, 30);
    path.lengths.clear();
    path.carry(14_000, 20);
    assert_eq!(mss(&path.t), 1400);
    assert!(path.lengths.iter().all(|length| *length == 1400));
}

#[test]
fn a_probe_waits_for_enough_data_behind_it() {
    let mut path = fallen();
    path.lengths.clear();
    // 1400 and three of 1160 are 4880.
    for _ in 0..5 {
        path.carry(4879, 10);
    }
    assert!(path.lengths.iter().all(|length| *length <= 1160));
    path.carry(4880, 10);
    assert!(path.lengths.contains(&1400));
}

/// A router's message on the packet that starts at `seq`.
fn too_big(t: &Transcript, seq: u32, mtu: u32) -> IcmpError {
    let trouble = Trouble::TooBig { mtu };
    IcmpError { source: t.local, destination: t.remote, seq: SeqNumber(t.initial) + seq, trouble }
}

#[test]
fn a_router_that_drops_a_long_segment_is_believed_and_what_was_dropped_goes_again_in_shorter_ones() {
    let mut t = long(|_| ());
    t.write(2 * 1400);
    t.expect("A 1:1401 ack 1");
    t.expect("A 1401:2801 ack 1");
    let cwnd = t.host.subflow_views(t.now, t.id())[0].cwnd;
    assert!(t.host.handle_icmp_error(t.now, &too_big(&t, 1401, 1040)));
    t.drain();
    for (start, end) in [(1, 1001), (1001, 1401), (1401, 2401), (2401, 2801)] {
        t.expect(&format!("A {start}:{end} ack 1"));
    }
    assert_eq!((mss(&t), t.host.subflow_views(t.now, t.id())[0].cwnd), (1000, cwnd));
    t.wait(100);
    t.peer("A 1:1 ack 2801");
    t.write(2000);
    t.expect("A 2801:3801 ack 1");
    t.expect("A 3801:4801 ack 1");
    t.peer("A 1:1 ack 4801");
    // The router has reported the MTU: no search for ten minutes.
    t.write(8000);
    t.take().iter().for_each(|packet| assert!(packet.segment.payload.len() <= 1000));
}

#[test]
fn a_router_that_drops_a_probe_bounds_the_search_at_once() {
    let mut path = fallen();
    path.lengths.clear();
    path.t.write(10_000);
    let said = path.t.take();
    let probe = said.iter().find(|packet| packet.segment.payload.len() == 1400).expect("the old size is tried first");
    let seq = probe.segment.seq.0.wrapping_sub(path.t.initial);
    // 40 bytes of headers: 1400 passes already; then 1300.
    assert!(!path.t.host.handle_icmp_error(path.t.now, &too_big(&path.t, seq, 1440)));
    assert!(path.t.host.handle_icmp_error(path.t.now, &too_big(&path.t, seq, 1340)));
    said.iter().for_each(|packet| path.arrive(packet));
    path.rounds(12);
    for _ in 0..60 {
        path.carry(10_000, 12);
    }
    let tried = |size: usize| path.lengths.iter().filter(|length| **length == size).count();
    assert_eq!((tried(1400), path.lengths.iter().filter(|length| **length > 1300).count()), (1, 1));
    assert!((1290..=1300).contains(&mss(&path.t)), "{}", mss(&path.t));
}

#[test]
fn a_message_about_nothing_that_is_outstanding_or_of_an_impossible_size_is_counted_and_ignored() {
    let mut t = long(|_| ());
    t.write(1400);
    t.expect("A 1:1401 ack 1");
    t.wait(50);
    t.peer("A 1:1 ack 1401");
    t.write(1400);
    t.expect("A 1401:2801 ack 1");
    let elsewhere = IcmpError { destination: "10.0.0.9:80".parse().unwrap(), ..too_big(&t, 1401, 1040) };
    let wrong = [
        too_big(&t, 1, 1040),    // acknowledged
        too_big(&t, 2801, 1040), // not sent
        too_big(&t, 1401, 575),  // less than any host must take
        too_big(&t, 1401, 0),    // an old router's
        too_big(&t, 1401, 1440), // passes
        elsewhere,
    ];
    for message in &wrong {
        assert!(!t.host.handle_icmp_error(t.now, message), "{message:?}");
        t.drain();
        t.expect_nothing();
    }
    assert_eq!((mss(&t), t.host.counters().refused_icmp_errors), (1400, wrong.len() as u64));
    t.peer("A 1:1 ack 2801");
}
