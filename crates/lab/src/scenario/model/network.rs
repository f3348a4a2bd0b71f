//! The network part of a scenario: links, paths, and nodes with radios.

use anabranch_policy::rate::Rate;
use anabranch_policy::time::Duration;
use anabranch_routing::lsa_fullness::LsaFullness;
use anabranch_settings::quantity::{Packets, Share, Size};
use anabranch_sim::link::RateTrace;
use anabranch_sim::mesh::paper::network::LANES;
use std::sync::Arc;

/// When a random value is drawn. All draws are uniform and use the run's seed.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Drawn {
    PerRun,
    PerPacket,
    /// At each interval, with linear interpolation between draws.
    SlowlyVarying(Duration),
    /// At each interval, constant in between.
    Stepwise(Duration),
}

/// A constant, or a uniform distribution.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Draw<Q> {
    Fixed(Q),
    Uniform {
        /// Lower bound, included.
        low: Q,
        high: Q,
        drawn: Drawn,
    },
}

/// Capacity of a queue.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum QueueLimit {
    Packets(Packets),
    Bytes(Size),
}

/// Queue discipline.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Queue {
    /// Holds packets up to a limit, then drops arrivals.
    DropTail(QueueLimit),
    /// CoDel (RFC 8289).
    CoDel {
        /// Acceptable standing delay.
        target: Duration,
        /// Window of the minimum delay.
        interval: Duration,
        limit: QueueLimit,
    },
}

#[derive(Clone, PartialEq, Debug)]
pub enum LinkRate {
    Fixed(Rate),
    /// From a trace in mahimahi's format.
    Trace(Arc<RateTrace>),
}

/// Bursty loss: the Gilbert-Elliott model with two states. It steps once per packet and drops all packets in the bad
/// state.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct BurstLoss {
    /// Long-run loss ratio.
    pub average: Share,
    /// Mean length of a loss burst in packets.
    pub burst: f64,
}

/// The direction of a link that an impairment applies to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Direction {
    /// Client to server.
    Forward,
    /// Server to client.
    Backward,
    Both,
}

/// A link, symmetric except for loss.
#[derive(Clone, PartialEq, Debug)]
pub struct Link {
    /// Name, unique within its path.
    pub name: String,
    pub rate: LinkRate,
    /// Propagation delay.
    pub delay: Draw<Duration>,
    pub queue: Queue,
    /// Independent loss ratio.
    pub loss: Option<Draw<Share>>,
    /// Burst loss, in addition to `loss`.
    pub burst_loss: Option<BurstLoss>,
    /// The direction with loss.
    pub loss_direction: Direction,
    /// Share of packets duplicated.
    pub duplication: Option<Share>,
    /// Share of packets delayed, and their extra delay.
    pub reordering: Option<(Share, Duration)>,
    /// Share of packets with one changed byte.
    pub corruption: Option<Share>,
    /// Longest IP packet, and when the limit begins; longer packets are dropped without ICMP.
    pub mtu: Option<(Size, Duration)>,
    /// Outages, which drop packets; no end: until the end of the run.
    pub down: Vec<(Duration, Option<Duration>)>,
    /// Pauses, in which packets wait in the queue.
    pub paused: Vec<(Duration, Duration)>,
    /// Link quality in order of time, linearly interpolated.
    pub coverage: Vec<CoveragePoint>,
}

/// Link quality at one time.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct CoveragePoint {
    pub at: Duration,
    /// Factor of its rate.
    pub rate: Share,
    /// Loss ratio, in addition to other losses.
    pub loss: Share,
}

/// Cross traffic on a path's first link.
#[derive(Clone, PartialEq, Debug)]
pub struct Background {
    /// Share of the link's rate.
    pub share: Draw<Share>,
    /// Share of TCP; the rest is UDP.
    pub tcp: Share,
    /// Packet sizes with their shares, which sum to 1.
    pub sizes: Vec<(Share, Size)>,
    /// Number of TCP sources.
    pub tcp_flows: u32,
    /// Mean on-time of a TCP source; on- and off-times are exponentially distributed.
    pub on: Duration,
    /// Mean off-time.
    pub off: Duration,
}

#[derive(Clone, PartialEq, Debug)]
pub struct Path {
    pub name: String,
    /// Links from the sender to the receiver.
    pub links: Vec<Link>,
    pub background: Option<Background>,
}

/// An ad-hoc network: the eight nodes of the paper's figure 8, with one radio per path.
#[derive(Clone, PartialEq, Debug)]
pub struct Mesh {
    /// Bit rates of the radios, in the order of the paths.
    pub rates: [Rate; LANES],
    /// RTS and CTS before each data frame.
    pub reservations: bool,
    /// LSAFullness of the routers; none: static shortest paths.
    pub routers: Option<LsaFullness>,
}

/// An ad-hoc network of mobile nodes that each run a router, with probes or downloads between random pairs.
#[derive(Clone, PartialEq, Debug)]
pub struct Moving {
    /// Number of nodes.
    pub nodes: usize,
    /// Node count for which `area` is meant; the area is scaled to keep the density. None: fixed area.
    pub same_density: Option<usize>,
    /// Metres.
    pub area: (f64, f64),
    /// Radio range in metres; with path loss, shadowing and fading, about its mean.
    pub range: f64,
    /// Bit rate of broadcast frames.
    pub broadcast_rate: Rate,
    /// Whether to model path loss, shadowing and fading.
    pub shadows: bool,
    /// Minimum and maximum speed of steady-state random waypoint, m/s; none: as in RFC 5614, appendix E.
    pub speed: Option<(f64, f64)>,
    /// HelloInterval.
    pub hello_interval: Duration,
    /// RouterDeadInterval.
    pub dead_interval: Duration,
    /// Mean interval between probes in the whole network.
    pub probe_interval: Duration,
    /// Bytes of a probe, IP header included.
    pub probe_bytes: u32,
    /// Duration of the downloads between random pairs, one at a time; none: probes.
    pub download: Option<Duration>,
    /// Speed at which one of eight nodes in three rows repeatedly leaves, m/s, while the others stand still; none: all
    /// move.
    pub cut_speed: Option<f64>,
}
