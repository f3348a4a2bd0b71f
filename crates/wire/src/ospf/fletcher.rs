//! The checksum of link state advertisements: Fletcher's, as in RFC 905, annex B (RFC 2328, section 12.1.7).

/// Both sums over `bytes`, modulo 255.
fn sums(bytes: &[u8]) -> (u32, u32) {
    let (mut c0, mut c1) = (0u32, 0u32);
    // With this many bytes between two divisions neither sum overflows 32 bits: c1 grows by at most 255 n (n + 1) / 2.
    for chunk in bytes.chunks(4096) {
        for byte in chunk {
            c0 += u32::from(*byte);
            c1 += c0;
        }
        c0 %= 255;
        c1 %= 255;
    }
    (c0, c1)
}

/// The checksum for `bytes`, to be stored in its two bytes at `place`, now zero.
pub(super) fn checksum(bytes: &[u8], place: usize) -> u16 {
    let (c0, c1) = sums(bytes);
    // The two bytes x, y must make both sums zero: x + y = -c0, and x counts once more than y for each byte after it:
    // (n - place) x + (n - place - 1) y = -c1.
    let behind = ((bytes.len() - place - 1) % 255) as u32;
    let mut x = (behind * c0 + 255 - c1) % 255;
    let mut y = (510 - c0 - x) % 255;
    // Zero would mean that there is no checksum; zero and 255 are equal modulo 255.
    if x == 0 {
        x = 255;
    }
    if y == 0 {
        y = 255;
    }
    (x << 8 | y) as u16
}

/// Whether `bytes`, including their checksum, are undamaged.
pub(super) fn is_valid(bytes: &[u8]) -> bool {
    sums(bytes) == (0, 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The definition: sums modulo 255 after each byte.
    fn by_definition(bytes: &[u8]) -> (u32, u32) {
        bytes.iter().fold((0, 0), |(c0, c1), byte| {
            let c0 = (c0 + u32::from(*byte)) % 255;
            (c0, (c1 + c0) % 255)
        })
    }

    #[test]
    fn the_sums_are_the_definition_at_every_length_and_for_the_largest_bytes() {
        for length in [0, 1, 2, 254, 255, 256, 4095, 4096, 4097, 65_535] {
            let ones = vec![0xff; length];
            assert_eq!(sums(&ones), by_definition(&ones));
            let mixed: Vec<u8> = (0..length as u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
            assert_eq!(sums(&mixed), by_definition(&mixed), "{length} bytes");
        }
    }

    #[test]
    fn four_bytes_by_hand() {
        // 1, 2 and a checksum behind: c0 = 3, c1 = 1 + 3 + 3 + 3 = 10. x + y = -3, 2x + y = -10: x = -7, y = 4.
        assert_eq!(checksum(&[1, 2, 0, 0], 2), (255 - 7) << 8 | 4);
        assert!(is_valid(&[1, 2, 248, 4]));
    }

    #[test]
    fn what_has_its_checksum_is_valid_and_no_changed_byte_goes_unseen() {
        for length in [3, 18, 22, 54, 300, 700] {
            for place in [0, 1, length / 2, length - 2] {
                let mut bytes: Vec<u8> = (0..length).map(|i| (i * 37 + 11) as u8).collect();
                bytes[place..place + 2].fill(0);
                let sum = checksum(&bytes, place);
                assert!(sum >> 8 != 0 && sum & 0xff != 0);
                bytes[place..place + 2].copy_from_slice(&sum.to_be_bytes());
                assert!(is_valid(&bytes), "{length} bytes, checksum at {place}");
                for changed in 0..length {
                    bytes[changed] ^= 0x10;
                    assert!(!is_valid(&bytes));
                    bytes[changed] ^= 0x10;
                }
            }
        }
    }
}
