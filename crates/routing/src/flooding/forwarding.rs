//! On which interfaces a new LSA goes on, at once or after waiting for others (RFC 5614, 8.1; RFC 2328, 13.3).

use anabranch_policy::{Duration, Instant};
use anabranch_wire::ospf::RouterId;

use super::Arrival;
use super::backup_wait::BackupWait;
use crate::database::Place;
use crate::election::AdjConnectivity;
use crate::interface::Interface;
use crate::neighborhood::{Level, Rank};
use crate::router::Router;
use crate::verbs::{At, Destination};

/// What becomes of an LSA on an interface.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Decision {
    /// Not flooded.
    Stay,
    /// Flooded.
    Flood,
    /// Flooded later, if one of these may still need it.
    Wait(Vec<RouterId>),
}

impl Router {
    /// Floods an LSA of the database that is new: one that came in, or one of this router's own or aged out. Gives the
    /// indices of the interfaces on which it is flooded.
    pub(crate) fn forward(&mut self, now: Instant, place: Place, arrival: Option<Arrival>) -> Vec<usize> {
        let mut flooded = Vec::new();
        let mut lists = Vec::new();
        for index in (0..self.interfaces.len()).filter(|index| place.is_eligible(*index)) {
            if !self.interfaces.get(index).is_some_and(Interface::is_active) {
                continue;
            }
            let listed = self.list_for_retransmission(now, place, index, arrival);
            let decision = match self.interfaces.get(index).map(Interface::manet) {
                Some(Some(_)) => self.decide_on_manet(now, place, index, arrival),
                // RFC 2328, 13.3, steps 2 and 5; there is neither DR nor Backup.
                Some(None) if listed => Decision::Flood,
                Some(None) | None => Decision::Stay,
            };
            match decision {
                Decision::Stay => {}
                Decision::Flood => flooded.push(index),
                Decision::Wait(list) => lists.push((index, list)),
            }
        }
        for index in &flooded {
            self.flood_on(now, place, *index, arrival.is_some());
        }
        if !lists.is_empty() {
            let wait = lists.iter().filter_map(|(index, _)| self.interfaces.get(*index)?.manet());
            let wait = wait.map(|manet| manet.backup_wait_interval).max().unwrap_or(Duration::ZERO);
            let jitter = self.random.span(self.config.flood_delay);
            self.backup_wait.insert(place, BackupWait { at: now + wait + jitter, lists });
        }
        self.forget_acknowledged(now, place);
        flooded
    }

    /// Step 1: who must get the LSA, and the request lists. True if anyone was listed.
    fn list_for_retransmission(&mut self, now: Instant, place: Place, index: usize, arrival: Option<Arrival>) -> bool {
        let Self { interfaces, database, config, .. } = self;
        let Some(header) = database.get(place).map(|entry| entry.header(now)) else { return false };
        let Some(interface) = interfaces.get_mut(index) else { return false };
        let due = now + interface.config.rxmt_interval;
        let mut listed = false;
        let mut overflown = Vec::new();
        interface.for_each_adjacent(|router, neighbor| {
            if !neighbor.is_exchanging() {
                return;
            }
            // Only a neighbour that is not Full yet has requests.
            if let Some(theirs) = neighbor.requests.get(&place.key) {
                let order = header.compare_instance(theirs);
                if order.is_ge() {
                    neighbor.requests.remove(&place.key);
                }
                if order.is_le() {
                    return;
                }
            }
            let from_it = arrival.is_some_and(|arrival| arrival.at == At { interface: index, router });
            let acknowledged = neighbor.acked.get(&place.key).is_some_and(|ack| ack.compare_instance(&header).is_eq());
            if from_it || acknowledged {
                return;
            }
            if neighbor.retransmissions.len() >= config.limits.retransmissions {
                overflown.push(router);
                return;
            }
            neighbor.retransmissions.insert(place.key, due);
            neighbor.retransmit_at = neighbor.retransmit_at.min(due);
            listed = true;
        });
        for router in overflown {
            self.output.counters.drop(crate::counters::DropReason::RetransmissionLimit);
            self.neighbor_event(
                now,
                At { interface: index, router },
                crate::neighbor::NeighborEvent::SeqNumberMismatch,
            );
        }
        listed
    }

    /// Steps 2 to 7 for a MANET interface.
    fn decide_on_manet(&self, now: Instant, place: Place, index: usize, arrival: Option<Arrival>) -> Decision {
        let Some(interface) = self.interfaces.get(index) else { return Decision::Stay };
        let Some(header) = self.database.get(place).map(|entry| entry.header(now)) else { return Decision::Stay };
        let (level, non_flooding) = (interface.selection.level, interface.selection.non_flooding);
        let received_here = arrival.is_some_and(|arrival| arrival.at.interface == index);
        // Step 3; step 2 before it comes to the same.
        if received_here && level == Level::Other {
            return Decision::Stay;
        }
        let sender = arrival.and_then(|arrival| self.neighbor(arrival.at).map(|neighbor| (arrival, neighbor)));
        let covered = |router: RouterId| {
            sender.is_some_and(|(arrival, sender)| arrival.multicast && sender.manet.sets.hears(router))
        };
        let has_it = |router: RouterId| arrival.is_some_and(|arrival| arrival.at.router == router) || covered(router);
        // Step 2.
        let bidirectional = interface.neighbors.iter().filter(|(_, neighbor)| neighbor.is_bidirectional());
        let left = bidirectional.filter(|(router, neighbor)| {
            let ack = neighbor.acked.get(&place.key);
            let acknowledged = ack.is_some_and(|ack| ack.compare_instance(&header).is_eq());
            !has_it(**router) && !acknowledged
        });
        let mut left = left.map(|(router, _)| *router).peekable();
        if left.peek().is_none() {
            return Decision::Stay;
        }
        // Step 5.
        let Some(arrival) = arrival else { return Decision::Flood };
        if level == Level::Mdr && !non_flooding {
            return Decision::Flood;
        }
        // Step 4.
        if received_here {
            return Decision::Wait(left.collect());
        }
        // Step 6, if it came in on a MANET interface; step 7.
        let Some(receiving) = self.interfaces.get(arrival.at.interface).filter(|one| one.manet().is_some()) else {
            return Decision::Flood;
        };
        let own = Rank { priority: interface.config.priority, level, id: self.config.router_id };
        let on_both = interface.neighbors.iter().filter(|(router, _)| receiving.neighbors.contains_key(router));
        let mut ranks = on_both.filter(|(router, _)| covered(**router)).map(|(router, one)| Rank {
            priority: one.priority,
            level: one.manet.level,
            id: *router,
        });
        if ranks.all(|rank| own > rank) { Decision::Flood } else { Decision::Wait(left.collect()) }
    }

    /// Puts an LSA into the next update of an interface. One that is passed on waits a little for others.
    pub(crate) fn flood_on(&mut self, now: Instant, place: Place, index: usize, wait: bool) {
        let delay = if wait { self.random.span(self.config.flood_delay) } else { Duration::ZERO };
        let Some(interface) = self.interfaces.get_mut(index) else { return };
        if interface.flood.insert(place.key) {
            self.output.counters.lsas_flooded += 1;
        }
        interface.flood_at = interface.flood_at.min(now + delay);
        // RFC 5614, 8.2: flooding acknowledges.
        if interface.manet().is_some() {
            interface.acknowledgments.remove(&place.key);
        }
    }

    /// Sends what is to be flooded on an interface, if it is time.
    pub(crate) fn flush_flood(&mut self, now: Instant, index: usize) {
        let Some(interface) = self.interfaces.get_mut(index) else { return };
        if interface.flood_at > now {
            return;
        }
        interface.flood_at = Instant::NEVER;
        let keys = core::mem::take(&mut interface.flood);
        let places: Vec<Place> = keys.into_iter().filter_map(|key| Place::on(index, key)).collect();
        self.send_update(now, index, Destination::AllSpfRouters, &places);
    }

    /// BackupWait Timers that expired (RFC 5614, 8.1.2).
    pub(crate) fn backup_wait_timeouts(&mut self, now: Instant) {
        let due: Vec<Place> =
            self.backup_wait.iter().filter(|(_, wait)| wait.at <= now).map(|(place, _)| *place).collect();
        for place in due {
            let Some(wait) = self.backup_wait.remove(&place) else { continue };
            for (index, list) in wait.lists {
                let Some(interface) = self.interfaces.get_mut(index) else { continue };
                let needed =
                    list.iter().any(|router| interface.neighbors.get(router).is_some_and(|one| one.is_bidirectional()));
                if !needed || self.database.get(place).is_none() {
                    continue;
                }
                let due = now + interface.config.rxmt_interval;
                interface.for_each_adjacent(|_, neighbor| {
                    if let Some(at) = neighbor.retransmissions.get_mut(&place.key) {
                        *at = due;
                    }
                });
                self.flood_on(now, place, index, false);
            }
        }
    }

    /// Whether a duplicate that was sent to this router alone is acknowledged at once (RFC 5614, 8.2, rule 3a).
    pub(super) fn acknowledges_at_once(interface: &Interface) -> bool {
        let Some(manet) = interface.manet() else { return true };
        match (interface.selection.level, manet.election.adj_connectivity) {
            (Level::Mdr, _) | (_, AdjConnectivity::Full) | (Level::BackupMdr, AdjConnectivity::Biconnected) => true,
            (Level::Other | Level::BackupMdr, AdjConnectivity::Uniconnected)
            | (Level::Other, AdjConnectivity::Biconnected) => false,
        }
    }
}
