//! Effects of neighbour events: the selection of MDRs and the adjacencies that depend on it.

use anabranch_policy::Instant;

use crate::adjacency;
use crate::handles::{InterfaceHandle, NeighborHandle};
use crate::interface::{InterfaceState, StateChange};
use crate::neighbor::{NeighborAction, NeighborEvent};
use crate::origination::contents::Outdated;
use crate::origination::pace::Pace;
use crate::router::Router;
use crate::verbs::Event;

impl Router {
    /// Runs the state machine of a known neighbour, and carries out its action.
    pub(super) fn neighbor_event(&mut self, now: Instant, at: NeighborHandle, event: NeighborEvent) {
        let (action, change) = self.interfaces[at.interface].handle_neighbor(now, at.router, event);
        match action {
            NeighborAction::None
            | NeighborAction::StartInactivityTimer
            | NeighborAction::ClearLists
            | NeighborAction::Forget => {}
            NeighborAction::Negotiate => {
                let first = self.random.number();
                self.conversation(now, at).negotiate(first);
            }
            NeighborAction::Summarize => self.conversation(now, at).summarize(),
            NeighborAction::Request => self.conversation(now, at).request_more(),
            NeighborAction::ScheduleAdjOk => {
                self.adj_ok.insert(at);
            }
        }
        if let Some(change) = change {
            self.neighbor_changed(now, at, change);
        }
    }

    /// Applies the effects of a change of state.
    fn neighbor_changed(&mut self, now: Instant, at: NeighborHandle, change: StateChange) {
        let interface = &mut self.interfaces[at.interface];
        interface.neighbor_changed(at.router, change);
        let (id, is_manet) = (interface.config.id, interface.manet().is_some());
        let StateChange { from, to } = change;
        self.output.tell(Event::Neighbor { interface: id, neighbor: at.router, from, to });
        if change.crosses_full() || change.loses_two_way() {
            self.calculation.schedule(now);
        }
        if is_manet && change.loses_two_way() {
            // RFC 5614, 5 and 9.4: at once when a bidirectional neighbour is lost.
            self.refresh(now, at.interface);
        } else {
            self.update_routable(now, at.interface);
            self.check_router_lsa(now);
        }
    }

    /// The updates that RFC 5614, 9.4, found to work well before each Hello and when a bidirectional neighbour is lost:
    /// MDRs, adjacencies, routable neighbours, Selected Advertised Neighbors, Router-LSA.
    pub(super) fn refresh(&mut self, now: Instant, handle: InterfaceHandle) {
        let interface = &self.interfaces[handle];
        if !interface.is_active() || interface.state == InterfaceState::Waiting {
            return;
        }
        if interface.mdr_neighbor_change {
            self.select_mdrs(now, handle);
        }
        self.update_routable(now, handle);
        self.selection.select_advertised(self.config.router_id, &mut self.interfaces);
        self.check_router_lsa(now);
    }

    /// Selects MDRs, and decides the adjacencies on the interface.
    fn select_mdrs(&mut self, now: Instant, handle: InterfaceHandle) {
        let interface = &mut self.interfaces[handle];
        if interface.manet().is_none() {
            interface.mdr_neighbor_change = false;
            return;
        }
        let level_changed = self.selection.select_mdrs(self.config.router_id, interface);
        let bidirectional = interface.neighbors.iter().filter(|(_, neighbor)| neighbor.is_bidirectional());
        self.adj_ok.extend(bidirectional.map(|(router, _)| NeighborHandle { interface: handle, router: *router }));
        if level_changed {
            self.interfaces[handle].hasten_hello(now, self.random.unit());
            let interface = &self.interfaces[handle];
            self.output.tell(Event::Level { interface: interface.config.id, level: interface.selection.level });
        }
        self.decide_adjacencies(now);
    }

    /// The event AdjOK? of all neighbours for which it is scheduled.
    pub(super) fn decide_adjacencies(&mut self, now: Instant) {
        while let Some(at) = self.adj_ok.pop_first() {
            let interface = &self.interfaces[at.interface];
            // It may have been removed since.
            let Some(neighbor) = interface.neighbors.get(&at.router) else { continue };
            let wanted = adjacency::is_ok(interface, at.router, neighbor);
            self.neighbor_event(now, at, NeighborEvent::AdjOk { wanted });
        }
    }

    /// Makes the neighbours routable to which the last calculation found a path.
    pub(super) fn update_routable(&mut self, now: Instant, handle: InterfaceHandle) {
        if self.calculation.update_routable(now, &mut self.interfaces[handle], &self.forecasts) {
            self.calculation.schedule(now);
        }
    }

    /// Originates a new Router-LSA if its contents are outdated.
    pub(super) fn check_router_lsa(&mut self, now: Instant) {
        let own = self.own_lsas();
        let Some(outdated) = own.router_lsa_outdated(&self.database) else { return };
        let (place, pace) = (own.router_place(), self.router_lsa_pace());
        match outdated {
            Outdated::Paths => self.origination.schedule(place, now, pace),
            Outdated::Lengths => self.origination.schedule_at_leisure(place, now, pace),
        }
    }

    pub(super) fn router_lsa_pace(&self) -> Pace {
        Pace::of(self.config.min_ls_interval, self.calculation.vertices())
    }
}
