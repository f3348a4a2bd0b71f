//! What a scenario says, once read and found possible.

use super::quantity::{Change, Packets, Share, Size};
use anabranch_media::Trace;
use anabranch_policy::rate::Rate;
use anabranch_policy::time::Duration;
use anabranch_routing::lsa_fullness::LsaFullness;
use anabranch_sim::link::RateTrace;
use anabranch_sim::mesh::paper::network::LANES;
use std::sync::Arc;

/// When a value that is given as a range is drawn from it. All draws are uniform over the range and come from
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
    /// Share of packets delivered twice.
    pub duplication: Option<Share>,
    /// Share of packets held back, and by how much.
    pub reordering: Option<(Share, Duration)>,
    /// Share of packets of which a byte is changed.
    pub corruption: Option<Share>,
    /// When it carries nothing; without an end: for good.
    pub down: Vec<(Duration, Option<Duration>)>,
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

/// What is carried.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Transfer {
    /// As much as fits, until the end.
    Endless,
    /// So many bytes, then close.
    Finite(Size),
    /// Messages at random times (a Poisson process), each at once.
    Messages {
        /// Bytes of each.
        size: Size,
        /// Mean time from one to the next.
        interval: Duration,
    },
    /// Requests and responses over one connection, one after the other.
    RequestResponse {
        /// Bytes of a request.
        request: Size,
        /// Bytes of a response.
        response: Size,
        /// Time between a response and the next request.
        pause: Duration,
    },
    /// The frames of the scenario's video.
    Video,
}

/// What is written as one message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MessageUnit {
    /// A frame.
    Frames,
    /// A packet of a frame, as the packetiser cuts it.
    Packets,
}

/// A live video in place of a transfer.
#[derive(Clone, PartialEq, Debug)]
pub struct Video {
    /// The trace's name, or its file.
    pub name: String,
    /// Where its pictures are.
    pub footage: Footage,
    /// One pass.
    pub trace: Arc<Trace>,
    /// How many passes.
    pub repeats: u32,
    /// How many in a quick run.
    pub quick_repeats: u32,
    /// Each frame is so many times as long.
    pub load: f64,
    /// The latency of the play-out.
    pub deadline: Duration,
    /// What is written as one message.
    pub messages: MessageUnit,
}

/// Where the pictures of a trace are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Footage {
    /// They come with the program.
    Clip,
    /// In the film, coded for so many Mbit/s; the user may have it.
    Film(u32),
    /// Nowhere: the trace is a user's file.
    Nowhere,
}

/// Which way a transfer goes that is not requests and responses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Heading {
    /// The client sends.
    Upload,
    /// The server sends.
    Download,
}

/// The receive buffer of the connection.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum ReceiveBuffer {
    /// Always this.
    Fixed(Size),
    /// Grows with the rate at which the application reads.
    Auto {
        /// At the start.
        initial: Size,
        /// At most.
        max: Size,
    },
}

/// What both ends are set to; `None` leaves the engine's default.
#[derive(Clone, PartialEq, Debug)]
pub struct Connection {
    /// The application's priority, 1 (highest) to 6.
    pub priority: Option<u8>,
    /// The receive buffer, shared by all subflows.
    pub receive_buffer: ReceiveBuffer,
    /// Bytes out of order take from the window that is offered, as in Linux.
    pub charge_out_of_order: Option<bool>,
    /// Whether the send buffer and the most of an automatic receive buffer are per subflow.
    pub buffers_per_subflow: Option<bool>,
    /// Most bytes written and not acknowledged.
    pub send_buffer: Option<Size>,
    /// Most congestion window of a subflow, in full segments.
    pub max_window: Option<Packets>,
    /// Segments of the initial window.
    pub initial_window: Option<Packets>,
    /// Least retransmission timeout.
    pub min_rto: Option<Duration>,
    /// Retransmission timeout before the first sample.
    pub initial_rto: Option<Duration>,
    /// Timeouts in a row before a subflow is given up.
    pub max_timeouts: Option<u32>,
    /// Longest delay of an acknowledgement.
    pub delayed_ack: Option<Duration>,
    /// Largest IP packet.
    pub mtu: Option<u16>,
    /// Selective acknowledgements.
    pub sack: Option<bool>,
    /// Timestamps.
    pub timestamps: Option<bool>,
    /// Explicit congestion notification.
    pub ecn: Option<bool>,
    /// Nagle's algorithm.
    pub nagle: Option<bool>,
    /// Spread segments over the round trip.
    pub pacing: Option<bool>,
    /// DSS checksums.
    pub checksum: Option<bool>,
}

impl Connection {
    /// Everything at the engine's defaults.
    pub fn untouched() -> Self {
        Self {
            priority: None,
            receive_buffer: ReceiveBuffer::Auto { initial: Size(128_000), max: Size(6_000_000) },
            charge_out_of_order: None,
            buffers_per_subflow: None,
            send_buffer: None,
            max_window: None,
            initial_window: None,
            min_rto: None,
            initial_rto: None,
            max_timeouts: None,
            delayed_ack: None,
            mtu: None,
            sack: None,
            timestamps: None,
            ecn: None,
            nagle: None,
            pacing: None,
            checksum: None,
        }
    }
}

/// Which parameter of the scenario is swept, and over what.
#[derive(Clone, PartialEq, Debug)]
pub struct Sweep {
    /// Dotted path, as for `--set`.
    pub key: String,
    /// What the axis says.
    pub label: String,
    /// Its values, as written.
    pub values: Vec<String>,
    /// Those of a quick run.
    pub quick: Vec<String>,
    /// Seeds per point.
    pub seeds: u32,
    /// What is measured.
    pub metric: String,
    /// Which policies take part, by name; all if empty.
    pub policies: Vec<String>,
}

/// What is made of a series over a stretch of time.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum WindowKind {
    /// Its mean.
    Mean,
    /// The time at which it falls below a level: before it the values are not below, from it on they are, with the fewest
    /// exceptions.
    FallsBelow(f64),
    /// The time at which it rises above a level.
    RisesAbove(f64),
}

/// A number from a stretch of time, beside the built-in ones over the whole run.
#[derive(Clone, PartialEq, Debug)]
pub struct WindowMetric {
    /// Its name.
    pub name: String,
    /// What is shown for it.
    pub label: String,
    /// What is made of the series.
    pub kind: WindowKind,
    /// The series it is made of.
    pub series: crate::metric::Series,
    /// From when to when.
    pub window: (Duration, Option<Duration>),
    /// Of which path, by name; of the connection if none.
    pub path: Option<String>,
}

impl WindowMetric {
    /// Unit of its values.
    pub const fn unit(&self) -> &'static str {
        match self.kind {
            WindowKind::Mean => self.series.unit(),
            WindowKind::FallsBelow(_) | WindowKind::RisesAbove(_) => "s",
        }
    }
}

/// What a figure shows.
#[derive(Clone, PartialEq, Debug)]
pub enum FigureKind {
    /// Series over time.
    Time {
        /// What: one curve per policy, or per path and policy for path series.
        series: Vec<crate::metric::Series>,
        /// From when to when; all of it if none.
        window: Option<(Duration, Option<Duration>)>,
    },
    /// A metric per policy.
    Bars {
        /// Which.
        metric: String,
    },
    /// How a metric is distributed over the runs of each policy.
    Boxes {
        /// Which.
        metric: String,
    },
    /// The sweep.
    Sweep {
        /// Of which metric, if not of the sweep's own.
        metric: Option<String>,
    },
}

/// A figure of the report.
#[derive(Clone, PartialEq, Debug)]
pub struct Figure {
    /// Its name, for claims to refer to.
    pub name: String,
    /// Its heading.
    pub title: String,
    /// What it shows.
    pub kind: FigureKind,
    /// Which policies; all if empty.
    pub policies: Vec<String>,
    /// What the paper's figure shows, in our words.
    pub published: String,
}

/// Which policy is held against all others, paired by seed.
#[derive(Clone, PartialEq, Debug)]
pub struct Differences {
    /// The policy.
    pub policy: String,
    /// In which metrics.
    pub metrics: Vec<String>,
}

/// What a paper says about a metric of a policy.
#[derive(Clone, PartialEq, Debug)]
pub enum Statement {
    /// It is this, in the metric's unit.
    Value(f64),
    /// It differs by so much from that of another policy.
    Change {
        /// The other policy.
        over: String,
        /// By how much.
        change: Change,
    },
    /// It is so much more than that of another policy, in the metric's unit.
    Difference {
        /// The other policy.
        over: String,
        /// How much more; below 0: less.
        more: f64,
    },
    /// It is lower than that of another policy.
    Below(String),
    /// It is higher than that of another policy.
    Above(String),
}

/// A statement of a paper that a run can be held against.
#[derive(Clone, PartialEq, Debug)]
pub struct Claim {
    /// The figure it belongs to.
    pub figure: String,
    /// The metric.
    pub metric: String,
    /// The policy.
    pub policy: String,
    /// What is said.
    pub statement: Statement,
    /// Where the number comes from if the paper does not print it itself.
    pub note: String,
    /// What is to be thought of a difference.
    pub reading: String,
}

/// A whole scenario.
#[derive(Clone, PartialEq, Debug)]
pub struct Scenario {
    /// Its name: letters, digits, `_` and `-`.
    pub name: String,
    /// One line.
    pub title: String,
    /// The paper it comes from, if any.
    pub paper: String,
    /// What it is about and how what the paper leaves open is read.
    pub description: String,
    /// How long a run lasts.
    pub duration: Duration,
    /// What is left out of means at the beginning.
    pub warm_up: Duration,
    /// Runs per policy.
    pub seeds: u32,
    /// Runs per policy of a quick run.
    pub quick_seeds: u32,
    /// Spacing of the time series.
    pub sample: Duration,
    /// What is carried.
    pub transfer: Transfer,
    /// The video, if that is what is carried.
    pub video: Option<Video>,
    /// Who sends it; requests are the client's in any case.
    pub heading: Heading,
    /// What both ends are set to.
    pub connection: Connection,
    /// The paths.
    pub paths: Vec<Path>,
    /// The ad-hoc network whose lanes the paths are, if they are that.
    pub mesh: Option<Mesh>,
    /// The network of moving nodes, in which there are no paths.
    pub moving: Option<Moving>,
    /// Links that all paths share, behind their own.
    pub shared: Vec<Link>,
    /// What is compared.
    pub policies: Vec<crate::contender::Contender>,
    /// Swept parameter.
    pub sweep: Option<Sweep>,
    /// Further metrics.
    pub metrics: Vec<WindowMetric>,
    /// Figures of the report.
    pub figures: Vec<Figure>,
    /// Which policy is held against all others.
    pub differences: Option<Differences>,
    /// What the paper says.
    pub claims: Vec<Claim>,
}
