//! Time for radio channels: `cargo bench -p anabranch-sim --bench radio`.
//!
//! What is counted are data frames. Each has about twenty stations in reach, which handle its beginning and its end.

use anabranch_policy::time::{Duration, Instant};
use anabranch_sim::radio::{Medium, MediumConfig, Overlap, Position, StationId};
use anabranch_sim::random::RandomStream;
use divan::Bencher;
use divan::counter::ItemsCount;

fn main() {
    divan::main();
}

fn at(micros: u64) -> Instant {
    Instant::ZERO + Duration::from_micros(micros)
}

/// Stations in a square where each has twenty in range of 150 m, in the mean.
fn square(stations: u32, config: MediumConfig) -> (Medium<u32>, RandomStream, f64) {
    let side = (f64::from(stations) * std::f64::consts::PI * 150.0 * 150.0 / 20.0).sqrt();
    let (mut medium, mut random) = (Medium::new(config, 1, "channel"), RandomStream::new(1, "places"));
    for _ in 0..stations {
        medium.add_station(Position { x: random.between(0.0, side), y: random.between(0.0, side) });
    }
    (medium, random, side)
}

fn drain(medium: &mut Medium<u32>) {
    while medium.poll_delivery().is_some() {}
    while medium.poll_status().is_some() {}
}

/// Every station sends a packet of 100 bytes to all, four times a second: more than Hellos and floods come to.
/// `moves` times a second each is a metre further. Returns the frames sent.
fn control_traffic((mut medium, mut random, side): (Medium<u32>, RandomStream, f64), seconds: u64, moves: u64) -> u64 {
    let stations = medium.station_count() as u32;
    let mut next: Vec<(u64, u32)> = (0..stations).map(|station| (random.below(250_000), station)).collect();
    next.sort_unstable();
    let moves_each = 1_000_000_u64.checked_div(moves).unwrap_or(u64::MAX);
    let mut moved = 0;
    for turn in 0..seconds * 4 {
        for (offset, station) in &next {
            let now = turn * 250_000 + offset;
            while medium.poll_timeout() <= at(now) {
                let due = medium.poll_timeout();
                medium.handle_timeout(due);
                drain(&mut medium);
            }
            while now / moves_each > moved {
                moved += 1;
                for station in (0..stations).map(StationId) {
                    let Position { x, y } = medium.position(station);
                    medium.set_position(station, Position { x: if x + 1.0 < side { x + 1.0 } else { 0.0 }, y });
                }
            }
            let _ = medium.enqueue(at(now), StationId(*station), None, 0, 100);
        }
    }
    (0..stations).map(|station| medium.counters(StationId(station)).broadcasts_sent).sum()
}

fn bench(bencher: Bencher<'_, '_>, stations: u32, config: &MediumConfig, seconds: u64, moves: u64) {
    let frames = control_traffic(square(stations, config.clone()), seconds, moves);
    bencher
        .counter(ItemsCount::new(frames))
        .with_inputs(|| square(stations, config.clone()))
        .bench_values(|square| control_traffic(square, seconds, moves));
}

/// 60 simulated seconds; frames per second at equal density should not depend on how many stations there are.
#[divan::bench(args = [10, 100, 1000], sample_count = 3, sample_size = 1)]
fn standing_stations(bencher: Bencher<'_, '_>, stations: u32) {
    bench(bencher, stations, &MediumConfig::default(), 60, 0);
}

/// The same 1,000 stations, all moved ten times a second.
#[divan::bench(sample_count = 3, sample_size = 1)]
fn moving_stations(bencher: Bencher<'_, '_>) {
    bench(bencher, 1000, &MediumConfig::default(), 60, 10);
}

/// The same, with the probability of each overlapped bit reckoned up.
#[divan::bench(sample_count = 3, sample_size = 1)]
fn standing_stations_that_despread(bencher: Bencher<'_, '_>) {
    bench(bencher, 1000, &MediumConfig { overlap: Overlap::Despreads, ..MediumConfig::default() }, 60, 0);
}

/// Ten stations in range of each other that always have a packet for the next, 10 simulated seconds.
#[divan::bench(sample_count = 5, sample_size = 1)]
fn ten_saturated_stations(bencher: Bencher<'_, '_>) {
    let run = || {
        let mut medium = Medium::new(MediumConfig::default(), 1, "channel");
        let stations: Vec<StationId> = (0..10).map(|_| medium.add_station(Position::default())).collect();
        for index in 0..10 {
            let _ = medium.enqueue(Instant::ZERO, stations[index], Some(stations[(index + 1) % 10]), 0, 1500);
        }
        while medium.poll_timeout() <= at(10_000_000) {
            let now = medium.poll_timeout();
            medium.handle_timeout(now);
            while medium.poll_delivery().is_some() {}
            while let Some(status) = medium.poll_status() {
                let _ = medium.enqueue(now, status.station, status.destination, 0, 1500);
            }
        }
        stations.iter().map(|station| medium.counters(*station).data_sent).sum::<u64>()
    };
    bencher.counter(ItemsCount::new(run())).bench(run);
}
