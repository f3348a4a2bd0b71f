//! A connection's subflows, by handles that stay good while one input is handled.

use crate::subflow::Subflow;
use anabranch_policy::ids::SubflowId;
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
}

/// Which subflows may have changed since somebody looked: a bit for each slot, the last but one for all further ones.
#[derive(Clone, Copy, Debug)]
struct Changed(u64);

impl Changed {
    /// The bit of slots from here on is shared.
    const REST: usize = 62;
    /// Subflows were added or removed.
    const MEMBERS: u64 = 1 << 63;
    const ALL: Self = Self(u64::MAX);

    #[inline]
    fn mark(&mut self, slot: usize) {
        // In plain TCP nobody looks, and all have changed all the time.
        if self.0 != u64::MAX {
            self.0 |= 1 << slot.min(Self::REST);
        }
    }

    fn has(self, slot: usize) -> bool {
        self.0 & (1 << slot.min(Self::REST)) != 0
    }
}

impl Default for Subflows {
    fn default() -> Self {
        Self { slots: Vec::new(), changed: Changed::ALL }
    }
}

impl Subflows {
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

    /// Whether some may have been removed since [`Self::refresh`] saw all.
    #[inline]
    pub fn lost_members(&self) -> bool {
        self.changed.0 & Changed::MEMBERS != 0 && self.slots.iter().any(|subflow| subflow.liveness.removed)
    }

    /// An input has been handled: forgets what was removed, and all handles with it.
    pub fn sweep(&mut self) {
        if self.lost_members() {
            self.slots.retain(|subflow| !subflow.liveness.removed);
        }
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
    pub fn handle_of(&self, id: SubflowId) -> Option<Handle> {
        self.find(|subflow| subflow.id() == id)
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

    /// All, to change.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut Subflow> {
        self.changed.0 |= !Changed::MEMBERS;
        self.iter_mut_unseen()
    }

    /// All, to change what [`Subflow::view`] does not show.
    pub fn iter_mut_unseen(&mut self) -> impl Iterator<Item = &mut Subflow> {
        self.slots.iter_mut().filter(|subflow| !subflow.liveness.removed)
    }

    /// Does something to all, which returns whether [`Subflow::view`] shows it.
    pub fn each_mut(&mut self, mut change: impl FnMut(&mut Subflow) -> bool) {
        for (slot, subflow) in self.slots.iter_mut().enumerate() {
            if !subflow.liveness.removed && change(subflow) {
                self.changed.mark(slot);
            }
        }
    }

    /// One of them, to change what [`Subflow::view`] does not show.
    pub fn unseen_mut(&mut self, handle: Handle) -> Option<&mut Subflow> {
        self.slots.get_mut(handle.0).filter(|subflow| !subflow.liveness.removed)
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
            let swept = derived.len() == self.slots.len();
            self.changed = if swept { Changed(0) } else { Changed::ALL };
            return;
        }
        if self.changed.0 != 0 {
            let places = derived.iter_mut().zip(&self.slots).enumerate();
            for (_, (place, subflow)) in places.filter(|(slot, _)| self.changed.has(*slot)) {
                *place = derive(subflow);
            }
            self.changed = Changed(0);
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
