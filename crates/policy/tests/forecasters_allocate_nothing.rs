//! Forecasters are made once per link and then run for every Hello: after construction they take nothing from the heap.

use anabranch_policy::forecast::{Observation, TABLE};
use anabranch_policy::table::{Settings, build};
use anabranch_policy::time::{Duration, Instant};
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};
use std::alloc::System;

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

#[test]
fn no_forecaster_allocates_while_it_observes_and_forecasts() {
    for member in TABLE {
        let mut forecaster = build(TABLE, member.name, &Settings::new()).expect("a name in the table");
        let region = Region::new(ALLOCATOR);
        let mut sum = 0.0;
        for second in 0..1_000_u64 {
            let now = Instant::ZERO + Duration::from_secs(second);
            let observation = match second % 7 {
                0..=3 => Observation::heard_at(-70.0 - (second % 11) as f32),
                4 => Observation::HEARD,
                5 => Observation::Missed { hellos: 3 },
                _ => Observation::Transmitted { delivered: second % 2 == 0 },
            };
            forecaster.observe(now, observation);
            sum += forecaster.probability_up(now, Duration::from_secs(2));
        }
        let change = region.change();
        assert_eq!((change.allocations, change.reallocations), (0, 0), "{} (sum {sum})", member.name);
    }
}
