//! A point of the design: a network, the settings of its ends, and what changes.

use serde::Serialize;

/// Which part of the space a point belongs to.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Class {
    /// Round trips up to 50 ms, queues up to 100 ms.
    LowBdp,
    /// The same with random loss.
    LowBdpLossy,
    /// Round trips up to 400 ms, queues up to 2 s.
    HighBdp,
    /// The same with random loss.
    HighBdpLossy,
    /// Of all these, and something changes within the run.
    Changing,
    /// 10 to 50 connections alike.
    Crowd,
    /// Beside TCP with CUBIC.
    BesideCubic,
    /// Beside TCP with NewReno.
    BesideNewReno,
    /// Beside TCP with BBR.
    BesideBbr,
    /// Two paths over one bottleneck, beside CUBIC.
    SharedBottleneck,
    /// Queues with CoDel, beside CUBIC.
    #[serde(rename = "codel")]
    CoDel,
    /// Paths that pause while their queues wait.
    Pauses,
    /// Wi-Fi and a cellular network on a walk.
    Walk,
    /// A satellite in a low orbit, handed over every 15 s, and a cellular network.
    Satellite,
}

impl Class {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::LowBdp, Self::LowBdpLossy, Self::HighBdp, Self::HighBdpLossy, Self::Changing];

    /// Those of the second design.
    pub const COMPETITION: [Self; 9] = [
        Self::Crowd,
        Self::BesideCubic,
        Self::BesideNewReno,
        Self::BesideBbr,
        Self::SharedBottleneck,
        Self::CoDel,
        Self::Pauses,
        Self::Walk,
        Self::Satellite,
    ];

    /// As in results.
    pub const fn name(self) -> &'static str {
        match self {
            Self::LowBdp => "low_bdp",
            Self::LowBdpLossy => "low_bdp_lossy",
            Self::HighBdp => "high_bdp",
            Self::HighBdpLossy => "high_bdp_lossy",
            Self::Changing => "changing",
            Self::Crowd => "crowd",
            Self::BesideCubic => "beside_cubic",
            Self::BesideNewReno => "beside_new_reno",
            Self::BesideBbr => "beside_bbr",
            Self::SharedBottleneck => "shared_bottleneck",
            Self::CoDel => "codel",
            Self::Pauses => "pauses",
            Self::Walk => "walk",
            Self::Satellite => "satellite",
        }
    }
}

/// A path: one link each way.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct PointPath {
    /// Mbit/s, at the beginning.
    pub rate: f64,
    /// Round trip without queues, ms.
    pub round_trip: f64,
    /// What a full queue holds a packet up, ms, at this rate.
    pub queueing: f64,
    /// Packets of the queue each way.
    pub queue: u64,
    /// Share of packets lost in the direction of the data.
    pub loss: f64,
    /// Other rates: when, in seconds, and Mbit/s, in order of time; in between there are straight lines, and of two of the
    /// same time the later holds from then on.
    pub rates: Vec<(f64, f64)>,
    /// When it carries nothing, in seconds; without an end: for good.
    pub down: Option<(f64, Option<f64>)>,
    /// When it sends nothing and its queue waits, in seconds.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub paused: Vec<(f64, f64)>,
    /// Most of the round trip, ms, if it varies from [`Self::round_trip`] up to that; how often it is drawn anew, in seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub varying: Option<(f64, f64)>,
    /// Whether its queue is CoDel's.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub codel: bool,
}

/// How long a run lasts, in seconds.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Span {
    /// Not counted.
    pub warm_up: f64,
    /// Counted.
    pub counted: f64,
}

/// A network with what its ends are set to.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Point {
    /// Seed of the design.
    pub seed: u32,
    /// Place in the sequence, from 0.
    pub number: u32,
    /// Where it belongs.
    pub class: Class,
    /// The paths; the initial subflow is on the first.
    pub paths: Vec<PointPath>,
    /// The receive buffer that the program asks for, bytes; none: automatic.
    pub receive_buffer: Option<u64>,
    /// Whether the server sends rather than the client.
    pub download: bool,
    /// What changes, if anything does.
    pub change: Option<Change>,
    /// Of its runs.
    pub span: Span,
    /// Who competes, on points of the second design.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub competition: Option<Competition>,
}

/// Who competes.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Competition {
    /// Connections of the policy, or of TCP.
    pub connections: u32,
    /// TCP of others: congestion control, connections, and the places of the paths on which so many are each.
    pub others: Option<(&'static str, u32, Vec<usize>)>,
    /// A bottleneck behind all paths.
    pub shared: Option<PointPath>,
}

/// What changes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Change {
    /// The rate of one path or two steps up and down.
    Steps,
    /// The rates of all paths wander.
    Wander,
    /// A path is down for some seconds.
    Failure,
    /// A path is down for good.
    Loss,
    /// One path fades out while another fades in.
    Handover,
}

impl Change {
    /// All of them, each on an equal share of the points.
    pub const ALL: [Self; 5] = [Self::Steps, Self::Wander, Self::Failure, Self::Loss, Self::Handover];

    /// As in results.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Steps => "steps",
            Self::Wander => "wander",
            Self::Failure => "failure",
            Self::Loss => "loss",
            Self::Handover => "handover",
        }
    }
}

/// The coordinates of a point.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    /// Seed of the design.
    pub seed: u32,
    /// Place in the sequence.
    pub number: u32,
}

impl Place {
    /// Where the point lies in a dimension, from 0 (included) to 1 (excluded).
    pub fn at(self, dimension: u32) -> f64 {
        f64::from(sobol_burley::sample(self.number, dimension, self.seed))
    }
    /// The same, from `low` to `high`.
    pub fn between(self, dimension: u32, low: f64, high: f64) -> f64 {
        low + (high - low) * self.at(dimension)
    }
    /// One of `count`, each of an equal share.
    pub fn one_of(self, dimension: u32, count: usize) -> usize {
        (self.at(dimension) * count as f64) as usize
    }
}
