//! Weighted round robin of datagrams: paths have shares in proportion to their capacities, and the receiver restores
//! the order within a bounded time.
//!
//! Source: deficit accounting as in [`crate::scheduler`]'s `weighted` (Adiseshu, Parulkar, Varghese, SIGCOMM 1996). For a datagram
//! of l bytes, over the usable paths i with weights w_i, W their sum, and accounts c_i in bytes:
//!
//! ```text
//! c_i  <- c_i + l w_i / W                 all are due their share
//! i*    = argmax c_i                      the lower number on a tie
//! c_i* <- c_i* - l
//! hold  = min(hold, max_i d_i - min_i d_i + 4 max_i v_i)
//! ```
//!
//! with d_i the delays, queues included, and v_i their variations.
//!
//! Decisions: weights as in `by_flow`; a path with overdue reports counts only if there is no other; a new path has an
//! account of 0. The receiver keeps the datagrams of all flows in one order.

use super::by_flow::{weight, weight_of_unknown};
use super::{DatagramPolicy, Decision, MAX_PATHS, Outgoing, PathView};
use crate::table::{Member, Milliseconds, Number, Reader, SettingError};
use crate::time::{Duration, Instant};

const HOLD: Milliseconds = Milliseconds(Number {
    name: "hold",
    unit: "ms",
    default: 50.0,
    range: 0.0..=255.0,
    summary: "How long the receiver may hold a datagram back for one that was sent before it",
});

/// The entry in [`super::TABLE`].
pub const MEMBER: Member<dyn DatagramPolicy> = Member {
    name: "weighted",
    summary: "All paths in turn, in proportion to capacities; the receiver restores the order as long as that takes a bounded time.",
    source: "Adiseshu, Parulkar, Varghese, SIGCOMM 1996",
    build,
};

fn build(reader: &mut Reader<'_>) -> Result<Box<dyn DatagramPolicy>, SettingError> {
    Ok(Box::new(Weighted { hold: reader.read(&HOLD)?, accounts: [0.0; MAX_PATHS] }))
}

#[derive(Clone, Debug)]
struct Weighted {
    hold: Duration,
    accounts: [f64; MAX_PATHS],
}

impl DatagramPolicy for Weighted {
    fn choose(&mut self, _now: Instant, datagram: &Outgoing, paths: &[PathView]) -> Decision {
        let heard = paths.iter().any(|path| path.usable && !path.overdue);
        let usable = || paths.iter().filter(|path| path.usable && !(heard && path.overdue));
        let unknown = weight_of_unknown(paths);
        let sum: f64 = usable().map(|path| weight(path, unknown)).sum();
        let length = datagram.length as f64;
        let mut best: Option<(f64, u8)> = None;
        for path in usable() {
            let Some(account) = self.accounts.get_mut(usize::from(path.path)) else { continue };
            *account += length * weight(path, unknown) / sum;
            if best.is_none_or(|(most, _)| *account > most) {
                best = Some((*account, path.path));
            }
        }
        let Some((_, path)) = best else { return Decision::default() };
        for (number, account) in (0..).zip(&mut self.accounts) {
            if number == path {
                *account -= length;
            } else if !usable().any(|path| path.path == number) {
                *account = 0.0;
            }
        }
        let delays = || usable().map(|path| path.delay + path.queued);
        let spread = delays().max().unwrap_or_default().abs_diff(delays().min().unwrap_or_default());
        let variation = usable().map(|path| path.variation).max().unwrap_or_default().mul_f64(4.0);
        Decision { hold: self.hold.min(spread + variation), ..Decision::one(path) }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{at, build, micros, path};
    use super::*;
    use crate::rate::Rate;

    fn with_capacity(number: u8, megabits: u64) -> PathView {
        PathView { capacity: Some(Rate::from_bits_per_second(megabits * 1_000_000)), ..path(number, 0) }
    }

    fn turns(policy: &mut dyn DatagramPolicy, paths: &[PathView], count: usize) -> Vec<u8> {
        let datagram = Outgoing { length: 1_000, flow: 7 };
        (0..count).flat_map(|_| policy.choose(at(0), &datagram, paths).paths.iter().collect::<Vec<_>>()).collect()
    }

    #[test]
    fn shares_are_those_of_the_capacities() {
        // 750 and 250 are added: 0 gets the first (-250, 250); then 500, 500: 0 wins the tie (-500, 500); then 250,
        // 750: 1.
        let turns = turns(&mut *build("weighted"), &[with_capacity(0, 300), with_capacity(1, 100)], 8);
        assert_eq!(turns, [0, 0, 1, 0, 0, 0, 1, 0]);
    }

    #[test]
    fn a_path_of_which_the_peer_is_overdue_to_tell_has_no_turn() {
        let overdue = |number| PathView { overdue: true, ..path(number, 0) };
        assert_eq!(turns(&mut *build("weighted"), &[overdue(0), path(1, 0)], 3), [1, 1, 1]);
        assert_eq!(turns(&mut *build("weighted"), &[overdue(0), overdue(1)], 2), [0, 1]);
    }

    #[test]
    fn a_path_that_was_away_is_owed_nothing() {
        let mut policy = build("weighted");
        turns(&mut *policy, &[path(0, 0), path(1, 0)], 3);
        turns(&mut *policy, &[path(0, 0), PathView { usable: false, ..path(1, 0) }], 100);
        let turns = turns(&mut *policy, &[path(0, 0), path(1, 0)], 4);
        assert_eq!(turns.iter().filter(|path| **path == 1).count(), 2);
    }

    #[test]
    fn the_receiver_waits_as_long_as_the_paths_differ_and_no_longer_than_it_may() {
        let datagram = Outgoing { length: 1_000, flow: 7 };
        let slow = PathView { queued: Duration::from_millis(3), variation: micros(500), ..path(1, 20) };
        let decision = build("weighted").choose(at(0), &datagram, &[path(0, 0), slow]);
        assert_eq!(decision.hold, Duration::from_millis(25));
        let decision = build("weighted").choose(at(0), &datagram, &[path(0, 0), path(1, 70)]);
        assert_eq!(decision.hold, Duration::from_millis(50));
    }
}
