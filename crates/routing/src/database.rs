//! The link-state database: the most recent instance of every LSA, with its age (RFC 5340, 4.4.2; RFC 2328, 12.2).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use anabranch_policy::{Duration, Instant};
use anabranch_wire::ospf::lsa::{MAX_AGE, Scope};
use anabranch_wire::ospf::{AgedLsa, Lsa, LsaHeader, LsaKey, LsaType, RouterId};

/// Where an LSA is kept: with the router, or with the interface on whose link it stays (RFC 5340, 4.5.3).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Place {
    /// The index of the interface if it stays on a link.
    pub link: Option<usize>,
    /// Which LSA.
    pub key: LsaKey,
}

impl Place {
    /// Where an LSA belongs that came in, or goes out, on the interface of this index; none if its scope is reserved.
    pub fn on(interface: usize, key: LsaKey) -> Option<Self> {
        let link = match key.kind.scope()? {
            Scope::Link => Some(interface),
            Scope::Area | Scope::AutonomousSystem => None,
        };
        Some(Self { link, key })
    }

    /// Whether it is flooded on the interface of this index (RFC 5340, 4.5.2).
    pub fn is_eligible(self, interface: usize) -> bool {
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
    /// Whether it came in by flooding, rather than being this router's own.
    pub received: bool,
    /// When it was last sent.
    pub sent: Option<Instant>,
}

impl Entry {
    /// Its age now, seconds.
    pub fn age(&self, now: Instant) -> u16 {
        let passed = now.since(self.installed).as_nanos() / SECOND.as_nanos();
        u16::try_from(passed).unwrap_or(MAX_AGE).saturating_add(self.age).min(MAX_AGE)
    }

    /// Whether it is being flushed.
    pub fn is_aged_out(&self, now: Instant) -> bool {
        self.age(now) >= MAX_AGE
    }

    /// Its header now.
    pub fn header(&self, now: Instant) -> LsaHeader {
        self.lsa.header(self.age(now))
    }

    /// As it leaves by an interface whose InfTransDelay is so many seconds (RFC 2328, 13.3, step 5).
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
    /// Those of area and autonomous system scope.
    wide: BTreeMap<LsaKey, Entry>,
    /// Those that stay on a link, by index of the interface.
    links: Vec<BTreeMap<LsaKey, Entry>>,
    /// Those of age MaxAge, which leave as soon as they may (RFC 2328, 14).
    aged_out: BTreeSet<Place>,
    /// No entry that is younger than MaxAge reaches it before this.
    next_expiry: Option<Instant>,
    length: usize,
    /// Bytes of the LSAs.
    bytes: usize,
}

impl Database {
    fn map(&self, link: Option<usize>) -> Option<&BTreeMap<LsaKey, Entry>> {
        match link {
            None => Some(&self.wide),
            Some(interface) => self.links.get(interface),
        }
    }

    fn map_mut(&mut self, link: Option<usize>) -> Option<&mut BTreeMap<LsaKey, Entry>> {
        match link {
            None => Some(&mut self.wide),
            Some(interface) => {
                if self.links.len() <= interface {
                    self.links.resize_with(interface + 1, BTreeMap::new);
                }
                self.links.get_mut(interface)
            }
        }
    }

    /// How many LSAs it holds.
    pub fn len(&self) -> usize {
        self.length
    }

    /// How many bytes its LSAs have.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// The LSA of a place.
    pub fn get(&self, place: Place) -> Option<&Entry> {
        self.map(place.link)?.get(&place.key)
    }

    /// Notes that the LSA of a place is being sent, and gives it as it leaves.
    pub fn send(&mut self, place: Place, now: Instant, delay: u16) -> Option<AgedLsa> {
        let entry = self.map_mut(place.link)?.get_mut(&place.key)?;
        entry.sent = Some(now);
        Some(entry.outgoing(now, delay))
    }

    /// Installs an instance, in the place of the one before. True if that changes what the routes are made of: contents
    /// other than the sequence number, or being flushed (RFC 2328, 13.2).
    pub fn install(&mut self, place: Place, aged: AgedLsa, now: Instant, received: bool) -> bool {
        let AgedLsa { age, lsa } = aged;
        let entry = Entry { lsa, age: age.min(MAX_AGE), installed: now, received, sent: None };
        if entry.age >= MAX_AGE {
            self.aged_out.insert(place);
        } else {
            self.aged_out.remove(&place);
            self.next_expiry = Some(self.next_expiry.map_or(entry.expires(), |next| next.min(entry.expires())));
        }
        let flushed = entry.age >= MAX_AGE;
        let length = entry.lsa.encoded_len();
        let Some(map) = self.map_mut(place.link) else { return false };
        match map.get_mut(&place.key) {
            Some(old) => {
                let before = old.lsa.encoded_len();
                let changed = old.is_aged_out(now) != flushed
                    || !Arc::ptr_eq(&old.lsa, &entry.lsa) && old.lsa.body() != entry.lsa.body();
                *old = entry;
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

    /// Makes the LSA of a place MaxAge old. True if it was younger.
    pub fn age_out(&mut self, place: Place, now: Instant) -> bool {
        let Some(entry) = self.map_mut(place.link).and_then(|map| map.get_mut(&place.key)) else { return false };
        let younger = entry.age < MAX_AGE;
        entry.age = MAX_AGE;
        entry.installed = now;
        self.aged_out.insert(place);
        younger
    }

    /// Removes the LSA of a place.
    pub fn remove(&mut self, place: Place) -> Option<Entry> {
        self.aged_out.remove(&place);
        let removed = self.map_mut(place.link)?.remove(&place.key)?;
        self.length -= 1;
        self.bytes -= removed.lsa.encoded_len();
        Some(removed)
    }

    /// Forgets the LSAs that stay on the link of an interface.
    pub fn clear_link(&mut self, interface: usize) {
        if let Some(map) = self.links.get_mut(interface) {
            self.length -= map.len();
            self.bytes -= map.values().map(|entry| entry.lsa.encoded_len()).sum::<usize>();
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

    /// When [`Self::expired`] may have something to tell.
    pub fn next_expiry(&self) -> Option<Instant> {
        self.next_expiry
    }

    /// Those that reached MaxAge by now and are not marked yet.
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

    /// Everything, in order.
    pub fn all(&self) -> impl Iterator<Item = (Place, &Entry)> {
        let links = self.links.iter().enumerate().map(|(interface, map)| (Some(interface), map));
        let maps = core::iter::once((None, &self.wide)).chain(links);
        maps.flat_map(|(link, map)| map.iter().map(move |(key, entry)| (Place { link, key: *key }, entry)))
    }

    /// What is described to a neighbour on the interface of this index (RFC 2328, 10.3; RFC 5340, 4.4.2).
    pub fn described(&self, interface: usize) -> impl Iterator<Item = (Place, &Entry)> {
        self.of(None).chain(self.of(Some(interface)))
    }

    /// Those that stay on the link of an interface, or none and all others.
    pub fn of(&self, link: Option<usize>) -> impl Iterator<Item = (Place, &Entry)> {
        let map = self.map(link).into_iter().flatten();
        map.map(move |(key, entry)| (Place { link, key: *key }, entry))
    }

    /// Those of one type that do not stay on a link, by advertising router.
    pub fn of_type(&self, kind: LsaType) -> impl Iterator<Item = &Entry> {
        let least = LsaKey { kind, ..LsaKey::default() };
        self.wide.range(least..).take_while(move |(key, _)| key.kind == kind).map(|(_, entry)| entry)
    }

    /// Those of one type and router that do not stay on a link, by Link State ID.
    pub fn of_router(&self, kind: LsaType, router: RouterId) -> impl Iterator<Item = &Entry> {
        let least = LsaKey { kind, advertising: router, ..LsaKey::default() };
        let range = self.wide.range(least..).take_while(move |(key, _)| key.kind == kind && key.advertising == router);
        range.map(|(_, entry)| entry)
    }

    /// Those of one type and router that stay on the link of an interface.
    pub fn of_neighbor(&self, interface: usize, kind: LsaType, router: RouterId) -> impl Iterator<Item = &Entry> {
        let least = LsaKey { kind, advertising: router, ..LsaKey::default() };
        let map = self.links.get(interface).map(|map| map.range(least..)).into_iter().flatten();
        map.take_while(move |(key, _)| key.kind == kind && key.advertising == router).map(|(_, entry)| entry)
    }
}
