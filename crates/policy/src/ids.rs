//! Names of connections, subflows and addresses, as types.

use core::fmt;

/// A connection of a host; never reused in the lifetime of the endpoint.
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

/// What a policy remembers per subflow.
pub type SubflowMap<T> = ShortMap<SubflowId, T>;

/// A key of a [`ShortMap`].
pub trait Key: Copy + Ord {
    /// Where its entry is if keys count up from 0 and none was removed.
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

/// A short list in order of its keys, with room for no more than it holds.
///
/// A connection has a handful of subflows and addresses, so a look at the likely place, and else a scan of one cache line or two,
/// beats every hash and tree.
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
    /// An empty map.
    pub fn new() -> Self {
        Self::default()
    }
    /// One entry.
    pub fn of(id: K, entry: T) -> Self {
        Self { entries: vec![(id, entry)] }
    }
    /// The entry of `id`.
    pub fn get(&self, id: K) -> Option<&T> {
        match self.entries.get(id.place()) {
            Some((have, entry)) if *have == id => Some(entry),
            _ => self.entries.iter().find(|(have, _)| *have == id).map(|(_, entry)| entry),
        }
    }
    /// The entry of `id`, to change.
    pub fn get_mut(&mut self, id: K) -> Option<&mut T> {
        let at = match self.entries.get(id.place()) {
            Some((have, _)) if *have == id => id.place(),
            _ => self.entries.iter().position(|(have, _)| *have == id)?,
        };
        self.entries.get_mut(at).map(|(_, entry)| entry)
    }
    /// Sets the entry of `id`; returns back the one it replaces.
    pub fn insert(&mut self, id: K, entry: T) -> Option<T> {
        match self.entries.binary_search_by_key(&id, |(have, _)| *have) {
            Ok(at) => self.entries.get_mut(at).map(|(_, old)| core::mem::replace(old, entry)),
            Err(at) => {
                // One more, not twice as many: most connections have one or two subflows for life.
                self.entries.reserve_exact(1);
                self.entries.insert(at, (id, entry));
                None
            }
        }
    }
    /// Takes the entry of `id` out.
    pub fn remove(&mut self, id: K) -> Option<T> {
        let at = self.entries.iter().position(|(have, _)| *have == id)?;
        Some(self.entries.remove(at).1)
    }
    /// Drops the entries whose id `keep` does not want.
    pub fn retain(&mut self, mut keep: impl FnMut(K) -> bool) {
        self.entries.retain(|(id, _)| keep(*id));
    }
    /// The entries in order of id.
    pub fn iter(&self) -> impl Iterator<Item = (K, &T)> {
        self.entries.iter().map(|(id, entry)| (*id, entry))
    }
    /// The entries in order of id, to change.
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
    /// How many entries there are.
    pub fn len(&self) -> usize {
        self.entries.len()
    }
    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }
}
