//! Reads bit fields, most significant first, from bytes that may end anywhere.

/// A position among the bits of `bytes`.
pub(super) struct Bits<'a> {
    bytes: &'a [u8],
    /// Bits read so far.
    at: usize,
}

impl<'a> Bits<'a> {
    pub(super) const fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    /// The next bit; `None` at the end.
    pub(super) fn flag(&mut self) -> Option<bool> {
        let byte = self.bytes.get(self.at / 8)?;
        let bit = byte >> (7 - self.at % 8) & 1;
        self.at += 1;
        Some(bit == 1)
    }

    /// The next `count` bits as a number, 32 at most.
    pub(super) fn read(&mut self, count: u32) -> Option<u32> {
        (0..count.min(32)).try_fold(0_u32, |value, _| Some(value << 1 | u32::from(self.flag()?)))
    }

    /// Skips `count` bits, perhaps beyond the end.
    pub(super) const fn skip(&mut self, count: usize) {
        self.at = self.at.saturating_add(count);
    }

    /// An Exp-Golomb code, unsigned: ue(v) of H.264, 9.1. `None` if it is longer than 32 bits of value.
    pub(super) fn unsigned(&mut self) -> Option<u32> {
        let mut zeros = 0;
        while !self.flag()? {
            zeros += 1;
            if zeros > 31 {
                return None;
            }
        }
        let rest = self.read(zeros)?;
        Some(((1_u64 << zeros) - 1) as u32 + rest)
    }

    /// An Exp-Golomb code, signed: se(v) of H.264, 9.1.1.
    pub(super) fn signed(&mut self) -> Option<i64> {
        let code = i64::from(self.unsigned()?);
        Some(if code % 2 == 0 { -(code / 2) } else { code / 2 + 1 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_come_most_significant_first_and_end_with_the_bytes() {
        let mut bits = Bits::new(&[0b1010_0001, 0xFF]);
        assert_eq!(bits.flag(), Some(true));
        assert_eq!(bits.read(3), Some(0b010));
        assert_eq!(bits.read(8), Some(0b0001_1111));
        assert_eq!(bits.read(5), None);
    }

    #[test]
    fn exp_golomb_codes_are_those_of_table_9_2() {
        // 1 | 010 | 011 | 00100 | 00101: code numbers 0 to 4.
        let bytes = [0b1010_0110, 0b0100_0010, 0b1000_0000];
        let mut bits = Bits::new(&bytes);
        let codes: Vec<_> = (0..5).map(|_| bits.unsigned()).collect();
        assert_eq!(codes, [0, 1, 2, 3, 4].map(Some));
        let mut bits = Bits::new(&bytes);
        let codes: Vec<_> = (0..5).map(|_| bits.signed()).collect();
        assert_eq!(codes, [0, 1, -1, 2, -2].map(Some), "table 9-3");
        assert_eq!(Bits::new(&[0; 8]).unsigned(), None);
        let mut long = Bits::new(&[0, 0, 0, 1, 0xFF, 0xFF, 0xFF, 0xFE]);
        assert_eq!(long.unsigned(), Some(u32::MAX - 1), "31 zeros");
    }
}
