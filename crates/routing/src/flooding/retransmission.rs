//! Sending again what a neighbour has not acknowledged (RFC 2328, 13.6; RFC 5614, 8.3).

use anabranch_policy::{Duration, Instant};
use anabranch_wire::ospf::{HEADER, LinkStateUpdate};

use crate::database::Place;
use crate::router::Router;
use crate::verbs::{At, Destination, IPV6_HEADER};

/// What is due within this time goes along, so that several LSAs share a packet.
const COMPANY: Duration = Duration::from_millis(100);
/// One packet is sent at a time (RFC 2328, 13.6); the next one after this.
const PACE: Duration = Duration::from_millis(50);

impl Router {
    /// The Rxmt timer of a neighbour expired.
    pub(crate) fn retransmit(&mut self, now: Instant, at: At) {
        let Self { interfaces, database, .. } = self;
        let Some(interface) = interfaces.get_mut(at.interface) else { return };
        let rxmt = interface.config.rxmt_interval;
        let mut room = usize::from(interface.config.mtu).saturating_sub(IPV6_HEADER + HEADER + LinkStateUpdate::FIXED);
        let Some(neighbor) = interface.neighbors.get_mut(&at.router) else { return };
        let destination = Destination::Neighbor(at.router, neighbor.address);
        let mut places = Vec::new();
        let mut left = false;
        if neighbor.retransmissions.values().any(|due| *due <= now) {
            for (key, due) in neighbor.retransmissions.iter_mut().filter(|(_, due)| **due <= now + COMPANY) {
                let Some(place) = Place::on(at.interface, *key) else { continue };
                let length = database.get(place).map_or(0, |entry| entry.lsa.encoded_len());
                if length > room && !places.is_empty() {
                    left = true;
                    break;
                }
                room = room.saturating_sub(length);
                *due = now + rxmt;
                places.push(place);
            }
        }
        let next = neighbor.retransmissions.values().copied().min().unwrap_or(Instant::NEVER);
        neighbor.retransmit_at = if left { now + PACE } else { next };
        self.output.counters.lsas_retransmitted += places.len() as u64;
        self.send_update(now, at.interface, destination, &places);
    }
}
