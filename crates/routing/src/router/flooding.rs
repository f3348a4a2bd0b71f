//! Flooding an LSA: into the database, and on the interfaces, at once or after waiting for others (RFC 5614, 8.1; RFC 2328,
//! 13.2, 13.3 and 14.1).

use anabranch_policy::{Duration, Instant};
use anabranch_wire::ospf::{AgedLsa, Body, LsaHeader, RouterId};

use crate::counters::DropReason;
use crate::database::{Entry, Place, Source};
use crate::flooding::decision::{Arrival, Decision, NewLsa};
use crate::handles::{InterfaceHandle, NeighborHandle};
use crate::neighbor::NeighborEvent;
use crate::neighborhood::Level;
use crate::router::Router;
use crate::verbs::Destination;

impl Router {
    /// Installs an LSA in the database, and replaces the previous instance (RFC 2328, 13.2).
    pub(super) fn install(&mut self, now: Instant, place: Place, aged: AgedLsa, source: Source) {
        self.interfaces.stop_retransmitting(place);
        self.backup_waits.stop(place);
        if self.database.install(place, aged, now, source) {
            self.database_changed(now, place);
        }
    }

    /// The contents of the database have changed, and with them perhaps the network.
    fn database_changed(&mut self, now: Instant, place: Place) {
        self.calculation.contents_changed(now, place.key);
        if place.link.is_none() {
            self.end_all_graces(now);
        }
    }

    /// Flushes an LSA from the routing domain (RFC 2328, 14.1), possibly one of another router: floods it with age
    /// MaxAge.
    pub(super) fn flush(&mut self, now: Instant, place: Place) {
        self.interfaces.stop_retransmitting(place);
        self.backup_waits.stop(place);
        if self.database.age_out(place, now) {
            self.database_changed(now, place);
        }
        self.forward(now, place, None);
    }

    /// Floods a new LSA of the database: a received one, or one that was originated or aged out here. Returns the
    /// interfaces on which it is flooded.
    pub(super) fn forward(&mut self, now: Instant, place: Place, arrival: Option<Arrival>) -> Vec<InterfaceHandle> {
        let mut flooded = Vec::new();
        let mut lists = Vec::new();
        let header = self.database.get(place).expect("what is flooded is in the database").header(now);
        for handle in self.interfaces.handles().filter(|handle| place.is_eligible(*handle)) {
            if !self.interfaces[handle].is_active() {
                continue;
            }
            let listed = self.list_for_retransmission(now, &header, handle, arrival);
            let decision = if self.interfaces[handle].manet().is_some() {
                NewLsa::new(&self.interfaces, self.config.router_id, &header, arrival).decide(handle)
            } else if listed {
                // RFC 2328, 13.3, steps 2 and 5; there is no DR or Backup.
                Decision::Flood
            } else {
                Decision::Stay
            };
            match decision {
                Decision::Stay => {}
                Decision::Flood => flooded.push(handle),
                Decision::Wait(list) => lists.push((handle, list)),
            }
        }
        for handle in &flooded {
            // A received LSA waits a little for others, to share a packet.
            let delay = if arrival.is_some() { self.random.span(self.config.flood_delay) } else { Duration::ZERO };
            self.flood_on(now + delay, place, *handle);
        }
        if !lists.is_empty() {
            let manets = lists.iter().filter_map(|(handle, _)| self.interfaces[*handle].manet());
            let wait = manets.map(|manet| manet.backup_wait_interval).max().unwrap_or(Duration::ZERO);
            let jitter = self.random.span(self.config.flood_delay);
            self.backup_waits.start(place, now + wait + jitter, lists);
        }
        self.interfaces.forget_acknowledged(&header);
        flooded
    }

    /// Step 1: the neighbours that must get the LSA, and the request lists. True if any was listed.
    fn list_for_retransmission(
        &mut self,
        now: Instant,
        header: &LsaHeader,
        handle: InterfaceHandle,
        arrival: Option<Arrival>,
    ) -> bool {
        let sender = arrival.map(|arrival| arrival.from).filter(|from| from.interface == handle);
        let most = self.config.limits.retransmissions;
        let interface = &mut self.interfaces[handle];
        let listed = interface.list_for_retransmission(now, header, sender.map(|sender| sender.router), most);
        for router in listed.overflown {
            self.output.counters.drop(DropReason::RetransmissionLimit);
            let at = NeighborHandle { interface: handle, router };
            self.neighbor_event(now, at, NeighborEvent::SeqNumberMismatch);
        }
        listed.any
    }

    /// Adds an LSA to the next update of an interface, which is sent at `at` at the latest.
    fn flood_on(&mut self, at: Instant, place: Place, handle: InterfaceHandle) {
        let interface = &mut self.interfaces[handle];
        if interface.flood.add(place.key, at) {
            self.output.counters.lsas_flooded += 1;
        }
        // RFC 5614, 8.2: flooding implies an acknowledgment.
        if interface.manet().is_some() {
            interface.acknowledgments.remove(place.key);
        }
    }

    /// Floods the LSAs of a neighbour that began anew which are not passed on yet: they came before this router was chosen as an MDR
    /// because of it, and its neighbours would get them after RxmtInterval.
    pub(super) fn pass_on(&mut self, now: Instant, router: RouterId) {
        let is_new = |(place, entry): &(Place, &Entry)| place.key.advertising == router && entry.sent().is_none();
        let places: Vec<Place> = self.database.all().filter(is_new).map(|(place, _)| place).collect();
        for handle in self.interfaces.handles() {
            for place in places.iter().filter(|place| place.is_eligible(handle)) {
                let interface = &mut self.interfaces[handle];
                let relays = interface.is_active() && interface.selection.level > Level::Other;
                if relays && interface.adjacent().any(|(_, one)| one.retransmissions.contains(place.key)) {
                    interface.postpone_retransmissions(now, place.key);
                    self.flood_on(now, *place, handle);
                }
            }
        }
    }

    /// Sends the LSAs queued on an interface, if it is time.
    pub(super) fn flush_flood(&mut self, now: Instant, handle: InterfaceHandle) {
        let Some(keys) = self.interfaces[handle].flood.take_due(now) else { return };
        let places: Vec<Place> = keys.into_iter().filter_map(|key| Place::on(handle, key)).collect();
        self.send_update(now, handle, Destination::AllSpfRouters, &places);
    }

    /// Handles expired BackupWait Timers (RFC 5614, 8.1.2).
    pub(super) fn backup_wait_timeouts(&mut self, now: Instant) {
        for (place, lists) in self.backup_waits.take_expired(now) {
            for (handle, list) in lists {
                let interface = &mut self.interfaces[handle];
                let may_need =
                    |router| interface.neighbors.get(router).is_some_and(|neighbor| neighbor.is_bidirectional());
                if !list.iter().any(may_need) || self.database.get(place).is_none() {
                    continue;
                }
                interface.postpone_retransmissions(now, place.key);
                self.flood_on(now, place, handle);
            }
        }
    }

    /// Sends LSAs of the database, split into updates by the MTU.
    pub(super) fn send_update(
        &mut self,
        now: Instant,
        handle: InterfaceHandle,
        destination: Destination,
        places: &[Place],
    ) {
        let interface = &self.interfaces[handle];
        let updates = self.database.updates(places, now, interface.transmission_delay(), interface.update_room());
        for update in updates {
            self.output.send(interface.config.id, destination, Body::LinkStateUpdate(update), None);
        }
    }
}
