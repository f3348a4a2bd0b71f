//! What a scenario says of generators of cross traffic: what they send, on which routers they hang, and by what link.

use super::network::{Draw, Queue};
use anabranch_policy::rate::Rate;
use anabranch_policy::time::Duration;

/// Sources of cross traffic that hang on routers of the paths, and their sinks, which hang on others.
#[derive(Clone, PartialEq, Debug)]
pub struct Generator {
    /// Its name.
    pub name: String,
    /// What each source sends.
    pub kind: GeneratorKind,
    /// Sources on each of the routes.
    pub count: u32,
    /// From where to where.
    pub routes: Vec<GeneratorRoute>,
    /// The link of each source and of each sink to its router.
    pub access: AccessLink,
    /// When a source starts; each draws its own time.
    pub start: Draw<Duration>,
}

/// What a source sends.
#[derive(Clone, PartialEq, Debug)]
pub enum GeneratorKind {
    /// A file without end, over a TCP as ns-2 has it by default.
    Ftp {
        /// Most packets under way; none: no limit.
        window: Option<u64>,
        /// Congestion control.
        congestion: String,
    },
    /// UDP packets of various sizes at one bit rate.
    Vbr {
        /// Bytes with IP header count.
        rate: Rate,
        /// Least and most bytes of a packet with IP header.
        sizes: (u32, u32),
        /// Mean times on and off; none: always on.
        on_off: Option<(Duration, Duration)>,
    },
}

/// From one router of a path to another.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct GeneratorRoute {
    /// The path, by its place.
    pub path: usize,
    /// Name of the router of the source, and its place: so many links lie before it.
    pub from: (String, usize),
    /// The same of the sink.
    pub to: (String, usize),
}

/// A link between a host and a router, the same in both directions.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct AccessLink {
    /// How fast it sends.
    pub rate: Rate,
    /// Propagation delay.
    pub delay: Duration,
    /// The queue before it.
    pub queue: Queue,
}
