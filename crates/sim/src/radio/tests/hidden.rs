//! Half duplex, hidden terminals, and the effect of RTS on them.

use super::*;

/// The middle of a chain of three hears both ends, which do not hear each other.
fn ends_to_middle(config: MediumConfig, seconds: f64) -> (Medium<u32>, f64) {
    let mut medium = chain(config, 3);
    let packets = saturate(&mut medium, &[(0, 1), (2, 1)], 1500, seconds);
    let sum = packets.iter().sum::<u64>() as f64 / seconds;
    (medium, sum)
}

#[test]
fn a_station_that_sends_hears_nothing() {
    let mut medium = chain(MediumConfig::default(), 2);
    // Both begin at once, since the channel has been idle for long.
    enqueue(&mut medium, 1000, 0, None, 1, 100);
    enqueue(&mut medium, 1000, 1, None, 2, 100);
    let log = run(&mut medium, 1_000_000);
    assert_eq!(log.deliveries, []);
    assert_eq!(log.statuses.len(), 2);
}

#[test]
fn a_second_station_defers_to_a_frame_on_the_air() {
    let mut medium = chain(MediumConfig::default(), 2);
    enqueue(&mut medium, 1000, 0, None, 1, 100);
    let _ = run(&mut medium, 1001);
    enqueue(&mut medium, 1500, 1, None, 2, 100);
    let log = run(&mut medium, 1_000_000);
    let ends = 1000 + 1280;
    assert_eq!(log.deliveries[0], (ends, 0, 1, 1));
    // DIFS, then a whole number of slots up to 31.
    let (time, ..) = log.deliveries[1];
    let slots = time - 1280 - ends - 50;
    assert!(slots % 20 == 0 && slots / 20 <= 31, "{slots} us");
}

#[test]
fn frames_of_stations_hidden_from_each_other_collide_between_them() {
    let mut medium = chain(MediumConfig::default(), 3);
    enqueue(&mut medium, 1000, 0, None, 1, 1000);
    let _ = run(&mut medium, 1001);
    // Station 2 does not hear station 0, so it sends at once; station 1 receives neither frame.
    enqueue(&mut medium, 2000, 2, None, 2, 1000);
    let log = run(&mut medium, 1_000_000);
    assert_eq!(log.deliveries, []);
    assert_eq!(medium.counters(StationId(1)).collisions, 1);
}

#[test]
fn a_frame_that_follows_another_at_once_is_not_disturbed_by_it() {
    let mut medium = chain(MediumConfig::default(), 3);
    enqueue(&mut medium, 1000, 0, None, 1, 100);
    let _ = run(&mut medium, 1001);
    enqueue(&mut medium, 2280, 2, None, 2, 100);
    let log = run(&mut medium, 1_000_000);
    assert_eq!(log.deliveries, [(2280, 0, 1, 1), (3560, 2, 1, 2)]);
}

#[test]
fn sensing_further_than_decoding_unhides_them() {
    let reach = Reach::Radii { decode: 150.0, interfere: 250.0, sense: 250.0 };
    let (hidden, hidden_sum) = ends_to_middle(MediumConfig::default(), 10.0);
    let (sensed, sensed_sum) = ends_to_middle(MediumConfig { reach, ..MediumConfig::default() }, 10.0);
    let failed = |medium: &Medium<u32>| {
        let counters = medium.counters(StationId(0));
        counters.data_failed as f64 / counters.data_sent as f64
    };
    // Two stations in range of each other collide with a probability of about 2 / (2 * 32); hidden ones far more often.
    assert!(failed(&sensed) < 0.08, "{}", failed(&sensed));
    assert!(failed(&hidden) > 0.25, "{}", failed(&hidden));
    assert!(sensed_sum > 1.2 * hidden_sum, "{sensed_sum} {hidden_sum}");
}

#[test]
fn rts_makes_hidden_stations_lose_requests_instead_of_data() {
    let (medium, _) = ends_to_middle(MediumConfig { rts_threshold: 0, ..MediumConfig::default() }, 10.0);
    for station in [0, 2] {
        let counters = medium.counters(StationId(station));
        assert!(counters.requests_failed > 100, "{counters:?}");
        assert!((counters.data_failed as f64) < 0.01 * counters.data_sent as f64, "{counters:?}");
    }
}

#[test]
fn an_explicit_matrix_needs_no_positions_and_links_may_be_one_way() {
    let mut medium = Medium::new(MediumConfig { reach: Reach::Links, ..MediumConfig::default() }, 1, "links");
    let [a, b, c] = [0; 3].map(|_| medium.add_station(Position::default()));
    medium.set_link(a, b, Some(Link::GOOD));
    medium.set_link(a, c, Some(Link { hears: Hears::BusyAndNoise, ..Link::GOOD }));
    enqueue(&mut medium, 0, 0, None, 1, 100);
    assert_eq!(run(&mut medium, 50_000).deliveries, [(1330, 0, 1, 1)]);
    enqueue(&mut medium, 50_000, 1, None, 2, 100);
    assert_eq!(run(&mut medium, 100_000).deliveries, []);
    // There is no link in the other direction, so no acknowledgment arrives.
    enqueue(&mut medium, 200_000, 0, Some(1), 3, 100);
    let log = run(&mut medium, 10_000_000);
    assert_eq!(log.deliveries.len(), 1);
    assert_eq!(log.statuses, [(0, false, 3)]);
    assert_eq!(medium.counters(b).repetitions, 6);
}

#[test]
fn a_link_that_loses_a_third_loses_a_third() {
    let mut medium = chain(MediumConfig::default(), 2);
    medium.set_error_rate(StationId(0), StationId(1), 1.0 / 3.0);
    let _ = saturate(&mut medium, &[(0, 1)], 100, 10.0);
    let counters = medium.counters(StationId(0));
    let share = counters.data_failed as f64 / counters.data_sent as f64;
    assert!((share - 1.0 / 3.0).abs() < 0.02, "{share}");
    // All seven attempts fail once in 2187.
    let given_up = counters.given_up as f64 / (counters.given_up + counters.acknowledged) as f64;
    assert!(given_up < 0.002, "{given_up}");
}
