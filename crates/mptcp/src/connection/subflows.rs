//! A connection's subflows, by handles that stay good while one input is handled.

use super::agenda::{Agenda, SLOTS, Task, first};
use crate::subflow::Subflow;
use anabranch_policy::ids::SubflowId;
use anabranch_policy::time::Instant;
use core::ops::{Index, IndexMut};

/// Where a subflow is. Good until [`Subflows::sweep`], whatever else is added or removed before.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Handle(usize);

/// The subflows, in order of id. A removed subflow stays in its place, reachable only by its handle, until the input that
/// removed it has been handled.
#[derive(Debug)]
pub(super) struct Subflows {
    slots: Vec<Subflow>,
    changed: Changed,
    /// Only of many subflows.
    agenda: Option<Box<Agenda>>,
}

/// Which subflows may have changed since somebody looked: a bit for each slot, the last but one of each half for all further ones. The
/// lower half is for those who look at views, the upper one for the agenda.
#[derive(Clone, Copy, Debug)]
struct Changed(u64);

impl Changed {
    /// The bit of slots from here on is shared.
    const REST: usize = SLOTS;
    /// Subflows were added or removed, for those who look at views.
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

    /// Forgets what those who look at views have seen.
    fn take_shown(&mut self) -> u32 {
        let shown = self.0 as u32;
        self.0 &= !u64::from(u32::MAX);
        shown
    }

    /// Forgets what the agenda knows.
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
    /// How many are asked sooner than an agenda.
    const FEW: usize = 3;

    /// Adds one.
    pub fn push(&mut self, subflow: Subflow) -> Handle {
        // One more, not twice as many: room that is never used is most of what an idle connection costs.
        self.slots.reserve_exact(1);
        self.slots.push(subflow);
        self.changed = Changed::ALL;
        Handle(self.slots.len() - 1)
    }

    /// Removes one.
    pub fn remove(&mut self, handle: Handle) {
        self[handle].liveness.removed = true;
        self.changed = Changed::ALL;
    }

    /// Whether some have been removed since [`Self::sweep`].
    #[inline]
    pub fn lost_members(&self) -> bool {
        self.changed.0 & Changed::UNSWEPT != 0 && self.slots.iter().any(|subflow| subflow.liveness.removed)
    }

    /// An input has been handled: forgets what was removed, and all handles with it.
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

    /// One of them; none if it has been removed.
    pub fn live(&self, handle: Handle) -> Option<&Subflow> {
        self.slots.get(handle.0).filter(|subflow| !subflow.liveness.removed)
    }

    /// One of them, to change; none if it has been removed.
    pub fn live_mut(&mut self, handle: Handle) -> Option<&mut Subflow> {
        self.changed.mark(handle.0);
        self.slots.get_mut(handle.0).filter(|subflow| !subflow.liveness.removed)
    }

    /// Whether it has not been removed.
    pub fn has(&self, handle: Handle) -> bool {
        self.live(handle).is_some()
    }

    /// The one with this id.
    #[inline]
    pub fn handle_of(&self, id: SubflowId) -> Option<Handle> {
        // As long as none is gone, they are numbered as their slots are.
        let slot = id.0 as usize;
        let found = self.slots.get(slot).filter(|subflow| subflow.id() == id && !subflow.liveness.removed);
        if found.is_some() { Some(Handle(slot)) } else { self.find(|subflow| subflow.id() == id) }
    }

    /// The first of which this is true.
    #[inline]
    pub fn find(&self, of: impl Fn(&Subflow) -> bool) -> Option<Handle> {
        // Most connections have one, and need no loop.
        match self.slots.first() {
            Some(first) if !first.liveness.removed && of(first) => Some(Handle(0)),
            Some(_) if self.slots.len() > 1 => self.find_behind(Some(Handle(0)), of),
            Some(_) | None => None,
        }
    }

    /// The first of them.
    #[inline]
    pub fn first_handle(&self) -> Option<Handle> {
        self.find(|_| true)
    }

    /// The one after this, which may have been removed: for loops that add or remove some.
    pub fn after(&self, handle: Handle) -> Option<Handle> {
        self.find_behind(Some(handle), |_| true)
    }

    /// The first of which this is true behind this one, or of all.
    #[inline(never)]
    pub fn find_behind(&self, handle: Option<Handle>, of: impl Fn(&Subflow) -> bool) -> Option<Handle> {
        let next = handle.map_or(0, |handle| handle.0 + 1);
        let rest = self.slots.get(next..).unwrap_or_default();
        rest.iter().position(|subflow| !subflow.liveness.removed && of(subflow)).map(|at| Handle(next + at))
    }

    /// All.
    pub fn iter(&self) -> impl Iterator<Item = &Subflow> + Clone {
        self.slots.iter().filter(|subflow| !subflow.liveness.removed)
    }

    /// The first behind this one, or of all, that has this to do now. One that pacing kept back when it was to send something is asked
    /// again when pacing does not.
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

    /// What is to be done now.
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

    /// Pacing lets one of them send nothing now: a timeout comes when it does.
    pub fn wait_for_pacing(&mut self, handle: Handle) {
        if let Some(subflow) = self.slots.get_mut(handle.0) {
            let until = subflow.wait_for_pacing();
            self.agenda.iter_mut().for_each(|agenda| agenda.pace(handle.0, until));
        }
    }

    /// All, to change.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut Subflow> {
        self.changed.mark_all();
        self.iter_mut_unseen()
    }

    /// All, to change what neither [`Subflow::view`] shows nor a [`Task`] depends on.
    pub fn iter_mut_unseen(&mut self) -> impl Iterator<Item = &mut Subflow> {
        self.slots.iter_mut().filter(|subflow| !subflow.liveness.removed)
    }

    /// Does something to each that may have changed since the last call, and to others where it costs less than to know. That changes no [`Task`], and returns whether
    /// [`Subflow::view`] shows it.
    pub fn each_changed(&mut self, mut change: impl FnMut(&mut Subflow) -> bool) {
        let changed = if self.slots.len() > Self::FEW { self.agenda().take_unrecorded() } else { u32::MAX };
        for (slot, subflow) in self.slots.iter_mut().enumerate() {
            if changed & 1 << slot.min(SLOTS) != 0 && !subflow.liveness.removed && change(subflow) {
                self.changed.mark_shown(slot);
            }
        }
    }

    /// All, with their handles.
    pub fn entries(&self) -> impl Iterator<Item = (Handle, &Subflow)> {
        let each = self.slots.iter().enumerate().filter(|(_, subflow)| !subflow.liveness.removed);
        each.map(|(at, subflow)| (Handle(at), subflow))
    }

    /// The first; as a rule the initial one.
    pub fn first(&self) -> Option<&Subflow> {
        self.iter().next()
    }

    /// The first, to change.
    pub fn first_mut(&mut self) -> Option<&mut Subflow> {
        self.first_handle().map(|handle| &mut self[handle])
    }

    /// Brings what was derived from each subflow up to date, in order: all of it, or, where `known` says that it is of these
    /// subflows, what may have changed since the last call.
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

    /// The only one, if there is just one.
    #[inline]
    pub fn only(&self) -> Option<&Subflow> {
        if let [only] = self.slots.as_slice() {
            return Some(only).filter(|only| !only.liveness.removed);
        }
        let mut all = self.iter();
        all.next().filter(|_| all.next().is_none())
    }

    /// How many.
    pub fn len(&self) -> usize {
        self.iter().count()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.first().is_none()
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
