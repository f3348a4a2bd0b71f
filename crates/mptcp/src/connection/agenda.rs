//! Which subflows may have something to do, so that the others are not asked each time.

use crate::subflow::Subflow;
use anabranch_policy::time::Instant;

/// How many slots have a bit of their own; subflows in further ones are asked each time.
pub(super) const SLOTS: usize = 30;

/// Something to do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Task {
    /// A segment of a handshake, or data.
    Data,
    /// A bare acknowledgement.
    Acknowledgement,
}

impl Task {
    /// Whether a subflow has it to do, sooner or later.
    #[inline]
    pub fn is_for(self, subflow: &Subflow) -> bool {
        match self {
            Self::Data => subflow.handshake.due || subflow.has_something_to_send(),
            Self::Acknowledgement => subflow.will_want_acknowledgement(),
        }
    }

    /// Whether one that has it to do can do it now, as far as time goes; with data pacing may keep it back, which is not asked here.
    #[inline]
    pub fn is_due(self, subflow: &Subflow, now: Instant) -> bool {
        match self {
            Self::Data => subflow.handshake.due || subflow.has_something_to_send(),
            Self::Acknowledgement => subflow.wants_acknowledgement(now),
        }
    }
}

/// What each subflow had to do when it was asked last: a bit for each slot.
#[derive(Clone, Copy, Debug)]
pub(super) struct Agenda {
    data: u32,
    acknowledgements: u32,
    /// Of those with data, those that pacing lets send nothing before [`Self::paced_until`].
    paced: u32,
    /// May have changed since [`Self::take_unrecorded`].
    unrecorded: u32,
    paced_until: Instant,
}

impl Agenda {
    /// Nobody has been asked.
    pub const NEW: Self =
        Self { data: 0, acknowledgements: 0, paced: 0, unrecorded: u32::MAX, paced_until: Instant::NEVER };

    /// Asks those that may have changed.
    #[inline]
    pub fn ask(&mut self, mut changed: u32, slots: &[Subflow]) {
        self.unrecorded |= changed;
        self.paced &= !changed;
        while let Some(slot) = first(changed) {
            let bit = 1 << slot;
            changed &= !bit;
            self.data &= !bit;
            self.acknowledgements &= !bit;
            let Some(subflow) = slots.get(slot).filter(|subflow| !subflow.liveness.removed) else { continue };
            self.data |= u32::from(Task::Data.is_for(subflow)) << slot;
            self.acknowledgements |= u32::from(Task::Acknowledgement.is_for(subflow)) << slot;
        }
    }

    /// Whether it says of all subflows what they would.
    pub fn is_of(&self, slots: &[Subflow]) -> bool {
        slots.iter().take(SLOTS).enumerate().filter(|(_, subflow)| !subflow.liveness.removed).all(|(slot, subflow)| {
            [Task::Data, Task::Acknowledgement]
                .iter()
                .all(|task| (self.of(*task) & 1 << slot != 0) == task.is_for(subflow))
        })
    }

    /// Whose task it is.
    pub fn of(&self, task: Task) -> u32 {
        match task {
            Task::Data => self.data,
            Task::Acknowledgement => self.acknowledgements,
        }
    }

    /// The same, without those that pacing keeps back now.
    #[inline]
    pub fn able(&mut self, now: Instant, task: Task) -> u32 {
        if self.paced_until <= now {
            (self.paced, self.paced_until) = (0, Instant::NEVER);
        }
        self.of(task) & !if task == Task::Data { self.paced } else { 0 }
    }

    /// The subflow in a slot may send nothing before then.
    pub fn pace(&mut self, slot: usize, until: Instant) {
        if slot < SLOTS {
            self.paced |= 1 << slot;
            self.paced_until = self.paced_until.min(until);
        }
    }

    /// Those that may have changed since the last call.
    pub fn take_unrecorded(&mut self) -> u32 {
        core::mem::take(&mut self.unrecorded)
    }
}

/// The first slot with a bit, of those that have one.
#[inline]
pub(super) fn first(bits: u32) -> Option<usize> {
    (bits != 0).then(|| bits.trailing_zeros() as usize).filter(|slot| *slot < SLOTS)
}
