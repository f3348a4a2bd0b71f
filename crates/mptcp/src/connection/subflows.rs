//! The subflows of a connection, with handles that stay valid while one input is handled.

use super::agenda::{Agenda, SLOTS, Task, first};
use crate::subflow::Subflow;
use anabranch_policy::ids::SubflowId;
use anabranch_policy::time::Instant;
use core::ops::{Index, IndexMut};

/// Position of a subflow. Valid until [`Subflows::sweep`], whatever is added or removed before.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Handle(usize);

/// The subflows in order of id. A removed subflow keeps its slot, reachable only by its handle, until the present input
/// has been handled.
#[derive(Debug)]
pub(super) struct Subflows {
    slots: Vec<Subflow>,
    changed: Changed,
    /// Used only with many subflows.
    agenda: Option<Box<Agenda>>,
}

/// Which subflows may have changed since the last query: a bit for each slot; of each half, the last bit but one is for
/// all further slots. The lower half is for views, the upper one for the agenda.
#[derive(Clone, Copy, Debug)]
struct Changed(u64);

impl Changed {
    /// Slots from here on share a bit.
    const REST: usize = SLOTS;
    /// Subflows were added or removed since the last query for views.
    const MEMBERS: u64 = 1 << (Self::REST + 1);
    /// Subflows were added or removed since the last [`Subflows::sweep`].
    const UNSWEPT: u64 = 1 << 63;
    const BOTH: u64 = 1 << 32 | 1;
    const ALL: Self = Self(u64::MAX);

    #[inline]
    fn mark(&mut self, slot: usize) {
        self.0 |= Self::BOTH << slot.min(Self::REST);
    }

    fn mark_shown(&mut self, slot: usize) {
        self.0 |= 1 << slot.min(Self::REST);
    }

    fn mark_all(&mut self) {
        self.0 |= !(Self::MEMBERS | Self::UNSWEPT);
    }

    /// Clears the changes for views; returns them.
    fn take_shown(&mut self) -> u32 {
        let shown = self.0 as u32;
        self.0 &= !u64::from(u32::MAX);
        shown
    }

    /// Clears the changes for the agenda; returns them.
    #[inline]
    fn take_for_agenda(&mut self) -> u32 {
        let changed = (self.0 >> 32) as u32;
        self.0 &= u64::from(u32::MAX) | Self::UNSWEPT;
        changed & !(1 << 31)
    }
}

impl Default for Subflows {
    fn default() -> Self {
        Self { slots: Vec::new(), changed: Changed::ALL, agenda: None }
    }
}

impl Subflows {
    /// Up to this number, polling every subflow is cheaper than an agenda.
    const FEW: usize = 3;

    pub fn push(&mut self, subflow: Subflow) -> Handle {
        // One slot more, not twice as many: unused slots would be most of the memory of an idle connection.
        self.slots.reserve_exact(1);
        self.slots.push(subflow);
        self.changed = Changed::ALL;
        Handle(self.slots.len() - 1)
    }

    pub fn remove(&mut self, handle: Handle) {
        self[handle].liveness.removed = true;
        self.changed = Changed::ALL;
    }

    /// Whether any were removed since [`Self::sweep`].
    #[inline]
    pub fn lost_members(&self) -> bool {
        self.changed.0 & Changed::UNSWEPT != 0 && self.slots.iter().any(|subflow| subflow.liveness.removed)
    }

    /// After an input: removes closed subflows, and with them all handles.
    #[inline]
    pub fn sweep(&mut self) {
        if self.changed.0 & Changed::UNSWEPT != 0 {
            self.forget_removed();
        }
    }

    #[inline(never)]
    fn forget_removed(&mut self) {
        if self.lost_members() {
            self.slots.retain(|subflow| !subflow.liveness.removed);
            self.changed = Changed::ALL;
        }
        self.changed.0 &= !Changed::UNSWEPT;
    }

    /// The subflow, unless it was removed.
    pub fn live(&self, handle: Handle) -> Option<&Subflow> {
        self.slots.get(handle.0).filter(|subflow| !subflow.liveness.removed)
    }

    /// The subflow, unless it was removed.
    pub fn live_mut(&mut self, handle: Handle) -> Option<&mut Subflow> {
        self.changed.mark(handle.0);
        self.slots.get_mut(handle.0).filter(|subflow| !subflow.liveness.removed)
    }

    /// Whether the subflow was not removed.
    pub fn has(&self, handle: Handle) -> bool {
        self.live(handle).is_some()
    }

    #[inline]
    pub fn handle_of(&self, id: SubflowId) -> Option<Handle> {
        // As long as none was removed, ids equal slots.
        let slot = id.0 as usize;
        let found = self.slots.get(slot).filter(|subflow| subflow.id() == id && !subflow.liveness.removed);
        if found.is_some() { Some(Handle(slot)) } else { self.find(|subflow| subflow.id() == id) }
    }

    /// The first subflow that satisfies `of`.
    #[inline]
    pub fn find(&self, of: impl Fn(&Subflow) -> bool) -> Option<Handle> {
        // Most connections have a single subflow, and need no loop.
        match self.slots.first() {
            Some(first) if !first.liveness.removed && of(first) => Some(Handle(0)),
            Some(_) if self.slots.len() > 1 => self.find_behind(Some(Handle(0)), of),
            Some(_) | None => None,
        }
    }

    #[inline]
    pub fn first_handle(&self) -> Option<Handle> {
        self.find(|_| true)
    }

    /// The subflow after this one, which may have been removed: for loops that add or remove subflows.
    pub fn after(&self, handle: Handle) -> Option<Handle> {
        self.find_behind(Some(handle), |_| true)
    }

    /// The first subflow after this one, or of all, that satisfies `of`.
    #[inline(never)]
    pub fn find_behind(&self, handle: Option<Handle>, of: impl Fn(&Subflow) -> bool) -> Option<Handle> {
        let next = handle.map_or(0, |handle| handle.0 + 1);
        let rest = self.slots.get(next..).unwrap_or_default();
        rest.iter().position(|subflow| !subflow.liveness.removed && of(subflow)).map(|at| Handle(next + at))
    }

    pub fn iter(&self) -> impl Iterator<Item = &Subflow> + Clone {
        self.slots.iter().filter(|subflow| !subflow.liveness.removed)
    }

    /// The first subflow after this one, or of all, that has this task now. One that pacing delayed is polled again
    /// when the delay is over.
    #[inline]
    pub fn next_for(&mut self, now: Instant, task: Task, behind: Option<Handle>) -> Option<Handle> {
        if self.slots.len() > Self::FEW {
            return self.next_of_many(now, task, behind);
        }
        match behind {
            None => self.find(|subflow| task.is_due(subflow, now)),
            Some(_) if self.slots.len() > 1 => self.find_behind(behind, |subflow| task.is_due(subflow, now)),
            Some(_) => None,
        }
    }

    /// Whether somebody may have this to do.
    #[inline]
    pub fn may_have(&mut self, task: Task) -> bool {
        self.are_few() || self.slots.len() > SLOTS || self.agenda().of(task) != 0
    }

    /// Whether all are asked each time.
    #[inline]
    pub fn are_few(&self) -> bool {
        self.slots.len() <= Self::FEW
    }

    /// The earliest deadline of those that may have changed since the last call.
    #[inline(never)]
    pub fn earliest_deadline(&mut self) -> Instant {
        let changed = self.agenda().take_unarmed();
        let mut earliest = Instant::NEVER;
        each_of(changed, self.slots.len(), |slot| {
            if let Some(subflow) = self.slots.get(slot).filter(|subflow| !subflow.liveness.removed) {
                earliest = earliest.min(subflow.next_timeout()).min(subflow.acknowledgement_deadline());
            }
        });
        earliest
    }

    /// The agenda, brought up to date.
    #[inline(always)]
    fn agenda(&mut self) -> &mut Agenda {
        let agenda = self.agenda.get_or_insert_with(|| Box::new(Agenda::NEW));
        let changed = self.changed.take_for_agenda();
        if changed != 0 {
            agenda.ask(changed, &self.slots);
        }
        debug_assert!(agenda.is_of(&self.slots), "a change was not marked");
        agenda
    }

    #[inline(never)]
    fn next_of_many(&mut self, now: Instant, task: Task, behind: Option<Handle>) -> Option<Handle> {
        let from = behind.map_or(0, |handle| handle.0 + 1);
        let mut able = self.agenda().able(now, task) & u32::MAX.checked_shl(from as u32).unwrap_or(0);
        while let Some(slot) = first(able) {
            if self.slots.get(slot).is_some_and(|subflow| task.is_due(subflow, now)) {
                return Some(Handle(slot));
            }
            able &= able - 1;
        }
        if self.slots.len() <= SLOTS {
            return None;
        }
        self.find_behind(Some(Handle(from.max(SLOTS) - 1)), |subflow| task.is_due(subflow, now))
    }

    /// Pacing delays this subflow: arms a timer for the end of the delay.
    pub fn wait_for_pacing(&mut self, handle: Handle) {
        if let Some(subflow) = self.slots.get_mut(handle.0) {
            let until = subflow.wait_for_pacing();
            self.agenda.iter_mut().for_each(|agenda| agenda.pace(handle.0, until));
        }
    }

    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut Subflow> {
        self.changed.mark_all();
        self.iter_mut_unseen()
    }

    /// All subflows, for changes that neither [`Subflow::view`] nor a [`Task`] depends on.
    pub fn iter_mut_unseen(&mut self) -> impl Iterator<Item = &mut Subflow> {
        self.slots.iter_mut().filter(|subflow| !subflow.liveness.removed)
    }

    /// Applies a change to each subflow that may have changed since the last call, and to others where that is cheaper.
    /// The change must not affect a [`Task`], and returns whether it affects [`Subflow::view`].
    pub fn each_changed(&mut self, mut change: impl FnMut(&mut Subflow) -> bool) {
        if self.are_few() {
            for (slot, subflow) in self.slots.iter_mut().enumerate() {
                if !subflow.liveness.removed && change(subflow) {
                    self.changed.mark_shown(slot);
                }
            }
            return;
        }
        let changed = self.agenda().take_unrecorded();
        each_of(changed, self.slots.len(), |slot| {
            let subflow = self.slots.get_mut(slot).filter(|subflow| !subflow.liveness.removed);
            if subflow.is_some_and(&mut change) {
                self.changed.mark_shown(slot);
            }
        });
    }

    pub fn entries(&self) -> impl Iterator<Item = (Handle, &Subflow)> {
        let each = self.slots.iter().enumerate().filter(|(_, subflow)| !subflow.liveness.removed);
        each.map(|(at, subflow)| (Handle(at), subflow))
    }

    /// The first subflow, usually the initial one.
    pub fn first(&self) -> Option<&Subflow> {
        self.iter().next()
    }

    pub fn first_mut(&mut self) -> Option<&mut Subflow> {
        self.first_handle().map(|handle| &mut self[handle])
    }

    /// Updates values derived from each subflow, in order: all of them, or, if `known` says that they belong to these
    /// subflows, those that may have changed since the last call.
    pub fn refresh<T>(&mut self, known: bool, derived: &mut Vec<T>, derive: impl Fn(&Subflow) -> T) {
        if !known || self.changed.0 & Changed::MEMBERS != 0 {
            derived.clear();
            derived.extend(self.iter().map(derive));
            if derived.len() == self.slots.len() {
                self.changed.take_shown();
            } else {
                self.changed = Changed::ALL;
            }
            return;
        }
        let mut changed = self.changed.take_shown();
        while changed != 0 {
            let slot = changed.trailing_zeros() as usize;
            changed &= changed - 1;
            if slot < Changed::REST {
                if let (Some(place), Some(subflow)) = (derived.get_mut(slot), self.slots.get(slot)) {
                    *place = derive(subflow);
                }
            } else {
                for (place, subflow) in derived.iter_mut().zip(&self.slots).skip(slot) {
                    *place = derive(subflow);
                }
            }
        }
    }

    /// The subflow, if there is only one.
    #[inline]
    pub fn only(&self) -> Option<&Subflow> {
        if let [only] = self.slots.as_slice() {
            return Some(only).filter(|only| !only.liveness.removed);
        }
        let mut all = self.iter();
        all.next().filter(|_| all.next().is_none())
    }

    pub fn len(&self) -> usize {
        self.iter().count()
    }

    pub fn is_empty(&self) -> bool {
        self.first().is_none()
    }
}

/// The slots that have a bit, of so many; those without one of their own share one.
#[inline]
fn each_of(mut bits: u32, slots: usize, mut act: impl FnMut(usize)) {
    while let Some(slot) = first(bits).filter(|slot| *slot < slots) {
        bits &= bits - 1;
        act(slot);
    }
    if slots > SLOTS && bits >> SLOTS & 1 != 0 {
        (SLOTS..slots).for_each(act);
    }
}

impl Index<Handle> for Subflows {
    type Output = Subflow;

    fn index(&self, handle: Handle) -> &Subflow {
        debug_assert!(self.has(handle), "a subflow that was removed is not used any more");
        self.slots.get(handle.0).expect("a handle is not kept beyond the input in which it was taken")
    }
}

impl IndexMut<Handle> for Subflows {
    fn index_mut(&mut self, handle: Handle) -> &mut Subflow {
        debug_assert!(self.has(handle), "a subflow that was removed is not used any more");
        self.changed.mark(handle.0);
        self.slots.get_mut(handle.0).expect("a handle is not kept beyond the input in which it was taken")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::connection::tests::{config, connected};
    use crate::subflow::receiver::AckDue;
    use crate::subflow::timers::SubflowTimer;

    #[test]
    fn up_to_three_subflows_need_no_memory_for_an_agenda() {
        let has_agenda = |subflows: u32| {
            let mut all = core::mem::take(&mut connected(config(), subflows).subflows);
            all.may_have(Task::Probe);
            all.each_changed(|_| false);
            all.next_for(Instant::ZERO, Task::Data, None);
            all.agenda.is_some()
        };
        assert!(!has_agenda(1) && !has_agenda(3) && has_agenda(4));
    }

    #[test]
    fn values_of_subflows_are_derived_again_where_something_may_have_changed() {
        // More than have a bit of their own.
        let mut all = core::mem::take(&mut connected(config(), 34).subflows);
        let mut derived = Vec::new();
        let derive = |subflow: &Subflow| (subflow.id().0, subflow.mss);
        all.refresh(false, &mut derived, derive);
        assert!(derived.iter().map(|(id, _)| *id).eq(0..34));
        for (id, mss) in [(3, 503), (29, 529), (30, 530), (33, 533)] {
            let handle = all.handle_of(SubflowId(id)).unwrap();
            all[handle].mss = mss;
        }
        derived[5].1 = 1;
        all.refresh(true, &mut derived, derive);
        let is_of = |id: usize, mss: u32| derived[id] == (id as u32, mss);
        assert!(is_of(3, 503) && is_of(29, 529) && is_of(30, 530) && is_of(33, 533), "{derived:?}");
        assert!(is_of(5, 1), "it has not changed");
        all.refresh(false, &mut derived, derive);
        assert_ne!(derived[5].1, 1, "they are of other subflows");
        // While one is only marked as removed, positions are not those of the slots.
        let removed = all.handle_of(SubflowId(4)).unwrap();
        all.remove(removed);
        for _ in 0..2 {
            derived[5].1 = 1;
            all.refresh(true, &mut derived, derive);
            assert!(derived.iter().map(|(id, _)| *id).eq((0..34).filter(|id| *id != 4)));
            assert_ne!(derived[5].1, 1);
        }
        all.sweep();
        all.refresh(true, &mut derived, derive);
        assert_eq!(derived.len(), 33);
    }

    #[test]
    fn a_subflow_that_was_removed_keeps_its_slot_until_all_are_swept() {
        let mut all = core::mem::take(&mut connected(config(), 3).subflows);
        let handles: Vec<Handle> = all.entries().map(|(handle, _)| handle).collect();
        all.sweep();
        assert!(!all.lost_members());
        all.remove(handles[1]);
        assert!(all.lost_members() && !all.has(handles[1]) && all.live_mut(handles[1]).is_none());
        assert_eq!(all.handle_of(SubflowId(1)), None);
        assert_eq!((all.after(handles[0]), all.len(), all.first_handle()), (Some(handles[2]), 2, Some(handles[0])));
        all.remove(handles[0]);
        assert_eq!((all.first_handle(), all.only().map(Subflow::id)), (Some(handles[2]), Some(SubflowId(2))));
        all.sweep();
        assert!(!all.lost_members());
        assert_eq!((all.handle_of(SubflowId(2)), all.len()), (Some(Handle(0)), 1));
        assert_eq!(all.first_mut().map(|subflow| subflow.id()), Some(SubflowId(2)));
        all.remove(Handle(0));
        assert!(all.is_empty() && all.first().is_none() && all.only().is_none());
    }

    #[test]
    fn the_earliest_deadline_is_that_of_those_that_have_changed_since() {
        let at = |millis: u64| Instant::from_nanos(millis * 1_000_000);
        let mut all = core::mem::take(&mut connected(config(), 34).subflows);
        all.iter_mut().for_each(|subflow| subflow.timers.reset());
        all.earliest_deadline();
        assert_eq!(all.earliest_deadline(), Instant::NEVER, "none has changed");
        for (id, millis) in [(2, 70), (29, 50), (33, 60)] {
            let handle = all.handle_of(SubflowId(id)).unwrap();
            all[handle].timers.set(SubflowTimer::Retransmit, at(millis));
            assert_eq!(all.earliest_deadline(), if id == 33 { at(60) } else { at(millis) });
        }
        let second = all.handle_of(SubflowId(2)).unwrap();
        all[second].receiver.due = AckDue::By(at(20));
        assert_eq!(all.earliest_deadline(), at(20), "of its acknowledgement");
    }

    #[test]
    fn members_are_lost_by_removal_and_not_by_additions() {
        let mut all = core::mem::take(&mut connected(config(), 2).subflows);
        assert!(!all.lost_members(), "two were added");
        let first = all.first_handle().unwrap();
        all.remove(first);
        assert!(all.lost_members());
        all.sweep();
        assert!(!all.lost_members());
    }
}
