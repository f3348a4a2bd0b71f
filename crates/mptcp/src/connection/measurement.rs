//! Measurements for the path manager.

use super::opening::Opening;
use crate::subflow::delay_meter::DelayMeter;
use anabranch_policy::ids::SubflowMap;
use anabranch_policy::path_manager::{ForwardDelays, Measurements};
use anabranch_policy::time::{Duration, Instant};

/// The path manager's measurements.
#[derive(Debug)]
pub(super) struct Measurement {
    /// Interval between measurements: zero for never, [`Duration::MAX`] for once per round trip.
    pub every: Duration,
    /// Segments sent and received at the last measurement, modulo 2^32; 0 before.
    pub moved: u32,
    /// State of the measurement of one-way delays, if the path manager asks for it.
    pub watch: Option<Box<ReceiverWatch>>,
}

/// One-way delays, and whether the receive buffer is blocked, as measured by the receiver.
#[derive(Debug)]
pub(super) struct ReceiverWatch {
    pub of: ForwardDelays,
    /// The first difference of the two clocks: the zero of all delays.
    pub reference: Option<u32>,
    pub meters: SubflowMap<DelayMeter>,
    /// When the path manager is notified again of a blocked receive buffer; never if it is not blocked.
    pub repeat_at: Instant,
}

impl Measurement {
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
    /// None if nothing is measured.
    pub fn of(of: ForwardDelays) -> Option<Box<Self>> {
        let new = || Box::new(Self { of, reference: None, meters: SubflowMap::new(), repeat_at: Instant::NEVER });
        (of != ForwardDelays::Unmeasured).then(new)
    }
}
