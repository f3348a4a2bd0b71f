//! A point of the design: network, settings of both ends, and changes during the run.

use serde::Serialize;

/// The part of the parameter space that a point belongs to.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Class {
    /// RTT up to 50 ms, queues up to 100 ms.
    LowBdp,
    /// `LowBdp` with random loss.
    LowBdpLossy,
    /// RTT up to 400 ms, queues up to 2 s.
    HighBdp,
    /// `HighBdp` with random loss.
    HighBdpLossy,
    /// Any of the above, with a change during the run.
    Changing,
    /// 10 to 50 connections of the same policy.
    Crowd,
    /// With competing TCP CUBIC.
    BesideCubic,
    /// With competing TCP NewReno.
    BesideNewReno,
    /// With competing TCP BBR.
    BesideBbr,
    /// Two paths over one bottleneck, with competing CUBIC.
    SharedBottleneck,
    /// CoDel queues, with competing CUBIC.
    #[serde(rename = "codel")]
    CoDel,
    /// Paths that pause while packets wait in their queues.
    Pauses,
    /// Wi-Fi and cellular while walking.
    Walk,
    /// A low-orbit satellite with a handover every 15 s, and a cellular network.
    Satellite,
}

impl Class {
    /// Classes of the first design.
    pub const ALL: [Self; 5] = [Self::LowBdp, Self::LowBdpLossy, Self::HighBdp, Self::HighBdpLossy, Self::Changing];

    /// Classes of the second design.
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

    /// Name in result files.
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

/// A path: one link in each direction.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct PointPath {
    /// Initial rate, Mbit/s.
    pub rate: f64,
    /// RTT without queueing, ms.
    pub round_trip: f64,
    /// Queueing delay of a full queue, ms, at the initial rate.
    pub queueing: f64,
    /// Queue capacity in packets, each direction.
    pub queue: u64,
    /// Loss ratio in the direction of data.
    pub loss: f64,
    /// Later rates in order of time: seconds and Mbit/s, linearly interpolated. Of two entries for one time, the second
    /// applies from then on.
    pub rates: Vec<(f64, f64)>,
    /// Outage, start and end in seconds; no end: permanent.
    pub down: Option<(f64, Option<f64>)>,
    /// Pauses in seconds, in which packets wait in the queue.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub paused: Vec<(f64, f64)>,
    /// Maximum RTT in ms if it varies from [`Self::round_trip`] up to this, and the interval of draws in seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub varying: Option<(f64, f64)>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub codel: bool,
}

/// Phases of a run, seconds.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Span {
    /// Not measured.
    pub warm_up: f64,
    /// Measured.
    pub counted: f64,
}

/// A network with the settings of its ends.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Point {
    /// Seed of the design.
    pub seed: u32,
    /// Index in the sequence, from 0.
    pub number: u32,
    pub class: Class,
    /// The paths; the initial subflow uses the first.
    pub paths: Vec<PointPath>,
    /// Receive buffer requested by the application, bytes; none: automatic.
    pub receive_buffer: Option<u64>,
    /// Whether the server sends instead of the client.
    pub download: bool,
    pub change: Option<Change>,
    pub span: Span,
    /// Competing connections, in the second design.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub competition: Option<Competition>,
}

#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Competition {
    /// Connections of the policy under test or of TCP.
    pub connections: u32,
    /// Competing TCP: congestion control, connections, and indices of the paths; each of these has that many
    /// connections.
    pub others: Option<(&'static str, u32, Vec<usize>)>,
    /// A bottleneck shared by all paths.
    pub shared: Option<PointPath>,
}

/// A change during the run.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Change {
    /// One path's rate has one or two steps up and down.
    Steps,
    /// The rates of all paths vary randomly.
    Wander,
    /// A path is down for some seconds.
    Failure,
    /// A path fails permanently.
    Loss,
    /// One path fades out while another fades in.
    Handover,
}

impl Change {
    /// All changes, each with an equal share of the points.
    pub const ALL: [Self; 5] = [Self::Steps, Self::Wander, Self::Failure, Self::Loss, Self::Handover];

    /// Name in result files.
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

/// Coordinates of a point.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    /// Seed of the design.
    pub seed: u32,
    /// Index in the sequence.
    pub number: u32,
}

impl Place {
    /// Coordinate in a dimension, in [0, 1).
    pub fn at(self, dimension: u32) -> f64 {
        f64::from(sobol_burley::sample(self.number, dimension, self.seed))
    }
    /// Coordinate scaled to `low` to `high`.
    pub fn between(self, dimension: u32, low: f64, high: f64) -> f64 {
        low + (high - low) * self.at(dimension)
    }
    /// An index below `count`, all equally likely.
    pub fn one_of(self, dimension: u32, count: usize) -> usize {
        (self.at(dimension) * count as f64) as usize
    }
}
