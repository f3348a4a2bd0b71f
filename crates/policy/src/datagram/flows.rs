//! A bounded table of flows; flows with the same slot count as one.

/// Number of slots.
const PLACES: usize = 1_024;

/// A value of type `T` per flow.
#[derive(Clone, Debug)]
pub(super) struct Flows<T> {
    places: Box<[Option<T>]>,
}

impl<T: Copy> Flows<T> {
    pub(super) fn new() -> Self {
        Self { places: vec![None; PLACES].into() }
    }

    /// The slot of a flow, by its hash.
    pub(super) fn of(&mut self, flow: u64) -> &mut Option<T> {
        let place = (flow ^ flow >> 32) as usize % PLACES;
        &mut self.places[place]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_halves_of_a_hash_choose_the_slot() {
        let mut flows = Flows::new();
        *flows.of(0) = Some(7);
        let other = |flow| *Flows::of(&mut flows.clone(), flow) != Some(7);
        assert!([1, 1_023, 1 << 32, 1_023 << 32].map(other).iter().all(|other| *other));
        // 1024 slots, chosen by the exclusive or of the halves.
        assert!(![1_024, 1_024 << 32, 5 << 32 | 5].map(other).iter().any(|other| *other));
    }
}
