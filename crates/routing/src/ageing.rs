//! Ageing the database: what reaches MaxAge is flooded once more, and leaves when all have it (RFC 2328, 14).

use anabranch_policy::Instant;

use crate::database::Place;
use crate::router::Router;

impl Router {
    /// LSAs whose age reached MaxAge.
    pub(crate) fn ageing_timeouts(&mut self, now: Instant) {
        for place in self.database.expired(now) {
            self.flush(now, place);
        }
    }

    /// Takes an LSA out of the routing domain (RFC 2328, 14.1), whoever it is from: it is flooded with age MaxAge.
    pub(crate) fn flush(&mut self, now: Instant, place: Place) {
        for (index, interface) in self.interfaces.iter_mut().enumerate() {
            if place.is_eligible(index) {
                interface.for_each_adjacent(|_, neighbor| {
                    neighbor.retransmissions.remove(&place.key);
                });
            }
        }
        self.backup_wait.remove(&place);
        if self.database.age_out(place, now) {
            self.contents_changed(now, place);
        }
        self.forward(now, place, None);
    }

    /// Removes the LSAs of age MaxAge that nobody has to be told of any more.
    pub(crate) fn remove_aged_out(&mut self, now: Instant) {
        if !self.database.has_aged_out() || self.is_any_exchanging() {
            return;
        }
        let removable: Vec<Place> = self.database.aged_out().filter(|place| !self.is_awaited(*place)).collect();
        for place in removable {
            self.database.remove(place);
            if place.key.advertising == self.config.router_id {
                self.own_lsa_removed(now, place);
            }
        }
    }

    /// Whether an LSA is still to be sent, or acknowledged by someone.
    fn is_awaited(&self, place: Place) -> bool {
        self.interfaces.iter().enumerate().filter(|(index, _)| place.is_eligible(*index)).any(|(_, interface)| {
            interface.flood.contains(&place.key)
                || interface.adjacent().any(|(_, neighbor)| neighbor.retransmissions.contains_key(&place.key))
        })
    }
}
