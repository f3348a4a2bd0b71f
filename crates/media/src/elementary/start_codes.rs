//! Cuts a stream of bytes at its start codes, 00 00 01, without losing a byte.

use super::{LONGEST_PICTURE, StreamError};

/// Takes bytes as they arrive and returns units that begin with a start code.
#[derive(Debug, Default)]
pub(super) struct StartCodes {
    buffer: Vec<u8>,
    /// Start of the present unit: a start code once the first has been seen.
    begins: usize,
    /// Start codes have been searched for up to here.
    scanned: usize,
    /// Whether there is a start code at `begins`.
    inside: bool,
}

impl StartCodes {
    pub(super) fn handle_bytes(&mut self, bytes: &[u8]) {
        self.buffer.drain(..self.begins);
        self.scanned -= self.begins;
        self.begins = 0;
        self.buffer.extend_from_slice(bytes);
    }

    /// The next unit that is followed by another. Bytes before the first start code are dropped.
    pub(super) fn poll_unit(&mut self) -> Result<Option<Vec<u8>>, StreamError> {
        loop {
            let from = if self.inside { self.scanned.max(self.begins + 3) } else { self.scanned };
            let tail = self.buffer.get(from..).unwrap_or_default();
            let Some(found) = tail.windows(3).position(|window| window == [0, 0, 1]) else {
                self.scanned = self.buffer.len().saturating_sub(2).max(from.min(self.buffer.len()));
                return self.bounded();
            };
            let next = from + found;
            let unit = self.inside.then(|| self.buffer[self.begins..next].to_vec());
            self.begins = next;
            self.scanned = next + 3;
            self.inside = true;
            if unit.is_some() {
                return Ok(unit);
            }
        }
    }

    /// Without a unit: drops garbage before the first start code; a unit without end is an error.
    fn bounded(&mut self) -> Result<Option<Vec<u8>>, StreamError> {
        if !self.inside {
            self.begins = self.scanned;
        } else if self.buffer.len() - self.begins > LONGEST_PICTURE {
            return Err(StreamError::TooLong);
        }
        Ok(None)
    }

    /// The last unit, at the end of the stream.
    pub(super) fn finish(&mut self) -> Option<Vec<u8>> {
        let unit = self.inside.then(|| self.buffer[self.begins..].to_vec());
        *self = Self::default();
        unit
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn cut(pieces: &[&[u8]]) -> Vec<Vec<u8>> {
        let mut codes = StartCodes::default();
        let mut units = Vec::new();
        for piece in pieces {
            codes.handle_bytes(piece);
            while let Some(unit) = codes.poll_unit().expect("short units") {
                units.push(unit);
            }
        }
        units.extend(codes.finish());
        units
    }

    #[test]
    fn units_begin_with_their_start_code_and_keep_every_byte() {
        let units = cut(&[&[7, 7, 0, 0, 1, 0xB6, 5, 0, 0, 0, 1, 0xB3, 0, 0, 1]]);
        assert_eq!(units, [vec![0, 0, 1, 0xB6, 5, 0], vec![0, 0, 1, 0xB3], vec![0, 0, 1]]);
        assert!(cut(&[&[1, 2, 3]]).is_empty());
        assert!(cut(&[]).is_empty());
    }

    #[test]
    fn a_unit_without_end_is_refused_before_it_fills_the_memory() {
        let mut codes = StartCodes::default();
        codes.handle_bytes(&[0, 0, 1]);
        let megabyte = vec![7; 1 << 20];
        let refused = (0..40).find_map(|_| {
            codes.handle_bytes(&megabyte);
            codes.poll_unit().err()
        });
        assert_eq!(refused, Some(StreamError::TooLong));
    }

    proptest! {
        #[test]
        fn how_the_bytes_are_cut_up_does_not_matter(bytes in prop::collection::vec(0..3_u8, 0..200), at in 0..200_usize, then in 0..200_usize) {
            let whole = cut(&[&bytes]);
            let first = at.min(bytes.len());
            let second = then.clamp(first, bytes.len());
            prop_assert_eq!(&cut(&[&bytes[..first], &bytes[first..second], &bytes[second..]]), &whole);
            let one: Vec<&[u8]> = bytes.chunks(1).collect();
            prop_assert_eq!(&cut(&one), &whole);
            let first = bytes.windows(3).position(|window| window == [0, 0, 1]).unwrap_or(bytes.len());
            prop_assert_eq!(whole.concat(), &bytes[first..]);
        }
    }
}
