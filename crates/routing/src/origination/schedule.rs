//! Schedules the origination of own LSAs (RFC 2328, 12.4).

use std::collections::{BTreeMap, VecDeque};

use anabranch_policy::{Duration, Instant};
use anabranch_wire::ospf::LsaHeader;
use anabranch_wire::ospf::lsa::LsaSequence;

use crate::database::Place;
use crate::handles::InterfaceHandle;

/// One of the own LSAs.
#[derive(Clone, Copy, Debug, Default)]
struct Own {
    /// When the last instance was originated.
    originated: Option<Instant>,
    /// When the next one is due; none if nothing changed.
    pending: Option<Instant>,
    /// When the LSA is refreshed even without a change.
    refresh: Option<Instant>,
}

impl Own {
    fn next(&self) -> Option<Instant> {
        [self.pending, self.refresh].into_iter().flatten().min()
    }
}

/// The schedule of the own LSAs.
#[derive(Clone, Debug, Default)]
pub(crate) struct Origination {
    own: BTreeMap<Place, Own>,
    /// Sequence numbers and checksums of the last Router-LSAs.
    router_lsas: VecDeque<(LsaSequence, u16)>,
}

/// Router-LSAs remembered: more than can be on their way at a time.
const REMEMBERED: usize = 16;

impl Origination {
    /// Schedules an LSA: now, or `interval` after the last instance.
    pub fn schedule(&mut self, place: Place, now: Instant, interval: Duration) {
        let own = self.own.entry(place).or_default();
        let soonest = own.originated.map_or(now, |last| (last + interval).max(now));
        own.pending = Some(own.pending.map_or(soonest, |pending| pending.min(soonest)));
    }

    /// Schedules the LSAs that are due for a refresh (LSRefreshTime).
    pub fn schedule_refreshes(&mut self, now: Instant) {
        for own in self.own.values_mut().filter(|own| own.refresh.is_some_and(|at| at <= now)) {
            own.pending = Some(now);
        }
    }

    /// Removes and returns an LSA that is due.
    pub fn take_due(&mut self, now: Instant) -> Option<Place> {
        let (place, own) = self.own.iter_mut().find(|(_, own)| own.pending.is_some_and(|at| at <= now))?;
        own.pending = None;
        Some(*place)
    }

    pub fn needs_refresh(&self, place: Place, now: Instant) -> bool {
        self.own.get(&place).and_then(|own| own.refresh).is_some_and(|at| at <= now)
    }

    /// An LSA was originated; its refresh is due at `refresh`.
    pub fn set_originated(&mut self, place: Place, now: Instant, refresh: Instant) {
        self.own.insert(place, Own { originated: Some(now), pending: None, refresh: Some(refresh) });
    }

    /// Remembers a Router-LSA that was originated.
    pub fn remember(&mut self, header: LsaHeader) {
        if self.router_lsas.len() >= REMEMBERED {
            self.router_lsas.pop_front();
        }
        self.router_lsas.push_back((header.sequence, header.checksum));
    }

    /// Whether a Router-LSA in this router's name was originated here lately.
    pub fn remembers(&self, header: LsaHeader) -> bool {
        self.router_lsas.contains(&(header.sequence, header.checksum))
    }

    /// Stops the refresh of an LSA.
    pub fn stop_refreshing(&mut self, place: Place) {
        if let Some(own) = self.own.get_mut(&place) {
            own.refresh = None;
        }
    }

    /// An LSA is flushed, and may be originated again after the interval of [`Self::schedule`].
    pub fn withdraw(&mut self, place: Place, now: Instant) {
        self.own.insert(place, Own { originated: Some(now), pending: None, refresh: None });
    }

    pub fn forget(&mut self, place: Place) {
        self.own.remove(&place);
    }

    /// Removes the LSAs of link-local scope of an interface.
    pub fn forget_link(&mut self, interface: InterfaceHandle) {
        self.own.retain(|place, _| place.link != Some(interface));
    }

    /// When the next LSA is due for origination or refresh.
    pub fn next(&self) -> Option<Instant> {
        self.own.values().filter_map(Own::next).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_wire::ospf::LsaKey;

    const INTERVAL: Duration = Duration::from_secs(5);

    fn place() -> Place {
        Place { link: None, key: LsaKey::default() }
    }

    fn second(seconds: u64) -> Instant {
        Instant::ZERO + Duration::from_secs(seconds)
    }

    #[test]
    fn rfc2328_12_4_the_next_instance_waits_for_min_ls_interval() {
        let mut origination = Origination::default();
        origination.schedule(place(), second(1), INTERVAL);
        assert_eq!(origination.take_due(second(1)), Some(place()));
        assert_eq!(origination.take_due(second(1)), None);
        origination.set_originated(place(), second(1), second(31));
        origination.schedule(place(), second(2), INTERVAL);
        assert_eq!((origination.next(), origination.take_due(second(5))), (Some(second(6)), None));
        assert_eq!(origination.take_due(second(6)), Some(place()));
    }

    #[test]
    fn an_lsa_is_refreshed_until_that_is_stopped() {
        let mut origination = Origination::default();
        origination.set_originated(place(), second(1), second(31));
        origination.schedule_refreshes(second(30));
        assert_eq!((origination.next(), origination.take_due(second(30))), (Some(second(31)), None));
        origination.schedule_refreshes(second(31));
        assert!(origination.needs_refresh(place(), second(31)));
        assert_eq!(origination.take_due(second(31)), Some(place()));
        origination.stop_refreshing(place());
        assert_eq!(origination.next(), None);
    }

    #[test]
    fn with_an_interface_go_the_lsas_of_its_link() {
        let mut origination = Origination::default();
        let on_link = Place { link: Some(InterfaceHandle::FIRST), ..place() };
        origination.schedule(on_link, second(1), INTERVAL);
        origination.schedule(place(), second(1), INTERVAL);
        origination.forget_link(InterfaceHandle::FIRST);
        assert_eq!(origination.take_due(second(1)), Some(place()));
        assert_eq!(origination.take_due(second(1)), None);
        origination.forget(place());
        assert_eq!(origination.next(), None);
    }
}
