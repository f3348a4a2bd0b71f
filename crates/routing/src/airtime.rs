//! Cost of a link by what its radio does: the airtime link metric of IEEE 802.11 (IEEE 802.11-2016, 14.9),
//! c = (O + B / r) / (1 - e), with a test frame of B = 8,192 bits, the rate r of unicast frames and their loss e.
//!
//! Decisions:
//! - O is 200 us: preambles, interframe spaces, acknowledgement and a mean back-off of OFDM. The standard leaves it to the
//!   physical layer.
//! - The unit is 10 us: 33 at 65 Mbit/s, 839 at 1 Mbit/s.
//! - e is the share of attempts that failed, retries included, an exponential average over intervals with weight 1/4.
//!   Where the rate control tells the throughput that it expects, with its losses, that takes the place of r and e.
//! - The cost waits and has the hysteresis of that by counted Hellos: each interval is a measurement.

use crate::steady_cost::SteadyCost;

/// In microseconds.
const OVERHEAD: f64 = 200.0;
/// In bits.
const TEST_FRAME: f64 = 8192.0;
/// The unit of the cost in microseconds.
const UNIT: f64 = 10.0;
/// Weight of an interval.
const WEIGHT: f64 = 0.25;
/// Greatest loss that is told apart.
const MOST: f64 = 0.95;

/// What a driver tells of a link.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct RadioLink {
    /// The present rate of unicast frames in kbit/s.
    pub rate: Option<u32>,
    /// Throughput in kbit/s that the rate control expects, losses included.
    pub expected_throughput: Option<u32>,
    /// Frames sent, retries, and frames dropped after the last retry, since the station is known. They wrap.
    pub sent: u32,
    pub retries: u32,
    pub failed: u32,
}

/// What the frames of one interval tell.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Interval {
    /// The cost changed.
    pub changed: bool,
    /// Whether the frames arrived: none if there were none; false if any was dropped.
    pub delivered: Option<bool>,
}

/// The cost of one link.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Airtime {
    last: Option<RadioLink>,
    loss: f64,
    cost: SteadyCost,
}

impl Airtime {
    /// In units of 10 us; none before a rate is known.
    pub fn cost(&self) -> Option<u16> {
        self.cost.get()
    }

    /// An interval has passed.
    pub fn update(&mut self, link: RadioLink) -> Interval {
        let last = self.last.replace(link).unwrap_or(link);
        let since = |now: u32, before: u32| f64::from(now.wrapping_sub(before));
        let (sent, retries) = (since(link.sent, last.sent), since(link.retries, last.retries));
        let failed = since(link.failed, last.failed);
        let attempts = sent + retries;
        if attempts > 0.0 {
            let lost = ((retries + failed) / attempts).min(1.0);
            self.loss += WEIGHT * (lost - self.loss);
        }
        self.cost.wait(1);
        let changed = self.microseconds(link).is_some_and(|time| self.cost.update(time / UNIT));
        Interval { changed, delivered: (sent + failed > 0.0).then_some(failed == 0.0) }
    }

    /// Airtime of the test frame.
    fn microseconds(&self, link: RadioLink) -> Option<f64> {
        let at = |kilobits: u32| OVERHEAD + TEST_FRAME / (f64::from(kilobits.max(1)) / 1e3);
        match link.expected_throughput.filter(|expected| *expected > 0) {
            Some(expected) => Some(at(expected)),
            None => Some(at(link.rate?) / (1.0 - self.loss.min(MOST))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(rate: u32) -> RadioLink {
        RadioLink { rate: Some(rate), ..RadioLink::default() }
    }

    fn cost(link: RadioLink) -> Option<u16> {
        let mut airtime = Airtime::default();
        airtime.update(link);
        airtime.cost()
    }

    #[test]
    fn a_slow_link_costs_its_airtime() {
        assert_eq!([at(65_000), at(11_000), at(1_000)].map(cost), [Some(33), Some(94), Some(839)]);
        assert_eq!(cost(RadioLink { expected_throughput: Some(8_192), ..at(65_000) }), Some(120));
        assert_eq!(cost(RadioLink::default()), None);
        assert_eq!(cost(at(0)), Some(u16::MAX - 1));
    }

    #[test]
    fn losses_raise_it_and_one_bad_second_does_not() {
        let mut airtime = Airtime::default();
        let mut link = at(65_000);
        airtime.update(link);
        let mut second = |sent: u32, retries: u32, failed: u32| {
            (link.sent, link.retries, link.failed) =
                (link.sent.wrapping_add(sent), link.retries.wrapping_add(retries), link.failed.wrapping_add(failed));
            airtime.update(link)
        };
        assert_eq!(second(100, 0, 0), Interval { changed: false, delivered: Some(true) });
        assert_eq!(second(0, 0, 0).delivered, None);
        // Half of the attempts are lost: an eighth of the average.
        assert_eq!(second(100, 100, 1), Interval { changed: false, delivered: Some(false) });
        let changes = (0..20).filter(|_| second(100, 100, 0).changed).count();
        assert_eq!(changes, 1, "after eight measurements");
        assert!((55..70).contains(&airtime.cost().unwrap()), "{airtime:?}");
    }

    #[test]
    fn counters_wrap_and_begin_anew() {
        let mut airtime = Airtime::default();
        airtime.update(RadioLink { sent: u32::MAX - 4, retries: u32::MAX, ..at(65_000) });
        let interval = airtime.update(RadioLink { sent: 5, retries: 0, ..at(65_000) });
        assert_eq!(interval, Interval { changed: false, delivered: Some(true) });
        assert!((airtime.loss - 0.25 / 11.0).abs() < 1e-9, "{airtime:?}");
        // A station that is known anew counts from zero: a bounded mistake of one interval.
        airtime.update(RadioLink::default());
        assert!(airtime.loss <= 0.275, "{airtime:?}");
    }
}
