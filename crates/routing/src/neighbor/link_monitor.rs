//! Inputs of a link's forecaster: packets received, Hellos missed, and results of transmissions.

use anabranch_policy::forecast::Observation;
use anabranch_policy::{Duration, Instant, LinkForecaster};

/// A Hello is missing if it is late by this part of HelloInterval: more than the jitter of two neighbours, and the
/// delay of a busy channel.
const LATENESS: f64 = 0.25;

/// Time after a Hello from which on the next one is missing.
pub(crate) fn missing_after(interval: Duration) -> Duration {
    interval + interval.mul_f64(LATENESS)
}

/// The forecaster of the link to a neighbour, if there is one.
pub(crate) struct LinkMonitor {
    forecaster: Option<Box<dyn LinkForecaster>>,
    /// Hellos reported as missing since the last one was received.
    reported: u16,
}

impl LinkMonitor {
    pub fn new(forecaster: Option<Box<dyn LinkForecaster>>) -> Self {
        Self { forecaster, reported: 0 }
    }

    /// A packet other than a Hello was received.
    pub fn hear(&mut self, now: Instant, signal: Option<f32>) {
        self.observe(now, Observation::Heard { signal });
    }

    /// A Hello was received after `gap` missing ones by their sequence numbers. A gap of more than twice `most` means
    /// that the neighbour restarted. True if there is a forecaster.
    pub fn hear_hello(&mut self, now: Instant, signal: Option<f32>, gap: Option<u16>, most: u16) -> bool {
        let reported = core::mem::take(&mut self.reported);
        if let Some(gap) = gap {
            let unreported = gap.saturating_sub(reported);
            if unreported > 0 && gap <= most.saturating_mul(2) {
                self.observe(now, Observation::Missed { hellos: unreported });
            }
        }
        self.observe(now, Observation::Heard { signal });
        self.forecaster.is_some()
    }

    /// A Hello is late.
    pub fn miss_hello(&mut self, now: Instant) {
        self.reported = self.reported.saturating_add(1);
        self.observe(now, Observation::MISSED);
    }

    /// The link layer delivered a frame, or dropped it after its last attempt.
    pub fn transmitted(&mut self, now: Instant, delivered: bool) {
        self.observe(now, Observation::Transmitted { delivered });
    }

    /// Probability that the link is up after `horizon`; none without a forecaster.
    pub fn probability_up(&self, now: Instant, horizon: Duration) -> Option<f64> {
        Some(self.forecaster.as_ref()?.probability_up(now, horizon))
    }

    fn observe(&mut self, now: Instant, observation: Observation) {
        if let Some(forecaster) = &mut self.forecaster {
            forecaster.observe(now, observation);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::{Arc, Mutex};

    struct Recorder(Arc<Mutex<Vec<Observation>>>);

    impl LinkForecaster for Recorder {
        fn observe(&mut self, _: Instant, observation: Observation) {
            self.0.lock().unwrap().push(observation);
        }

        fn probability_up(&self, _: Instant, _: Duration) -> f64 {
            0.5
        }
    }

    fn monitor() -> (LinkMonitor, Arc<Mutex<Vec<Observation>>>) {
        let seen = Arc::new(Mutex::new(Vec::new()));
        (LinkMonitor::new(Some(Box::new(Recorder(Arc::clone(&seen))))), seen)
    }

    const HEARD: Observation = Observation::Heard { signal: None };

    #[test]
    fn a_missing_hello_is_reported_once() {
        let (mut monitor, seen) = monitor();
        monitor.miss_hello(Instant::ZERO);
        monitor.miss_hello(Instant::ZERO);
        assert!(monitor.hear_hello(Instant::ZERO, None, Some(3), 3));
        monitor.hear_hello(Instant::ZERO, None, Some(1), 3);
        let expected = [
            Observation::MISSED,
            Observation::MISSED,
            Observation::Missed { hellos: 1 },
            HEARD,
            Observation::Missed { hellos: 1 },
            HEARD,
        ];
        assert_eq!(*seen.lock().unwrap(), expected);
    }

    #[test]
    fn a_neighbour_that_started_anew_missed_nothing() {
        let (mut monitor, seen) = monitor();
        monitor.hear_hello(Instant::ZERO, None, Some(7), 3);
        monitor.hear_hello(Instant::ZERO, None, None, 3);
        assert_eq!(*seen.lock().unwrap(), [HEARD, HEARD]);
    }

    #[test]
    fn without_a_forecaster_nothing_is_forecast() {
        let mut monitor = LinkMonitor::new(None);
        assert!(!monitor.hear_hello(Instant::ZERO, None, Some(2), 3));
        assert_eq!(monitor.probability_up(Instant::ZERO, Duration::ZERO), None);
    }

    #[test]
    fn any_packet_shows_that_the_link_is_up_and_how_strong_the_signal_was() {
        let (mut monitor, seen) = monitor();
        monitor.hear(Instant::ZERO, Some(-60.0));
        monitor.transmitted(Instant::ZERO, true);
        let expected = [Observation::Heard { signal: Some(-60.0) }, Observation::Transmitted { delivered: true }];
        assert_eq!(*seen.lock().unwrap(), expected);
    }

    #[test]
    fn hellos_that_were_all_reported_are_not_reported_again_and_twice_the_most_are_still_missing_ones() {
        let (mut monitor, seen) = monitor();
        monitor.miss_hello(Instant::ZERO);
        monitor.hear_hello(Instant::ZERO, None, Some(1), 3);
        monitor.hear_hello(Instant::ZERO, None, Some(6), 3);
        let expected = [Observation::MISSED, HEARD, Observation::Missed { hellos: 6 }, HEARD];
        assert_eq!(*seen.lock().unwrap(), expected);
    }
}
