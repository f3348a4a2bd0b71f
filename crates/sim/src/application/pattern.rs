//! The bytes of bulk transfers: one static block, repeated, so that nothing is copied.
//!
//! Its length is a prime, so that misplaced bytes differ from the expected ones unless the offset is a multiple of it.

use bytes::Bytes;
use std::sync::LazyLock;

/// Length of the block: the largest prime below 2^20.
pub const PATTERN_LENGTH: u64 = 1_048_573;

/// Computed at first use: it is too long for the compiler.
static BLOCK: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    let mut block = vec![0; PATTERN_LENGTH.next_multiple_of(8) as usize];
    // Chunks of fixed length: growing the block by eight bytes at a time took as long as a second of a transfer.
    for place in block.as_chunks_mut::<8>().0 {
        // The xorshift generator of Marsaglia (2003) with the triple 13, 7, 17.
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        *place = state.to_le_bytes();
    }
    block.truncate(PATTERN_LENGTH as usize);
    block
});

/// At most `most` bytes of the stream from `offset` on. The result ends with the block at the latest, and is empty only
/// if `most` is 0.
pub fn pattern(offset: u64, most: u64) -> Bytes {
    let start = offset % PATTERN_LENGTH;
    let end = start.saturating_add(most).min(PATTERN_LENGTH);
    let block: &'static [u8] = &BLOCK;
    Bytes::from_static(&block[start as usize..end as usize])
}

/// Whether `bytes` are the pattern from stream offset `offset` on.
pub(super) fn matches(mut offset: u64, mut bytes: &[u8]) -> bool {
    while !bytes.is_empty() {
        let expected = pattern(offset, bytes.len() as u64);
        let (now, rest) = bytes.split_at(expected.len());
        if now != &expected[..] {
            return false;
        }
        offset += now.len() as u64;
        bytes = rest;
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stream_goes_on_where_the_block_ends() {
        let (tail, head) = (pattern(PATTERN_LENGTH - 2, 10), pattern(PATTERN_LENGTH, 8));
        assert_eq!((tail.len(), head.len()), (2, 8));
        assert_eq!(head, pattern(0, 8));
        let joined = [&tail[..], &head[..]].concat();
        assert!(matches(PATTERN_LENGTH - 2, &joined));
        assert!(!matches(PATTERN_LENGTH - 3, &joined));
    }

    #[test]
    fn one_wrong_byte_is_found() {
        let mut bytes = pattern(1000, 1000).to_vec();
        assert!(matches(1000, &bytes));
        bytes[999] ^= 1;
        assert!(!matches(1000, &bytes));
    }
}
