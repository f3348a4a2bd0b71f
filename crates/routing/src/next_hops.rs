//! Selects the next hops of a route and their shares of the traffic by the forecasts of their links.
//!
//! Source: Zhang, Zhao, Cheng, "Multipath Routing and MPTCP-Based Data Delivery Over MANETs", IEEE Access 8, 2020,
//! section III-D and appendix A, which installs the next hops that a hidden Markov model says are connected. Here the
//! forecast is used softly: a suspect next hop gets less of the traffic, a lost one none, and a route never loses its
//! last next hop. The choice is always a subset of the next hops of equal cost, so no forecast can cause a loop.
//! Forecasts never go into LSAs: each change would be flooded.
//!
//! `paper_literal` is the appendix as printed. If the forecast is "disconnected" for all next hops, no route is
//! installed: packets that might have arrived are dropped until a link recovers, and since nothing is sent over them,
//! the paper's observations, acknowledgements of TCP, never come. For comparison only.

use crate::routing_table::NextHop;
use anabranch_wire::ospf::{InterfaceId, RouterId};
use std::collections::BTreeMap;

/// How forecasts are used.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum ForecastUse {
    Ignored,
    /// Weights; only lost links are excluded.
    Soft(SoftUse),
    /// Appendix A: only next hops whose link is forecast to be up, and none at all if there is none.
    PaperLiteral,
}

impl Default for ForecastUse {
    fn default() -> Self {
        Self::Soft(SoftUse::default())
    }
}

/// When a link is suspect or lost. Probabilities are those that the link is up at the forecaster's horizon.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct SoftUse {
    /// A suspect link is trusted again from this probability on.
    pub trust: f64,
    /// A trusted link is suspect below this one; less than `trust`, for hysteresis.
    pub suspect: f64,
    /// A suspect link is lost below this one.
    pub exclude: f64,
    /// A lost link is suspect again from this one on.
    pub readmit: f64,
    /// Minimum number of updates between two changes of a link's trust.
    pub hold: u32,
    /// Weight of a trusted link; a suspect one has 1.
    pub trusted_weight: u8,
}

impl Default for SoftUse {
    fn default() -> Self {
        Self { trust: 0.55, suspect: 0.45, exclude: 0.2, readmit: 0.3, hold: 2, trusted_weight: 4 }
    }
}

/// State of a link.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub enum Trust {
    /// It gets no traffic if there is another.
    Lost,
    /// It gets a small share.
    Suspect,
    /// It gets a full share.
    #[default]
    Trusted,
}

/// A next hop and its share of the traffic.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WeightedHop {
    /// The next hop.
    pub hop: NextHop,
    /// Its share relative to the others; at least 1.
    pub weight: u8,
}

/// State of a link.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Link {
    trust: Trust,
    /// Updates since its trust changed.
    held: u32,
    probability: f64,
}

/// The state of each link. Its memory is that of the neighbours of the last update.
#[derive(Clone, Default, Debug)]
pub struct NextHopFilter {
    usage: ForecastUse,
    links: BTreeMap<(InterfaceId, RouterId), Link>,
}

impl NextHopFilter {
    /// A filter without forecasts, which trusts all links.
    pub fn new(usage: ForecastUse) -> Self {
        Self { usage, links: BTreeMap::new() }
    }

    /// Updates the forecasts of all neighbours, once per period (such as a Hello interval); true if the trust of a link
    /// changed, so that routes must be installed again. Neighbours not among them are removed. A probability that is
    /// not a number counts as unknown, and changes nothing.
    pub fn update(&mut self, forecasts: impl IntoIterator<Item = (InterfaceId, RouterId, f64)>) -> bool {
        let mut before = core::mem::take(&mut self.links);
        let mut changed = false;
        for (interface, router, probability) in forecasts {
            let known = before.remove(&(interface, router));
            // The first Hello of a new neighbour. Its trust may change at once.
            let link = known.unwrap_or(Link { trust: Trust::Trusted, held: u32::MAX, probability: 1.0 });
            let new = if probability.is_nan() { link } else { self.judge(link, probability) };
            changed |= new.trust != link.trust;
            self.links.insert((interface, router), new);
        }
        changed || !before.is_empty()
    }

    /// The trust of a link; an unknown one is trusted.
    pub fn trust(&self, interface: InterfaceId, router: RouterId) -> Trust {
        self.links.get(&(interface, router)).map_or(Trust::Trusted, |link| link.trust)
    }

    /// Whether all links are trusted.
    pub(crate) fn trusts_all(&self) -> bool {
        self.links.values().all(|link| link.trust == Trust::Trusted)
    }

    /// The next hops to use among those of equal cost. Empty only if there are none, or by `paper_literal`.
    pub fn choose(&self, next_hops: &[NextHop]) -> Vec<WeightedHop> {
        let trust = |hop: &NextHop| self.trust(hop.interface, hop.router);
        match self.usage {
            ForecastUse::Ignored => next_hops.iter().map(|hop| WeightedHop { hop: *hop, weight: 1 }).collect(),
            ForecastUse::PaperLiteral => {
                let connected = next_hops.iter().filter(|hop| trust(hop) != Trust::Lost);
                connected.map(|hop| WeightedHop { hop: *hop, weight: 1 }).collect()
            }
            ForecastUse::Soft(soft) => {
                let best = next_hops.iter().map(trust).max();
                // If all are lost, the most probable one is kept.
                let likeliest = next_hops.iter().map(|hop| self.probability(hop)).fold(0.0, f64::max);
                let kept = next_hops.iter().filter(|hop| match best {
                    Some(Trust::Lost) => self.probability(hop) >= likeliest,
                    _ => trust(hop) != Trust::Lost,
                });
                let weight = |hop: &NextHop| match (trust(hop), best) {
                    (Trust::Trusted, _) => soft.trusted_weight.max(1),
                    _ => 1,
                };
                kept.map(|hop| WeightedHop { hop: *hop, weight: weight(hop) }).collect()
            }
        }
    }

    fn probability(&self, hop: &NextHop) -> f64 {
        self.links.get(&(hop.interface, hop.router)).map_or(1.0, |link| link.probability)
    }

    /// The state of a link after an update.
    fn judge(&self, link: Link, probability: f64) -> Link {
        let soft = match self.usage {
            ForecastUse::Ignored => return Link { probability, ..link },
            ForecastUse::PaperLiteral => {
                let trust = if probability >= 0.5 { Trust::Trusted } else { Trust::Lost };
                return Link { trust, held: 0, probability };
            }
            ForecastUse::Soft(soft) => soft,
        };
        let held = link.held.saturating_add(1);
        let wanted = match link.trust {
            _ if held < soft.hold => link.trust,
            Trust::Trusted if probability < soft.exclude => Trust::Lost,
            Trust::Trusted if probability < soft.suspect => Trust::Suspect,
            Trust::Suspect if probability < soft.exclude => Trust::Lost,
            Trust::Suspect | Trust::Lost if probability >= soft.trust => Trust::Trusted,
            Trust::Lost if probability >= soft.readmit => Trust::Suspect,
            same => same,
        };
        Link { trust: wanted, held: if wanted == link.trust { held } else { 0 }, probability }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::net::Ipv4Addr;

    const INTERFACE: InterfaceId = InterfaceId(1);

    fn hop(router: u32) -> NextHop {
        NextHop { router: RouterId(router), interface: INTERFACE, address: Ipv4Addr::from(router).into() }
    }

    /// Applies the forecasts of routers 2, 3, ... `times` times, and returns (router, weight) of those used.
    fn used(filter: &mut NextHopFilter, times: usize, forecasts: &[f64]) -> Vec<(u32, u8)> {
        let all = || (2_u32..).zip(forecasts).map(|(router, p)| (INTERFACE, RouterId(router), *p));
        for _ in 0..times {
            filter.update(all());
        }
        let hops: Vec<NextHop> = all().map(|(_, router, _)| hop(router.0)).collect();
        filter.choose(&hops).iter().map(|one| (one.hop.router.0, one.weight)).collect()
    }

    #[test]
    fn a_suspect_next_hop_loses_weight_and_a_lost_one_leaves() {
        let mut filter = NextHopFilter::default();
        assert_eq!(used(&mut filter, 1, &[0.9, 0.5, 0.4, 0.1]), [(2, 4), (3, 4), (4, 1)]);
        // If all are suspect, they have equal shares.
        assert_eq!(used(&mut filter, 5, &[0.4, 0.4, 0.4, 0.25]), [(2, 1), (3, 1), (4, 1)]);
    }

    #[test]
    fn between_the_thresholds_a_link_stays_what_it_is() {
        let mut filter = NextHopFilter::default();
        let trust = |filter: &NextHopFilter| filter.trust(INTERFACE, RouterId(2));
        for (probability, expected) in [
            (0.46, Trust::Trusted),
            (0.44, Trust::Suspect),
            (0.54, Trust::Suspect),
            (0.21, Trust::Suspect),
            (0.19, Trust::Lost),
            (0.29, Trust::Lost),
            (0.31, Trust::Suspect),
            (0.55, Trust::Trusted),
            (0.1, Trust::Lost),
            (0.6, Trust::Trusted),
        ] {
            used(&mut filter, 2, &[probability]);
            assert_eq!(trust(&filter), expected, "at {probability}");
        }
    }

    #[test]
    fn what_changed_stays_for_two_updates() {
        let mut filter = NextHopFilter::default();
        let mut trusts = Vec::new();
        for probability in [0.9, 0.4, 0.9, 0.9, 0.4, 0.9, 0.4] {
            used(&mut filter, 1, &[probability]);
            trusts.push(filter.trust(INTERFACE, RouterId(2)));
        }
        use Trust::{Suspect, Trusted};
        assert_eq!(trusts, [Trusted, Suspect, Suspect, Trusted, Trusted, Trusted, Suspect]);
    }

    #[test]
    fn the_last_next_hop_stays_and_of_all_lost_ones_the_likeliest() {
        let mut filter = NextHopFilter::default();
        assert_eq!(used(&mut filter, 3, &[0.0]), [(2, 1)]);
        assert_eq!(used(&mut filter, 3, &[0.05, 0.15, 0.1]), [(3, 1)]);
        assert_eq!(used(&mut filter, 3, &[0.0, 0.0]), [(2, 1), (3, 1)]);
    }

    #[test]
    fn paper_literal_leaves_a_route_without_a_next_hop() {
        let mut filter = NextHopFilter::new(ForecastUse::PaperLiteral);
        assert_eq!(used(&mut filter, 1, &[0.9, 0.4, 0.5]), [(2, 1), (4, 1)]);
        assert_eq!(used(&mut filter, 1, &[0.4, 0.4, 0.4]), []);
    }

    #[test]
    fn ignored_forecasts_change_nothing() {
        let mut filter = NextHopFilter::new(ForecastUse::Ignored);
        assert_eq!(used(&mut filter, 3, &[0.0, 0.9]), [(2, 1), (3, 1)]);
        assert!(!filter.update([(INTERFACE, RouterId(2), 0.0), (INTERFACE, RouterId(3), 1.0)]));
    }

    #[test]
    fn a_change_is_told_and_who_is_gone_is_forgotten() {
        let mut filter = NextHopFilter::default();
        assert!(!filter.update([(INTERFACE, RouterId(2), 0.9)]));
        assert!(filter.update([(INTERFACE, RouterId(2), 0.1)]));
        assert!(!filter.update([(INTERFACE, RouterId(2), f64::NAN)]));
        assert_eq!(filter.trust(INTERFACE, RouterId(2)), Trust::Lost);
        assert!(filter.update([]));
        assert_eq!(filter.trust(INTERFACE, RouterId(2)), Trust::Trusted);
    }
}
