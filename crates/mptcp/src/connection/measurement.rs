//! What is measured for the path manager, and how often.

use super::opening::Opening;
use crate::subflow::delay_meter::DelayMeter;
use anabranch_policy::ids::SubflowMap;
use anabranch_policy::path_manager::{ForwardDelays, Measurements};
use anabranch_policy::time::{Duration, Instant};

/// The path manager's measurements.
#[derive(Debug)]
pub(super) struct Measurement {
    /// How often it wants them: zero never, [`Duration::MAX`] once per round trip.
    pub every: Duration,
    /// Segments sent and received when it was last measured, modulo 2^32; 0 before.
    pub moved: u32,
    /// What it wants measured of forward delays, if anything.
    pub watch: Option<Box<ReceiverWatch>>,
}

/// The forward delays that a path manager asked for, and when the receive buffer is blocked as the receiving end sees it.
#[derive(Debug)]
pub(super) struct ReceiverWatch {
    pub of: ForwardDelays,
    /// The difference of the two ends' clocks that was seen first: the zero of all delays.
    pub reference: Option<u32>,
    pub meters: SubflowMap<DelayMeter>,
    /// The receive buffer is blocked, and this is when the path manager hears of it again; else never.
    pub repeat_at: Instant,
}

impl Measurement {
    /// Nothing measured.
    pub fn new(opening: &Opening) -> Self {
        let every = match opening.measurements {
            Measurements::Never => Duration::ZERO,
            Measurements::EveryRoundTrip => Duration::MAX,
            Measurements::Every(interval) => interval.max(Duration::from_millis(1)),
        };
        Self { every, moved: 0, watch: ReceiverWatch::of(opening.forward_delays) }
    }
}

impl ReceiverWatch {
    /// None if nothing is asked for.
    pub fn of(of: ForwardDelays) -> Option<Box<Self>> {
        let new = || Box::new(Self { of, reference: None, meters: SubflowMap::new(), repeat_at: Instant::NEVER });
        (of != ForwardDelays::Unmeasured).then(new)
    }
}
