//! The trace hash: one number over every delivery of every packet by every link.
//!
//! Per packet, [`digest`](Digest) folds its header fields and payload length once, when a host sends it. Per delivery,
//! [`TraceHash::add`] folds time, link, digest and the fields that change on the way (hop limit, ECN, corruption). A
//! fold is the exclusive or of both halves of a 128-bit product; all arithmetic is on integers of fixed width, so the
//! number is the same on every machine and at every optimisation level. It is a checksum, not a cryptographic hash.

/// Odd constants with about half their bits set: the fractions of the golden ratio and of the square root of 3.
const GOLDEN_RATIO: u64 = 0x9e37_79b9_7f4a_7c15;
const ROOT_OF_THREE: u64 = 0xbb67_ae85_84ca_a73b;

fn fold(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    product as u64 ^ (product >> 64) as u64
}

/// Folds words into one, in order.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Digest(u64);

impl Default for Digest {
    fn default() -> Self {
        Self(GOLDEN_RATIO)
    }
}

impl Digest {
    pub fn add(&mut self, word: u64) {
        self.0 = fold(self.0 ^ word, ROOT_OF_THREE).wrapping_add(word.rotate_left(32)).wrapping_mul(GOLDEN_RATIO);
    }
    pub fn value(self) -> u64 {
        self.0
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct TraceHash {
    digest: Digest,
    deliveries: u64,
}

impl TraceHash {
    /// Adds a delivery by a link.
    pub fn add(&mut self, time: u64, link: u32, packet: u64, changed_on_the_way: u32) {
        self.deliveries += 1;
        self.digest.add(time ^ u64::from(link).rotate_right(20));
        self.digest.add(packet ^ u64::from(changed_on_the_way));
    }
    pub fn value(&self) -> u64 {
        self.digest.value()
    }
    /// Number of deliveries covered.
    pub fn deliveries(&self) -> u64 {
        self.deliveries
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hash(deliveries: &[(u64, u32, u64, u32)]) -> u64 {
        let mut hash = TraceHash::default();
        deliveries.iter().for_each(|(time, link, packet, changed)| hash.add(*time, *link, *packet, *changed));
        hash.value()
    }

    #[test]
    fn every_field_and_the_order_count() {
        let base = hash(&[(1, 2, 3, 4), (5, 6, 7, 8)]);
        assert_eq!(base, hash(&[(1, 2, 3, 4), (5, 6, 7, 8)]));
        for other in [
            [(5, 6, 7, 8), (1, 2, 3, 4)],
            [(0, 2, 3, 4), (5, 6, 7, 8)],
            [(1, 3, 3, 4), (5, 6, 7, 8)],
            [(1, 2, 2, 4), (5, 6, 7, 8)],
            [(1, 2, 3, 5), (5, 6, 7, 8)],
        ] {
            assert_ne!(base, hash(&other), "{other:?}");
        }
    }

    #[test]
    fn the_hash_is_the_same_on_every_machine() {
        assert_eq!(hash(&[(1_000_000, 3, 0x0123_4567_89ab_cdef, 64)]), GOLDEN);
    }
    /// Computed by an independent program.
    const GOLDEN: u64 = 11_258_533_851_428_583_166;
}
