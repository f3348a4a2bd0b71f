//! Packets over several hops of one channel, compared with ns-3.37 (`docs/measurements/radio.md` has the settings).

use super::*;

/// Bytes per second of UDP at the end of a chain whose first station is saturated with packets of 1472 bytes of
/// payload.
fn udp(config: MediumConfig, hops: u32, seconds: f64) -> f64 {
    let mut medium = chain(config, hops as usize + 1);
    let (end, mut arrived) = (at((seconds * 1e6) as u64), 0);
    let offer = |medium: &mut Medium<u32>, now, station: u32| {
        medium.enqueue(now, StationId(station), Some(StationId(station + 1)), 0, 1500).is_ok()
    };
    while offer(&mut medium, Instant::ZERO, 0) {}
    while medium.poll_timeout() <= end {
        let now = medium.poll_timeout();
        medium.handle_timeout(now);
        while let Some(delivery) = medium.poll_delivery() {
            if delivery.to.0 == hops {
                arrived += 1472;
            } else {
                let _ = offer(&mut medium, now, delivery.to.0);
            }
        }
        while let Some(status) = medium.poll_status() {
            if status.station.0 == 0 {
                let _ = offer(&mut medium, now, 0);
            }
        }
    }
    f64::from(arrived) / seconds
}

/// What ns-3.37 measured over one to four hops, kB/s, mean of seeds 1 and 2.
const NS3: [f64; 4] = [781.0, 421.2, 256.6, 231.7];

/// kB/s over one to four hops.
fn over_hops(config: &MediumConfig) -> [f64; 4] {
    [1, 2, 3, 4].map(|hops| udp(config.clone(), hops, 60.0) / 1000.0)
}

/// A station backs off when it is interrupted, as the standard says.
fn with_back_off() -> MediumConfig {
    MediumConfig { interrupted: Interrupted::BacksOff, ..MediumConfig::as_in_ns3() }
}

#[test]
fn udp_over_one_to_four_hops_is_as_fast_as_in_ns3() {
    let seen = over_hops(&MediumConfig::as_in_ns3());
    for (seen_one, expected) in seen.iter().zip(NS3) {
        assert!((seen_one / expected - 1.0).abs() < 0.02, "{seen:?}");
    }
}

/// A forwarder's packet is queued before its ACK is sent. If that counts as an interruption, the forwarder backs off,
/// collides with the source more often, and long chains carry less.
#[test]
fn who_backs_off_after_an_interruption_carries_less_over_long_chains() {
    let ratio = |hops| udp(with_back_off(), hops, 30.0) / udp(MediumConfig::as_in_ns3(), hops, 30.0);
    assert!((ratio(1) - 1.0).abs() < 0.01);
    assert!(ratio(4) < 0.95);
}

#[test]
#[ignore = "prints a table of docs/measurements/radio.md"]
#[expect(clippy::print_stdout, reason = "that is what it is for")]
fn table() {
    println!("\n| | 1 hop | 2 | 3 | 4 |\n|---|---|---|---|---|");
    let rows = [
        ("ns-3.37", NS3),
        ("as in ns-3", over_hops(&MediumConfig::as_in_ns3())),
        ("the same, with back-off when interrupted", over_hops(&with_back_off())),
    ];
    for (name, [one, two, three, four]) in rows {
        println!("| {name} | {one:.1} | {two:.1} | {three:.1} | {four:.1} |");
    }
}
