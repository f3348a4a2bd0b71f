//! UDP cross traffic: packets of several sizes, at a rate that may vary, spaced randomly or evenly, with or without
//! pauses.

use crate::address::InterfaceId;
use crate::network::UDP_OVERHEAD;
use crate::random::RandomStream;
use crate::share::{Share, ShareRange};
use anabranch_policy::rate::Rate;
use anabranch_policy::time::{Duration, Instant};

/// The time between packets.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Spacing {
    /// Exponentially distributed, independent of the sizes.
    #[default]
    Exponential,
    /// The transmission time of the packet at the rate, as in ns-2's constant-bit-rate sources.
    Even,
}

/// Packet sizes in bytes with IP header, at least 28.
#[derive(Clone, PartialEq, Debug)]
pub enum PacketSizes {
    /// One of these sizes, each with its weight first.
    Mix(Vec<(f64, u32)>),
    /// Uniform from the least to the greatest.
    Between(u32, u32),
}

impl PacketSizes {
    fn mean(&self) -> f64 {
        let bytes = |bytes: u32| f64::from(bytes.max(UDP_OVERHEAD));
        match self {
            Self::Mix(sizes) => {
                let total: f64 = sizes.iter().map(|(weight, _)| *weight).sum();
                let sum: f64 = sizes.iter().map(|(weight, size)| weight * bytes(*size)).sum();
                sum / total
            }
            Self::Between(least, most) => (bytes(*least) + bytes(*most)) / 2.0,
        }
    }
}

/// Settings of a UDP source.
#[derive(Clone, Debug)]
pub struct UdpConfig {
    /// Its name, from which its random streams are derived.
    pub name: String,
    /// Source of packets.
    pub from: InterfaceId,
    /// Destination; packets are counted there.
    pub to: InterfaceId,
    /// The full rate, of which the source takes a share.
    pub rate: Rate,
    pub share: ShareRange,
    /// A factor on the share: the UDP part of the load.
    pub part: f64,
    /// The name of the share, if several sources follow the same one; otherwise the source's name.
    pub share_name: Option<String>,
    pub sizes: PacketSizes,
    pub spacing: Spacing,
    /// Means of the exponentially distributed on and off times; `None`: always on. It starts on.
    pub on_off: Option<(Duration, Duration)>,
    pub start: Instant,
    pub stop: Instant,
}

impl UdpConfig {
    /// A source with a constant rate and packet size.
    pub fn steady(name: &str, from: InterfaceId, to: InterfaceId, rate: Rate, bytes: u32) -> Self {
        Self {
            name: name.to_owned(),
            from,
            to,
            rate,
            share: ShareRange::fixed(1.0),
            part: 1.0,
            share_name: None,
            sizes: PacketSizes::Mix(vec![(1.0, bytes)]),
            spacing: Spacing::default(),
            on_off: None,
            start: Instant::ZERO,
            stop: Instant::NEVER,
        }
    }
}

/// Counters of a UDP source. Bytes are whole packets.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct UdpResult {
    pub name: String,
    pub sent_packets: u64,
    pub sent_bytes: u64,
}

/// A UDP source: says what to send and when; its driver does the sending.
#[derive(Clone, Debug)]
pub struct UdpSource {
    pub(crate) config: UdpConfig,
    pub(crate) result: UdpResult,
    share: Share,
    random: RandomStream,
    weights: Vec<f64>,
    mean_bits: f64,
    /// Bits of the last packet; `None` before the first.
    last_bits: f64,
    on: bool,
    /// End of the present on or off time.
    until: Instant,
}

impl UdpSource {
    /// The source in the run with this seed.
    pub fn new(config: UdpConfig, seed: u64) -> Self {
        let weights = match &config.sizes {
            PacketSizes::Mix(sizes) => sizes.iter().map(|(weight, _)| *weight).collect(),
            PacketSizes::Between(..) => Vec::new(),
        };
        Self {
            share: Share::new(config.share, seed, config.share_name.as_deref().unwrap_or(&config.name)),
            random: RandomStream::new(seed, &format!("udp/{}", config.name)),
            weights,
            mean_bits: 8.0 * config.sizes.mean(),
            last_bits: 0.0,
            on: false,
            until: config.start,
            result: UdpResult { name: config.name.clone(), ..UdpResult::default() },
            config,
        }
    }
    /// The size of the packet to send now, in bytes with IP header.
    pub fn packet(&mut self) -> u32 {
        let length = match &self.config.sizes {
            PacketSizes::Mix(sizes) => {
                let size = if self.weights.len() == 1 { 0 } else { self.random.choice(&self.weights) };
                sizes.get(size).map_or(0, |(_, bytes)| *bytes)
            }
            PacketSizes::Between(least, most) => {
                least + self.random.below(u64::from(most.saturating_sub(*least)) + 1) as u32
            }
        };
        let length = length.max(UDP_OVERHEAD);
        self.result.sent_packets += 1;
        self.result.sent_bytes += u64::from(length);
        self.last_bits = 8.0 * f64::from(length);
        length
    }
    /// When to call again, and whether a packet is due then: while the share is zero or the source is off, none is.
    pub fn next(&mut self, now: Instant) -> (Instant, bool) {
        if !self.is_on(now) {
            return (self.until, false);
        }
        let rate = self.config.rate.bits_per_second() as f64 * self.share.at(now) * self.config.part;
        let again = Duration::from_millis(100);
        if rate < 1.0 {
            return (now + again, false);
        }
        let gap = match self.config.spacing {
            Spacing::Exponential => Duration::from_secs_f64(self.random.exponential(self.mean_bits / rate)),
            Spacing::Even => Duration::from_secs_f64(self.last_bits / rate),
        };
        // The exponential distribution is memoryless, so a long gap may be cut and redrawn at the rate of that time.
        if gap > again && self.config.spacing == Spacing::Exponential {
            return (now + again, false);
        }
        if self.config.on_off.is_some() && now + gap > self.until {
            return (self.until, false);
        }
        (now + gap, true)
    }
    fn is_on(&mut self, now: Instant) -> bool {
        let Some((on, off)) = self.config.on_off else { return true };
        while now >= self.until {
            self.on = !self.on;
            let mean = if self.on { on } else { off };
            self.until += Duration::from_secs_f64(self.random.exponential(mean.as_secs_f64()));
        }
        self.on
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::address::InterfaceId;

    const HERE: InterfaceId = InterfaceId(0);

    /// When packets leave before `stop`, and their bytes.
    fn departures(config: UdpConfig, seed: u64, stop: Instant) -> Vec<(Instant, u32)> {
        let (mut at, mut sends) = (config.start, false);
        let mut source = UdpSource::new(config, seed);
        let mut departures = Vec::new();
        while at < stop {
            if sends {
                departures.push((at, source.packet()));
            }
            (at, sends) = source.next(at);
        }
        departures
    }

    #[test]
    fn even_spacing_is_what_each_packet_takes() {
        let rate = Rate::from_bits_per_second(448_000);
        let start = Instant::from_nanos(250_000_000);
        let sizes = PacketSizes::Between(100, 200);
        let source = UdpConfig { sizes, spacing: Spacing::Even, start, ..UdpConfig::steady("v", HERE, HERE, rate, 0) };
        let sent = departures(source, 1, start + Duration::from_secs(100));
        assert_eq!(sent[0].0, start);
        for pair in sent.windows(2) {
            let [(one, bytes), (next, _)] = pair else { continue };
            let gap = f64::from(*bytes) * 8.0 / 448_000.0;
            assert!(((*next - *one).as_secs_f64() - gap).abs() < 1e-8);
        }
        // 448 kbit/s for 100 s are 5.6 MB, to within a packet. The mean of 101 sizes is 150 B with a standard deviation
        // of 29.2, so that of some 37,000 packets it lies within 1 B.
        let bytes: u64 = sent.iter().map(|(_, bytes)| u64::from(*bytes)).sum();
        assert!(bytes.abs_diff(5_600_000) <= 200, "{bytes}");
        assert!((bytes as f64 / sent.len() as f64 - 150.0).abs() < 1.0);
        assert!(sent.iter().any(|(_, bytes)| *bytes == 100) && sent.iter().any(|(_, bytes)| *bytes == 200));
    }

    #[test]
    fn a_source_that_pauses_sends_its_rate_while_it_is_on() {
        let rate = Rate::from_bits_per_second(1_000_000);
        let on_off = Some((Duration::from_secs(2), Duration::from_secs(3)));
        for spacing in [Spacing::Exponential, Spacing::Even] {
            let source = UdpConfig { on_off, spacing, ..UdpConfig::steady("p", HERE, HERE, rate, 1250) };
            let sent = departures(source, 1, Instant::ZERO + Duration::from_secs(20_000));
            // On for two fifths of 20,000 s at 100 packets/s: 800,000; over 4,000 cycles the share has a standard
            // deviation of about 1 %.
            assert!((sent.len() as f64 / 800_000.0 - 1.0).abs() < 0.05, "{}", sent.len());
            let pauses = sent.windows(2).filter(|pair| pair[1].0 - pair[0].0 > Duration::from_millis(500)).count();
            assert!((2_500..4_500).contains(&pauses), "{pauses}");
        }
    }
}
