//! How often the Router-LSA may be originated: the larger the network, the less often, since each instance is sent again by
//! many routers and acknowledged by all.
//!
//! Decisions (RFC 2328, 12.4, has MinLSInterval alone, as the least time between two instances):
//! - All routers together originate as many instances as 40 of them at one per MinLSInterval, until that takes four
//!   MinLSIntervals.
//! - Links that only shorten paths can wait: the routers that these lead to are reached without. They are told with something
//!   else, or after a MinLSInterval more for each 10 routers, up to eleven. Up to 10 routers tell them as soon as anything else.

use anabranch_policy::Duration;

/// Routers that may originate at MinLSInterval each.
const ROUTERS: u64 = 40;
/// Routers that tell at once what only shortens paths. So many more wait for another MinLSInterval.
const ROUTERS_AT_ONCE: u64 = 10;
/// Longest interval, in MinLSIntervals.
const LONGEST: u64 = 4;
/// Longest time after the last instance until the next one that only shortens paths, in MinLSIntervals.
const LONGEST_LEISURE: u64 = 11;

/// The pace of an LSA.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Pace {
    /// Time between two instances, on the average.
    pub interval: Duration,
    /// Longest time between two instances if there is always something to tell.
    pub longest: Duration,
    /// Least time between two instances if the newer one only shortens paths.
    pub leisure: Duration,
}

impl From<Duration> for Pace {
    fn from(interval: Duration) -> Self {
        Self { interval, longest: interval * LONGEST, leisure: Duration::ZERO }
    }
}

impl Pace {
    /// The pace of the Router-LSA in a network of so many routers.
    pub fn of(min_ls_interval: Duration, routers: usize) -> Self {
        let routers = routers as u64;
        let size = routers.clamp(ROUTERS, ROUTERS * LONGEST);
        let beyond = routers.saturating_sub(ROUTERS_AT_ONCE).min(ROUTERS_AT_ONCE * LONGEST_LEISURE);
        Self {
            interval: min_ls_interval * size / ROUTERS,
            longest: min_ls_interval * LONGEST,
            leisure: min_ls_interval * beyond / ROUTERS_AT_ONCE,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_larger_the_network_the_less_often_each_router_originates() {
        for (routers, interval, leisure) in
            [(0, 5.0, 0.0), (10, 5.0, 0.0), (40, 5.0, 15.0), (100, 12.5, 45.0), (160, 20.0, 55.0), (9999, 20.0, 55.0)]
        {
            let pace = Pace::of(Duration::from_secs(5), routers);
            assert_eq!((pace.interval.as_secs_f64(), pace.leisure.as_secs_f64()), (interval, leisure), "{routers}");
            assert_eq!(pace.longest, Duration::from_secs(20));
        }
    }
}
