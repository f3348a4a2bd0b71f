//! Paths and times for tests of policies.

use super::{DatagramPolicy, PathView, TABLE};
use crate::rate::Rate;
use crate::table::{self, Settings};
use crate::time::{Duration, Instant};

/// A policy by name, with its defaults.
pub(super) fn build(name: &str) -> Box<dyn DatagramPolicy> {
    table::build(TABLE, name, &Settings::new()).expect("it is in the table")
}

/// A usable path with this delay in milliseconds.
pub(super) fn path(number: u8, delay: u64) -> PathView {
    PathView {
        path: number,
        usable: true,
        overdue: false,
        round_trip: None,
        delay: Duration::from_millis(delay),
        queued: Duration::ZERO,
        left: Instant::ZERO,
        variation: Duration::ZERO,
        loss: 0.0,
        rate: Rate::ZERO,
        capacity: None,
        outstanding: 0,
        inflow: 0.0,
    }
}

pub(super) fn at(millis: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(millis)
}

pub(super) fn micros(value: u64) -> Duration {
    Duration::from_micros(value)
}
