//! Forecasts of links and their uses: the choice among next hops, costs, and suspect links in Hellos.

use std::collections::{BTreeMap, BTreeSet};

use anabranch_policy::{Instant, LinkForecaster};
use anabranch_wire::ospf::{InterfaceId, RouterId};

use crate::config::Forecast;
use crate::interface::Interface;
use crate::interfaces::Interfaces;
use crate::neighbor::Neighbor;
use crate::next_hops::{ForecastUse, NextHopFilter, Trust, WeightedHop};
use crate::routing_table::NextHop;

/// Forecasts of the links to all neighbours.
pub(crate) struct Forecasts {
    settings: Option<Forecast>,
    filter: NextHopFilter,
    /// When the forecasts are evaluated next; none before an interface is up, or without forecasters.
    at: Option<Instant>,
}

impl Forecasts {
    pub fn new(settings: Option<Forecast>) -> Self {
        let usage = settings.as_ref().map_or(ForecastUse::Ignored, |settings| settings.usage);
        Self { settings, filter: NextHopFilter::new(usage), at: None }
    }

    /// Whether loop-free alternates around suspect links are used.
    pub fn uses_alternates(&self) -> bool {
        self.settings.as_ref().is_some_and(|settings| settings.alternates)
    }

    /// The forecaster of a new neighbour.
    pub fn forecaster(&self, interface: InterfaceId, router: RouterId) -> Option<Box<dyn LinkForecaster>> {
        self.settings.as_ref().map(|settings| (settings.build)(interface, router))
    }

    /// Probability that the link to a neighbour is up at the horizon; none without a forecaster.
    pub fn of(&self, now: Instant, neighbor: &Neighbor) -> Option<f64> {
        neighbor.link.probability_up(now, self.settings.as_ref()?.horizon)
    }

    /// The next hops to use with their shares.
    pub fn choose(&self, next_hops: &[NextHop]) -> Vec<WeightedHop> {
        self.filter.choose(next_hops)
    }

    /// Whether the link to a next hop is trusted.
    pub fn trusts(&self, hop: &NextHop) -> bool {
        self.is_trusted(hop.interface, hop.router)
    }

    /// What is made of the forecasts of a link.
    pub fn trust(&self, interface: InterfaceId, router: RouterId) -> Trust {
        self.filter.trust(interface, router)
    }

    /// Whether all links are trusted.
    pub fn trusts_all(&self) -> bool {
        self.filter.trusts_all()
    }

    fn is_trusted(&self, interface: InterfaceId, router: RouterId) -> bool {
        self.trust(interface, router) == Trust::Trusted
    }

    /// An interface is up: the forecasts are evaluated after a period at the latest.
    pub fn start(&mut self, now: Instant) {
        if let Some(settings) = &self.settings {
            let next = now + settings.period;
            self.at = Some(self.at.map_or(next, |at| at.min(next)));
        }
    }

    /// When the forecasts are evaluated next.
    pub fn next(&self) -> Option<Instant> {
        self.at
    }

    /// Evaluates the forecasts of all links if it is time. True if the trust of a link changed.
    pub fn update(&mut self, now: Instant, interfaces: &Interfaces) -> bool {
        let Some(settings) = self.settings.as_ref().filter(|_| self.at.is_some_and(|at| at <= now)) else {
            return false;
        };
        self.at = Some(now + settings.period);
        let neighbors = interfaces.iter().flat_map(|(_, interface)| {
            let id = interface.config.id;
            let up = interface.neighbors.iter().filter(|(_, neighbor)| neighbor.is_bidirectional());
            up.map(move |(router, neighbor)| (id, *router, neighbor))
        });
        let forecasts = neighbors.filter_map(|(id, router, neighbor)| {
            Some((id, router, neighbor.link.probability_up(now, settings.horizon)?))
        });
        self.filter.update(forecasts)
    }

    /// Decides which links the next Hello of an interface announces as suspect. True if that differs from the last one:
    /// neighbours change their routes accordingly, so ours may change too.
    pub fn update_suspects_announced(&self, interface: &mut Interface) -> bool {
        if !self.uses_alternates() {
            return false;
        }
        let id = interface.config.id;
        let up = interface.neighbors.iter().filter(|(_, neighbor)| neighbor.is_bidirectional());
        let suspects: BTreeSet<RouterId> =
            up.map(|(router, _)| *router).filter(|router| !self.is_trusted(id, *router)).collect();
        let changed = suspects != interface.suspects_announced;
        interface.suspects_announced = suspects;
        changed
    }

    /// Adds the additional cost to links that are not trusted, and removes it from trusted ones. True if a cost
    /// changed.
    pub fn update_costs(&self, interfaces: &mut Interfaces) -> bool {
        let cost = self.settings.as_ref().map_or(0, |settings| settings.suspect_cost);
        let mut changed = false;
        for (_, interface) in interfaces.iter_mut().filter(|_| cost > 0) {
            let id = interface.config.id;
            let suspects = interface.neighbors.keys().filter(|router| !self.is_trusted(id, **router));
            let costs: BTreeMap<RouterId, u16> = suspects.map(|router| (*router, cost)).collect();
            if costs != interface.suspect_costs {
                interface.suspect_costs = costs;
                interface.advertised_change = true;
                changed = true;
            }
        }
        changed
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::InterfaceConfig;
    use crate::handles::{InterfaceHandle, NeighborHandle};
    use crate::neighbor::NeighborState;
    use anabranch_policy::Duration;
    use anabranch_policy::forecast::Observation;
    use std::net::Ipv6Addr;
    use std::sync::Arc;

    const AT: NeighborHandle = NeighborHandle { interface: InterfaceHandle::FIRST, router: RouterId(2) };

    /// Forecasts that links are lost from second 2 on.
    struct Lost;

    impl LinkForecaster for Lost {
        fn observe(&mut self, _: Instant, _: Observation) {}

        fn probability_up(&self, now: Instant, _: Duration) -> f64 {
            if now < second(2) { 1.0 } else { 0.0 }
        }
    }

    fn second(seconds: u64) -> Instant {
        Instant::ZERO + Duration::from_secs(seconds)
    }

    fn forecasts(suspect_cost: u16, alternates: bool) -> Forecasts {
        let settings = Forecast::new(Arc::new(|_, _| Box::new(Lost)));
        Forecasts::new(Some(Forecast { suspect_cost, alternates, ..settings }))
    }

    fn interfaces(forecasts: &Forecasts) -> Interfaces {
        let id = InterfaceId(1);
        let mut interface = Interface::new(InterfaceConfig::manet(id, Ipv6Addr::UNSPECIFIED));
        let forecaster = forecasts.forecaster(id, AT.router);
        let mut neighbor = Neighbor::new(Ipv6Addr::UNSPECIFIED, Instant::ZERO, forecaster);
        neighbor.state = NeighborState::Full;
        interface.neighbors.insert(AT.router, neighbor);
        let mut interfaces = Interfaces::default();
        interfaces.add(interface);
        interfaces
    }

    #[test]
    fn a_link_that_is_lost_by_the_forecast_costs_more_and_is_announced_as_suspect() {
        let mut forecasts = forecasts(7, true);
        let mut interfaces = interfaces(&forecasts);
        forecasts.start(Instant::ZERO);
        assert_eq!(forecasts.next(), Some(second(1)));
        assert!(!forecasts.update(second(1), &interfaces) && forecasts.trusts_all());
        assert!(forecasts.update(second(2), &interfaces) && !forecasts.trusts_all());
        assert_eq!(forecasts.next(), Some(second(3)));
        assert!(forecasts.update_costs(&mut interfaces) && !forecasts.update_costs(&mut interfaces));
        let interface = &mut interfaces[AT.interface];
        assert_eq!(interface.cost_to(AT.router), 8);
        assert!(forecasts.update_suspects_announced(interface) && !forecasts.update_suspects_announced(interface));
        assert!(interface.suspects_announced.contains(&AT.router));
    }

    #[test]
    fn suspects_that_cost_nothing_change_no_cost() {
        let mut forecasts = forecasts(0, true);
        let mut interfaces = interfaces(&forecasts);
        forecasts.start(Instant::ZERO);
        assert!(forecasts.update(second(2), &interfaces));
        assert!(!forecasts.update_costs(&mut interfaces) && !interfaces[AT.interface].advertised_change);
    }

    #[test]
    fn an_interface_that_comes_up_later_does_not_put_the_next_look_off() {
        let mut forecasts = forecasts(7, true);
        forecasts.start(Instant::ZERO);
        forecasts.start(Instant::ZERO + Duration::from_millis(500));
        assert_eq!(forecasts.next(), Some(second(1)));
    }

    #[test]
    fn without_settings_nothing_is_forecast_and_nothing_is_due() {
        let mut forecasts = Forecasts::new(None);
        let mut interfaces = interfaces(&forecasts);
        forecasts.start(Instant::ZERO);
        assert_eq!((forecasts.next(), forecasts.of(second(9), &interfaces[AT])), (None, None));
        assert!(!forecasts.update(second(9), &interfaces) && !forecasts.update_costs(&mut interfaces));
    }
}
