//! The link-state database: the most recent instance of every LSA, with its age (RFC 5340, 4.4.2; RFC 2328, 12.2).

mod ordered;

use std::collections::BTreeSet;
use std::sync::Arc;

use anabranch_policy::{Duration, Instant};
use anabranch_wire::ospf::lsa::{LinkLsa, MAX_AGE, Scope};
use anabranch_wire::ospf::{AgedLsa, InterfaceId, LinkStateUpdate, Lsa, LsaBody, LsaHeader, LsaKey, LsaType, RouterId};

use crate::handles::InterfaceHandle;
use ordered::Ordered;

/// Where an LSA is stored: with the router, or with an interface for link-local scope (RFC 5340, 4.5.3).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Place {
    /// The interface, for link-local scope.
    pub link: Option<InterfaceHandle>,
    pub key: LsaKey,
}

impl Place {
    /// The place of an LSA received or sent on an interface; none if its scope is reserved.
    pub fn on(interface: InterfaceHandle, key: LsaKey) -> Option<Self> {
        let link = match key.kind.scope()? {
            Scope::Link => Some(interface),
            Scope::Area | Scope::AutonomousSystem => None,
        };
        Some(Self { link, key })
    }

    /// Whether it is flooded on an interface (RFC 5340, 4.5.2).
    pub fn is_eligible(self, interface: InterfaceHandle) -> bool {
        self.link.is_none_or(|link| link == interface)
    }
}

/// An LSA in the database.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    /// The LSA.
    pub lsa: Arc<Lsa>,
    /// Its age in seconds when it was installed.
    age: u16,
    /// When it was installed.
    pub installed: Instant,
    /// Where it came from.
    source: Source,
    /// When the instance before it was installed; [`Instant::NEVER`] if there was none, since an option takes twice the memory.
    previous: Instant,
    /// When it was last sent, or [`Instant::NEVER`].
    sent: Instant,
}

/// Where an instance came from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Source {
    Originated,
    Flooded,
    /// From the database of a neighbour, by a request: it may be of any time.
    Requested,
}

impl Entry {
    /// Whether it was not originated here.
    pub fn is_received(&self) -> bool {
        self.source != Source::Originated
    }

    /// Whether it was received by flooding.
    pub fn is_flooded(&self) -> bool {
        self.source == Source::Flooded
    }

    /// When the instance before it was installed, if there was one.
    pub fn previous(&self) -> Option<Instant> {
        Some(self.previous).filter(|at| *at != Instant::NEVER)
    }

    /// When it was last sent.
    pub fn sent(&self) -> Option<Instant> {
        Some(self.sent).filter(|at| *at != Instant::NEVER)
    }

    /// Its present age in seconds.
    pub fn age(&self, now: Instant) -> u16 {
        let passed = now.since(self.installed).as_nanos() / SECOND.as_nanos();
        u16::try_from(passed).unwrap_or(MAX_AGE).saturating_add(self.age).min(MAX_AGE)
    }

    /// Whether it is being flushed.
    pub fn is_aged_out(&self, now: Instant) -> bool {
        self.age(now) >= MAX_AGE
    }

    /// Its present header.
    pub fn header(&self, now: Instant) -> LsaHeader {
        self.lsa.header(self.age(now))
    }

    /// The LSA as sent on an interface with this InfTransDelay in seconds (RFC 2328, 13.3, step 5).
    pub fn outgoing(&self, now: Instant, delay: u16) -> AgedLsa {
        AgedLsa { age: self.age(now).saturating_add(delay).min(MAX_AGE), lsa: Arc::clone(&self.lsa) }
    }

    /// When its age reaches MaxAge.
    fn expires(&self) -> Instant {
        self.installed + SECOND * u64::from(MAX_AGE.saturating_sub(self.age))
    }
}

const SECOND: Duration = Duration::from_secs(1);

/// The most recent instance of every LSA.
#[derive(Clone, Debug, Default)]
pub(crate) struct Database {
    /// LSAs of area and AS scope.
    wide: Ordered<Entry>,
    /// LSAs of link-local scope, by interface.
    links: Vec<Ordered<Entry>>,
    /// LSAs of age MaxAge, to be removed as soon as possible (RFC 2328, 14).
    aged_out: BTreeSet<Place>,
    /// No younger entry reaches MaxAge before this.
    next_expiry: Option<Instant>,
    length: usize,
    /// Bytes of the LSAs.
    bytes: usize,
}

impl Database {
    fn map(&self, link: Option<InterfaceHandle>) -> Option<&Ordered<Entry>> {
        match link {
            None => Some(&self.wide),
            Some(interface) => self.links.get(interface.index()),
        }
    }

    fn map_mut(&mut self, link: Option<InterfaceHandle>) -> Option<&mut Ordered<Entry>> {
        match link {
            None => Some(&mut self.wide),
            Some(interface) => {
                if self.links.len() <= interface.index() {
                    self.links.resize_with(interface.index() + 1, Ordered::default);
                }
                self.links.get_mut(interface.index())
            }
        }
    }

    pub fn len(&self) -> usize {
        self.length
    }

    /// Total length of its LSAs in bytes.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    pub fn get(&self, place: Place) -> Option<&Entry> {
        self.map(place.link)?.get(place.key)
    }

    /// Records the transmission of an LSA, and returns it as sent.
    fn send(&mut self, place: Place, now: Instant, delay: u16) -> Option<AgedLsa> {
        let entry = self.map_mut(place.link)?.get_mut(place.key)?;
        entry.sent = now;
        Some(entry.outgoing(now, delay))
    }

    /// Installs an instance, and replaces the previous one. True if that may change routes: other contents than the
    /// sequence number, or a flush (RFC 2328, 13.2).
    pub fn install(&mut self, place: Place, aged: AgedLsa, now: Instant, source: Source) -> bool {
        let AgedLsa { age, lsa } = aged;
        let entry = Entry {
            lsa,
            age: age.min(MAX_AGE),
            installed: now,
            source,
            previous: Instant::NEVER,
            sent: Instant::NEVER,
        };
        if entry.age >= MAX_AGE {
            self.aged_out.insert(place);
        } else {
            self.aged_out.remove(&place);
            self.next_expiry = Some(self.next_expiry.map_or(entry.expires(), |next| next.min(entry.expires())));
        }
        let flushed = entry.age >= MAX_AGE;
        let length = entry.lsa.encoded_len();
        let Some(map) = self.map_mut(place.link) else { return false };
        match map.get_mut(place.key) {
            Some(old) => {
                let before = old.lsa.encoded_len();
                let changed = old.is_aged_out(now) != flushed
                    || !Arc::ptr_eq(&old.lsa, &entry.lsa) && old.lsa.body() != entry.lsa.body();
                // A flush ends an instance, and is no other one.
                let same = flushed && old.lsa.sequence() == entry.lsa.sequence();
                *old = Entry { previous: if same { old.previous } else { old.installed }, ..entry };
                self.bytes = self.bytes + length - before;
                changed
            }
            None => {
                map.insert(place.key, entry);
                self.length += 1;
                self.bytes += length;
                !flushed
            }
        }
    }

    /// Sets the age of an LSA to MaxAge. True if it was younger.
    pub fn age_out(&mut self, place: Place, now: Instant) -> bool {
        let Some(entry) = self.map_mut(place.link).and_then(|map| map.get_mut(place.key)) else { return false };
        let younger = entry.age < MAX_AGE;
        entry.age = MAX_AGE;
        entry.installed = now;
        self.aged_out.insert(place);
        younger
    }

    pub fn remove(&mut self, place: Place) -> Option<Entry> {
        self.aged_out.remove(&place);
        let removed = self.map_mut(place.link)?.remove(place.key)?;
        self.length -= 1;
        self.bytes -= removed.lsa.encoded_len();
        Some(removed)
    }

    /// Removes the LSAs of link-local scope of an interface.
    pub fn clear_link(&mut self, interface: InterfaceHandle) {
        if let Some(map) = self.links.get_mut(interface.index()) {
            self.length -= map.len();
            self.bytes -= map.iter().map(|(_, entry)| entry.lsa.encoded_len()).sum::<usize>();
            map.clear();
        }
        self.aged_out.retain(|place| place.link != Some(interface));
    }

    /// Those of age MaxAge.
    pub fn aged_out(&self) -> impl Iterator<Item = Place> + '_ {
        self.aged_out.iter().copied()
    }

    /// Whether any is of age MaxAge.
    pub fn has_aged_out(&self) -> bool {
        !self.aged_out.is_empty()
    }

    /// When [`Self::expired`] may return something.
    pub fn next_expiry(&self) -> Option<Instant> {
        self.next_expiry
    }

    /// LSAs that have reached MaxAge and are not marked yet.
    pub fn expired(&mut self, now: Instant) -> Vec<Place> {
        if self.next_expiry.is_none_or(|next| next > now) {
            return Vec::new();
        }
        let mut due = Vec::new();
        self.next_expiry = None;
        for (place, entry) in self.all().filter(|(_, entry)| entry.age < MAX_AGE) {
            if entry.expires() <= now {
                due.push(place);
            }
        }
        let soonest = self.all().filter(|(_, entry)| entry.age < MAX_AGE).map(|(_, entry)| entry.expires());
        self.next_expiry = soonest.filter(|at| *at > now).min();
        due
    }

    /// All LSAs, in order.
    pub fn all(&self) -> impl Iterator<Item = (Place, &Entry)> {
        let links = self.links.iter().enumerate().map(|(index, map)| (Some(InterfaceHandle::new(index)), map));
        let maps = core::iter::once((None, &self.wide)).chain(links);
        maps.flat_map(|(link, map)| map.iter().map(move |(key, entry)| (Place { link, key: *key }, entry)))
    }

    /// The LSAs to be described to a neighbour on an interface (RFC 2328, 10.3; RFC 5340, 4.4.2).
    pub fn described(&self, interface: InterfaceHandle) -> impl Iterator<Item = (Place, &Entry)> {
        self.of(None).chain(self.of(Some(interface)))
    }

    /// The LSAs of link-local scope of an interface, or without one all others.
    pub fn of(&self, link: Option<InterfaceHandle>) -> impl Iterator<Item = (Place, &Entry)> {
        let map = self.map(link).into_iter().flat_map(Ordered::iter);
        map.map(move |(key, entry)| (Place { link, key: *key }, entry))
    }

    /// The LSAs of one type, not of link-local scope, by advertising router.
    pub fn of_type(&self, kind: LsaType) -> impl Iterator<Item = &Entry> {
        let least = LsaKey { kind, ..LsaKey::default() };
        self.wide.since(least).take_while(move |(key, _)| key.kind == kind).map(|(_, entry)| entry)
    }

    /// The LSAs of one type and router, not of link-local scope, by Link State ID.
    pub fn of_router(&self, kind: LsaType, router: RouterId) -> impl Iterator<Item = &Entry> {
        let least = LsaKey { kind, advertising: router, ..LsaKey::default() };
        let range = self.wide.since(least).take_while(move |(key, _)| key.kind == kind && key.advertising == router);
        range.map(|(_, entry)| entry)
    }

    /// The LSAs of one type and router of link-local scope on an interface.
    pub fn of_neighbor(
        &self,
        interface: InterfaceHandle,
        kind: LsaType,
        router: RouterId,
    ) -> impl Iterator<Item = &Entry> {
        let least = LsaKey { kind, advertising: router, ..LsaKey::default() };
        let map = self.links.get(interface.index()).map(|map| map.since(least)).into_iter().flatten();
        map.take_while(move |(key, _)| key.kind == kind && key.advertising == router).map(|(_, entry)| entry)
    }

    /// The Link-LSA of a router on an interface's link, for its interface of this number there.
    pub fn link_lsa(&self, interface: InterfaceHandle, router: RouterId, id: InterfaceId) -> Option<&LinkLsa> {
        let all = self.of_neighbor(interface, LsaType::LINK, router).filter(|entry| entry.lsa.key().id.0 == id.0);
        all.filter_map(|entry| if let LsaBody::Link(link) = entry.lsa.body() { Some(link) } else { None }).next()
    }

    /// LSAs as sent on an interface with this InfTransDelay in seconds, split into updates with at most `room` bytes of
    /// LSAs each.
    pub fn updates(&mut self, places: &[Place], now: Instant, delay: u16, room: usize) -> Vec<LinkStateUpdate> {
        let mut updates = Vec::new();
        let mut lsas = Vec::new();
        let mut filled = 0;
        for place in places {
            let Some(aged) = self.send(*place, now, delay) else { continue };
            let length = aged.lsa.encoded_len();
            if filled + length > room && !lsas.is_empty() {
                updates.push(LinkStateUpdate { lsas: core::mem::take(&mut lsas) });
                filled = 0;
            }
            filled += length;
            lsas.push(aged);
        }
        if !lsas.is_empty() {
            updates.push(LinkStateUpdate { lsas });
        }
        updates
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_wire::ospf::lsa::{LsaSequence, RouterFlags, RouterLsa};
    use anabranch_wire::ospf::{LinkStateId, Options};

    const LINK: InterfaceHandle = InterfaceHandle::FIRST;

    fn at(seconds: u64) -> Instant {
        Instant::ZERO + SECOND * seconds
    }

    /// A Router-LSA, or a Link-LSA for the interface of its number.
    fn lsa(router: u32, kind: LsaType, id: u32, sequence: i32) -> (Place, AgedLsa) {
        let key = LsaKey { kind, advertising: RouterId(router), id: LinkStateId(id) };
        let body = match kind {
            LsaType::LINK => {
                let address = std::net::Ipv6Addr::LOCALHOST;
                LsaBody::Link(LinkLsa { priority: 1, options: Options::V6, address, prefixes: Vec::new() })
            }
            _ => LsaBody::Router(RouterLsa { flags: RouterFlags::default(), options: Options::V6, links: Vec::new() }),
        };
        let lsa = Lsa::new(key, LsaSequence(LsaSequence::INITIAL.0 + sequence), body).unwrap();
        (Place::on(LINK, key).unwrap(), AgedLsa { age: 0, lsa })
    }

    #[test]
    fn a_refreshed_lsa_is_no_change_and_one_that_is_flushed_is() {
        let mut database = Database::default();
        let (place, first) = lsa(1, LsaType::ROUTER, 0, 0);
        assert!(database.install(place, first, at(0), Source::Flooded));
        let (_, again) = lsa(1, LsaType::ROUTER, 0, 1);
        assert!(!database.install(place, again.clone(), at(1), Source::Flooded));
        assert!(database.install(place, AgedLsa { age: MAX_AGE, ..again }, at(2), Source::Flooded));
        assert!(database.has_aged_out() && !database.age_out(place, at(3)));
        let bytes = database.bytes();
        assert_eq!(database.remove(place).map(|entry| entry.lsa.encoded_len()), Some(bytes));
        assert_eq!((database.len(), database.bytes(), database.has_aged_out()), (0, 0, false));
    }

    #[test]
    fn an_lsa_expires_when_its_age_reaches_max_age() {
        let mut database = Database::default();
        let (place, aged) = lsa(1, LsaType::ROUTER, 0, 0);
        database.install(place, AgedLsa { age: MAX_AGE - 10, ..aged }, at(5), Source::Flooded);
        assert_eq!(database.next_expiry(), Some(at(15)));
        assert!(database.expired(at(14)).is_empty());
        assert_eq!(database.expired(at(15)), [place]);
        assert_eq!(database.next_expiry(), None);
    }

    #[test]
    fn what_stays_on_a_link_goes_with_it() {
        let mut database = Database::default();
        for (place, aged) in [lsa(1, LsaType::ROUTER, 0, 0), lsa(1, LsaType::LINK, 4, 0), lsa(1, LsaType::LINK, 5, 0)] {
            database.install(place, aged, at(0), Source::Flooded);
        }
        assert!(database.link_lsa(LINK, RouterId(1), InterfaceId(4)).is_some());
        assert!(database.link_lsa(LINK, RouterId(1), InterfaceId(6)).is_none());
        assert_eq!(database.described(LINK).count(), 3);
        assert!(database.age_out(lsa(1, LsaType::LINK, 4, 0).0, at(1)) && database.has_aged_out());
        database.clear_link(LINK);
        assert_eq!((database.len(), database.described(LINK).count()), (1, 1));
        assert!(!database.has_aged_out());
    }

    #[test]
    fn updates_hold_what_fits_and_remember_that_it_was_sent() {
        let mut database = Database::default();
        let places: Vec<Place> = (1..=3)
            .map(|router| {
                let (place, aged) = lsa(router, LsaType::ROUTER, 0, 0);
                database.install(place, aged, at(0), Source::Flooded);
                place
            })
            .collect();
        let missing = lsa(9, LsaType::ROUTER, 0, 0).0;
        let length = database.bytes() / 3;
        let updates = database.updates(&[places[0], missing, places[1], places[2]], at(7), 2, 2 * length);
        let shape: Vec<Vec<u16>> = updates.iter().map(|one| one.lsas.iter().map(|aged| aged.age).collect()).collect();
        assert_eq!(shape, [vec![9, 9], vec![9]]);
        assert_eq!(database.get(places[0]).and_then(Entry::sent), Some(at(7)));
    }
}
