//! UDP cross traffic: packets of a mix of sizes, exponentially spaced, at a rate that may vary.

use crate::address::InterfaceId;
use crate::network::UDP_OVERHEAD;
use crate::random::RandomStream;
use crate::share::{Share, ShareRange};
use anabranch_policy::rate::Rate;
use anabranch_policy::time::{Duration, Instant};

/// What can be chosen about a UDP source.
#[derive(Clone, Debug)]
pub struct UdpConfig {
    /// Its name; its luck depends on it.
    pub name: String,
    /// Where packets leave from.
    pub from: InterfaceId,
    /// Where they go to; they are counted there.
    pub to: InterfaceId,
    /// The rate of which it takes a share.
    pub rate: Rate,
    /// The share.
    pub share: ShareRange,
    /// A factor on the share: the part of the load that is UDP.
    pub part: f64,
    /// The name of the share, if other sources take theirs from the same; the source's own name otherwise.
    pub share_name: Option<String>,
    /// Sizes of packets with their weights: (weight, bytes with IP header; below 28 counts as 28).
    pub sizes: Vec<(f64, u32)>,
    /// When it starts.
    pub start: Instant,
    /// When it stops.
    pub stop: Instant,
}

impl UdpConfig {
    /// A source that takes this rate, whatever happens, with packets of one size.
    pub fn steady(name: &str, from: InterfaceId, to: InterfaceId, rate: Rate, bytes: u32) -> Self {
        Self {
            name: name.to_owned(),
            from,
            to,
            rate,
            share: ShareRange::fixed(1.0),
            part: 1.0,
            share_name: None,
            sizes: vec![(1.0, bytes)],
            start: Instant::ZERO,
            stop: Instant::NEVER,
        }
    }
}

/// What a UDP source did. Bytes are whole packets.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct UdpResult {
    /// Its name.
    pub name: String,
    /// Packets sent.
    pub sent_packets: u64,
    /// Bytes sent.
    pub sent_bytes: u64,
}

/// A UDP source at work: says what to send and when, and leaves the sending to its driver.
#[derive(Clone, Debug)]
pub struct UdpSource {
    pub(crate) config: UdpConfig,
    pub(crate) result: UdpResult,
    share: Share,
    random: RandomStream,
    weights: Vec<f64>,
    mean_bits: f64,
}

impl UdpSource {
    /// The source in the run with this seed.
    pub fn new(config: UdpConfig, seed: u64) -> Self {
        let weights: Vec<f64> = config.sizes.iter().map(|(weight, _)| *weight).collect();
        let total: f64 = weights.iter().sum();
        let sum: f64 = config.sizes.iter().map(|(weight, bytes)| weight * f64::from((*bytes).max(UDP_OVERHEAD))).sum();
        Self {
            share: Share::new(config.share, seed, config.share_name.as_deref().unwrap_or(&config.name)),
            random: RandomStream::new(seed, &format!("udp/{}", config.name)),
            weights,
            mean_bits: 8.0 * sum / total,
            result: UdpResult { name: config.name.clone(), ..UdpResult::default() },
            config,
        }
    }
    /// The size of the packet to send now, bytes with IP header.
    pub fn packet(&mut self) -> u32 {
        let size = match self.weights.len() {
            1 => 0,
            _ => self.random.choice(&self.weights),
        };
        let length = self.config.sizes.get(size).map_or(0, |(_, bytes)| *bytes).max(UDP_OVERHEAD);
        self.result.sent_packets += 1;
        self.result.sent_bytes += u64::from(length);
        length
    }
    /// When the next packet is due, and whether it is one: while the share is zero, it only looks again.
    pub fn next(&mut self, now: Instant) -> (Instant, bool) {
        let rate = self.config.rate.bits_per_second() as f64 * self.share.at(now) * self.config.part;
        let again = Duration::from_millis(100);
        if rate < 1.0 {
            return (now + again, false);
        }
        // The exponential has no memory, so a long gap may be cut and drawn anew, at the rate of then.
        let gap = Duration::from_secs_f64(self.random.exponential(self.mean_bits / rate));
        if gap > again { (now + again, false) } else { (now + gap, true) }
    }
}
