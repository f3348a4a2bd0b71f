//! Originating this router's own LSAs: when, with which sequence number, and when not any more (RFC 2328, 12.4, 13.4;
//! RFC 5340, 4.4.3).

mod advertising;
pub(crate) mod own;

use anabranch_policy::Instant;
use anabranch_wire::ospf::lsa::{LsaSequence, MAX_AGE};
use anabranch_wire::ospf::{AgedLsa, Lsa};

use crate::database::Place;
use crate::router::Router;

pub(crate) use advertising::fill;
use own::Own;

impl Router {
    /// An own LSA is to be originated: now, or MinLSInterval after the last instance (RFC 2328, 12.4).
    pub(crate) fn originate(&mut self, now: Instant, place: Place) {
        let least = self.config.min_ls_interval;
        self.schedule_origination(now, place, least);
    }

    fn schedule_origination(&mut self, now: Instant, place: Place, interval: anabranch_policy::Duration) {
        let unset = Own { originated: None, pending: Instant::NEVER, refresh: Instant::NEVER };
        let own = self.origination.own.entry(place).or_insert(unset);
        let soonest = own.originated.map_or(now, |last| (last + interval).max(now));
        own.pending = own.pending.min(soonest);
    }

    /// Own LSAs that are due for their refreshment (LSRefreshTime).
    pub(crate) fn origination_timeouts(&mut self, now: Instant) {
        for own in self.origination.own.values_mut().filter(|own| own.refresh <= now) {
            own.pending = now;
        }
    }

    /// Originates what is due.
    pub(crate) fn originate_due(&mut self, now: Instant) {
        loop {
            let mut due = self.origination.own.iter().filter(|(_, own)| own.pending <= now).map(|(place, _)| *place);
            let Some(place) = due.next() else { return };
            if let Some(own) = self.origination.own.get_mut(&place) {
                own.pending = Instant::NEVER;
            }
            self.originate_now(now, place);
        }
    }

    fn originate_now(&mut self, now: Instant, place: Place) {
        let body = self.own_body(place);
        let current = self.database.get(place);
        let is_alive = current.is_some_and(|entry| !entry.is_aged_out(now));
        let Some(body) = body else {
            self.origination.own.remove(&place);
            if is_alive {
                self.flush(now, place);
            }
            return;
        };
        let refresh = self.origination.own.get(&place).is_some_and(|own| own.refresh <= now);
        let same = current.is_some_and(|entry| !entry.received && *entry.lsa.body() == body);
        if is_alive && same && !refresh {
            return;
        }
        let sequence = match current.map(|entry| entry.lsa.sequence()) {
            None => LsaSequence::INITIAL,
            Some(last) => match last.next() {
                Some(next) => next,
                None => {
                    // The numbers are used up: the LSA is flushed first, and begins anew when it is gone (12.1.6).
                    if let Some(own) = self.origination.own.get_mut(&place) {
                        own.refresh = Instant::NEVER;
                    }
                    if is_alive {
                        self.flush(now, place);
                    }
                    return;
                }
            },
        };
        let Ok(lsa) = Lsa::new(place.key, sequence, body) else { return };
        self.output.counters.lsas_originated += 1;
        let refresh = now + self.config.ls_refresh_time;
        let own = Own { originated: Some(now), pending: Instant::NEVER, refresh };
        self.origination.own.insert(place, own);
        self.install(now, place, AgedLsa { age: 0, lsa }, false);
        self.forward(now, place, None);
    }

    /// An own LSA came in that is newer than the last one originated (RFC 2328, 13.4): it is overtaken, or flushed if this
    /// router would not originate it.
    pub(crate) fn own_lsa_received(&mut self, now: Instant, place: Place) {
        if self.own_body(place).is_some() {
            // No waiting for MinLSInterval: the network believes something wrong. But a forger sets no faster pace than that
            // at which others accept LSAs.
            let least = self.config.min_ls_arrival;
            self.schedule_origination(now, place, least);
        } else if self.database.get(place).is_some_and(|entry| entry.age(now) < MAX_AGE) {
            self.flush(now, place);
        }
    }

    /// An own LSA that was flushed is out of all databases.
    pub(crate) fn own_lsa_removed(&mut self, now: Instant, place: Place) {
        if self.own_body(place).is_some() {
            self.originate(now, place);
        }
    }
}
