//! Receiving Link State Updates, and which LSAs replace which (RFC 2328, 13; RFC 5340, 4.5; RFC 5614, 8).

mod acknowledgment;
pub(crate) mod backup_wait;
mod forwarding;
mod retransmission;

use anabranch_policy::Instant;
use anabranch_wire::ospf::lsa::{LsaSequence, MAX_AGE};
use anabranch_wire::ospf::{AgedLsa, Body, HEADER, LinkStateUpdate, RouterId};

use crate::counters::DropReason;
use crate::database::Place;
use crate::neighbor::{NeighborEvent, NeighborState};
use crate::router::Router;
use crate::verbs::{At, Destination, IPV6_HEADER, Reception};

/// From where an LSA came.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arrival {
    /// The neighbour that sent it.
    pub at: At,
    /// Whether it sent it to all.
    pub multicast: bool,
}

impl Router {
    pub(crate) fn receive_update(
        &mut self,
        now: Instant,
        at: At,
        how: &Reception,
        update: &LinkStateUpdate,
    ) -> Result<(), DropReason> {
        let Some(interface) = self.interfaces.get(at.interface) else { return Err(DropReason::Interface) };
        // RFC 5614, 8: on a MANET interface any bidirectional neighbour will do.
        let least = if interface.manet().is_some() { NeighborState::TwoWay } else { NeighborState::Exchange };
        if interface.neighbors.get(&at.router).is_none_or(|neighbor| neighbor.state < least) {
            return Err(DropReason::NeighborState);
        }
        let arrival = Arrival { at, multicast: how.multicast };
        for aged in &update.lsas {
            self.output.counters.lsas_received += 1;
            if let Err(reason) = self.receive_lsa(now, arrival, aged) {
                self.output.counters.drop(reason);
            }
            // A bad exchange ends the processing of the packet (step 6).
            if self.neighbor(at).is_none_or(|neighbor| neighbor.state < least) {
                break;
            }
        }
        self.requests_answered(now);
        self.send_immediate_acknowledgments(now, at.interface);
        Ok(())
    }

    /// The eight steps of RFC 2328, 13, for one LSA.
    fn receive_lsa(&mut self, now: Instant, arrival: Arrival, aged: &AgedLsa) -> Result<(), DropReason> {
        let at = arrival.at;
        // Step 1, the checksum, is the codec's. Steps 2 and 3 in the words of RFC 5340, 4.5.1.
        let place = Place::on(at.interface, aged.lsa.key()).ok_or(DropReason::LsaType)?;
        if aged.lsa.sequence() < LsaSequence::INITIAL || aged.age > MAX_AGE {
            return Err(DropReason::LsaHeader);
        }
        let header = aged.header();
        let Some(entry) = self.database.get(place) else {
            // Step 4.
            if aged.age >= MAX_AGE && !self.is_any_exchanging() {
                self.acknowledge_unknown(now, arrival, header);
                return Err(DropReason::LsaMaxAge);
            }
            let full = self.database.len() >= self.config.limits.lsas;
            if full || !self.has_room(place, aged.lsa.encoded_len()) {
                return self.refuse_lsa(place);
            }
            self.accept_lsa(now, arrival, place, aged);
            return Ok(());
        };
        let own = entry.header(now);
        match header.compare_instance(&own) {
            // Step 5.
            core::cmp::Ordering::Greater => {
                if entry.received && now.since(entry.installed) < self.config.min_ls_arrival {
                    return Err(DropReason::LsaTooSoon);
                }
                let more = aged.lsa.encoded_len().saturating_sub(entry.lsa.encoded_len());
                if !self.has_room(place, more) {
                    return self.refuse_lsa(place);
                }
                self.accept_lsa(now, arrival, place, aged);
                Ok(())
            }
            core::cmp::Ordering::Equal | core::cmp::Ordering::Less
                if self.neighbor(at).is_some_and(|neighbor| neighbor.requests.contains_key(&place.key)) =>
            {
                // Step 6.
                self.neighbor_event(now, at, NeighborEvent::BadLsReq);
                Err(DropReason::NeighborState)
            }
            // Step 7.
            core::cmp::Ordering::Equal => {
                self.duplicate_lsa(now, arrival, place, own);
                Ok(())
            }
            // Step 8.
            core::cmp::Ordering::Less => {
                let wrapping = own.age >= MAX_AGE && own.sequence == LsaSequence::MAX;
                let sent_lately = entry.sent.is_some_and(|sent| now.since(sent) < self.config.min_ls_arrival);
                // RFC 5614, 8: not to a neighbour that takes no part in the exchange.
                let neighbor = self.neighbor(at).filter(|neighbor| neighbor.is_exchanging());
                if let Some(neighbor) = neighbor.filter(|_| !wrapping && !sent_lately) {
                    let destination = Destination::Neighbor(at.router, neighbor.address);
                    self.send_update(now, at.interface, destination, &[place]);
                }
                Err(DropReason::LsaOlder)
            }
        }
    }

    /// Whether the database takes so many bytes more. What is said in this router's name must be answered.
    fn has_room(&self, place: Place, bytes: usize) -> bool {
        let own = place.key.advertising == self.config.router_id;
        own || bytes == 0 || self.database.bytes() + bytes <= self.config.limits.lsa_bytes
    }

    /// There is no room for an LSA. Nobody is asked for it any more, or no exchange would end, and no LSA of age MaxAge make
    /// room (RFC 2328, 14).
    fn refuse_lsa(&mut self, place: Place) -> Result<(), DropReason> {
        for (index, interface) in self.interfaces.iter_mut().enumerate() {
            if place.is_eligible(index) {
                interface.for_each_adjacent(|_, neighbor| {
                    neighbor.requests.remove(&place.key);
                });
            }
        }
        Err(DropReason::LsaLimit)
    }

    /// Step 5b to 5f: a new LSA is installed, flooded and acknowledged.
    fn accept_lsa(&mut self, now: Instant, arrival: Arrival, place: Place, aged: &AgedLsa) {
        self.install(now, place, aged.clone(), true);
        let flooded = self.forward(now, place, Some(arrival));
        self.acknowledge_new(now, arrival, place, aged.header(), flooded);
        if place.key.advertising == self.config.router_id {
            self.own_lsa_received(now, place);
        }
    }

    /// Puts an LSA into the database in the place of the instance before (RFC 2328, 13.2).
    pub(crate) fn install(&mut self, now: Instant, place: Place, aged: AgedLsa, received: bool) {
        for (index, interface) in self.interfaces.iter_mut().enumerate() {
            if place.is_eligible(index) {
                interface.for_each_adjacent(|_, neighbor| {
                    neighbor.retransmissions.remove(&place.key);
                });
            }
        }
        self.backup_wait.remove(&place);
        if self.database.install(place, aged, now, received) {
            self.contents_changed(now, place);
        }
    }

    /// Step 7: the same instance came again.
    fn duplicate_lsa(&mut self, now: Instant, arrival: Arrival, place: Place, header: anabranch_wire::ospf::LsaHeader) {
        let at = arrival.at;
        let Self { interfaces, backup_wait, .. } = self;
        let Some(interface) = interfaces.get_mut(at.interface) else { return };
        let Some(neighbor) = interface.neighbors.get_mut(&at.router) else { return };
        let implied = neighbor.retransmissions.remove(&place.key).is_some();
        let covered: &[RouterId] = if arrival.multicast { &neighbor.manet.sets.bidirectional } else { &[] };
        // RFC 5614, 8: who sent it has it, and so have those that heard it.
        if let Some(wait) = backup_wait.get_mut(&place) {
            wait.cover(at.router, covered);
            if wait.is_over() {
                backup_wait.remove(&place);
            }
        }
        self.acknowledge_duplicate(now, arrival, place, header, implied);
    }

    /// LSAs that were requested of any neighbour may have come in.
    fn requests_answered(&mut self, now: Instant) {
        let mut loading = Vec::new();
        for (index, interface) in self.interfaces.iter().enumerate() {
            for (router, neighbor) in interface.adjacent() {
                if matches!(neighbor.state, NeighborState::Exchange | NeighborState::Loading) {
                    loading.push(At { interface: index, router });
                }
            }
        }
        for at in loading {
            self.request_answered(now, at);
        }
    }

    /// Whether any neighbour is in state Exchange or Loading.
    pub(crate) fn is_any_exchanging(&self) -> bool {
        let mut all = self.interfaces.iter().flat_map(|interface| interface.adjacent());
        all.any(|(_, neighbor)| matches!(neighbor.state, NeighborState::Exchange | NeighborState::Loading))
    }

    /// Sends LSAs of the database in as many updates as the MTU demands.
    pub(crate) fn send_update(&mut self, now: Instant, index: usize, destination: Destination, places: &[Place]) {
        let Some(interface) = self.interfaces.get(index) else { return };
        let (id, delay) = (interface.config.id, interface.transmission_delay());
        let room = usize::from(interface.config.mtu).saturating_sub(IPV6_HEADER + HEADER + LinkStateUpdate::FIXED);
        let mut lsas = Vec::new();
        let mut filled = 0;
        for place in places {
            let Some(aged) = self.database.send(*place, now, delay) else { continue };
            let length = aged.lsa.encoded_len();
            if filled + length > room && !lsas.is_empty() {
                let update = LinkStateUpdate { lsas: core::mem::take(&mut lsas) };
                self.output.send(id, destination, Body::LinkStateUpdate(update), None);
                filled = 0;
            }
            filled += length;
            lsas.push(aged);
        }
        if !lsas.is_empty() {
            self.output.send(id, destination, Body::LinkStateUpdate(LinkStateUpdate { lsas }), None);
        }
    }
}
