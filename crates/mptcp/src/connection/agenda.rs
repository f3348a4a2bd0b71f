//! Which subflows may have something to send, so that the others need not be polled.

use crate::subflow::Subflow;
use anabranch_policy::time::Instant;

/// Number of slots with a bit of their own. Subflows in other slots are polled each time.
pub(super) const SLOTS: usize = 30;

/// Kinds of segments to send.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Task {
    /// A handshake segment, or data.
    Data,
    Acknowledgement,
    /// A tail loss probe.
    Probe,
}

impl Task {
    /// Whether a subflow has such a segment to send, now or later.
    #[inline]
    pub fn is_for(self, subflow: &Subflow) -> bool {
        match self {
            Self::Data => subflow.handshake.due || subflow.has_something_to_send(),
            Self::Acknowledgement => subflow.will_want_acknowledgement(),
            Self::Probe => subflow.due.probe,
        }
    }

    /// Whether a subflow that has such a segment may send it now, as far as its timers say. Pacing of data is not
    /// checked here.
    #[inline]
    pub fn is_due(self, subflow: &Subflow, now: Instant) -> bool {
        match self {
            Self::Data => subflow.handshake.due || subflow.has_something_to_send(),
            Self::Acknowledgement => subflow.wants_acknowledgement(now),
            Self::Probe => subflow.due.probe,
        }
    }
}

/// The tasks of each subflow when it was last polled: a bit for each slot.
#[derive(Clone, Copy, Debug)]
pub(super) struct Agenda {
    data: u32,
    acknowledgements: u32,
    probes: u32,
    /// Of those with data, those that pacing delays until [`Self::paced_until`].
    paced: u32,
    /// Subflows that may have changed since [`Self::take_unrecorded`].
    unrecorded: u32,
    /// May have changed since [`Self::take_unarmed`].
    unarmed: u32,
    paced_until: Instant,
}

impl Agenda {
    /// No subflow was polled.
    pub const NEW: Self = Self {
        data: 0,
        acknowledgements: 0,
        probes: 0,
        paced: 0,
        unrecorded: u32::MAX,
        unarmed: u32::MAX,
        paced_until: Instant::NEVER,
    };

    /// Polls the subflows that may have changed.
    #[inline]
    pub fn ask(&mut self, mut changed: u32, slots: &[Subflow]) {
        self.unrecorded |= changed;
        self.unarmed |= changed;
        self.paced &= !changed;
        while let Some(slot) = first(changed) {
            let bit = 1 << slot;
            changed &= !bit;
            self.data &= !bit;
            self.acknowledgements &= !bit;
            self.probes &= !bit;
            let Some(subflow) = slots.get(slot).filter(|subflow| !subflow.liveness.removed) else { continue };
            self.data |= u32::from(Task::Data.is_for(subflow)) << slot;
            self.acknowledgements |= u32::from(Task::Acknowledgement.is_for(subflow)) << slot;
            self.probes |= u32::from(Task::Probe.is_for(subflow)) << slot;
        }
    }

    /// Whether every task of these subflows is recorded.
    pub fn is_of(&self, slots: &[Subflow]) -> bool {
        slots.iter().take(SLOTS).enumerate().filter(|(_, subflow)| !subflow.liveness.removed).all(|(slot, subflow)| {
            [Task::Data, Task::Acknowledgement, Task::Probe]
                .iter()
                .all(|task| (self.of(*task) & 1 << slot != 0) == task.is_for(subflow))
        })
    }

    /// The slots with this task.
    pub fn of(&self, task: Task) -> u32 {
        match task {
            Task::Data => self.data,
            Task::Acknowledgement => self.acknowledgements,
            Task::Probe => self.probes,
        }
    }

    /// The slots with this task, without those that pacing delays.
    #[inline]
    pub fn able(&mut self, now: Instant, task: Task) -> u32 {
        if self.paced_until <= now {
            (self.paced, self.paced_until) = (0, Instant::NEVER);
        }
        self.of(task) & !if task == Task::Data { self.paced } else { 0 }
    }

    /// Pacing delays the subflow in a slot until then.
    pub fn pace(&mut self, slot: usize, until: Instant) {
        // Its timer was set.
        self.unarmed |= 1 << slot.min(SLOTS);
        if slot < SLOTS {
            self.paced |= 1 << slot;
            self.paced_until = self.paced_until.min(until);
        }
    }

    /// Those whose deadlines may have changed since the last call.
    pub fn take_unarmed(&mut self) -> u32 {
        core::mem::take(&mut self.unarmed)
    }

    /// The slots that may have changed since the last call.
    pub fn take_unrecorded(&mut self) -> u32 {
        core::mem::take(&mut self.unrecorded)
    }
}

/// The lowest slot whose bit is set.
#[inline]
pub(super) fn first(bits: u32) -> Option<usize> {
    (bits != 0).then(|| bits.trailing_zeros() as usize).filter(|slot| *slot < SLOTS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::subflow::{Identity, State};
    use anabranch_policy::ids::{AddressId, SubflowId};
    use anabranch_wire::SeqNumber;

    const TASKS: [Task; 3] = [Task::Data, Task::Acknowledgement, Task::Probe];

    fn at(millis: u64) -> Instant {
        Instant::from_nanos(millis * 1_000_000)
    }

    fn slots(count: u32) -> Vec<Subflow> {
        let (local, remote) = (([10, 0, 0, 1], 5_000).into(), ([10, 0, 0, 2], 80).into());
        let (local_address, remote_address) = (AddressId(1), AddressId(0));
        let identity = |id| Identity { id: SubflowId(id), local, remote, local_address, remote_address };
        let new = |id| Subflow::new(identity(id), State::Established, SeqNumber(0), Instant::ZERO);
        let mut slots: Vec<_> = (0..count).map(new).collect();
        slots.iter_mut().for_each(|subflow| subflow.handshake.due = false);
        slots
    }

    fn turn_over(subflow: &mut Subflow, task: Task) {
        match task {
            Task::Data => subflow.handshake.due = !subflow.handshake.due,
            Task::Acknowledgement => subflow.due.keepalive = !subflow.due.keepalive,
            Task::Probe => subflow.due.probe = !subflow.due.probe,
        }
    }

    #[test]
    fn a_task_that_came_or_went_unmarked_is_noticed_on_each_subflow() {
        let mut slots = slots(5);
        let mut agenda = Agenda::NEW;
        agenda.ask(u32::MAX, &slots);
        assert!(agenda.is_of(&slots));
        for (slot, task) in (0..5).flat_map(|slot| TASKS.map(|task| (slot, task))) {
            for there in [!task.is_for(&slots[slot]), task.is_for(&slots[slot])] {
                let before = agenda.of(task);
                turn_over(&mut slots[slot], task);
                assert_eq!(task.is_for(&slots[slot]), there);
                assert!(!agenda.is_of(&slots), "{task:?} of {slot}");
                slots[slot].liveness.removed = true;
                assert!(agenda.is_of(&slots), "nobody is left to do it");
                slots[slot].liveness.removed = false;
                agenda.ask(1 << slot, &slots);
                assert!(agenda.is_of(&slots));
                assert_eq!(agenda.of(task), before ^ 1 << slot, "of the others nothing has changed");
            }
        }
    }

    #[test]
    fn of_the_bits_those_of_a_slot_are_met_the_lowest_first() {
        assert_eq!([0b1, 0b1100, 1 << 29, u32::MAX].map(first), [Some(0), Some(2), Some(29), Some(0)]);
        assert_eq!([0, 1 << 30, 1 << 31].map(first), [None; 3], "of no slot");
    }

    #[test]
    fn changes_add_up_until_they_are_taken() {
        let slots = slots(5);
        let mut agenda = Agenda::NEW;
        assert_eq!(
            (agenda.take_unrecorded(), agenda.take_unarmed()),
            (u32::MAX, u32::MAX),
            "at first all have changed"
        );
        agenda.ask(0b00101, &slots);
        agenda.ask(0b10001, &slots);
        assert_eq!((agenda.take_unrecorded(), agenda.take_unarmed()), (0b10101, 0b10101));
        assert_eq!((agenda.take_unrecorded(), agenda.take_unarmed()), (0, 0));
    }

    #[test]
    fn pacing_delays_data_alone_and_a_paced_subflow_is_asked_for_its_deadline() {
        let mut slots = slots(30);
        slots.iter_mut().for_each(|subflow| TASKS.into_iter().for_each(|task| turn_over(subflow, task)));
        let mut agenda = Agenda::NEW;
        agenda.ask(u32::MAX, &slots);
        let all = agenda.of(Task::Data);
        assert_eq!(all, (1 << 30) - 1);
        agenda.take_unarmed();
        agenda.pace(3, at(9));
        agenda.pace(29, at(7));
        assert_eq!(agenda.take_unarmed(), 1 << 3 | 1 << 29);
        assert_eq!(agenda.take_unarmed(), 0);
        // One without a bit is polled each time: its deadline is asked for, and the others' pacing does not end by it.
        agenda.pace(30, at(2));
        agenda.pace(35, at(3));
        assert_eq!(agenda.take_unarmed(), 1 << 30);
        assert_eq!(agenda.able(at(6), Task::Data), all & !(1 << 3 | 1 << 29));
        assert_eq!((agenda.able(at(6), Task::Acknowledgement), agenda.able(at(6), Task::Probe)), (all, all));
        assert_eq!(agenda.able(at(7), Task::Data), all, "all are asked again at the earliest of their times");
    }
}
