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
