//! Owns the scheduler, and the episode of a blocked window.

use anabranch_policy::ids::SubflowId;
use anabranch_policy::scheduler::{Chunk, Decision, Needs, Scheduler};
use anabranch_policy::time::Instant;
use anabranch_policy::view::{ConnectionView, SubflowView};

/// The scheduler and the state between its decisions.
pub(super) struct Scheduling {
    pub scheduler: Box<dyn Scheduler>,
    /// What the scheduler wants to see.
    pub needs: Needs,
    /// The episode in which the peer's window is blocked.
    pub blocked: Option<Blocked>,
}

/// Replaces the scheduler while it decides.
pub(super) struct Absent;

impl Scheduler for Absent {
    fn schedule(&mut self, _: &ConnectionView, _: &Chunk, _: &[SubflowView]) -> Decision {
        Decision::Wait(None)
    }
}

/// An episode in which the receive buffer is blocked.
#[derive(Clone, Copy, Debug)]
pub(super) struct Blocked {
    /// When policies are notified again.
    pub repeat_at: Instant,
    /// The data sequence of the hole.
    pub hole: u64,
    /// The subflow that carries its data, if there is one.
    pub culprit: Option<SubflowId>,
    /// Length of that data in bytes.
    pub length: u64,
}

impl Scheduling {
    pub fn new(scheduler: Box<dyn Scheduler>, segments_per_mapping: u32) -> Self {
        let mut needs = scheduler.needs();
        needs.segments_per_mapping = needs.segments_per_mapping.min(segments_per_mapping);
        Self { needs, scheduler, blocked: None }
    }
}

impl Blocked {
    pub fn new(repeat_at: Instant, hole: u64, sender: Option<(SubflowId, u64)>) -> Self {
        let (culprit, length) = (sender.map(|(id, _)| id), sender.map_or(0, |(_, length)| length));
        Self { repeat_at, hole, culprit, length }
    }
}
