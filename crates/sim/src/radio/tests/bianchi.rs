//! Saturation throughput against the fixed point of G. Bianchi, "Performance analysis of the IEEE 802.11 distributed
//! coordination function" (2000).

use super::*;

/// The probability that a station sends in a slot, if a frame collides with probability `p` (equation 7), for a window
/// of 32 slots that doubles five times.
fn sends(p: f64) -> f64 {
    let (window, doublings) = (32.0, 5.0);
    2.0 * (1.0 - 2.0 * p) / ((1.0 - 2.0 * p) * (window + 1.0) + p * window * (1.0 - libm::pow(2.0 * p, doublings)))
}

/// The fixed point tau of equations 7 and 9, by bisection.
fn fixed_point(stations: i32) -> f64 {
    let (mut low, mut high) = (0.0, 1.0);
    for _ in 0..100 {
        let p = 0.5 * (low + high);
        if 1.0 - libm::pow(1.0 - sends(p), f64::from(stations - 1)) > p { low = p } else { high = p }
    }
    sends(low)
}

/// Packets per second (equation 13), with the durations of a success and a collision in microseconds.
fn throughput(stations: i32, slot: f64, success: f64, collision: f64) -> f64 {
    let tau = fixed_point(stations);
    let some = 1.0 - libm::pow(1.0 - tau, f64::from(stations));
    let one = f64::from(stations) * tau * libm::pow(1.0 - tau, f64::from(stations - 1)) / some;
    1e6 * some * one / ((1.0 - some) * slot + some * one * success + some * (1.0 - one) * collision)
}

/// Packets per second of saturated stations in range of each other.
fn measured(config: MediumConfig, stations: u32, seconds: f64) -> (f64, Vec<u64>) {
    let mut medium = Medium::new(config, 3, "saturated");
    for _ in 0..stations {
        medium.add_station(Position::default());
    }
    let pairs: Vec<(u32, u32)> = (0..stations).map(|station| (station, (station + 1) % stations)).collect();
    let acknowledged = saturate(&mut medium, &pairs, 1500, seconds);
    (acknowledged.iter().sum::<u64>() as f64 / seconds, acknowledged)
}

/// Equation 7 has no limit of attempts, so there is none here.
fn unlimited() -> MediumConfig {
    MediumConfig { short_retry_limit: u32::MAX, long_retry_limit: u32::MAX, ..MediumConfig::default() }
}

#[test]
fn the_fixed_point_is_bianchis() {
    // A single station: half the window of 32 and one slot: tau = 2 / 33.
    assert!((fixed_point(1) - 2.0 / 33.0).abs() < 1e-9);
    // With one other station p = tau, so tau is a fixed point of equation 7.
    let tau = fixed_point(2);
    assert!((sends(tau) - tau).abs() < 1e-9, "{tau}");
}

/// Packets of 1500 bytes per second by the formula.
fn by_formula(stations: u32, with_rts: bool) -> f64 {
    // Success: data, SIFS, ACK, DIFS. Collision: data, and EIFS at the receivers.
    let (success, collision) = (1310.0 + 10.0 + 304.0 + 50.0, 1310.0 + 364.0);
    // RTS, SIFS, CTS and SIFS before the data; collision: RTS and EIFS.
    let (reserved, reservation_lost) = (352.0 + 10.0 + 304.0 + 10.0 + success, 352.0 + 364.0);
    let (success, collision) = if with_rts { (reserved, reservation_lost) } else { (success, collision) };
    throughput(stations as i32, 20.0, success, collision)
}

/// Packets per second of saturated stations, half a minute.
fn by_simulation(stations: u32, with_rts: bool) -> f64 {
    let rts_threshold = if with_rts { 0 } else { u32::MAX };
    measured(MediumConfig { rts_threshold, ..unlimited() }, stations, 30.0).0
}

#[test]
fn saturated_stations_reach_bianchis_throughput() {
    for stations in 2..=10 {
        let (formula, seen) = (by_formula(stations, false), by_simulation(stations, false));
        assert!((seen / formula - 1.0).abs() < 0.05, "{stations} stations: {seen} packets/s, {formula} by the formula");
    }
}

#[test]
fn with_rts_they_do_as_well() {
    for stations in [2, 5, 10] {
        let (formula, seen) = (by_formula(stations, true), by_simulation(stations, true));
        assert!((seen / formula - 1.0).abs() < 0.05, "{stations} stations: {seen} packets/s, {formula} by the formula");
    }
}

#[test]
#[ignore = "prints a table of docs/measurements/radio.md"]
#[expect(clippy::print_stdout, reason = "that is what it is for")]
fn table() {
    println!("\n| stations | simulated | formula | with RTS, simulated | formula |\n|---|---|---|---|---|");
    for stations in 2..=10 {
        let [(seen, formula), (seen_with_rts, formula_with_rts)] =
            [false, true].map(|with_rts| (by_simulation(stations, with_rts), by_formula(stations, with_rts)));
        println!("| {stations} | {seen:.1} | {formula:.1} | {seen_with_rts:.1} | {formula_with_rts:.1} |");
    }
}

#[test]
fn saturated_stations_share_evenly() {
    let (_, acknowledged) = measured(MediumConfig::default(), 5, 60.0);
    let mean = acknowledged.iter().sum::<u64>() as f64 / 5.0;
    assert!(acknowledged.iter().all(|one| (*one as f64 / mean - 1.0).abs() < 0.05), "{acknowledged:?}");
}
