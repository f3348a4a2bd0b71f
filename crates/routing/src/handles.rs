//! Handles of interfaces and neighbours.

use anabranch_wire::ospf::RouterId;

/// An interface of this router, in the order in which they were added. No interface is ever removed, so a handle stays
/// valid.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct InterfaceHandle(usize);

impl InterfaceHandle {
    /// The first interface.
    #[cfg(test)]
    pub const FIRST: Self = Self(0);

    pub fn new(index: usize) -> Self {
        Self(index)
    }

    pub fn index(self) -> usize {
        self.0
    }
}

/// A neighbour on an interface. It may be unknown, or removed.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct NeighborHandle {
    pub interface: InterfaceHandle,
    pub router: RouterId,
}
