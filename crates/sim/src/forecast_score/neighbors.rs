//! What a node knows of its neighbours: whose Hellos it has heard, which one is due, and the forecasters of each.

use anabranch_policy::forecast::{LinkForecaster, Observation};
use anabranch_policy::time::{Duration, Instant};

/// A neighbour, from its first Hello until it has not been heard for the dead interval.
pub(super) struct Neighbor {
    pub(super) forecasters: Vec<Box<dyn LinkForecaster>>,
    /// When its last Hello came, or was found missing.
    due: Instant,
    heard: Instant,
}

/// How late a Hello may be until it is missing, as a share of the interval.
const PATIENCE: f64 = 0.5;

impl Neighbor {
    pub(super) fn new(forecasters: Vec<Box<dyn LinkForecaster>>, now: Instant) -> Self {
        Self { forecasters, due: now, heard: now }
    }

    fn observe(&mut self, now: Instant, observation: Observation) {
        for forecaster in &mut self.forecasters {
            forecaster.observe(now, observation);
        }
    }

    /// A Hello came.
    pub(super) fn on_hello(&mut self, now: Instant, signal: Option<f32>, interval: Duration) {
        self.observe(now, Observation::Heard { signal });
        (self.heard, self.due) = (now, now + interval);
    }

    /// Finds what is missing by now; false once the neighbour is dead.
    pub(super) fn lives(&mut self, now: Instant, interval: Duration, dead: Duration) -> bool {
        while self.due + interval.mul_f64(PATIENCE) <= now {
            self.due += interval;
            self.observe(now, Observation::MISSED);
        }
        now.since(self.heard) < dead
    }
}
