//! The blocks of selective acknowledgement (RFC 2018, RFC 2883).

use crate::seq::SeqNumber;

/// A block of bytes that arrived out of order (RFC 2018); or a duplicate (D-SACK), if first and below the acknowledgement (RFC
/// 2883).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct SackBlock {
    /// First byte.
    pub start: SeqNumber,
    /// The byte after the last.
    pub end: SeqNumber,
}

/// Up to four SACK blocks, without allocation.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct SackBlocks {
    blocks: [SackBlock; 4],
    count: u8,
}

impl SackBlocks {
    /// Most blocks that fit in the option space.
    pub const MAX: usize = 4;
    /// No block.
    pub const fn new() -> Self {
        Self { blocks: [SackBlock { start: SeqNumber(0), end: SeqNumber(0) }; 4], count: 0 }
    }
    /// Removes all blocks.
    pub fn clear(&mut self) {
        if self.count > 0 {
            *self = Self::new(); // what is equal has the same in the places that are not used
        }
    }
    /// Adds a block; returns false if it does not fit.
    pub fn push(&mut self, block: SackBlock) -> bool {
        match self.blocks.get_mut(usize::from(self.count)) {
            Some(place) => {
                *place = block;
                self.count += 1;
                true
            }
            None => false,
        }
    }
    /// The blocks for which `keep` returns true.
    pub fn filtered(&self, keep: impl Fn(&SackBlock) -> bool) -> Self {
        let mut kept = Self::new();
        for block in self.as_slice().iter().filter(|block| keep(block)) {
            kept.push(*block);
        }
        kept
    }
    /// The blocks.
    pub fn as_slice(&self) -> &[SackBlock] {
        self.blocks.get(..usize::from(self.count)).unwrap_or(&[])
    }
    /// Number of blocks.
    pub const fn len(&self) -> usize {
        self.count as usize
    }
    /// Whether there are no blocks.
    pub const fn is_empty(&self) -> bool {
        self.count == 0
    }
}
