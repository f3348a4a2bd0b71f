//! The scheduler, and the episode in which the peer's window is blocked.

use anabranch_policy::ids::SubflowId;
use anabranch_policy::scheduler::Scheduler;
use anabranch_policy::time::Instant;

/// The scheduler and what is remembered between its decisions.
pub(super) struct Scheduling {
    /// Decides which subflow gets which data.
    pub scheduler: Box<dyn Scheduler>,
    /// What the scheduler says of silent subflows ([`Scheduler::silence`]); 0 if nothing.
    pub silence: f32,
    /// The episode in which the peer's window is blocked, if it is.
    pub blocked: Option<Blocked>,
}

/// An episode in which the receive buffer is blocked.
#[derive(Clone, Copy, Debug)]
pub(super) struct Blocked {
    /// When policies hear of it again.
    pub repeat_at: Instant,
    /// The data sequence of the hole.
    pub hole: u64,
    /// Who carries it, if anybody does.
    pub culprit: Option<SubflowId>,
    /// How much of it, bytes.
    pub length: u64,
}

impl Scheduling {
    /// Nothing is blocked.
    pub fn new(scheduler: Box<dyn Scheduler>) -> Self {
        Self { silence: scheduler.silence().unwrap_or(0.0), scheduler, blocked: None }
    }
}

impl Blocked {
    pub fn new(repeat_at: Instant, hole: u64, holder: Option<(SubflowId, u64)>) -> Self {
        let (culprit, length) = (holder.map(|(id, _)| id), holder.map_or(0, |(_, length)| length));
        Self { repeat_at, hole, culprit, length }
    }
}
