//! Handles Link State Updates and Acknowledgments (RFC 2328, 13; RFC 5614, 8).

use core::cmp::Ordering;

use anabranch_policy::{Duration, Instant};
use anabranch_wire::ospf::lsa::{LsaSequence, MAX_AGE};
use anabranch_wire::ospf::{
    AgedLsa, Body, HEADER, LinkStateAcknowledgment, LinkStateUpdate, LsaHeader, LsaType, RouterId,
};

use crate::counters::DropReason;
use crate::database::{Entry, Place, Source};
use crate::flooding::acknowledgments::{AckDelay, Full};
use crate::flooding::decision::{Arrival, acknowledges_at_once};
use crate::handles::{InterfaceHandle, NeighborHandle};
use crate::neighbor::{NeighborEvent, NeighborState};
use crate::router::Router;
use crate::verbs::{Destination, IPV6_HEADER, Reception};

impl Router {
    pub(super) fn receive_update(
        &mut self,
        now: Instant,
        at: NeighborHandle,
        how: &Reception,
        update: &LinkStateUpdate,
    ) -> Result<(), DropReason> {
        // RFC 5614, 8: on a MANET interface any bidirectional neighbour is accepted.
        let is_manet = self.interfaces[at.interface].manet().is_some();
        let least = if is_manet { NeighborState::TwoWay } else { NeighborState::Exchange };
        if self.interfaces[at].state < least {
            return Err(DropReason::NeighborState);
        }
        let arrival = Arrival { from: at, multicast: how.multicast };
        for aged in &update.lsas {
            self.output.counters.lsas_received += 1;
            if let Err(reason) = self.receive_lsa(now, arrival, aged) {
                self.output.counters.drop(reason);
            }
            // BadLSReq ends the processing of the packet (step 6).
            if self.interfaces[at].state < least {
                break;
            }
        }
        self.interfaces[at].on_requests(now);
        self.requests_answered(now);
        if self.interfaces[at.interface].acknowledgments.is_due(now) {
            self.send_acknowledgments(now, at.interface, Duration::ZERO);
        }
        Ok(())
    }

    /// The eight steps of RFC 2328, 13, for one LSA.
    fn receive_lsa(&mut self, now: Instant, arrival: Arrival, aged: &AgedLsa) -> Result<(), DropReason> {
        let at = arrival.from;
        // Step 1, the checksum, is done by the codec. Steps 2 and 3 as in RFC 5340, 4.5.1.
        let place = Place::on(at.interface, aged.lsa.key()).ok_or(DropReason::LsaType)?;
        if aged.lsa.sequence() < LsaSequence::INITIAL || aged.age > MAX_AGE {
            return Err(DropReason::LsaHeader);
        }
        let header = aged.header();
        if place.key.advertising == self.config.router_id
            && place.key.kind == LsaType::ROUTER
            && !self.origination.remembers(header)
        {
            self.output.counters.router_lsas_of_another += 1;
        }
        let Some(entry) = self.database.get(place) else { return self.receive_unknown(now, arrival, place, aged) };
        let own = entry.header(now);
        match header.compare_instance(&own) {
            // Step 5.
            Ordering::Greater => {
                if self.is_too_soon(now, entry) {
                    return Err(DropReason::LsaTooSoon);
                }
                let more = aged.lsa.encoded_len().saturating_sub(entry.lsa.encoded_len());
                if !self.has_room(place, more) {
                    return self.refuse_lsa(place);
                }
                self.accept_lsa(now, arrival, place, aged);
                Ok(())
            }
            Ordering::Equal | Ordering::Less if self.interfaces[at].exchange.requests.contains_key(&place.key) => {
                // Step 6.
                self.neighbor_event(now, at, NeighborEvent::BadLsReq);
                Err(DropReason::NeighborState)
            }
            // Step 7.
            Ordering::Equal => {
                self.duplicate_lsa(now, arrival, place, own);
                Ok(())
            }
            // Step 8.
            Ordering::Less => {
                if self.is_answered(now, entry, &own) {
                    let neighbor = &self.interfaces[at];
                    // RFC 5614, 8: not to a neighbour that does not take part in the exchange.
                    if neighbor.is_exchanging() {
                        let destination = Destination::Neighbor(at.router, neighbor.address);
                        self.send_update(now, at.interface, destination, &[place]);
                    }
                }
                Err(DropReason::LsaOlder)
            }
        }
    }

    /// Whether an instance comes less than MinLSArrival after the one in the database (step 5a). One may, if that one came not
    /// too soon itself: it may be old, and have come by a detour. One that was requested from a neighbour's database does not count:
    /// a router that begins gets several instances of an LSA from its neighbours' databases one after the other.
    fn is_too_soon(&self, now: Instant, entry: &Entry) -> bool {
        let least = self.config.min_ls_arrival;
        let early = entry.previous().is_some_and(|previous| now.since(previous) < least * 2);
        entry.is_flooded() && early && now.since(entry.installed) < least
    }

    /// Whether an older LSA is answered with the database's (step 8).
    fn is_answered(&self, now: Instant, entry: &Entry, own: &LsaHeader) -> bool {
        let wrapping = own.age >= MAX_AGE && own.sequence == LsaSequence::MAX;
        let sent_lately = entry.sent().is_some_and(|sent| now.since(sent) < self.config.min_ls_arrival);
        !wrapping && !sent_lately
    }

    /// Steps 4 and 5 for an LSA that is not in the database.
    fn receive_unknown(
        &mut self,
        now: Instant,
        arrival: Arrival,
        place: Place,
        aged: &AgedLsa,
    ) -> Result<(), DropReason> {
        // An own one that is to be told tells the sequence number to begin with: neighbours that have it take none that is older.
        let is_told = place.key.advertising == self.config.router_id && self.own_lsas().contents(place).is_some();
        if aged.age >= MAX_AGE && !is_told && self.interfaces.exchanging().next().is_none() {
            self.acknowledge_unknown(now, arrival, aged.header());
            return Err(DropReason::LsaMaxAge);
        }
        let full = self.database.len() >= self.config.limits.lsas;
        if full || !self.has_room(place, aged.lsa.encoded_len()) {
            return self.refuse_lsa(place);
        }
        self.accept_lsa(now, arrival, place, aged);
        Ok(())
    }

    /// Whether the database has space for `bytes` more. LSAs in this router's name must always be answered.
    fn has_room(&self, place: Place, bytes: usize) -> bool {
        let own = place.key.advertising == self.config.router_id;
        own || bytes == 0 || self.database.bytes() + bytes <= self.config.limits.lsa_bytes
    }

    /// There is no space for an LSA. It is no longer requested from anyone, or no exchange would end, and LSAs of age
    /// MaxAge could not be removed (RFC 2328, 14).
    fn refuse_lsa(&mut self, place: Place) -> Result<(), DropReason> {
        self.interfaces.stop_requesting(place);
        Err(DropReason::LsaLimit)
    }

    /// Step 5b to 5f: a new LSA is installed, flooded and acknowledged.
    fn accept_lsa(&mut self, now: Instant, arrival: Arrival, place: Place, aged: &AgedLsa) {
        let requested = self.interfaces[arrival.from].exchange.requests.contains_key(&place.key);
        let source = if requested { Source::Requested } else { Source::Flooded };
        self.install(now, place, aged.clone(), source);
        let flooded = self.forward(now, place, Some(arrival));
        self.acknowledge_new(now, arrival, place, aged.header(), &flooded);
        self.receive_grace(now, place, aged);
        if place.key.advertising == self.config.router_id {
            self.own_lsa_received(now, place);
        }
    }

    /// Step 7: the same instance was received again.
    fn duplicate_lsa(&mut self, now: Instant, arrival: Arrival, place: Place, header: LsaHeader) {
        let at = arrival.from;
        let neighbor = &mut self.interfaces[at];
        let implied = neighbor.retransmissions.remove(place.key);
        let covered: &[RouterId] = if arrival.multicast { &neighbor.manet.said.sets.bidirectional } else { &[] };
        // RFC 5614, 8: the sender has it, and so have the neighbours that received it from the sender.
        self.backup_waits.cover(place, at.router, covered);
        self.acknowledge_duplicate(now, arrival, header, implied);
    }

    /// A new LSA: a delayed acknowledgment if it is not flooded (RFC 5614, 8.2, rule 1).
    fn acknowledge_new(
        &mut self,
        now: Instant,
        arrival: Arrival,
        place: Place,
        header: LsaHeader,
        flooded: &[InterfaceHandle],
    ) {
        let eligible = self.interfaces.handles().filter(|handle| place.is_eligible(*handle));
        for handle in eligible.filter(|handle| !flooded.contains(handle)) {
            let interface = &self.interfaces[handle];
            let concerned = interface.manet().is_some() || handle == arrival.from.interface;
            // Only adjacent neighbours read acknowledgments (8.4).
            let read = interface.adjacent().any(|(_, neighbor)| neighbor.is_exchanging());
            if concerned && read && interface.is_active() {
                self.acknowledge_later(handle, header, now);
            }
        }
    }

    /// A duplicate: none if it was multicast (rule 2), otherwise at once or delayed (rule 3).
    fn acknowledge_duplicate(&mut self, now: Instant, arrival: Arrival, header: LsaHeader, implied: bool) {
        let handle = arrival.from.interface;
        let interface = &self.interfaces[handle];
        if interface.manet().is_some() {
            if arrival.multicast {
                return;
            }
            if acknowledges_at_once(interface) {
                self.acknowledge_now(now, handle, header);
            } else {
                self.acknowledge_soon(now, handle, header);
            }
        } else if !implied {
            self.acknowledge_now(now, handle, header);
        }
    }

    /// A MaxAge LSA that is not in the database (RFC 2328, 13, step 4).
    fn acknowledge_unknown(&mut self, now: Instant, arrival: Arrival, header: LsaHeader) {
        let handle = arrival.from.interface;
        if arrival.multicast && self.interfaces[handle].manet().is_some() {
            self.acknowledge_soon(now, handle, header);
        } else {
            self.acknowledge_now(now, handle, header);
        }
    }

    /// A delayed acknowledgment of an instance that was first received at `since`.
    fn acknowledge_later(&mut self, handle: InterfaceHandle, header: LsaHeader, since: Instant) {
        let interface = &mut self.interfaces[handle];
        let wait = AckDelay::of(&interface.config).draw(&mut self.random);
        if let Err(Full) = interface.acknowledgments.add_delayed(header, since, wait, self.config.limits.acked) {
            self.output.counters.drop(DropReason::AcknowledgmentLimit);
        }
    }

    /// A delayed acknowledgment of an instance received long ago, sent within AckInterval.
    fn acknowledge_soon(&mut self, now: Instant, handle: InterfaceHandle, header: LsaHeader) {
        let delay = AckDelay::of(&self.interfaces[handle].config);
        self.acknowledge_later(handle, header, now - delay.soonest);
    }

    /// An acknowledgment in the next packet, sent before this input is complete.
    fn acknowledge_now(&mut self, now: Instant, handle: InterfaceHandle, header: LsaHeader) {
        let interface = &mut self.interfaces[handle];
        if let Err(Full) = interface.acknowledgments.add_immediate(header, now, self.config.limits.acked) {
            self.output.counters.drop(DropReason::AcknowledgmentLimit);
        }
    }

    /// Sends the delayed acknowledgments of an interface that are due.
    pub(super) fn send_delayed_acknowledgments(&mut self, now: Instant, handle: InterfaceHandle) {
        let delay = AckDelay::of(&self.interfaces[handle].config);
        self.send_acknowledgments(now, handle, delay.soonest);
    }

    /// Sends the acknowledgments of LSAs received at least `waited` ago.
    fn send_acknowledgments(&mut self, now: Instant, handle: InterfaceHandle, waited: Duration) {
        let interface = &mut self.interfaces[handle];
        let delay = AckDelay::of(&interface.config);
        let wait = delay.draw(&mut self.random);
        let headers = interface.acknowledgments.take(now, waited, delay, wait);
        let most = usize::from(interface.config.mtu).saturating_sub(IPV6_HEADER + HEADER) / LsaHeader::LENGTH;
        for some in headers.chunks(most.max(1)) {
            let acknowledgment = LinkStateAcknowledgment { headers: some.to_vec() };
            let body = Body::LinkStateAcknowledgment(acknowledgment);
            self.output.send(interface.config.id, Destination::AllSpfRouters, body, None);
        }
    }

    /// A Link State Acknowledgment (RFC 2328, 13.7; RFC 5614, 8.4).
    pub(super) fn receive_acknowledgment(
        &mut self,
        now: Instant,
        at: NeighborHandle,
        acknowledgment: &LinkStateAcknowledgment,
    ) -> Result<(), DropReason> {
        let limit = self.config.limits.acked;
        let is_manet = self.interfaces[at.interface].manet().is_some();
        let neighbor = &mut self.interfaces[at];
        if !neighbor.is_exchanging() {
            return Err(DropReason::NeighborState);
        }
        for header in &acknowledgment.headers {
            let Some(place) = Place::on(at.interface, header.key) else { continue };
            let own = self.database.get(place).map(|entry| entry.header(now));
            let order = own.map(|own| header.compare_instance(&own));
            if order == Some(Ordering::Equal) {
                neighbor.retransmissions.remove(header.key);
                // RFC 5614, 8.4, step 2.
                self.backup_waits.cover(place, at.router, &[]);
            } else if neighbor.retransmissions.contains(header.key) && order == Some(Ordering::Less) {
                self.output.counters.drop(DropReason::QuestionableAcknowledgment);
            }
            // Step 1.
            let ahead = order.is_none_or(Ordering::is_gt);
            if is_manet && ahead && (neighbor.acked.len() < limit || neighbor.acked.contains_key(&header.key)) {
                neighbor.acked.insert(header.key, *header);
            }
        }
        Ok(())
    }
}
