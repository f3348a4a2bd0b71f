//! How long a silent neighbour is waited for where Hellos are lost although nobody goes.
//!
//! RouterDeadInterval is a few Hellos. On a busy channel that many are often lost in a row: neighbours that stay would be
//! lost and found again, and each change is flooded and makes the channel busier. In the end each router hears few others,
//! elects itself, and all flood for all.
//!
//! Decisions (RFC 5614 has the interval alone):
//! - What the median neighbour's Hellos suffer is the channel's doing. Weak links, of which fewer arrive, do not count, and
//!   with few neighbours nothing is known. Where links cost by what they lose (ETX), a weak one is used only if there is nothing
//!   better, and its own losses count.
//! - A neighbour is waited for until as many Hellos in a row are missing as are lost by chance in 4 of 1,000 cases, three times
//!   as long as RouterDeadInterval at most.

use anabranch_policy::Duration;

/// Neighbours of which the median is taken, at least.
const FEWEST: usize = 4;
/// The probability at which missing Hellos are no chance any more.
const BY_CHANCE: f64 = 0.004;
/// Longest wait, in RouterDeadIntervals.
const LONGEST: u64 = 3;

/// The share of Hellos that the channel loses, 0 if that is not known. `losses` are the shares that were lost of each neighbour, 0
/// to 1, in any order.
pub(crate) fn channel_loss(losses: &mut [f64]) -> f64 {
    if losses.len() < FEWEST {
        return 0.0;
    }
    losses.sort_by(f64::total_cmp);
    losses.get(losses.len() / 2).copied().unwrap_or(0.0)
}

/// How long a neighbour may be silent of whose Hellos this share is lost, 0 to 1.
pub(crate) fn patience(dead_interval: Duration, hello_interval: Duration, loss: f64) -> Duration {
    let hellos = dead_interval.as_nanos() / hello_interval.as_nanos().max(1);
    let mut chance = (0..hellos).fold(1.0, |chance, _| chance * loss);
    let mut more = 0;
    while chance > BY_CHANCE && hellos + more < hellos * LONGEST {
        chance *= loss;
        more += 1;
    }
    dead_interval + hello_interval * more
}

#[cfg(test)]
mod tests {
    use super::*;

    const HELLO: Duration = Duration::from_secs(2);
    const DEAD: Duration = Duration::from_secs(6);

    fn seconds(losses: &[f64]) -> f64 {
        patience(DEAD, HELLO, channel_loss(&mut losses.to_vec())).as_secs_f64()
    }

    #[test]
    fn the_more_hellos_the_channel_loses_the_longer_a_silent_neighbour_is_waited_for() {
        // 0.15^3 = 0.0034; 0.25^4 = 0.0039; 0.5^8 = 0.0039; 0.9^9 = 0.39.
        let patiences = [0.0, 0.15, 0.25, 0.5, 0.9, 1.0].map(|loss| seconds(&[loss; 4]));
        assert_eq!(patiences, [6.0, 6.0, 8.0, 16.0, 18.0, 18.0]);
    }

    #[test]
    fn few_neighbours_and_weak_links_among_many_say_nothing_of_the_channel() {
        assert_eq!(seconds(&[0.9; 3]), 6.0);
        assert_eq!(seconds(&[0.9, 0.0, 0.8, 0.1, 0.0]), 6.0);
    }
}
