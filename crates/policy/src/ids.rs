//! Identifiers of connections, subflows and addresses.

use core::fmt;

/// A connection of a host; never reused while the endpoint exists.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct ConnectionId(pub u64);

/// A subflow of a connection; counts up from 0, never reused within the connection.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct SubflowId(pub u32);

/// An MPTCP address identifier (RFC 8684, section 3.4.1); 0 is the address of the initial subflow.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct AddressId(pub u8);

impl fmt::Debug for ConnectionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "connection {}", self.0)
    }
}
impl fmt::Debug for SubflowId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "subflow {}", self.0)
    }
}
impl fmt::Debug for AddressId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "address {}", self.0)
    }
}

/// State of a policy by subflow.
pub type SubflowMap<T> = ShortMap<SubflowId, T>;

/// A key of a [`ShortMap`].
pub trait Key: Copy + Ord {
    /// Index of its entry if keys count up from 0 and none was removed.
    fn place(self) -> usize {
        usize::MAX
    }
}

impl Key for SubflowId {
    fn place(self) -> usize {
        self.0 as usize
    }
}

impl Key for AddressId {}

impl Key for (AddressId, AddressId) {}

/// A short list sorted by key, with no spare capacity.
///
/// A connection has few subflows and addresses, so a look at the probable index, and otherwise a scan of one or two
/// cache lines, is faster than any hash map or tree.
#[derive(Clone, Debug)]
pub struct ShortMap<K, T> {
    entries: Vec<(K, T)>,
}

impl<K, T> Default for ShortMap<K, T> {
    fn default() -> Self {
        Self { entries: Vec::new() }
    }
}

impl<K, T> IntoIterator for ShortMap<K, T> {
    type Item = (K, T);
    type IntoIter = std::vec::IntoIter<(K, T)>;
    fn into_iter(self) -> Self::IntoIter {
        self.entries.into_iter()
    }
}

impl<K: Key, T> ShortMap<K, T> {
    pub fn new() -> Self {
        Self::default()
    }
    /// A map with one entry.
    pub fn of(id: K, entry: T) -> Self {
        Self { entries: vec![(id, entry)] }
    }
    pub fn get(&self, id: K) -> Option<&T> {
        match self.entries.get(id.place()) {
            Some((have, entry)) if *have == id => Some(entry),
            _ => self.entries.iter().find(|(have, _)| *have == id).map(|(_, entry)| entry),
        }
    }
    pub fn get_mut(&mut self, id: K) -> Option<&mut T> {
        let at = match self.entries.get(id.place()) {
            Some((have, _)) if *have == id => id.place(),
            _ => self.entries.iter().position(|(have, _)| *have == id)?,
        };
        self.entries.get_mut(at).map(|(_, entry)| entry)
    }
    /// Sets the entry of `id`; returns the previous one.
    pub fn insert(&mut self, id: K, entry: T) -> Option<T> {
        match self.entries.binary_search_by_key(&id, |(have, _)| *have) {
            Ok(at) => self.entries.get_mut(at).map(|(_, old)| core::mem::replace(old, entry)),
            Err(at) => {
                // One entry more, not twice as many: most connections never have more than one or two subflows.
                self.entries.reserve_exact(1);
                self.entries.insert(at, (id, entry));
                None
            }
        }
    }
    /// Removes and returns the entry of `id`.
    pub fn remove(&mut self, id: K) -> Option<T> {
        let at = self.entries.iter().position(|(have, _)| *have == id)?;
        Some(self.entries.remove(at).1)
    }
    /// Keeps the entries for which `keep` returns true.
    pub fn retain(&mut self, mut keep: impl FnMut(K) -> bool) {
        self.entries.retain(|(id, _)| keep(*id));
    }
    /// The entries in order of id.
    pub fn iter(&self) -> impl Iterator<Item = (K, &T)> {
        self.entries.iter().map(|(id, entry)| (*id, entry))
    }
    pub fn iter_mut(&mut self) -> impl Iterator<Item = (K, &mut T)> {
        self.entries.iter_mut().map(|(id, entry)| (*id, entry))
    }
    /// The keys in order.
    pub fn keys(&self) -> impl Iterator<Item = K> {
        self.entries.iter().map(|(id, _)| *id)
    }
    /// The entries in order of id, without their ids.
    pub fn values(&self) -> impl Iterator<Item = &T> {
        self.entries.iter().map(|(_, entry)| entry)
    }
    pub fn len(&self) -> usize {
        self.entries.len()
    }
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }
}
