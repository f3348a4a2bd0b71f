//! Single exchanges, step by step.

use super::*;

#[test]
fn a_broadcast_reaches_all_in_range_once_without_acknowledgment() {
    let mut medium = chain(MediumConfig::default(), 4);
    enqueue(&mut medium, 0, 1, None, 7, 100);
    let log = run(&mut medium, 1_000_000);
    // 136 bytes at 1 Mbit/s after DIFS, since the channel has been idle from the start.
    assert_eq!(log.deliveries, [(50 + 192 + 1088, 1, 0, 7), (50 + 192 + 1088, 1, 2, 7)]);
    assert_eq!(log.statuses, [(1, true, 7)]);
    assert_eq!(medium.counters(StationId(0)).acknowledgments_sent, 0);
}

#[test]
fn a_unicast_packet_is_delivered_acknowledged_and_reported() {
    let mut medium = chain(MediumConfig::default(), 2);
    enqueue(&mut medium, 1000, 0, Some(1), 7, 1500);
    let log = run(&mut medium, 1_000_000);
    assert_eq!(log.deliveries, [(1000 + 1310, 0, 1, 7)]);
    assert_eq!(log.statuses, [(0, true, 7)]);
    assert_eq!(log.status_times, [1000 + 1310 + 10 + 304]);
}

#[test]
fn a_packet_for_a_station_out_of_range_is_tried_seven_times_and_dropped() {
    let mut medium = chain(MediumConfig::default(), 3);
    enqueue(&mut medium, 0, 0, Some(2), 7, 100);
    let log = run(&mut medium, 10_000_000);
    assert_eq!(log.statuses, [(0, false, 7)]);
    assert_eq!(medium.counters(StationId(0)).data_sent, 7);
    assert_eq!(medium.counters(StationId(0)).given_up, 1);
}
