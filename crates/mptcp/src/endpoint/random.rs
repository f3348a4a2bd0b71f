//! The endpoint's random numbers: keys, nonces, ports; and its initial sequence numbers.

use anabranch_policy::time::Instant;
use anabranch_wire::SeqNumber;
use core::net::{IpAddr, SocketAddr};
use rand_chacha::ChaCha12Rng;
use rand_core::{Rng, SeedableRng};
use sha2::{Digest, Sha256};

/// A cryptographic generator: as unguessable as its seed.
pub struct Random {
    generator: ChaCha12Rng,
    secret: [u8; 32],
}

impl Random {
    /// From a seed; the same seed gives the same numbers.
    pub fn new(seed: [u8; 32]) -> Self {
        Self { generator: ChaCha12Rng::from_seed(seed), secret: seed }
    }
    /// 32 random bits.
    pub fn next_u32(&mut self) -> u32 {
        self.generator.next_u32()
    }
    /// 64 random bits.
    pub fn next_u64(&mut self) -> u64 {
        self.generator.next_u64()
    }

    /// The initial sequence number of a connection that begins now: a clock of 4 microseconds plus a number that only
    /// this host can compute for the pair (RFC 9293, section 3.4.1; RFC 6528, section 3). So the numbers of a pair's
    /// next incarnation lie beyond those of the last, and nobody else can foretell them.
    pub fn initial_sequence(&self, now: Instant, local: SocketAddr, remote: SocketAddr) -> SeqNumber {
        let mut hash = Sha256::new();
        hash.update(self.secret);
        hash.update(b"initial sequence number");
        for end in [local, remote] {
            match end.ip() {
                IpAddr::V4(address) => hash.update(address.octets()),
                IpAddr::V6(address) => hash.update(address.octets()),
            }
            hash.update(end.port().to_be_bytes());
        }
        let digest: [u8; 32] = hash.finalize().into();
        let [a, b, c, d, ..] = digest;
        let clock = now.as_nanos() / 4_000;
        SeqNumber(u32::from_be_bytes([a, b, c, d]).wrapping_add(clock as u32))
    }
}
