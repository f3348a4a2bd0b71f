//! Helps a neighbour that restarts its software and goes on forwarding (RFC 5187; RFC 3623, 3): until its grace period ends it
//! counts as it did before, although it is silent or exchanges databases anew.

use anabranch_policy::{Duration, Instant};
use anabranch_wire::ospf::lsa::MAX_AGE;
use anabranch_wire::ospf::{AgedLsa, LsaBody, LsaType};

use crate::database::Place;
use crate::handles::NeighborHandle;
use crate::neighbor::{NeighborState, NeighborTimer};
use crate::router::Router;
use crate::verbs::{Event, Restart};

/// The type of Grace-LSAs: link-local scope, function code 11 (RFC 5187, 2.2).
pub(super) const GRACE: LsaType = LsaType(0x000b);

/// The longest grace period in seconds (RFC 3623, B.1).
const LONGEST: u32 = 1800;

/// The grace period in a Grace-LSA: TLV 1, four bytes with seconds (RFC 3623, A). TLVs are padded to four bytes.
fn period(mut bytes: &[u8]) -> Option<u32> {
    while let Some(([kind_high, kind_low, length_high, length_low], rest)) = bytes.split_first_chunk() {
        let (kind, length) =
            (u16::from_be_bytes([*kind_high, *kind_low]), u16::from_be_bytes([*length_high, *length_low]));
        if (kind, length) == (1, 4) {
            return rest.first_chunk().map(|value| u32::from_be_bytes(*value).min(LONGEST));
        }
        bytes = rest.get(usize::from(length).next_multiple_of(4)..)?;
    }
    None
}

impl Router {
    /// A Grace-LSA was received: its originator restarts, or has done so if the LSA is flushed.
    pub(super) fn receive_grace(&mut self, now: Instant, place: Place, aged: &AgedLsa) {
        let Some(interface) = place.link.filter(|_| place.key.kind == GRACE) else { return };
        let at = NeighborHandle { interface, router: place.key.advertising };
        let LsaBody::Unknown(bytes) = aged.lsa.body() else { return };
        let seconds = period(bytes).unwrap_or_default();
        let Some(left) = seconds.checked_sub(aged.age.into()).filter(|left| *left > 0 && aged.age < MAX_AGE) else {
            return self.end_grace(now, at, Restart::Over);
        };
        let is_manet = self.interfaces[interface].manet().is_some();
        // On a MANET interface neighbours that are only bidirectional are next hops too.
        let least = if is_manet { NeighborState::TwoWay } else { NeighborState::Full };
        let id = self.interfaces[interface].config.id;
        let Some(neighbor) = self.interfaces.neighbor_mut(at) else { return };
        // RFC 3623, 3.1: nothing may have changed that it does not know.
        if neighbor.grace.is_none() && (neighbor.state < least || neighbor.retransmissions.has_wide()) {
            self.output.tell(Event::Restart { interface: id, neighbor: at.router, restart: Restart::Refused });
            return;
        }
        let grace = Duration::from_secs(left.into());
        let before = neighbor.grace.unwrap_or(neighbor.state);
        neighbor.grace = Some(before);
        neighbor.timers.set(NeighborTimer::Grace, now + grace);
        if self.helped.insert(at) {
            self.output.counters.restarts_helped += 1;
        }
        self.output.tell(Event::Restart { interface: id, neighbor: at.router, restart: Restart::Begun(grace) });
    }

    /// The network has changed, so that packets through a neighbour that does not know it may go astray (RFC 3623, 3.2 (3)).
    pub(super) fn end_all_graces(&mut self, now: Instant) {
        while let Some(at) = self.helped.first().copied() {
            self.end_grace(now, at, Restart::Changed);
        }
    }

    /// From now on a neighbour counts as what it is. One that has restarted while this router still reads its database has
    /// RouterDeadInterval for the rest.
    pub(super) fn end_grace(&mut self, now: Instant, at: NeighborHandle, restart: Restart) {
        let told = !self.helped.remove(&at);
        let dead_interval = self.interfaces[at.interface].config.router_dead_interval;
        let id = self.interfaces[at.interface].config.id;
        let Some(neighbor) = self.interfaces.neighbor_mut(at).filter(|neighbor| neighbor.grace.is_some()) else {
            return;
        };
        if !told {
            self.output.tell(Event::Restart { interface: id, neighbor: at.router, restart });
        }
        if restart == Restart::Over && neighbor.is_forming() {
            neighbor.timers.set(NeighborTimer::Grace, now + dead_interval);
            return;
        }
        neighbor.timers.stop(NeighborTimer::Grace);
        neighbor.grace = None;
        neighbor.timers.set(NeighborTimer::Inactivity, (neighbor.manet.heard + dead_interval).max(now));
        self.interfaces[at.interface].mdr_neighbor_change = true;
        self.calculation.schedule(now);
        self.check_router_lsa(now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rfc3623_a_the_grace_period_is_found_among_the_tlvs() {
        let reason = [0, 2, 0, 1, 1, 0, 0, 0];
        let grace = [0, 1, 0, 4, 0, 0, 0, 120];
        assert_eq!(period(&[&reason[..], &grace].concat()), Some(120));
        assert_eq!(period(&[&grace[..], &reason].concat()), Some(120));
        assert_eq!(period(&[0, 1, 0, 4, 255, 255, 255, 255]), Some(LONGEST));
        assert_eq!(
            (period(&reason), period(&grace[..7]), period(&[0, 9, 255, 255]), period(&[])),
            (None, None, None, None)
        );
    }
}
