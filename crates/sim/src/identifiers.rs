//! Identifiers of links, routers and hosts of a world.

/// A link in one direction, numbered from 0 in the world.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct LinkId(pub u32);

/// A router, numbered from 0 in the world.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct RouterId(pub u32);

/// A host, numbered from 0 in the world.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct HostId(pub u32);

impl LinkId {
    pub(crate) fn index(self) -> usize {
        self.0 as usize
    }
}
impl HostId {
    /// The owner of a reserved address.
    pub(crate) const NOBODY: Self = Self(u32::MAX);

    pub(crate) fn index(self) -> usize {
        self.0 as usize
    }
}
