//! Random numbers of the endpoint: keys, nonces, ports and initial sequence numbers.

use crate::config::Origin;
use anabranch_policy::time::Instant;
use anabranch_wire::SeqNumber;
use core::net::{IpAddr, SocketAddr};
use rand_chacha::ChaCha12Rng;
use rand_core::{Rng, SeedableRng};
use sha2::{Digest, Sha256};

/// The time in which the first port goes around its range: 2^17 milliseconds, a part of the 2^32 after which the clock begins anew.
const ROUND_BITS: u32 = 17;

/// A cryptographic generator.
pub struct Random {
    generator: ChaCha12Rng,
    secret: [u8; 32],
    origin: Origin,
}

impl Random {
    /// The same seed yields the same numbers.
    pub fn new(seed: [u8; 32], origin: Origin) -> Self {
        Self { generator: ChaCha12Rng::from_seed(seed), secret: seed, origin }
    }
    pub fn next_u32(&mut self) -> u32 {
        self.generator.next_u32()
    }
    pub fn next_u64(&mut self) -> u64 {
        self.generator.next_u64()
    }

    /// The initial sequence number of a new connection: a 4 microsecond clock plus a keyed hash of the address pair
    /// (RFC 9293, section 3.4.1; RFC 6528, section 3). The numbers of the pair's next incarnation lie beyond those of
    /// the last, and nobody else can predict them. With a secret for them, this includes those of the program before.
    pub fn initial_sequence(&self, now: Instant, local: SocketAddr, remote: SocketAddr) -> SeqNumber {
        let secret = self.origin.sequences.as_ref().unwrap_or(&self.secret);
        let offset = hash(secret, "initial sequence number", [local, remote].map(|end| (end.ip(), Some(end.port()))));
        let clock = u64::from(self.origin.millis) * 250 + now.as_nanos() / 4_000;
        SeqNumber(offset.wrapping_add(clock as u32))
    }

    /// The timestamp offset of all connections with a host, from whichever address of ours: the timestamps of the next connection
    /// lie beyond those of the last, and other hosts cannot infer them (RFC 7323, section 5.4). It is that of all subflows, and an
    /// attempt that begins at one address may end at another.
    pub fn stamp_offset(&self, remote: IpAddr) -> u32 {
        self.common_hash("timestamp", [(remote, None)]).wrapping_add(self.origin.millis)
    }

    /// The port offset of a remote address: ports to one address reveal nothing about those to another (RFC 6056,
    /// section 3.3.3).
    pub fn port_offset(&self, local: IpAddr, remote: SocketAddr) -> u32 {
        self.common_hash("port", [(local, None), (remote.ip(), Some(remote.port()))])
    }

    /// The position in a range of so many ports at which a program begins. It goes once around in 131 s, which is longer than
    /// TIME-WAIT, and longer than a NAT remembers a SYN without answer: a program that begins seconds after another does not
    /// take a port of the last ones, unless that took more than the range by then.
    pub fn first_port(&self, count: u32) -> u32 {
        ((u64::from(self.origin.millis) * u64::from(count)) >> ROUND_BITS) as u32
    }

    /// A keyed hash of addresses that is the same for all programs of the host.
    fn common_hash<const N: usize>(&self, what: &str, ends: [(IpAddr, Option<u16>); N]) -> u32 {
        match self.origin.secret {
            Some(secret) => hash(&secret.to_be_bytes(), what, ends),
            None => hash(&self.secret, what, ends),
        }
    }
}

/// A keyed hash of addresses.
fn hash<const N: usize>(secret: &[u8], what: &str, ends: [(IpAddr, Option<u16>); N]) -> u32 {
    let mut hash = Sha256::new();
    hash.update(secret);
    hash.update(what.as_bytes());
    for (address, port) in ends {
        match address {
            IpAddr::V4(address) => hash.update(address.octets()),
            IpAddr::V6(address) => hash.update(address.octets()),
        }
        port.into_iter().for_each(|port| hash.update(port.to_be_bytes()));
    }
    let digest: [u8; 32] = hash.finalize().into();
    let [a, b, c, d, ..] = digest;
    u32::from_be_bytes([a, b, c, d])
}
