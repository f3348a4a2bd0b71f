//! RTS, CTS and their reservations.

use super::*;

fn config() -> MediumConfig {
    MediumConfig { rts_threshold: 0, ..MediumConfig::default() }
}

#[test]
fn rts_cts_data_and_acknowledgment_follow_each_other_by_sifs() {
    let mut medium = chain(config(), 2);
    enqueue(&mut medium, 1000, 0, Some(1), 7, 1500);
    let log = run(&mut medium, 1_000_000);
    let data_ends = 1000 + 352 + 10 + 304 + 10 + 1310;
    assert_eq!(log.deliveries, [(data_ends, 0, 1, 7)]);
    assert_eq!(log.status_times, [data_ends + 10 + 304]);
}

#[test]
fn frames_up_to_the_threshold_go_without_rts() {
    let mut medium = chain(MediumConfig { rts_threshold: 536, ..MediumConfig::default() }, 2);
    enqueue(&mut medium, 0, 0, Some(1), 1, 500);
    let _ = run(&mut medium, 1_000_000);
    assert_eq!(medium.counters(StationId(0)).requests_sent, 0);
    enqueue(&mut medium, 1_000_000, 0, Some(1), 1, 501);
    let _ = run(&mut medium, 2_000_000);
    assert_eq!(medium.counters(StationId(0)).requests_sent, 1);
}

/// Station 2 hears the CTS of station 1 but not the data of station 0.
#[test]
fn who_hears_only_cts_keeps_silent_until_the_acknowledgment() {
    let mut medium = chain(config(), 3);
    enqueue(&mut medium, 1000, 0, Some(1), 7, 1500);
    let cts_ends = 1000 + 352 + 10 + 304;
    let _ = run(&mut medium, cts_ends);
    enqueue(&mut medium, cts_ends + 100, 2, None, 8, 100);
    let log = run(&mut medium, 1_000_000);
    let acknowledged = cts_ends + 10 + 1310 + 10 + 304;
    assert_eq!(log.deliveries[0], (acknowledged - 314, 0, 1, 7));
    let (time, from, ..) = log.deliveries[1];
    let slots = time - 1280 - acknowledged - 50;
    assert!(from == 2 && slots % 20 == 0 && slots / 20 <= 31, "{slots}");
}

/// Station 1 hears station 2's CTS for station 3, but not station 3 itself.
#[test]
fn a_station_in_a_reserved_channel_does_not_answer_rts() {
    let mut medium = chain(config(), 4);
    enqueue(&mut medium, 1000, 3, Some(2), 1, 1500);
    let cts_ends = 1000 + 352 + 10 + 304;
    let _ = run(&mut medium, cts_ends);
    enqueue(&mut medium, cts_ends + 20, 0, Some(1), 2, 1500);
    let acknowledged = cts_ends + 10 + 1310 + 10 + 304;
    let mut log = run(&mut medium, acknowledged);
    assert_eq!(medium.counters(StationId(0)).requests_failed, 1);
    assert_eq!(medium.counters(StationId(1)).clears_sent, 0);
    log.deliveries.extend(run(&mut medium, 1_000_000).deliveries);
    let packets: Vec<u32> = log.deliveries.iter().map(|(.., packet)| *packet).collect();
    assert_eq!(packets, [1, 2]);
}

/// Nobody answers the RTS of station 0; station 1 heard it, and may send again once no data can follow.
#[test]
fn a_reservation_lapses_if_no_data_follows() {
    let mut medium = chain(config(), 2);
    let away = medium.add_station(Position { x: 1000.0, y: 0.0 });
    enqueue(&mut medium, 1000, 0, Some(away.0), 7, 1500);
    let request_ends = 1000 + 352;
    let _ = run(&mut medium, request_ends);
    enqueue(&mut medium, request_ends + 1, 1, None, 8, 100);
    let log = run(&mut medium, 1_000_000);
    // 2 SIFS, CTS, preamble, two slots; then DIFS and at most 31 slots, or more if station 0 came first.
    let lapses = request_ends + 20 + 304 + 192 + 40;
    let (time, from, ..) = log.deliveries[0];
    assert_eq!(from, 1);
    assert!(time - 1280 >= lapses + 50 && (time - 1280 - lapses - 50) % 20 == 0, "{time}");
    assert!(time < request_ends + 10 + 304 + 10 + 1310 + 314 + 1280, "within what was reserved: {time}");
}

#[test]
fn after_an_erroneous_frame_a_station_waits_for_eifs() {
    let first_after_collision = |extended_interframe_space| {
        let config = MediumConfig { extended_interframe_space, ..MediumConfig::default() };
        let mut medium = chain(config, 3);
        enqueue(&mut medium, 1000, 0, None, 1, 1000);
        enqueue(&mut medium, 1000, 2, None, 2, 1000);
        let _ = run(&mut medium, 1001);
        enqueue(&mut medium, 2000, 1, None, 3, 100);
        run(&mut medium, 1_000_000).deliveries[0].0
    };
    assert_eq!(first_after_collision(true) - first_after_collision(false), 314);
}
