//! What follows from the events of neighbours: timers, lists, and who has to hear of a change of state.

use anabranch_policy::Instant;
use anabranch_wire::ospf::{LsaType, RouterId};

use crate::config::HELLO_REPEAT_COUNT;
use crate::neighbor::{ManetNeighbor, NeighborAction, NeighborEvent, NeighborState, transition};
use crate::router::Router;
use crate::verbs::{At, Event};

impl Router {
    /// Runs the neighbour state machine.
    pub(crate) fn neighbor_event(&mut self, now: Instant, at: At, event: NeighborEvent) {
        let Some(interface) = self.interfaces.get_mut(at.interface) else { return };
        let dead_interval = interface.config.router_dead_interval;
        // Long enough to tell of it in HelloRepeatCount differential Hellos, of which every second may be a full one.
        let forget = interface.config.hello_interval * u64::from(2 * HELLO_REPEAT_COUNT + 1);
        let Some(neighbor) = interface.neighbors.get_mut(&at.router) else { return };
        let from = neighbor.state;
        let (to, action) = transition(from, event);
        neighbor.state = to;
        match action {
            NeighborAction::None => {}
            NeighborAction::StartInactivityTimer => neighbor.inactive_at = now + dead_interval,
            NeighborAction::ClearLists => neighbor.clear_lists(),
            NeighborAction::Forget => {
                neighbor.clear_lists();
                neighbor.inactive_at = now + forget;
            }
            NeighborAction::Negotiate
            | NeighborAction::Summarize
            | NeighborAction::Request
            | NeighborAction::ScheduleAdjOk => {}
        }
        interface.silence_at = interface.silence_at.min(neighbor.inactive_at);
        interface.set_adjacent(at.router, to >= NeighborState::ExStart);
        match action {
            NeighborAction::None
            | NeighborAction::StartInactivityTimer
            | NeighborAction::ClearLists
            | NeighborAction::Forget => {}
            NeighborAction::Negotiate => self.negotiate(now, at),
            NeighborAction::Summarize => self.summarize(now, at),
            NeighborAction::Request => self.request_more(now, at),
            NeighborAction::ScheduleAdjOk => {
                self.adj_ok.insert(at);
            }
        }
        if from != to {
            self.neighbor_changed(now, at, from, to);
        }
    }

    /// Passes a change of state on to whom it concerns.
    fn neighbor_changed(&mut self, now: Instant, at: At, from: NeighborState, to: NeighborState) {
        let Some(interface) = self.interfaces.get_mut(at.interface) else { return };
        let id = interface.config.id;
        let crossed = (from >= NeighborState::TwoWay) != (to >= NeighborState::TwoWay);
        let is_manet = interface.manet().is_some();
        if crossed {
            // RFC 5614, 4.2.3.
            interface.mdr_neighbor_change = true;
            interface.advertised_change = true;
        }
        if let Some(neighbor) = interface.neighbors.get_mut(&at.router) {
            if to < NeighborState::TwoWay {
                let manet = &mut neighbor.manet;
                (manet.routable, manet.dependent, manet.selected, manet.hears_us) = (false, false, false, 0);
            }
            if to == NeighborState::Down {
                // What it said before is out of date when it comes back; that it was here is still to be told.
                let old = core::mem::take(&mut neighbor.manet);
                neighbor.manet = ManetNeighbor { listing: old.listing, ..ManetNeighbor::default() };
            }
        }
        self.output.tell(Event::Neighbor { interface: id, neighbor: at.router, from, to });
        if (from == NeighborState::Full) != (to == NeighborState::Full) || crossed && to < NeighborState::TwoWay {
            self.schedule_calculation(now);
        }
        if is_manet && crossed && to < NeighborState::TwoWay {
            // RFC 5614, 5 and 9.4: at once when a bidirectional neighbour is lost.
            self.refresh(now, at.interface);
        } else {
            self.update_routable(now, at.interface);
            self.check_router_lsa(now);
        }
    }

    /// The timers of one neighbour.
    pub(crate) fn neighbor_timeouts(&mut self, now: Instant, at: At) {
        let Some(neighbor) = self.neighbor(at) else { return };
        if neighbor.inactive_at <= now {
            if neighbor.state == NeighborState::Down {
                self.forget(at);
                return;
            }
            self.neighbor_event(now, at, NeighborEvent::InactivityTimer);
        }
        if self.neighbor(at).is_some_and(|neighbor| neighbor.missed_at <= now) {
            self.miss_hello(now, at);
        }
        let Some(neighbor) = self.neighbor(at) else { return };
        let (description, request) = (neighbor.exchange.description_at, neighbor.exchange.request_at);
        let retransmit = neighbor.retransmit_at <= now;
        if description.is_some_and(|due| due <= now) {
            self.description_timeout(now, at);
        }
        if request.is_some_and(|due| due <= now) {
            self.request_again(now, at);
        }
        if retransmit {
            self.retransmit(now, at);
        }
    }

    /// Drops a neighbour that has been Down for long, and what it said of its link if it said nothing else.
    fn forget(&mut self, at: At) {
        if let Some(interface) = self.interfaces.get_mut(at.interface) {
            interface.neighbors.remove(&at.router);
        }
    }

    /// Ends the conversation with all neighbours of an interface.
    pub(crate) fn kill_neighbors(&mut self, now: Instant, index: usize) {
        let Some(interface) = self.interfaces.get(index) else { return };
        let all: Vec<RouterId> = interface.neighbors.keys().copied().collect();
        for router in all {
            self.neighbor_event(now, At { interface: index, router }, NeighborEvent::KillNbr);
        }
        if let Some(interface) = self.interfaces.get_mut(index) {
            interface.neighbors.clear();
            interface.adjacent.clear();
            interface.silence_at = Instant::NEVER;
        }
        self.adj_ok.retain(|at| at.interface != index);
    }

    /// Whether a neighbour has told its address on the link in a Link-LSA.
    pub(crate) fn link_lsa_of(&self, at: At) -> Option<&anabranch_wire::ospf::lsa::LinkLsa> {
        let all = self.database.of_neighbor(at.interface, LsaType::LINK, at.router);
        let interface = self.neighbor(at)?.interface;
        let bodies = all.filter_map(|entry| match entry.lsa.body() {
            anabranch_wire::ospf::LsaBody::Link(link) => Some((entry.lsa.key().id.0, link)),
            _ => None,
        });
        bodies.filter(|(id, _)| *id == interface.0).map(|(_, link)| link).next()
    }
}
