//! What the forecasters of links are told: packets that come, Hellos that do not, and what became of frames.

use std::collections::{BTreeMap, BTreeSet};

use anabranch_policy::Instant;
use anabranch_policy::forecast::Observation;
use anabranch_wire::ospf::RouterId;

use crate::next_hops::Trust;
use crate::router::Router;
use crate::verbs::{At, Event, Reception};

/// A Hello is missing if it is this part of HelloInterval late: more than two neighbours' jitter, and what a busy channel
/// adds.
const LATENESS: f64 = 0.25;

impl Router {
    /// A packet other than a Hello came from a neighbour.
    pub(crate) fn hear(&mut self, now: Instant, at: At, how: &Reception) {
        let Some(neighbor) = self.neighbor_mut(at) else { return };
        if let Some(forecaster) = &mut neighbor.forecaster {
            forecaster.observe(now, Observation::Heard { signal: how.signal });
        }
    }

    /// A Hello came, with its sequence number if it has one.
    pub(crate) fn hear_hello(&mut self, now: Instant, at: At, how: &Reception, sequence: Option<u16>) {
        let Some(interface) = self.interfaces.get_mut(at.interface) else { return };
        let interval = interface.config.hello_interval;
        let dead_interval = interface.config.router_dead_interval;
        let Some(neighbor) = interface.neighbors.get_mut(&at.router) else { return };
        neighbor.manet.heard = now;
        let reported = core::mem::take(&mut neighbor.missed);
        let Some(forecaster) = &mut neighbor.forecaster else { return };
        if let (Some(last), Some(sequence)) = (neighbor.manet.sequence, sequence) {
            let gap = sequence.wrapping_sub(last).saturating_sub(1);
            // A larger gap is a neighbour that started anew rather than one that was not heard.
            let most = u16::try_from(dead_interval.as_nanos() / interval.as_nanos().max(1)).unwrap_or(u16::MAX);
            let unreported = gap.saturating_sub(reported);
            if unreported > 0 && gap <= most.saturating_mul(2) {
                forecaster.observe(now, Observation::Missed { hellos: unreported });
            }
        }
        forecaster.observe(now, Observation::Heard { signal: how.signal });
        neighbor.missed_at = now + interval + interval.mul_f64(LATENESS);
        interface.silence_at = interface.silence_at.min(neighbor.missed_at);
    }

    /// Looks at the forecasts of all links, once per period.
    pub(crate) fn forecast_timeouts(&mut self, now: Instant) {
        if self.forecast_at > now {
            return;
        }
        let Self { interfaces, filter, config, .. } = self;
        let Some(forecast) = &config.forecast else { return };
        self.forecast_at = now + forecast.period;
        let neighbors = interfaces.iter().flat_map(|interface| {
            let id = interface.config.id;
            let up = interface.neighbors.iter().filter(|(_, neighbor)| neighbor.is_bidirectional());
            up.filter_map(move |(router, neighbor)| Some((id, *router, neighbor.forecaster.as_ref()?)))
        });
        let forecasts = neighbors.map(|(id, router, one)| (id, router, one.probability_up(now, forecast.horizon)));
        if filter.update(forecasts) {
            self.output.tell(Event::Routes);
            self.cost_doubts(now);
        }
    }

    /// Decides what the next Hello of an interface says of doubts. Whoever is told makes way, so routes may change with it.
    pub(crate) fn tell_doubts(&mut self, index: usize) {
        if !self.uses_alternates() {
            return;
        }
        let Self { interfaces, filter, .. } = self;
        let Some(interface) = interfaces.get_mut(index) else { return };
        let id = interface.config.id;
        let up = interface.neighbors.iter().filter(|(_, neighbor)| neighbor.is_bidirectional());
        let doubted = up.map(|(router, _)| *router).filter(|router| filter.trust(id, *router) != Trust::Trusted);
        let doubts: BTreeSet<RouterId> = doubted.collect();
        if doubts != interface.doubts_told {
            interface.doubts_told = doubts;
            self.output.tell(Event::Routes);
        }
    }

    /// Gives links that are not trusted their additional cost, and takes it from those that are again.
    fn cost_doubts(&mut self, now: Instant) {
        let Some(doubt_cost) =
            self.config.forecast.as_ref().map(|forecast| forecast.doubt_cost).filter(|cost| *cost > 0)
        else {
            return;
        };
        let mut changed = false;
        for interface in &mut self.interfaces {
            let id = interface.config.id;
            let doubted = |router: &&RouterId| self.filter.trust(id, **router) != Trust::Trusted;
            let costs: BTreeMap<RouterId, u16> =
                interface.neighbors.keys().filter(doubted).map(|router| (*router, doubt_cost)).collect();
            if costs != interface.doubt_costs {
                interface.doubt_costs = costs;
                interface.advertised_change = true;
                changed = true;
            }
        }
        if changed {
            self.schedule_calculation(now);
            self.check_router_lsa(now);
        }
    }

    /// A Hello of a neighbour is late.
    pub(crate) fn miss_hello(&mut self, now: Instant, at: At) {
        let Some(interface) = self.interfaces.get_mut(at.interface) else { return };
        let interval = interface.config.hello_interval;
        let Some(neighbor) = interface.neighbors.get_mut(&at.router) else { return };
        neighbor.missed_at = if neighbor.state == crate::neighbor::NeighborState::Down {
            Instant::NEVER
        } else {
            neighbor.missed_at + interval
        };
        interface.silence_at = interface.silence_at.min(neighbor.missed_at);
        neighbor.missed = neighbor.missed.saturating_add(1);
        if let Some(forecaster) = &mut neighbor.forecaster {
            forecaster.observe(now, Observation::MISSED);
        }
    }

    /// The link layer is done with a frame for a neighbour.
    pub(crate) fn observe_transmission(&mut self, now: Instant, at: At, delivered: bool) {
        let Some(neighbor) = self.neighbor_mut(at) else { return };
        if let Some(forecaster) = &mut neighbor.forecaster {
            forecaster.observe(now, Observation::Transmitted { delivered });
        }
    }

    /// Probability that the link to a neighbour is up at the horizon; none without a forecaster.
    pub(crate) fn forecast_of(&self, now: Instant, at: At) -> Option<f64> {
        let horizon = self.config.forecast.as_ref()?.horizon;
        Some(self.neighbor(at)?.forecaster.as_ref()?.probability_up(now, horizon))
    }
}
