//! Forecasters are made once per link and then run for every Hello: after construction they take nothing from the heap.

use anabranch_policy::forecast::{Observation, TABLE};
use anabranch_policy::table::{Settings, build};
use anabranch_policy::time::{Duration, Instant};
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};
use std::alloc::System;
use std::hint::black_box;

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

#[test]
fn no_forecaster_allocates_while_it_observes_and_forecasts() {
    for member in TABLE {
        // The counter is of the whole process, and the test harness has a thread of its own: the least of five counts.
        let least = (0..5).map(|_| allocations_of_a_life(member.name)).min();
        assert_eq!(least, Some(0), "{}", member.name);
    }
}

/// The allocations of one forecaster, from its construction on, over 1,000 observations.
fn allocations_of_a_life(name: &str) -> usize {
    let mut forecaster = build(TABLE, name, &Settings::new()).expect("a name in the table");
    let region = Region::new(ALLOCATOR);
    for second in 0..1_000_u64 {
        let now = Instant::ZERO + Duration::from_secs(second);
        let observation = match second % 7 {
            0..=3 => Observation::heard_at(-70.0 - (second % 11) as f32),
            4 => Observation::HEARD,
            5 => Observation::Missed { hellos: 3 },
            _ => Observation::Transmitted { delivered: second % 2 == 0 },
        };
        forecaster.observe(now, observation);
        black_box(forecaster.probability_up(now, Duration::from_secs(2)));
    }
    let change = region.change();
    change.allocations + change.reallocations
}
