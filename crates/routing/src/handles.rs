//! Handles of interfaces and neighbours.

use anabranch_wire::ospf::RouterId;

/// An interface of this router, in the order in which they were added. No interface is ever removed, so a handle stays good.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct InterfaceHandle(usize);

impl InterfaceHandle {
    /// The interface that was added first.
    #[cfg(test)]
    pub const FIRST: Self = Self(0);

    /// The interface that was added after so many others.
    pub fn new(index: usize) -> Self {
        Self(index)
    }

    /// How many interfaces were added before this one.
    pub fn index(self) -> usize {
        self.0
    }
}

/// A neighbour on an interface. It may not be known yet, or not any more.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct NeighborHandle {
    /// On which interface.
    pub interface: InterfaceHandle,
    /// Its router ID.
    pub router: RouterId,
}
