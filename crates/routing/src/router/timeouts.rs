//! Handles expired timers.

use anabranch_policy::Instant;
use anabranch_wire::ospf::LsaType;

use crate::database::Place;
use crate::handles::{InterfaceHandle, NeighborHandle};
use crate::interface::InterfaceTimer;
use crate::neighbor::exchange::ExchangeTimer;
use crate::neighbor::{NeighborEvent, NeighborState, NeighborTimer};
use crate::router::Router;
use crate::verbs::{Destination, Event, Restart};

impl Router {
    /// The timers of an interface and its neighbours.
    pub(super) fn interface_timeouts(&mut self, now: Instant, handle: InterfaceHandle) {
        let interface = &mut self.interfaces[handle];
        if interface.timers.is_due(InterfaceTimer::Wait, now) {
            interface.end_waiting();
            self.refresh(now, handle);
        }
        let interface = &self.interfaces[handle];
        let silence = interface.timers.is_due(InterfaceTimer::Silence, now);
        for router in interface.due_neighbors(now) {
            self.neighbor_timeouts(now, NeighborHandle { interface: handle, router });
        }
        if silence {
            self.interfaces[handle].restart_silence_timer();
        }
        if self.interfaces[handle].timers.is_due(InterfaceTimer::Hello, now) {
            self.send_hello(now, handle);
        }
        if self.interfaces[handle].acknowledgments.is_due(now) {
            self.send_delayed_acknowledgments(now, handle);
        }
    }

    /// The timers of one neighbour.
    fn neighbor_timeouts(&mut self, now: Instant, at: NeighborHandle) {
        if self.interfaces[at].timers.is_due(NeighborTimer::Grace, now) {
            self.end_grace(now, at, Restart::Expired);
        }
        let neighbor = &mut self.interfaces[at];
        if let Some(end) = neighbor.timers.expiry(NeighborTimer::Grace)
            && neighbor.timers.is_due(NeighborTimer::Inactivity, now)
        {
            // It may be silent until then.
            neighbor.timers.set(NeighborTimer::Inactivity, end);
        }
        let is_silent = self.interfaces[at].timers.is_due(NeighborTimer::Inactivity, now);
        if is_silent && !self.interfaces[at.interface].bear_silence(now, at.router) {
            if self.interfaces[at].state == NeighborState::Down {
                // It has been Down long enough.
                self.interfaces[at.interface].neighbors.remove(&at.router);
                return;
            }
            self.neighbor_event(now, at, NeighborEvent::InactivityTimer);
        }
        let interval = self.interfaces[at.interface].config.hello_interval;
        let neighbor = &mut self.interfaces[at];
        if neighbor.timers.is_due(NeighborTimer::MissedHello, now) {
            neighbor.miss_hello(now, interval);
        }
        let description = neighbor.exchange.timers.is_due(ExchangeTimer::Description, now);
        let request = neighbor.exchange.timers.is_due(ExchangeTimer::Request, now);
        let retransmit = neighbor.retransmissions.next().is_some_and(|at| at <= now);
        if description {
            self.conversation(now, at).description_timeout();
        }
        if request {
            self.conversation(now, at).request_timeout();
        }
        if retransmit {
            self.retransmit(now, at);
        }
    }

    /// Retransmits what a neighbour has not acknowledged.
    fn retransmit(&mut self, now: Instant, at: NeighborHandle) {
        let interface = &mut self.interfaces[at.interface];
        let (next, is_manet) = (interface.pace.next(), interface.manet().is_some());
        if is_manet && next > now {
            self.interfaces[at].retransmissions.defer(next);
            return;
        }
        let Self { interfaces, database, .. } = self;
        let rxmt = interfaces[at.interface].config.rxmt_interval;
        let room = interfaces[at.interface].update_room();
        let place = |key| Place::on(at.interface, key).expect("an LSA that was flooded has a scope");
        let length = |key| database.get(place(key)).map_or(0, |entry| entry.lsa.encoded_len());
        let neighbor = &mut interfaces[at];
        let destination = Destination::Neighbor(at.router, neighbor.address);
        let keys = neighbor.retransmissions.take_due(now, rxmt, room, length);
        let places: Vec<Place> = keys.into_iter().map(place).collect();
        if places.is_empty() {
            return;
        }
        let unacknowledged = interfaces[at.interface].unacknowledged();
        interfaces[at.interface].pace.send(now, unacknowledged);
        self.output.counters.lsas_retransmitted += places.len() as u64;
        self.send_update(now, at.interface, destination, &places);
    }

    /// Calculates the routes if it is time.
    pub(super) fn calculation_timeouts(&mut self, now: Instant) {
        if self.calculation.next().is_none_or(|at| at > now) {
            return;
        }
        self.output.counters.calculations += 1;
        let Self { calculation, database, interfaces, forecasts, .. } = self;
        let routable_changed = calculation.run(now, database, interfaces, forecasts);
        self.tell_of_routes();
        if routable_changed {
            self.check_router_lsa(now);
        }
    }

    /// Reports an event if the calculation may have changed a route.
    fn tell_of_routes(&mut self) {
        let next_hops = self.table_maker().next_hops();
        let changed = self.calculation.take_changed(&next_hops);
        if changed.prefixes {
            let foreign = self.table_maker().foreign_prefixes();
            foreign.into_iter().for_each(|reason| self.output.counters.drop(reason));
        }
        // Alternates around suspect links depend on more than the router's own paths.
        let around = self.forecasts.uses_alternates() && !self.forecasts.trusts_all();
        // The flags of border routers are in no path.
        let outside = [LsaType::INTER_AREA_PREFIX, LsaType::AS_EXTERNAL];
        let outside = outside.into_iter().any(|kind| self.database.of_type(kind).next().is_some());
        if changed.paths || changed.prefixes || around || outside {
            self.output.tell(Event::Routes);
        }
    }

    /// Evaluates the forecasts if it is time.
    pub(super) fn forecast_timeouts(&mut self, now: Instant) {
        if self.forecasts.update(now, &self.interfaces) {
            self.output.tell(Event::Routes);
            if self.forecasts.update_costs(&mut self.interfaces) {
                self.calculation.schedule(now);
                self.check_router_lsa(now);
            }
        }
    }
}
