//! This router's own LSAs: when they were originated, and when they are to be.

use std::collections::BTreeMap;

use anabranch_policy::Instant;

use crate::database::Place;

/// When the own LSAs were and are to be originated.
#[derive(Clone, Debug, Default)]
pub(crate) struct Origination {
    pub(super) own: BTreeMap<Place, Own>,
}

/// One of the own LSAs.
#[derive(Clone, Copy, Debug)]
pub(super) struct Own {
    /// When the last instance was originated.
    pub(super) originated: Option<Instant>,
    /// When the next one is to be; never if nothing changed.
    pub(super) pending: Instant,
    /// When the contents are to be told again even if they did not change.
    pub(super) refresh: Instant,
}

impl Origination {
    /// When the next LSA is to be originated.
    pub fn deadline(&self) -> Instant {
        let all = self.own.values().map(|own| own.pending.min(own.refresh));
        all.min().unwrap_or(Instant::NEVER)
    }

    /// Forgets the LSAs that stay on the link of an interface.
    pub fn forget_link(&mut self, interface: usize) {
        self.own.retain(|place, _| place.link != Some(interface));
    }
}
