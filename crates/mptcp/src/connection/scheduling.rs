//! The scheduler, and the episode in which the peer's window is blocked.

use anabranch_policy::ids::SubflowId;
use anabranch_policy::scheduler::{Chunk, Decision, Needs, Scheduler};
use anabranch_policy::time::Instant;
use anabranch_policy::view::{ConnectionView, SubflowView};

/// The scheduler and what is remembered between its decisions.
pub(super) struct Scheduling {
    /// Decides which subflow gets which data.
    pub scheduler: Box<dyn Scheduler>,
    /// What the scheduler looks at.
    pub needs: Needs,
    /// The episode in which the peer's window is blocked, if it is.
    pub blocked: Option<Blocked>,
}

/// Stands in the scheduler's place while it decides.
pub(super) struct Absent;

impl Scheduler for Absent {
    fn schedule(&mut self, _: &ConnectionView, _: &Chunk, _: &[SubflowView]) -> Decision {
        Decision::Wait(None)
    }
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
    pub fn new(scheduler: Box<dyn Scheduler>, shared_mappings: bool) -> Self {
        let mut needs = scheduler.needs();
        if !shared_mappings {
            needs.segments_per_mapping = 1;
        }
        Self { needs, scheduler, blocked: None }
    }
}

impl Blocked {
    pub fn new(repeat_at: Instant, hole: u64, sender: Option<(SubflowId, u64)>) -> Self {
        let (culprit, length) = (sender.map(|(id, _)| id), sender.map_or(0, |(_, length)| length));
        Self { repeat_at, hole, culprit, length }
    }
}
