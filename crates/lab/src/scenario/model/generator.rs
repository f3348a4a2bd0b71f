//! Generators of cross traffic: their traffic, the routers they are attached to, and their links.

use super::network::{Draw, Queue};
use anabranch_policy::rate::Rate;
use anabranch_policy::time::Duration;

/// Sources of cross traffic at routers of the paths, with sinks at other routers.
#[derive(Clone, PartialEq, Debug)]
pub struct Generator {
    pub name: String,
    pub kind: GeneratorKind,
    /// Sources per route.
    pub count: u32,
    pub routes: Vec<GeneratorRoute>,
    /// Link of each source and sink to its router.
    pub access: AccessLink,
    /// Start time; drawn per source.
    pub start: Draw<Duration>,
}

/// Traffic of a source.
#[derive(Clone, PartialEq, Debug)]
pub enum GeneratorKind {
    /// An endless file over TCP with the defaults of ns-2.
    Ftp {
        /// Maximum packets in flight; none: unlimited.
        window: Option<u64>,
        /// Congestion control.
        congestion: String,
    },
    /// UDP packets of various sizes at a constant bit rate.
    Vbr {
        /// Including IP headers.
        rate: Rate,
        /// Minimum and maximum packet size in bytes, with IP header.
        sizes: (u32, u32),
        /// Mean on- and off-times; none: always on.
        on_off: Option<(Duration, Duration)>,
    },
}

/// From one router of a path to another.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct GeneratorRoute {
    /// Index of the path.
    pub path: usize,
    /// Name of the source's router, and its index: the number of links before it.
    pub from: (String, usize),
    /// Likewise for the sink.
    pub to: (String, usize),
}

/// A symmetric link between a host and a router.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct AccessLink {
    pub rate: Rate,
    /// Propagation delay.
    pub delay: Duration,
    pub queue: Queue,
}
