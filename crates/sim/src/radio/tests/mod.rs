//! The channel compared with formulas, with small cases by hand, and with repeated runs.

mod anything;
mod bianchi;
mod chains;
mod exchange;
mod hidden;
mod reservation;
mod signals;
mod timing;
mod whole;

use super::*;
use anabranch_policy::rate::Rate;
use anabranch_policy::time::Duration;

fn micros(micros: u64) -> Duration {
    Duration::from_micros(micros)
}

fn at(micros: u64) -> Instant {
    Instant::from_nanos(micros * 1000)
}

fn megabits(megabits: f64) -> Rate {
    Rate::from_bits_per_second((megabits * 1e6) as u64)
}

/// Stations 100 m apart on a line.
fn chain(config: MediumConfig, stations: usize) -> Medium<u32> {
    let mut medium = Medium::new(config, 1, "channel");
    for index in 0..stations {
        medium.add_station(Position { x: 100.0 * index as f64, y: 0.0 });
    }
    medium
}

fn enqueue(medium: &mut Medium<u32>, time: u64, station: u32, to: Option<u32>, cargo: u32, bytes: u32) {
    medium.enqueue(at(time), StationId(station), to.map(StationId), cargo, bytes).expect("there is room");
}

/// Outputs of a run, with times in microseconds.
#[derive(Default)]
struct Log {
    /// Time, sender, receiver, packet.
    deliveries: Vec<(u64, u32, u32, u32)>,
    /// Station, whether delivered, packet.
    statuses: Vec<(u32, bool, u32)>,
    status_times: Vec<u64>,
}

/// Runs a channel until a time in microseconds.
fn run(medium: &mut Medium<u32>, until: u64) -> Log {
    let mut log = Log::default();
    while medium.poll_timeout() <= at(until) {
        let now = medium.poll_timeout();
        let micros = now.as_nanos() / 1000;
        medium.handle_timeout(now);
        while let Some(delivery) = medium.poll_delivery() {
            log.deliveries.push((micros, delivery.from.0, delivery.to.0, delivery.cargo));
        }
        while let Some(status) = medium.poll_status() {
            log.statuses.push((status.station.0, status.delivered, status.cargo));
            log.status_times.push(micros);
        }
    }
    log
}

/// Keeps a packet queued for each (sender, receiver) for `seconds` seconds; returns the number acknowledged for each.
fn saturate(medium: &mut Medium<u32>, pairs: &[(u32, u32)], bytes: u32, seconds: f64) -> Vec<u64> {
    for (sender, receiver) in pairs {
        for _ in 0..2 {
            enqueue(medium, 0, *sender, Some(*receiver), 0, bytes);
        }
    }
    let end = at((seconds * 1e6) as u64);
    while medium.poll_timeout() <= end {
        let now = medium.poll_timeout();
        medium.handle_timeout(now);
        while medium.poll_delivery().is_some() {}
        while let Some(status) = medium.poll_status() {
            medium.enqueue(now, status.station, status.destination, 0, bytes).expect("there is room");
        }
    }
    pairs.iter().map(|(sender, _)| medium.counters(StationId(*sender)).acknowledged).collect()
}
