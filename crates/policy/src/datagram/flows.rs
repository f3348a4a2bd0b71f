//! What is remembered of flows: a bounded table in which two flows with one place are one.

/// How many flows are told apart.
const PLACES: usize = 1_024;

/// Something of type `T` for each flow.
#[derive(Clone, Debug)]
pub(super) struct Flows<T> {
    places: Box<[Option<T>]>,
}

impl<T: Copy> Flows<T> {
    pub(super) fn new() -> Self {
        Self { places: vec![None; PLACES].into() }
    }

    /// The place of a flow, by its hash.
    pub(super) fn of(&mut self, flow: u64) -> &mut Option<T> {
        let place = (flow ^ flow >> 32) as usize % PLACES;
        &mut self.places[place]
    }
}
