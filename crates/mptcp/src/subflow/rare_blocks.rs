//! SACK blocks that a subflow keeps while data is missing.

use anabranch_wire::tcp::{SackBlock, SackBlocks};

/// SACK blocks, usually none; then they take a single pointer.
#[derive(Clone, Debug, Default)]
pub struct RareBlocks(Option<Box<SackBlocks>>);

impl RareBlocks {
    pub fn set(&mut self, blocks: SackBlocks) {
        match &mut self.0 {
            _ if blocks.is_empty() => self.0 = None,
            Some(place) => **place = blocks,
            None => self.0 = Some(Box::new(blocks)),
        }
    }

    pub fn clear(&mut self) {
        self.0 = None;
    }

    pub fn as_slice(&self) -> &[SackBlock] {
        self.0.as_ref().map_or(&[], |blocks| blocks.as_slice())
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_none()
    }
}

#[cfg(test)]
mod tests {
    use super::{RareBlocks, SackBlock, SackBlocks};
    use anabranch_wire::SeqNumber;

    #[test]
    fn no_blocks_take_no_memory() {
        let mut some = SackBlocks::new();
        some.push(SackBlock { start: SeqNumber(1), end: SeqNumber(2) });
        let mut blocks = RareBlocks::default();
        blocks.set(some);
        assert_eq!((blocks.as_slice(), blocks.is_empty()), (some.as_slice(), false));
        blocks.set(SackBlocks::new());
        assert!(blocks.is_empty() && blocks.as_slice().is_empty() && blocks.0.is_none());
    }
}
