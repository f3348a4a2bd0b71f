//! Each datagram goes on the path with the earliest arrival, unless it would overtake earlier datagrams of its flow.
//!
//! There is no paper; the estimate is that of a queue with one server of known rate. For a datagram of l bytes at the
//! time t, on path i with the least delay d_i, capacity C_i, and outstanding bytes o_i after the last datagram that the
//! peer has reported, which left the queues at e_i:
//!
//! ```text
//! departure_i = max(t, e_i + o_i / C_i + f_i (t - s_i)) + l / C_i    if the capacity is known
//!             = t + queue of the last reported datagram              else
//! arrival_i   = departure_i + d_i                                     d_i differ by what one-way delays do
//! cost_i      = arrival_i + loss_i * loss_time
//! ```
//!
//! where s_i is when that datagram was sent, and f_i the cross traffic: transmission time per time that others add to
//! the queue. Paths with overdue reports count only if there is no other.
//!
//! The flow moves to the path of the lowest cost if its arrival there is not before that of the last datagram of the
//! flow. Otherwise it stays until the gain exceeds `patience`: then a few datagrams are overtaken, once, and the old
//! path drains. So a flow too fast for one path is spread over several in order once their capacities are known, and a
//! flow that one path can carry stays on it.
//!
//! Decisions:
//! - `patience` 5 ms: a queue longer than that is avoided at the cost of reordering, since a flow faster than its path would
//!   fill it completely.
//! - `hold` 3 ms: simulation shows errors of the estimate below a millisecond. While a flow has had more than one path within
//!   the last second, the receiver delays a datagram this long for earlier ones. One that overtakes others is delayed until
//!   those should have arrived, plus this time, at most 40 ms.
//! - `loss_time` 2 s: a loss of 1 % weighs as much as 20 ms of delay. By the E-model (ITU-T G.107) a loss of 1 % costs G.711 with
//!   concealment as much as 27 ms where delay is felt, above 177 ms, and as 150 ms below; a lost DNS query is repeated after
//!   seconds.
//! - Flows are distinguished by their hash in a table of 1,024; flows with the same slot are kept in order with each other.

use super::flows::Flows;
use super::{DatagramPolicy, Decision, Outgoing, PathView};
use crate::table::{Member, Milliseconds, Number, Reader, SettingError};
use crate::time::{Duration, Instant};

const PATIENCE: Milliseconds = Milliseconds(Number {
    name: "patience",
    unit: "ms",
    default: 5.0,
    range: 0.0..=1_000.0,
    summary: "Least gain in delay for which a flow changes its path although that may reorder it",
});

const LOSS_TIME: Milliseconds = Milliseconds(Number {
    name: "loss_time",
    unit: "ms",
    default: 2_000.0,
    range: 0.0..=10_000.0,
    summary: "Delay that a lost datagram counts as",
});

const HOLD: Milliseconds = Milliseconds(Number {
    name: "hold",
    unit: "ms",
    default: 3.0,
    range: 0.0..=255.0,
    summary: "How long the receiver may hold a datagram back for one sent before it, while the flow has several paths",
});

/// How long after its last change of paths a flow counts as using several.
const SEVERAL: Duration = Duration::from_secs(1);

/// The longest delay at the receiver.
const LONGEST: Duration = Duration::from_millis(40);

/// The entry in [`super::TABLE`].
pub const MEMBER: Member<dyn DatagramPolicy> = Member {
    name: "lowest_delay",
    summary: "The path on which the datagram arrives first, if it does not overtake what its flow has sent before.",
    source: "own",
    build,
};

fn build(reader: &mut Reader<'_>) -> Result<Box<dyn DatagramPolicy>, SettingError> {
    let (patience, hold, loss_time) = (reader.read(&PATIENCE)?, reader.read(&HOLD)?, reader.read(&LOSS_TIME)?);
    Ok(Box::new(LowestDelay { patience, hold, loss_time, flows: Flows::new() }))
}

/// The last datagram of a flow.
#[derive(Clone, Copy, Debug)]
struct Last {
    path: u8,
    arrival: Instant,
    /// The latest arrival of all datagrams of the flow.
    all: Instant,
    /// When it last changed its path, if ever.
    changed: Option<Instant>,
}

#[derive(Clone, Debug)]
struct LowestDelay {
    patience: Duration,
    hold: Duration,
    loss_time: Duration,
    flows: Flows<Last>,
}

/// The arrival time of a datagram, with an offset that is the same for all paths.
pub(super) fn arrival(now: Instant, length: usize, path: &PathView) -> Instant {
    let departure = match path.capacity {
        Some(rate) => {
            let since = now.since(path.left - path.queued);
            let queue = path.left + rate.time_for(path.outstanding) + since.mul_f64(path.inflow);
            now.max(queue) + rate.time_for(length as u64)
        }
        None => now + path.queued,
    };
    departure + path.delay
}

impl DatagramPolicy for LowestDelay {
    fn choose(&mut self, now: Instant, datagram: &Outgoing, paths: &[PathView]) -> Decision {
        let estimate = |path: &PathView| {
            let arrival = arrival(now, datagram.length, path);
            (arrival + self.loss_time.mul_f64(path.loss), arrival, path.path)
        };
        let heard = paths.iter().any(|path| path.usable && !path.overdue);
        let usable = || paths.iter().filter(|path| path.usable && !(heard && path.overdue)).map(estimate);
        let Some(best) = usable().min() else { return Decision::default() };
        let place = self.flows.of(datagram.flow);
        let last = *place;
        let stay = last.and_then(|last| usable().find(|(.., path)| *path == last.path));
        let (_, arrival, path) = match (stay, last) {
            (Some(stay), Some(last)) if best.1 < last.arrival && stay.0.since(best.0) <= self.patience => stay,
            _ => best,
        };
        // A datagram that is overtaken does not constrain later ones.
        let changed = match last {
            Some(last) if last.path != path => Some(now),
            last => last.and_then(|last| last.changed),
        };
        let all = last.map_or(arrival, |last| last.all.max(arrival));
        *place = Some(Last { path, arrival, all, changed });
        let several = changed.is_some_and(|changed| now.since(changed) < SEVERAL);
        let hold = if several { (all.since(arrival) + self.hold).min(LONGEST.max(self.hold)) } else { Duration::ZERO };
        Decision { hold, ..Decision::one(path) }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{at, build, micros, path};
    use super::*;
    use crate::rate::Rate;

    const FLOW: Outgoing = Outgoing { length: 1_250, flow: 7 };

    fn chosen(policy: &mut dyn DatagramPolicy, now: Instant, paths: &[PathView]) -> u8 {
        policy.choose(now, &FLOW, paths).paths.iter().next().expect("one is usable")
    }

    #[test]
    fn the_path_with_the_least_delay_has_all_while_no_queue_stands() {
        let mut policy = build("lowest_delay");
        let paths = [path(0, 20), path(1, 0)];
        assert!((0..100).all(|millis| chosen(&mut *policy, at(millis), &paths) == 1));
    }

    #[test]
    fn a_flow_larger_than_its_path_is_spread_in_order_once_the_capacities_are_known() {
        // Two paths of 100 Mbit/s: 1,250 bytes take 100 us. Sending one every 50 us fills both.
        let mut policy = build("lowest_delay");
        let mut free = [Instant::ZERO; 2];
        let mut arrivals = Vec::new();
        for number in 0..100_u64 {
            let now = Instant::ZERO + micros(50 * number);
            let paths: Vec<PathView> = (0..2)
                .map(|index| PathView {
                    capacity: Some(Rate::from_bits_per_second(100_000_000)),
                    // Bytes sent but not yet transmitted; 12.5 bytes take a microsecond.
                    left: now,
                    outstanding: free[index].since(now).as_nanos() / 80,
                    ..path(index as u8, 0)
                })
                .collect();
            let index = usize::from(chosen(&mut *policy, now, &paths));
            free[index] = free[index].max(now) + micros(100);
            arrivals.push((free[index], index));
        }
        assert!(arrivals.is_sorted(), "in order");
        assert_eq!(arrivals.iter().filter(|(_, index)| *index == 0).count(), 50);
        assert_eq!(arrivals.last().map(|last| last.0), Some(Instant::ZERO + micros(99 * 50 + 100)), "no queue");
    }

    #[test]
    fn a_flow_stays_behind_its_queue_up_to_the_patience() {
        // A datagram arrives over path 0 after `queue` ms at 10 Mbit/s, and over path 1 after `delay`.
        let paths = |now: u64, queue: u64, delay: u64| {
            let rate = Rate::from_bits_per_second(10_000_000);
            let first =
                PathView { capacity: Some(rate), left: at(now), outstanding: queue * 1_250 - 1_250, ..path(0, 0) };
            [first, path(1, delay)]
        };
        let mut policy = build("lowest_delay");
        assert_eq!(chosen(&mut *policy, at(0), &paths(0, 10, 10)), 0, "the lower number on a tie");
        // At 8 ms it would overtake the one at 10 ms, and gain 3 ms on 11.
        assert_eq!(chosen(&mut *policy, at(0), &paths(0, 11, 8)), 0);
        // At 4 + 8 ms it overtakes none, and gains.
        assert_eq!(chosen(&mut *policy, at(4), &paths(4, 9, 8)), 1);
        // 14 ms against 8: more than 5.
        let mut policy = build("lowest_delay");
        assert_eq!(chosen(&mut *policy, at(0), &paths(0, 10, 10)), 0);
        assert_eq!(chosen(&mut *policy, at(0), &paths(0, 13, 8)), 0);
        assert_eq!(chosen(&mut *policy, at(0), &paths(0, 14, 8)), 1);
    }

    #[test]
    fn the_receiver_waits_for_a_flow_that_has_several_paths_and_for_a_second_after_that() {
        let mut policy = build("lowest_delay");
        let holds = [(0, 0, 0), (10, 1, 3), (1_009, 1, 3), (1_010, 1, 0), (1_020, 0, 3)].map(|(now, best, hold)| {
            let paths = [path(0, if best == 0 { 0 } else { 9 }), path(1, if best == 0 { 9 } else { 0 })];
            (
                policy.choose(at(now), &FLOW, &paths),
                Decision { hold: Duration::from_millis(hold), ..Decision::one(best) },
            )
        });
        for (decision, expected) in holds {
            assert_eq!(decision, expected);
        }
    }

    #[test]
    fn a_path_of_which_the_peer_is_overdue_to_tell_is_left_unless_all_are() {
        let overdue = |number, delay| PathView { overdue: true, ..path(number, delay) };
        let mut policy = build("lowest_delay");
        assert_eq!(chosen(&mut *policy, at(0), &[path(0, 0), path(1, 40)]), 0);
        assert_eq!(chosen(&mut *policy, at(1), &[overdue(0, 0), path(1, 40)]), 1);
        assert_eq!(chosen(&mut *build("lowest_delay"), at(2), &[overdue(0, 0), overdue(1, 40)]), 0);
        let failed = PathView { usable: false, ..path(1, 40) };
        assert_eq!(chosen(&mut *policy, at(3), &[overdue(0, 0), failed]), 0);
    }

    #[test]
    fn a_queue_that_others_keep_full_does_not_drain_with_time() {
        // The last reported datagram was sent at 0 and waited for 100 ms; nothing was sent since.
        let near = |inflow| PathView {
            capacity: Some(Rate::from_bits_per_second(10_000_000)),
            queued: Duration::from_millis(100),
            left: at(100),
            inflow,
            ..path(0, 0)
        };
        let chosen = |inflow, now| chosen(&mut *build("lowest_delay"), at(now), &[near(inflow), path(1, 60)]);
        // Without cross traffic the queue has drained 60 ms by then.
        assert_eq!((chosen(0.0, 39), chosen(0.0, 42)), (1, 0));
        assert_eq!((chosen(1.0, 42), chosen(1.0, 250)), (1, 1));
        // 100 + t/2 - t is 60 after 80 ms, and a datagram takes 1 ms.
        assert_eq!((chosen(0.5, 80), chosen(0.5, 83)), (1, 0));
    }

    #[test]
    fn a_path_that_fails_is_left_at_once_and_a_lossy_one_for_its_losses() {
        let mut policy = build("lowest_delay");
        let paths = [path(0, 0), path(1, 15)];
        assert_eq!(chosen(&mut *policy, at(0), &paths), 0);
        let failed = [PathView { usable: false, ..path(0, 0) }, path(1, 15)];
        assert_eq!(chosen(&mut *policy, at(0), &failed), 1);
        assert_eq!(chosen(&mut *policy, at(50), &paths), 0);
        // A loss of 1 % counts as 20 ms.
        let lossy = [PathView { loss: 0.01, ..path(0, 0) }, path(1, 15)];
        assert_eq!(chosen(&mut *policy, at(51), &lossy), 1);
        assert_eq!(policy.choose(at(52), &FLOW, &failed[..1]), Decision::default());
    }
}
