//! Identifiers of nodes, channels and radios.

/// A node of the mesh, numbered from 0 in the world.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct NodeId(pub u32);

/// A radio channel, numbered from 0 in the world.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ChannelId(pub u32);

/// A radio of a node, numbered from 0 at each node.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct RadioId(pub u8);

impl NodeId {
    pub(crate) fn index(self) -> usize {
        self.0 as usize
    }
}
impl ChannelId {
    pub(crate) fn index(self) -> usize {
        self.0 as usize
    }
}
impl RadioId {
    pub(crate) fn index(self) -> usize {
        usize::from(self.0)
    }
}
