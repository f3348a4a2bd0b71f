//! A radio channel allocates nothing per frame: its memory stops growing after a while.

use anabranch_policy::time::Instant;
use anabranch_sim::radio::{Medium, MediumConfig, Position, StationId};
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};
use std::alloc::System;

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// Five saturated stations in range of each other, every third packet a broadcast; returns the number of frames sent.
fn run(medium: &mut Medium<u32>, until: u64) -> u64 {
    while medium.poll_timeout() <= Instant::from_nanos(until) {
        let now = medium.poll_timeout();
        medium.handle_timeout(now);
        while medium.poll_delivery().is_some() {}
        while let Some(status) = medium.poll_status() {
            let cargo = status.cargo + 1;
            let to = (cargo % 3 > 0).then_some(StationId((status.station.0 + 1) % 5));
            medium.enqueue(now, status.station, to, cargo, 500).expect("there is room");
        }
    }
    (0..5).map(|station| medium.counters(StationId(station)).data_sent).sum()
}

#[test]
fn ten_thousand_frames_take_no_memory() {
    let mut medium = Medium::new(MediumConfig { rts_threshold: 400, ..MediumConfig::default() }, 1, "channel");
    for station in 0..5 {
        medium.add_station(Position::default());
        medium.enqueue(Instant::ZERO, StationId(station), None, station, 500).expect("there is room");
    }
    let warm = run(&mut medium, 10_000_000_000);
    let mut frames = warm;
    // The counter covers the whole process, including the test harness's thread: take the minimum of five counts.
    let counts = (2..=6).map(|part| {
        let region = Region::new(ALLOCATOR);
        frames = run(&mut medium, part * 10_000_000_000);
        let change = region.change();
        change.allocations + change.reallocations
    });
    assert_eq!(counts.min(), Some(0));
    assert!(frames - warm > 10_000, "{frames}");
}
