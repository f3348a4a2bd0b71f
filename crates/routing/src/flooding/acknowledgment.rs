//! Link State Acknowledgments, sent and received (RFC 5614, 8.2 and 8.4; RFC 2328, 13.5 and 13.7).

use anabranch_policy::{Duration, Instant};
use anabranch_wire::ospf::{Body, HEADER, LinkStateAcknowledgment, LsaHeader, LsaKey};

use super::Arrival;
use crate::counters::DropReason;
use crate::database::Place;
use crate::interface::Interface;
use crate::router::Router;
use crate::verbs::{At, Destination, IPV6_HEADER};

/// The margin that RFC 5614, 8.2, keeps from RxmtInterval.
const MARGIN: Duration = Duration::from_millis(500);
/// How long an acknowledgment waits for company on other interfaces (RFC 2328, 13.5: short).
const SHORT: Duration = Duration::from_secs(1);

/// When a delayed acknowledgment leaves at the soonest and at the latest after its LSA came in.
fn delays(interface: &Interface) -> (Duration, Duration) {
    match interface.manet() {
        Some(manet) => {
            let latest = interface.config.rxmt_interval - MARGIN;
            (latest - manet.ack_interval, latest)
        }
        None => (Duration::ZERO, SHORT),
    }
}

/// Whether one more acknowledgment may wait to be sent.
fn has_room(interface: &Interface, key: &LsaKey, limit: usize) -> bool {
    interface.acknowledgments.len() < limit || interface.acknowledgments.contains_key(key)
}

impl Router {
    /// A delayed acknowledgment. `since` is when the instance came in first; the newest instance takes the place of those
    /// before, and waits anew.
    fn acknowledge_later(&mut self, index: usize, header: LsaHeader, since: Instant) {
        let Some(leaves) = self.leaves_after(index) else { return };
        let limit = self.config.limits.acked;
        let Some(interface) = self.interfaces.get_mut(index) else { return };
        let scheduled = interface.acknowledgments.get(&header.key);
        if scheduled.is_some_and(|(scheduled, _)| scheduled.compare_instance(&header).is_eq()) {
            return;
        }
        if !has_room(interface, &header.key, limit) {
            self.output.counters.drop(DropReason::AcknowledgmentLimit);
            return;
        }
        interface.acknowledgments.insert(header.key, (header, since));
        interface.acknowledge_at = interface.acknowledge_at.min(since + leaves);
    }

    /// How long a delayed acknowledgment waits: a random time within the bounds, since all that hear an LSA hear it at once,
    /// and acknowledgments that leave at once collide.
    fn leaves_after(&mut self, index: usize) -> Option<Duration> {
        let (soonest, latest) = delays(self.interfaces.get(index)?);
        Some(soonest + self.random.span(latest - soonest))
    }

    /// A delayed acknowledgment of an instance that came in long ago: it leaves within AckInterval.
    fn acknowledge_soon(&mut self, now: Instant, index: usize, header: LsaHeader) {
        let Some(interface) = self.interfaces.get(index) else { return };
        let (soonest, _) = delays(interface);
        self.acknowledge_later(index, header, now - soonest);
    }

    /// The acknowledgment goes with the next packet of them, which is sent before this input is done with.
    fn acknowledge_now(&mut self, now: Instant, index: usize, header: LsaHeader) {
        let limit = self.config.limits.acked;
        if let Some(interface) = self.interfaces.get_mut(index) {
            if !has_room(interface, &header.key, limit) {
                self.output.counters.drop(DropReason::AcknowledgmentLimit);
                return;
            }
            interface.acknowledgments.insert(header.key, (header, now));
            interface.acknowledge_at = now;
        }
    }

    /// A new LSA: a delayed acknowledgment where it is not flooded (rule 1).
    pub(super) fn acknowledge_new(
        &mut self,
        now: Instant,
        arrival: Arrival,
        place: Place,
        header: LsaHeader,
        flooded: Vec<usize>,
    ) {
        for index in (0..self.interfaces.len()).filter(|index| place.is_eligible(*index) && !flooded.contains(index)) {
            let Some(interface) = self.interfaces.get(index) else { continue };
            let concerned = interface.manet().is_some() || index == arrival.at.interface;
            // Acknowledgments are read by adjacent neighbours only (8.4).
            let read = interface.adjacent().any(|(_, neighbor)| neighbor.is_exchanging());
            if concerned && read && interface.is_active() {
                self.acknowledge_later(index, header, now);
            }
        }
    }

    /// A duplicate: none if it was multicast (rule 2), else at once or delayed (rule 3).
    pub(super) fn acknowledge_duplicate(
        &mut self,
        now: Instant,
        arrival: Arrival,
        _place: Place,
        header: LsaHeader,
        implied: bool,
    ) {
        let index = arrival.at.interface;
        let Some(interface) = self.interfaces.get(index) else { return };
        if interface.manet().is_some() {
            if arrival.multicast {
                return;
            }
            if Self::acknowledges_at_once(interface) {
                self.acknowledge_now(now, index, header);
            } else {
                self.acknowledge_soon(now, index, header);
            }
        } else if !implied {
            self.acknowledge_now(now, index, header);
        }
    }

    /// A MaxAge LSA that nobody has (RFC 2328, 13, step 4).
    pub(super) fn acknowledge_unknown(&mut self, now: Instant, arrival: Arrival, header: LsaHeader) {
        if arrival.multicast && self.interfaces.get(arrival.at.interface).is_some_and(|one| one.manet().is_some()) {
            self.acknowledge_soon(now, arrival.at.interface, header);
        } else {
            self.acknowledge_now(now, arrival.at.interface, header);
        }
    }

    /// Sends the acknowledgments of an interface if some are to leave at once.
    pub(super) fn send_immediate_acknowledgments(&mut self, now: Instant, index: usize) {
        if self.interfaces.get(index).is_some_and(|interface| interface.acknowledge_at <= now) {
            self.send_all(now, index, Duration::ZERO);
        }
    }

    /// Sends the acknowledgments of an interface that have waited long enough.
    pub(crate) fn send_acknowledgments(&mut self, now: Instant, index: usize) {
        let Some(interface) = self.interfaces.get(index) else { return };
        let (soonest, _) = delays(interface);
        self.send_all(now, index, soonest);
    }

    /// Sends the acknowledgments of LSAs that came in `waited` ago or earlier.
    fn send_all(&mut self, now: Instant, index: usize, waited: Duration) {
        let Some(wait) = self.leaves_after(index) else { return };
        let Some(interface) = self.interfaces.get_mut(index) else { return };
        let (soonest, latest) = delays(interface);
        let mut headers = Vec::new();
        interface.acknowledgments.retain(|_, (header, since)| {
            let leaves = now.since(*since) >= waited;
            if leaves {
                headers.push(*header);
            }
            !leaves
        });
        // The next packet of delayed acknowledgments is one AckInterval away: what is left waited for less than the soonest,
        // so that this is no later than the latest.
        let oldest = interface.acknowledgments.values().map(|(_, since)| *since).min();
        let after = |since: Instant| (now + (latest - soonest)).max(since + wait).min(since + latest);
        interface.acknowledge_at = oldest.map_or(Instant::NEVER, after);
        let id = interface.config.id;
        let most = usize::from(interface.config.mtu).saturating_sub(IPV6_HEADER + HEADER) / LsaHeader::LENGTH;
        for some in headers.chunks(most.max(1)) {
            let acknowledgment = LinkStateAcknowledgment { headers: some.to_vec() };
            self.output.send(id, Destination::AllSpfRouters, Body::LinkStateAcknowledgment(acknowledgment), None);
        }
    }

    pub(crate) fn receive_acknowledgment(
        &mut self,
        now: Instant,
        at: At,
        acknowledgment: &LinkStateAcknowledgment,
    ) -> Result<(), DropReason> {
        let limit = self.config.limits.acked;
        let Self { interfaces, database, backup_wait, output, .. } = self;
        let Some(interface) = interfaces.get_mut(at.interface) else { return Err(DropReason::Interface) };
        let is_manet = interface.manet().is_some();
        let Some(neighbor) = interface.neighbors.get_mut(&at.router) else { return Err(DropReason::UnknownNeighbor) };
        if !neighbor.is_exchanging() {
            return Err(DropReason::NeighborState);
        }
        for header in &acknowledgment.headers {
            let Some(place) = Place::on(at.interface, header.key) else { continue };
            let own = database.get(place).map(|entry| entry.header(now));
            let order = own.map(|own| header.compare_instance(&own));
            if order.is_some_and(|order| order.is_eq()) {
                neighbor.retransmissions.remove(&header.key);
                // RFC 5614, 8.4, step 2.
                if let Some(wait) = backup_wait.get_mut(&place) {
                    wait.cover(at.router, &[]);
                    if wait.is_over() {
                        backup_wait.remove(&place);
                    }
                }
            } else if neighbor.retransmissions.contains_key(&header.key) && order.is_some_and(|order| order.is_lt()) {
                output.counters.drop(DropReason::QuestionableAcknowledgment);
            }
            // Step 1.
            let ahead = order.is_none_or(|order| order.is_gt());
            if is_manet && ahead && (neighbor.acked.len() < limit || neighbor.acked.contains_key(&header.key)) {
                neighbor.acked.insert(header.key, *header);
            }
        }
        Ok(())
    }

    /// Drops what the Acked LSA lists hold of instances that are not newer than the database's.
    pub(super) fn forget_acknowledged(&mut self, now: Instant, place: Place) {
        let Self { interfaces, database, .. } = self;
        let Some(own) = database.get(place).map(|entry| entry.header(now)) else { return };
        for interface in interfaces {
            interface.for_each_adjacent(|_, neighbor| {
                if neighbor.acked.get(&place.key).is_some_and(|ack| ack.compare_instance(&own).is_le()) {
                    neighbor.acked.remove(&place.key);
                }
            });
        }
    }
}
