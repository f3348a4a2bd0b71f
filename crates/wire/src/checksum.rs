//! The Internet checksum (RFC 1071), over pieces of any length.

use core::net::Ipv6Addr;

/// An incremental one's complement sum. Pieces may have odd lengths: bytes are paired as if all pieces were
/// concatenated.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Checksum {
    /// Sum of 16-bit words as big-endian numbers; carries are folded in late.
    sum: u64,
    /// Whether the pieces so far have an odd number of bytes.
    odd: bool,
}

impl Checksum {
    /// The sum of no bytes.
    pub const fn new() -> Self {
        Self { sum: 0, odd: false }
    }

    /// Adds the next bytes.
    pub fn add_bytes(&mut self, bytes: &[u8]) {
        let word = u16::from_be(native_sum(bytes));
        // Bytes at an odd offset have their halves swapped; so has their sum (RFC 1071, section 2.B).
        self.sum += u64::from(if self.odd { word.swap_bytes() } else { word });
        self.odd ^= bytes.len() % 2 == 1;
    }

    /// Adds a 16-bit field of a pseudo-header, which does not affect the pairing of bytes.
    pub const fn add_u16(&mut self, value: u16) {
        self.sum += value as u64;
    }

    /// Adds a 32-bit field in the same way.
    pub(crate) const fn add_u32(&mut self, value: u32) {
        self.sum += (value >> 16) as u64 + (value & 0xffff) as u64;
    }

    /// Adds a 64-bit field in the same way.
    pub(crate) const fn add_u64(&mut self, value: u64) {
        self.add_u32((value >> 32) as u32);
        self.add_u32(value as u32);
    }

    /// Adds the pseudo-header for IPv6 (RFC 8200, section 8.1); `length` is that of the upper layer.
    pub const fn add_ipv6_pseudo_header(&mut self, source: Ipv6Addr, destination: Ipv6Addr, protocol: u8, length: u32) {
        self.add_ipv6(source);
        self.add_ipv6(destination);
        self.add_u16(protocol as u16);
        self.add_u32(length);
    }

    /// Adds an IPv6 address.
    pub(crate) const fn add_ipv6(&mut self, address: Ipv6Addr) {
        let bits = address.to_bits();
        self.add_u64((bits >> 64) as u64);
        self.add_u64(bits as u64);
    }

    /// The folded sum, not complemented.
    const fn folded(&self) -> u16 {
        let mut sum = self.sum;
        while sum > 0xffff {
            sum = (sum >> 16) + (sum & 0xffff);
        }
        sum as u16
    }

    /// The checksum to send: the complement of the sum.
    pub const fn finish(&self) -> u16 {
        !self.folded()
    }

    /// Whether everything added, including the checksum field, is undamaged.
    pub const fn is_valid(&self) -> bool {
        self.folded() == 0xffff
    }
}

/// The sum of the bytes' 16-bit words in the machine's byte order, with an odd last byte padded with zero. Swapping the
/// bytes of the result yields the sum of the other order (RFC 1071, section 2.B).
fn native_sum(bytes: &[u8]) -> u16 {
    let (words, rest) = bytes.as_chunks::<4>();
    let mut sum: u64 = words.iter().map(|word| u64::from(u32::from_ne_bytes(*word))).sum();
    let mut last = [0; 4];
    for (place, byte) in last.iter_mut().zip(rest) {
        *place = *byte;
    }
    sum += u64::from(u32::from_ne_bytes(last));
    sum = (sum >> 32) + (sum & 0xffff_ffff);
    while sum > 0xffff {
        sum = (sum >> 16) + (sum & 0xffff);
    }
    sum as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The plain definition: pairs of bytes as big-endian words, end-around carry at once.
    fn by_definition(bytes: &[u8]) -> u16 {
        let mut sum: u32 = 0;
        for pair in bytes.chunks(2) {
            sum += u32::from(pair[0]) << 8 | u32::from(*pair.get(1).unwrap_or(&0));
            if sum > 0xffff {
                sum -= 0xffff;
            }
        }
        !(sum as u16)
    }

    fn of(bytes: &[u8]) -> u16 {
        let mut checksum = Checksum::new();
        checksum.add_bytes(bytes);
        checksum.finish()
    }

    #[test]
    fn the_example_of_rfc_1071_section_3_sums_to_ddf2() {
        assert_eq!(of(&[0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7]), !0xddf2);
    }

    #[test]
    fn the_fast_sum_is_the_definition_at_every_length_and_cut() {
        let bytes: Vec<u8> = (0..67u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
        for end in 0..=bytes.len() {
            let whole = by_definition(&bytes[..end]);
            assert_eq!(of(&bytes[..end]), whole);
            for cut in 0..=end {
                for second in cut..=end {
                    let mut pieces = Checksum::new();
                    pieces.add_bytes(&bytes[..cut]);
                    pieces.add_bytes(&bytes[cut..second]);
                    pieces.add_bytes(&bytes[second..end]);
                    assert_eq!(pieces.finish(), whole, "cuts at {cut} and {second} of {end}");
                }
            }
        }
    }

    #[test]
    fn many_carries_are_not_lost() {
        let ones = vec![0xff; 65_535];
        assert_eq!(of(&ones), by_definition(&ones));
    }

    #[test]
    fn what_carries_its_own_checksum_is_valid_and_one_flipped_bit_is_seen() {
        let mut bytes = *b"abcdefgh..";
        let field = of(&bytes[..8]);
        bytes[8..].copy_from_slice(&field.to_be_bytes());
        let mut checksum = Checksum::new();
        checksum.add_bytes(&bytes);
        assert!(checksum.is_valid());
        bytes[3] ^= 0x10;
        let mut checksum = Checksum::new();
        checksum.add_bytes(&bytes);
        assert!(!checksum.is_valid());
    }
}
