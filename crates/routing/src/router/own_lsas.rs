//! Originates and flushes this router's own LSAs, and ages the database (RFC 2328, 12.4, 13.4 and 14; RFC 5340, 4.4.3).

use anabranch_policy::Instant;
use anabranch_wire::ospf::lsa::{LsaSequence, MAX_AGE};
use anabranch_wire::ospf::{AgedLsa, Lsa, LsaType};

use crate::database::{Place, Source};
use crate::router::Router;

impl Router {
    /// Originates each LSA other than the Router-LSA whose contents changed.
    pub(super) fn check_other_lsas(&mut self, now: Instant) {
        for place in self.own_lsas().outdated(&self.database) {
            self.origination.schedule(place, now, self.config.min_ls_interval);
        }
    }

    /// Originates the LSA of the default route, or flushes it at once if there is none, so that no packet follows a way that
    /// has ended: MinLSInterval holds back only how soon it is told again. What has just been told is withdrawn after
    /// MinLSArrival, before which no router would believe it.
    pub(super) fn check_default_route(&mut self, now: Instant) {
        let place = self.own_lsas().default_route_place();
        let arrival = self.config.min_ls_arrival;
        let wait =
            if self.config.default_route.is_some() { self.config.min_ls_interval } else { arrival + arrival / 2 };
        self.origination.schedule(place, now, wait);
    }

    /// Originates the LSAs that are due.
    pub(super) fn originate_due(&mut self, now: Instant) {
        while let Some(place) = self.origination.take_due(now) {
            self.originate(now, place);
        }
    }

    fn originate(&mut self, now: Instant, place: Place) {
        let body = self.own_lsas().contents(place);
        let current = self.database.get(place);
        let is_alive = current.is_some_and(|entry| !entry.is_aged_out(now));
        let Some(body) = body else {
            if place == self.own_lsas().default_route_place() {
                self.origination.withdraw(place, now, self.config.min_ls_interval);
            } else {
                self.origination.forget(place);
            }
            if is_alive {
                self.flush(now, place);
            }
            return;
        };
        let same = current.is_some_and(|entry| !entry.is_received() && *entry.lsa.body() == body);
        if is_alive && same && !self.origination.needs_refresh(place, now) {
            return;
        }
        let last = current.map(|entry| entry.lsa.sequence());
        let Some(sequence) = last.map_or(Some(LsaSequence::INITIAL), LsaSequence::next) else {
            // The sequence numbers are exhausted: the LSA is flushed first, and originated again when it is gone
            // (12.1.6).
            self.origination.stop_refreshing(place);
            if is_alive {
                self.flush(now, place);
            }
            return;
        };
        let Ok(lsa) = Lsa::new(place.key, sequence, body) else { return };
        self.output.counters.lsas_originated += 1;
        let is_router_lsa = place.key.kind == LsaType::ROUTER;
        let pace = if is_router_lsa { self.router_lsa_pace() } else { self.config.min_ls_interval.into() };
        self.origination.set_originated(place, now, pace, now + self.config.ls_refresh_time);
        if is_router_lsa {
            self.origination.remember(lsa.header(0));
        }
        self.install(now, place, AgedLsa { age: 0, lsa }, Source::Originated);
        self.forward(now, place, None);
    }

    /// Received an own LSA that is newer than the last one originated (RFC 2328, 13.4): originates a newer one, or
    /// flushes it if this router has no such LSA.
    pub(super) fn own_lsa_received(&mut self, now: Instant, place: Place) {
        if self.own_lsas().contents(place).is_some() {
            self.overtake(now, place);
        } else if self.database.get(place).is_some_and(|entry| entry.age(now) < MAX_AGE) {
            self.flush(now, place);
        }
    }

    /// Originates an own LSA with a newer sequence number than that of an instance which is not of this router as it is now.
    fn overtake(&mut self, now: Instant, place: Place) {
        let flushed = self.database.get(place).is_some_and(|entry| entry.is_aged_out(now));
        if flushed && !self.origination.has_begun(place) {
            // It was flushed before this router began, and nobody uses it: the first instance may wait for company.
            self.origination.schedule(place, now, self.config.min_ls_interval);
        } else {
            // Without MinLSInterval, since the network has wrong data. MinLSArrival bounds the rate that a forger can
            // cause.
            self.origination.correct(place, now, self.config.min_ls_arrival);
        }
    }

    /// Floods LSAs whose age has reached MaxAge.
    pub(super) fn ageing_timeouts(&mut self, now: Instant) {
        for place in self.database.expired(now) {
            self.flush(now, place);
        }
    }

    /// Removes LSAs of age MaxAge that need no more flooding (RFC 2328, 14). An own one may be originated again.
    pub(super) fn remove_aged_out(&mut self, now: Instant) {
        if !self.database.has_aged_out() || self.interfaces.exchanging().next().is_some() {
            return;
        }
        let aged_out = self.database.aged_out();
        let removable: Vec<Place> = aged_out.filter(|place| !self.interfaces.is_awaited(*place)).collect();
        for place in removable {
            let is_told = place.key.advertising == self.config.router_id && self.own_lsas().contents(place).is_some();
            if is_told && self.is_of_before(place) {
                self.overtake(now, place);
                continue;
            }
            self.database.remove(place);
            if is_told {
                self.origination.begin_anew(place, now, self.config.min_ls_interval);
            }
        }
    }

    /// Whether an own LSA was flushed by this router before it began, or by another one: the next instance overtakes it
    /// (RFC 2328, 13.4). Removed, it would be forgotten here, while neighbours that still have it refuse the first instance.
    fn is_of_before(&self, place: Place) -> bool {
        self.database.get(place).is_some_and(|entry| entry.is_received() && entry.lsa.sequence().next().is_some())
    }
}
