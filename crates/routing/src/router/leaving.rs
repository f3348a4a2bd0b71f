//! The orderly end of a router: its neighbours must not find out by its silence.

use anabranch_policy::Instant;
use anabranch_wire::ospf::lsa::MAX_AGE;
use anabranch_wire::ospf::{Body, RouterId};

use crate::database::Place;
use crate::handles::{InterfaceHandle, NeighborHandle};
use crate::hello::writing::last_hello;
use crate::neighbor::NeighborEvent;
use crate::router::Router;
use crate::verbs::Destination;

impl Router {
    /// Leaves the network: flushes the router's own LSAs (RFC 2328, 14.1), and sends a last Hello that lists nobody, by
    /// which neighbours know at once that it does not hear them any more. Nothing else is sent afterwards; packets may be
    /// lost, so that it is good to send those of [`Self::poll_transmit`] twice.
    pub fn leave(&mut self, now: Instant) {
        let own = self.config.router_id;
        let is_own = |place: &Place| place.key.advertising == own;
        let alive = self.database.all().filter(|(_, entry)| entry.age(now) < MAX_AGE);
        let flushed: Vec<Place> = alive.map(|(place, _)| place).filter(is_own).collect();
        for place in flushed {
            self.origination.forget(place);
            self.flush(now, place);
        }
        for handle in self.interfaces.handles() {
            self.flush_flood(now, handle);
            self.take_leave(now, handle);
        }
        self.table.take();
        self.wake = None;
    }

    fn take_leave(&mut self, now: Instant, handle: InterfaceHandle) {
        if !self.interfaces[handle].is_active() {
            return;
        }
        let (hello, lls) = last_hello(&mut self.interfaces[handle], self.config.router_id, self.config.options());
        self.output.send(self.interfaces[handle].config.id, Destination::AllSpfRouters, Body::Hello(hello), lls);
        let all: Vec<RouterId> = self.interfaces[handle].neighbors.keys().copied().collect();
        for router in all {
            self.neighbor_event(now, NeighborHandle { interface: handle, router }, NeighborEvent::KillNbr);
        }
        let interface = &mut self.interfaces[handle];
        interface.remove_neighbors();
        interface.bring_down();
    }
}
