//! How many handshakes a server computes: a number each second in all, of which a source gets a part.

use anabranch_policy::time::{Duration, Instant};
use core::net::IpAddr;
use std::collections::HashMap;

/// Most handshakes computed per second; more are not answered. Each costs about as much as fifty sealed datagrams.
const HELLOS_PER_SECOND: u64 = 100;
/// Most handshakes computed in a burst.
const BURST: u64 = 100;
/// Most handshakes computed for one source in a second, so that one cannot keep all others out.
const PER_SOURCE: u64 = 25;
/// When sources begin anew.
const SECOND: Duration = Duration::from_secs(1);

/// Handshakes that may be computed.
pub struct Allowance {
    /// Those that may be computed now, and when that was updated.
    left: (u64, Instant),
    /// Those that were computed for each source since a time. At most as many sources as handshakes.
    sources: (HashMap<IpAddr, u64>, Instant),
}

impl Default for Allowance {
    fn default() -> Self {
        Self { left: (BURST, Instant::ZERO), sources: (HashMap::new(), Instant::ZERO) }
    }
}

impl Allowance {
    /// Whether a handshake from there may be computed; it is counted.
    pub fn takes(&mut self, now: Instant, from: IpAddr) -> bool {
        let (left, since) = self.left;
        let earned = now.since(since).as_nanos() / (1_000_000_000 / HELLOS_PER_SECOND);
        if earned > 0 {
            self.left = ((left + earned).min(BURST), now);
        }
        let (sources, since) = &mut self.sources;
        if now.since(*since) >= SECOND {
            sources.clear();
            *since = now;
        }
        let computed = sources.get(&network(from)).copied().unwrap_or(0);
        if self.left.0 == 0 || computed >= PER_SOURCE {
            return false;
        }
        self.left.0 -= 1;
        sources.insert(network(from), computed + 1);
        true
    }
}

/// What one host has: an address of IPv4, or 64 bits of one of IPv6.
pub fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => IpAddr::V6((address.to_bits() >> 64 << 64).into()),
        four @ IpAddr::V4(_) => four,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(allowance: &mut Allowance, now: Instant, from: &str, asked: usize) -> usize {
        let from = from.parse().expect("an address");
        (0..asked).filter(|_| allowance.takes(now, from)).count()
    }

    #[test]
    fn one_source_leaves_room_for_others_and_all_have_a_limit() {
        let (mut allowance, now) = (Allowance::default(), Instant::ZERO + Duration::from_secs(10));
        assert_eq!(taken(&mut allowance, now, "192.0.2.1", 1_000), 25);
        assert_eq!(taken(&mut allowance, now, "::ffff:192.0.2.1", 10), 0, "the same");
        assert_eq!(taken(&mut allowance, now, "2001:db8::1", 20), 20);
        assert_eq!(taken(&mut allowance, now, "2001:db8::2", 20), 5, "the same network");
        assert_eq!(taken(&mut allowance, now, "192.0.2.2", 20), 20);
        assert_eq!(taken(&mut allowance, now, "192.0.2.3", 20), 20);
        assert_eq!(taken(&mut allowance, now, "192.0.2.4", 20), 10, "100 in all");
        let later = now + Duration::from_millis(100);
        assert_eq!(taken(&mut allowance, later, "192.0.2.1", 20), 0, "it has to wait for a second");
        assert_eq!(taken(&mut allowance, later, "192.0.2.5", 20), 10, "a hundred a second");
        assert_eq!(taken(&mut allowance, now + Duration::from_secs(1), "192.0.2.1", 100), 25);
    }
}
