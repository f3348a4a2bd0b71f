//! What switches skipping on subflows off.

use crate::bench::{Bench, SEGMENT, latency, spe};
use crate::pair::{Fate, config, pattern};
use anabranch_wire::{Packet, SeqNumber};
use std::cell::Cell;
use std::net::IpAddr;
use std::rc::Rc;

fn path_of(packet: &Packet) -> u8 {
    if let IpAddr::V4(to) = packet.ip.destination { to.octets()[2] } else { 0 }
}

/// Data of the client is lost: one segment with all its copies, and while the flag is up all that goes its path.
#[derive(Clone, Default)]
struct Losses {
    /// Segments with data until the one that is lost.
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
    // The sender has acted on the loss; it is given up, and gone over, when nothing comes on that path any more.
    losses.black.set(true);
    bench.stream(50);
    assert_eq!(bench.stats().skipped_bytes, SEGMENT);
    assert!(!bench.stats().skips_no_more, "for less than a second");
    bench.stream(100);
    assert!(bench.stats().skips_no_more);
    // The next loss, on the path that still works, is waited for.
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
    assert!(!bench.stats().skips_no_more);
    bench.pair.inject(1, copy);
    bench.run(10);
    assert!(bench.stats().skips_no_more);
    assert_eq!(bench.stats().late_bytes_received, SEGMENT, "counted once");
}
