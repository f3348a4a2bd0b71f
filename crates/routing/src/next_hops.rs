//! Which of a route's next hops are used, and how much of the traffic each gets, by what is forecast of the links to them.
//!
//! Source: Zhang, Zhao, Cheng, "Multipath Routing and MPTCP-Based Data Delivery Over MANETs", IEEE Access 8, 2020, section
//! III-D and appendix A, which installs the next hops that a hidden Markov model says are connected. Here the forecast is
//! used softly first: a suspect next hop gets less of the traffic, one that is surely lost none, and a route never loses
//! its last next hop. What is chosen is always a part of the set of equal cost, so no forecast can make a loop. Forecasts
//! never go into LSAs: each change would be flooded.
//!
//! `paper_literal` is the appendix as printed. If the forecast says of all next hops that they are disconnected, no route is
//! installed: packets that might have arrived are dropped until a link recovers, and as nothing is sent over them, the
//! paper's observations, acknowledgements of TCP, never come. That is a named deviation from what is wanted; for comparison
//! only.

use crate::routing_table::NextHop;
use anabranch_wire::ospf::{InterfaceId, RouterId};
use std::collections::BTreeMap;

/// How forecasts are used.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum ForecastUse {
    /// Not at all.
    Ignored,
    /// Weights, and exclusion only of what is surely lost.
    Soft(SoftUse),
    /// Appendix A: only next hops whose link is forecast to be up, and none at all if there is none.
    PaperLiteral,
}

impl Default for ForecastUse {
    fn default() -> Self {
        Self::Soft(SoftUse::default())
    }
}

/// When a link counts as suspect or lost. Probabilities are those that the link is up at the forecaster's horizon.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct SoftUse {
    /// A suspect link is trusted again from this probability on.
    pub trust: f64,
    /// A trusted link is suspect below this one; less than `trust`, so that it does not change all the time.
    pub suspect: f64,
    /// A suspect link is lost below this one.
    pub exclude: f64,
    /// A lost link is suspect again from this one on.
    pub readmit: f64,
    /// Updates that a link stays what it has become, at least.
    pub hold: u32,
    /// Weight of a trusted link, where a suspect one has 1.
    pub trusted_weight: u8,
}

impl Default for SoftUse {
    fn default() -> Self {
        Self { trust: 0.55, suspect: 0.45, exclude: 0.2, readmit: 0.3, hold: 2, trusted_weight: 4 }
    }
}

/// What a link counts as.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub enum Trust {
    /// It gets no traffic where there is another.
    Lost,
    /// It gets little.
    Suspect,
    /// It gets its full share.
    #[default]
    Trusted,
}

/// A next hop and its share of the traffic.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WeightedHop {
    /// The next hop.
    pub hop: NextHop,
    /// Its share, in proportion to the others'; at least 1.
    pub weight: u8,
}

/// What is known of one link.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Link {
    trust: Trust,
    /// Updates since it became that.
    held: u32,
    probability: f64,
}

/// Remembers what each link counts as. Memory is that of the neighbours of the last update.
#[derive(Clone, Default, Debug)]
pub struct NextHopFilter {
    usage: ForecastUse,
    links: BTreeMap<(InterfaceId, RouterId), Link>,
}

impl NextHopFilter {
    /// Makes one that knows nothing, so trusts all.
    pub fn new(usage: ForecastUse) -> Self {
        Self { usage, links: BTreeMap::new() }
    }

    /// Takes the forecasts of all neighbours in, once per period (a Hello interval, say); true if what a link counts as
    /// changed, so that routes must be installed anew. Neighbours that are not named are forgotten. A probability that is
    /// no number is taken as unknown, and changes nothing.
    pub fn update(&mut self, forecasts: impl IntoIterator<Item = (InterfaceId, RouterId, f64)>) -> bool {
        let mut before = core::mem::take(&mut self.links);
        let mut changed = false;
        for (interface, router, probability) in forecasts {
            let known = before.remove(&(interface, router));
            // A new neighbour was just heard. It may be judged at once.
            let link = known.unwrap_or(Link { trust: Trust::Trusted, held: u32::MAX, probability: 1.0 });
            let new = if probability.is_nan() { link } else { self.judge(link, probability) };
            changed |= new.trust != link.trust;
            self.links.insert((interface, router), new);
        }
        changed || !before.is_empty()
    }

    /// What a link counts as; one that is unknown is trusted.
    pub fn trust(&self, interface: InterfaceId, router: RouterId) -> Trust {
        self.links.get(&(interface, router)).map_or(Trust::Trusted, |link| link.trust)
    }

    /// Whether all links count as trusted.
    pub(crate) fn trusts_all(&self) -> bool {
        self.links.values().all(|link| link.trust == Trust::Trusted)
    }

    /// The next hops to use of a set of equal cost. Empty only if the set is, or by `paper_literal`.
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
                // Where all are lost, the likeliest of them stays: it costs nothing that is not lost anyway.
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

    /// What a link counts as after an update.
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

    /// Feeds the same forecasts of routers 2, 3, ... some times, and returns (router, weight) of those that are used.
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
        // Of suspect ones alone, each has the same share.
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
