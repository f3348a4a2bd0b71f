//! Waiting for others to flood an LSA (RFC 5614, 8.1.2).

use std::collections::BTreeMap;

use anabranch_policy::Instant;
use anabranch_wire::ospf::RouterId;

use crate::database::Place;
use crate::handles::InterfaceHandle;

/// The neighbours on an interface that may still need an LSA: the BackupWait Neighbor List.
pub(crate) type WaitList = (InterfaceHandle, Vec<RouterId>);

/// An LSA that is flooded only if others do not do it first.
#[derive(Clone, Debug)]
struct BackupWait {
    /// When the BackupWait Timer expires.
    at: Instant,
    lists: Vec<WaitList>,
}

/// The LSAs that this router, as a Backup MDR, waits to flood.
#[derive(Clone, Debug, Default)]
pub(crate) struct BackupWaits {
    waits: BTreeMap<Place, BackupWait>,
}

impl BackupWaits {
    /// Starts the timer of an LSA.
    pub fn start(&mut self, place: Place, at: Instant, lists: Vec<WaitList>) {
        self.waits.insert(place, BackupWait { at, lists });
    }

    /// Stops the timer of an LSA.
    pub fn stop(&mut self, place: Place) {
        self.waits.remove(&place);
    }

    /// `sender` and the neighbours in `covered`, which is sorted, have the LSA. If no neighbour is left that may need
    /// it, its timer stops.
    pub fn cover(&mut self, place: Place, sender: RouterId, covered: &[RouterId]) {
        let Some(wait) = self.waits.get_mut(&place) else { return };
        for (_, list) in &mut wait.lists {
            list.retain(|router| *router != sender && covered.binary_search(router).is_err());
        }
        wait.lists.retain(|(_, list)| !list.is_empty());
        if wait.lists.is_empty() {
            self.waits.remove(&place);
        }
    }

    /// Removes and returns the LSAs whose timers expired, with the neighbours that may still need them.
    pub fn take_expired(&mut self, now: Instant) -> Vec<(Place, Vec<WaitList>)> {
        let due: Vec<Place> = self.waits.iter().filter(|(_, wait)| wait.at <= now).map(|(place, _)| *place).collect();
        due.into_iter().filter_map(|place| Some((place, self.waits.remove(&place)?.lists))).collect()
    }

    /// Stops the timers of LSAs of link-local scope of an interface.
    pub fn forget_link(&mut self, interface: InterfaceHandle) {
        self.waits.retain(|place, _| place.link != Some(interface));
    }

    pub fn next(&self) -> Option<Instant> {
        self.waits.values().map(|wait| wait.at).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_wire::ospf::LsaKey;

    const FIRST: InterfaceHandle = InterfaceHandle::FIRST;

    fn place() -> Place {
        Place { link: None, key: LsaKey::default() }
    }

    fn at(nanos: u64) -> Instant {
        Instant::from_nanos(nanos)
    }

    #[test]
    fn the_timer_stops_when_all_have_the_lsa() {
        let mut waits = BackupWaits::default();
        waits.start(place(), at(5), vec![(FIRST, vec![RouterId(1), RouterId(2), RouterId(3)])]);
        waits.cover(place(), RouterId(9), &[RouterId(2), RouterId(8)]);
        waits.cover(place(), RouterId(1), &[]);
        assert_eq!(waits.next(), Some(at(5)));
        waits.cover(place(), RouterId(3), &[]);
        assert_eq!(waits.next(), None);
    }

    #[test]
    fn an_expired_timer_tells_who_may_need_the_lsa() {
        let mut waits = BackupWaits::default();
        waits.start(place(), at(5), vec![(FIRST, vec![RouterId(1)])]);
        assert!(waits.take_expired(at(4)).is_empty());
        assert_eq!(waits.take_expired(at(5)), [(place(), vec![(FIRST, vec![RouterId(1)])])]);
        assert_eq!(waits.next(), None);
    }

    #[test]
    fn with_an_interface_go_the_lsas_of_its_link() {
        let mut waits = BackupWaits::default();
        waits.start(Place { link: Some(FIRST), ..place() }, at(5), Vec::new());
        waits.start(place(), at(7), Vec::new());
        waits.forget_link(FIRST);
        assert_eq!(waits.next(), Some(at(7)));
    }
}
