//! Conditions that disable skipping on subflows, and the effect of a fallback in mid-stream.

use crate::bench::{Bench, SEGMENT, at, latency, spe};
use crate::pair::{Fate, config, pattern};
use anabranch_mptcp::{Event, Record};
use anabranch_policy::ids::ConnectionId;
use anabranch_policy::reliability::Reason;
use anabranch_wire::{Flags, MptcpOption, Packet, SeqNumber};
use bytes::Bytes;
use std::cell::Cell;
use std::net::IpAddr;
use std::rc::Rc;

fn path_of(packet: &Packet) -> u8 {
    if let IpAddr::V4(to) = packet.ip.destination { to.octets()[2] } else { 0 }
}

/// Losses of the client's data: one segment with all its retransmissions, and everything on its path while the flag is
/// set.
#[derive(Clone, Default)]
struct Losses {
    /// Data segments until the lost one.
    countdown: Rc<Cell<Option<u32>>>,
    lost: Rc<Cell<Option<(u8, SeqNumber)>>>,
    black: Rc<Cell<bool>>,
}

impl Losses {
    fn of(bench: &mut Bench) -> Self {
        let losses = Self::default();
        let state = losses.clone();
        bench.pair.judge = Box::new(move |from, _, packet| {
            if from == 1 || packet.segment.payload.is_empty() {
                return Fate::Deliver;
            }
            if let Some(left) = state.countdown.get() {
                state.countdown.set(left.checked_sub(1));
                if left == 0 {
                    state.lost.set(Some((path_of(packet), packet.segment.seq)));
                }
            }
            let doomed = state
                .lost
                .get()
                .is_some_and(|(path, seq)| path == path_of(packet) && (seq == packet.segment.seq || state.black.get()));
            if doomed { Fate::Drop } else { Fate::Deliver }
        });
        losses
    }
}

fn subflow_bench(paths: usize, millis: u64) -> (Bench, Losses) {
    let settings = latency(millis).with("level", "subflow").with("most_skipped", 0.5);
    let mut bench = Bench::new(paths, config(), spe(config(), settings));
    bench.write(&pattern(40 * SEGMENT as usize));
    bench.run(1_000);
    bench.records.clear();
    let losses = Losses::of(&mut bench);
    (bench, losses)
}

#[test]
fn after_a_subflow_that_falls_silent_behind_a_skip_nothing_is_skipped_any_more() {
    let (mut bench, losses) = subflow_bench(2, 300);
    losses.countdown.set(Some(2));
    bench.stream(15);
    // The sender has reacted to the loss; the data is abandoned and skipped when nothing arrives on that path any more.
    losses.black.set(true);
    bench.stream(50);
    assert_eq!(bench.stats().skipped_bytes, SEGMENT);
    assert!(!bench.stats().skipping_is_off, "for less than a second");
    bench.stream(100);
    assert!(bench.stats().skipping_is_off);
    // The next loss, on the path that still works, is not skipped.
    losses.lost.set(None);
    losses.countdown.set(Some(2));
    bench.stream(100);
    assert_eq!(bench.stats().skipped_bytes, SEGMENT);
}

#[test]
fn after_sixteen_copies_of_what_was_skipped_the_next_means_that_the_sender_takes_no_notice() {
    let (mut bench, losses) = subflow_bench(1, 1);
    losses.countdown.set(Some(2));
    bench.stream(40);
    bench.run(500);
    assert_eq!(bench.stats().skipped_bytes, SEGMENT);
    let (_, seq) = losses.lost.get().unwrap();
    let is_it = |packet: &&(_, Packet)| packet.1.segment.seq == seq && !packet.1.segment.payload.is_empty();
    let copy = bench.pair.sent[0].iter().find(is_it).unwrap().1.clone();
    for _ in 0..16 {
        bench.pair.inject(1, copy.clone());
    }
    bench.run(10);
    assert!(!bench.stats().skipping_is_off);
    bench.pair.inject(1, copy);
    bench.run(10);
    assert!(bench.stats().skipping_is_off);
    assert_eq!(bench.stats().late_bytes_received, SEGMENT, "counted once");
}

/// The client receives a forged MP_FAIL from the server: both leave MPTCP.
fn make_fall_back(bench: &mut Bench, data_seq: u64) {
    let mut fail = bench.pair.sent[1].last().unwrap().1.clone();
    fail.segment.payload = Bytes::new();
    fail.segment.flags = Flags::ACK;
    fail.segment.options.dss = None;
    fail.segment.options.mptcp = vec![MptcpOption::Fail { data_seq }];
    bench.pair.inject(0, fail);
}

fn has_fallen_back(bench: &Bench, host: usize, id: ConnectionId) -> bool {
    bench.pair.events[host].iter().any(|event| matches!(event, Event::FellBack(connection, _) if *connection == id))
}

fn bytes_read(bench: &Bench) -> Vec<u8> {
    let bytes =
        |(_, record): &(_, Record)| if let Record::Bytes { bytes, .. } = record { bytes.to_vec() } else { vec![] };
    bench.records.iter().flat_map(bytes).collect()
}

#[test]
fn after_a_fallback_in_mid_stream_a_hole_is_waited_for() {
    let mut bench = Bench::new(1, config(), spe(config(), latency(100)));
    let losses = Losses::of(&mut bench);
    losses.countdown.set(Some(2));
    let data = pattern(12 * SEGMENT as usize);
    let (before, after) = data.split_at(10 * SEGMENT as usize);
    bench.write(before);
    bench.run(50);
    make_fall_back(&mut bench, 0);
    // Data arrives after the hole when its lifetime would have ended.
    bench.run(100);
    bench.write(after);
    bench.run(3_000);
    assert!(has_fallen_back(&bench, 0, bench.id) && has_fallen_back(&bench, 1, bench.server));
    assert_eq!(bench.read(), [(100, 2 * SEGMENT, None)]);
    losses.lost.set(None);
    bench.run(30_000);
    assert_eq!(bench.read(), [(100, 12 * SEGMENT, None)]);
    assert!(bytes_read(&bench) == data);
    assert_eq!(bench.stats().abandoned.total().gaps, 0);
}

#[test]
fn bytes_abandoned_before_a_fallback_are_not_taken_for_the_next_of_the_stream_after_it() {
    let mut bench = Bench::new(1, config(), spe(config(), latency(300)));
    let losses = Losses::of(&mut bench);
    losses.countdown.set(Some(2));
    bench.write(&pattern(10 * SEGMENT as usize));
    bench.run(1_000);
    let expected = [(100, 2 * SEGMENT, None), (at(2), SEGMENT, Some(Reason::Expired)), (at(3), 7 * SEGMENT, None)];
    assert_eq!(bench.read(), expected);
    // They are still expected on the subflow: its position and that of the stream differ.
    make_fall_back(&mut bench, 0);
    losses.lost.set(None);
    bench.run(30_000);
    assert_eq!(bench.read(), expected);
}
