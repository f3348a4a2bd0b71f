//! The neighbours of a node: whose Hellos it has heard, when the next is due, and their forecasters.

use anabranch_policy::forecast::{LinkForecaster, Observation};
use anabranch_policy::time::{Duration, Instant};

/// A neighbour, from its first Hello until none has been heard for the dead interval.
pub(super) struct Neighbor {
    pub(super) forecasters: Vec<Box<dyn LinkForecaster>>,
    /// When its last Hello was received, or found missing.
    due: Instant,
    heard: Instant,
}

/// How late a Hello may be before it counts as missing, as a share of the interval.
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

    /// A Hello was received.
    pub(super) fn on_hello(&mut self, now: Instant, signal: Option<f32>, interval: Duration) {
        self.observe(now, Observation::Heard { signal });
        (self.heard, self.due) = (now, now + interval);
    }

    /// Records Hellos missing by now; returns false once the neighbour is dead.
    pub(super) fn lives(&mut self, now: Instant, interval: Duration, dead: Duration) -> bool {
        while self.due + interval.mul_f64(PATIENCE) <= now {
            self.due += interval;
            self.observe(now, Observation::MISSED);
        }
        now.since(self.heard) < dead
    }
}
