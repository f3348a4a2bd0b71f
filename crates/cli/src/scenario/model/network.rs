//! The network part of a scenario: links, paths, and nodes with radios.

use crate::scenario::quantity::{Packets, Share, Size};
use anabranch_policy::rate::Rate;
use anabranch_policy::time::Duration;
use anabranch_routing::lsa_fullness::LsaFullness;
use anabranch_sim::link::RateTrace;
use anabranch_sim::mesh::paper::network::LANES;
use std::sync::Arc;

/// When a value is drawn from its range. All draws are uniform over the range and come from
/// the run's seed.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Drawn {
    /// Once, when the run begins.
    PerRun,
    /// For each packet.
    PerPacket,
    /// Anew at each interval, with a straight line between two draws.
    SlowlyVarying(Duration),
    /// Anew at each interval, and constant in it.
    Stepwise(Duration),
}

/// A value, or a range and how a value is drawn from it.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Draw<Q> {
    /// Always this.
    Fixed(Q),
    /// Uniform between two bounds.
    Uniform {
        /// Lower bound.
        low: Q,
        /// Upper bound.
        high: Q,
        /// When.
        drawn: Drawn,
    },
}

/// How much a queue holds.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum QueueLimit {
    /// So many packets.
    Packets(Packets),
    /// So many bytes.
    Bytes(Size),
}

/// What a queue does with packets it cannot send at once.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Queue {
    /// Holds them up to a limit, then drops arrivals.
    DropTail(QueueLimit),
    /// CoDel (RFC 8289).
    CoDel {
        /// Acceptable standing delay.
        target: Duration,
        /// Window over which the least delay is taken.
        interval: Duration,
        /// Most it holds.
        limit: QueueLimit,
    },
}

/// How fast a link sends.
#[derive(Clone, PartialEq, Debug)]
pub enum LinkRate {
    /// Always alike.
    Fixed(Rate),
    /// As a trace in the format of mahimahi says.
    Trace(Arc<RateTrace>),
}

/// Losses in bursts: the two-state model of Gilbert and Elliott, which steps once per packet and loses all packets in
/// its bad state.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct BurstLoss {
    /// Share of packets lost in the long run.
    pub average: Share,
    /// Mean number of packets lost in a row.
    pub burst: f64,
}

/// Which direction of a link a fault acts on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Direction {
    /// Client to server.
    Forward,
    /// Server to client.
    Backward,
    /// Both.
    Both,
}

/// A link, the same in both directions but for its losses.
#[derive(Clone, PartialEq, Debug)]
pub struct Link {
    /// Its name within its path.
    pub name: String,
    /// How fast it sends.
    pub rate: LinkRate,
    /// Propagation delay.
    pub delay: Draw<Duration>,
    /// The queue before it.
    pub queue: Queue,
    /// Share of packets lost, each on its own.
    pub loss: Option<Draw<Share>>,
    /// Losses in bursts, on top.
    pub burst_loss: Option<BurstLoss>,
    /// Which direction loses packets.
    pub loss_direction: Direction,
    /// Share of packets duplicated.
    pub duplication: Option<Share>,
    /// Share of packets held back, and by how much.
    pub reordering: Option<(Share, Duration)>,
    /// Share of packets of which a byte is changed.
    pub corruption: Option<Share>,
    /// The longest packet that passes, and from when on; longer ones are dropped without a word.
    pub mtu: Option<(Size, Duration)>,
    /// When it carries nothing; without an end: for good.
    pub down: Vec<(Duration, Option<Duration>)>,
    /// When it sends nothing and its queue waits.
    pub paused: Vec<(Duration, Duration)>,
    /// How its quality changes, in order of time: straight lines between the points.
    pub coverage: Vec<CoveragePoint>,
}

/// What is left of a link at one time.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct CoveragePoint {
    /// When.
    pub at: Duration,
    /// Share of its rate.
    pub rate: Share,
    /// Share of packets lost, beside its other losses.
    pub loss: Share,
}

/// Other people's traffic on a path's first link.
#[derive(Clone, PartialEq, Debug)]
pub struct Background {
    /// What it takes of the link's rate.
    pub share: Draw<Share>,
    /// Share of it that is TCP; the rest is UDP.
    pub tcp: Share,
    /// Packet sizes with their shares, which sum to one.
    pub sizes: Vec<(Share, Size)>,
    /// Number of TCP sources.
    pub tcp_flows: u32,
    /// Mean time that a TCP source is on; times on and off are exponentially distributed.
    pub on: Duration,
    /// Mean time that it is off.
    pub off: Duration,
}

/// A path from the sender to the receiver.
#[derive(Clone, PartialEq, Debug)]
pub struct Path {
    /// Its name.
    pub name: String,
    /// Its links, from the sender to the receiver.
    pub links: Vec<Link>,
    /// Other people's traffic.
    pub background: Option<Background>,
}

/// An ad-hoc network: the eight nodes of the paper's figure 8, with a radio for each path.
#[derive(Clone, PartialEq, Debug)]
pub struct Mesh {
    /// What the radios send at, in the order of the paths.
    pub rates: [Rate; LANES],
    /// RTS and CTS before each data frame.
    pub reservations: bool,
    /// What the routers advertise; none: the routes are the shortest ones from the beginning.
    pub routers: Option<LsaFullness>,
}

/// An ad-hoc network of moving nodes with a router each, and probes between random pairs of them.
#[derive(Clone, PartialEq, Debug)]
pub struct Moving {
    /// How many nodes.
    pub nodes: usize,
    /// So many nodes are meant to have the area; with others it grows or shrinks. None: it is what it is.
    pub same_density: Option<usize>,
    /// Metres.
    pub area: (f64, f64),
    /// How far radio reaches, metres: all of it, or with path loss, shadows and fading about so far in the mean.
    pub range: f64,
    /// What broadcast frames are sent at.
    pub broadcast_rate: Rate,
    /// Whether there are path loss, shadows and fading.
    pub shadows: bool,
    /// Least and highest speed of random waypoint in its steady state, m/s; none: as in RFC 5614, appendix E.
    pub speed: Option<(f64, f64)>,
    /// HelloInterval.
    pub hello_interval: Duration,
    /// RouterDeadInterval.
    pub dead_interval: Duration,
    /// Mean time between probes in the whole network.
    pub probe_interval: Duration,
    /// How fast one of eight nodes in three rows goes away, m/s, again and again, where nobody else moves; none: all move.
    pub cut_speed: Option<f64>,
}
