//! A forecaster is made once per link and then runs for every Hello: it does not allocate after construction.

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
        // The counter covers the whole process, including the test harness's thread: take the minimum of five counts.
        let least = (0..5).map(|_| allocations_of_a_life(member.name)).min();
        assert_eq!(least, Some(0), "{}", member.name);
    }
}

/// Allocations of one forecaster after construction, over 1,000 observations.
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
