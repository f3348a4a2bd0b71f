//! A channel as a whole: the same seed repeats the run, chains carry what they should, queues and switches.

use super::*;
use crate::random::RandomStream;

#[test]
fn the_same_seed_repeats_the_run_and_another_does_not() {
    let hash = |seed| {
        let mut medium = Medium::new(MediumConfig::default(), seed, "channel");
        let mut random = RandomStream::new(1, "places");
        for _ in 0..30 {
            medium.add_station(Position { x: random.between(0.0, 400.0), y: random.between(0.0, 400.0) });
        }
        for packet in 0..300 {
            let (station, to) = (random.below(30) as u32, random.below(40) as u32);
            enqueue(&mut medium, u64::from(packet) * 500, station, (to < 30).then_some(to), packet, 400);
        }
        run(&mut medium, 10_000_000).deliveries
    };
    assert_eq!(hash(1), hash(1));
    assert_ne!(hash(1), hash(2));
}

#[test]
fn a_full_queue_refuses_and_counts() {
    let mut medium = chain(MediumConfig { queue_frames: 50, ..MediumConfig::default() }, 2);
    let taken = (0..60).filter(|_| medium.enqueue(at(0), StationId(0), Some(StationId(1)), 1, 1000).is_ok()).count();
    assert_eq!((taken, medium.counters(StationId(0)).refused), (50, 10));
}

#[test]
fn packets_queued_at_a_station_that_is_switched_off_are_returned() {
    let mut medium = chain(MediumConfig::default(), 3);
    for packet in 0..3 {
        enqueue(&mut medium, 1000, 0, Some(1), packet, 1000);
    }
    let _ = run(&mut medium, 1100);
    medium.set_on(at(1200), StationId(0), false);
    let log = run(&mut medium, 1_000_000);
    // The frame on the air ends and is received; its sender, switched off, does not hear the acknowledgment.
    assert_eq!(log.deliveries.len(), 1);
    let mut statuses = log.statuses;
    statuses.sort();
    assert_eq!(statuses, [(0, false, 0), (0, false, 1), (0, false, 2)]);
    assert_eq!(medium.enqueue(at(1_000_000), StationId(0), None, 9, 100), Err(9));
    medium.set_on(at(2_000_000), StationId(0), true);
    enqueue(&mut medium, 2_000_000, 0, Some(1), 5, 1000);
    assert_eq!(run(&mut medium, 3_000_000).statuses, [(0, true, 5)]);
}

#[test]
fn a_station_that_moves_away_is_not_reached_any_more() {
    let mut medium = chain(MediumConfig::default(), 2);
    enqueue(&mut medium, 0, 0, None, 1, 100);
    assert_eq!(run(&mut medium, 10_000).deliveries.len(), 1);
    medium.set_position(StationId(1), Position { x: 151.0, y: 0.0 });
    enqueue(&mut medium, 20_000, 0, None, 2, 100);
    assert_eq!(run(&mut medium, 40_000).deliveries, []);
    medium.set_position(StationId(1), Position { x: 0.0, y: -150.0 });
    enqueue(&mut medium, 50_000, 0, None, 3, 100);
    assert_eq!(run(&mut medium, 60_000).deliveries.len(), 1);
}

#[test]
fn energy_is_power_by_time_in_each_state() {
    let mut medium = chain(MediumConfig::default(), 2);
    enqueue(&mut medium, 0, 0, Some(1), 1, 1500);
    let _ = run(&mut medium, 1_000_000);
    let used = medium.airtime_use(StationId(0));
    assert_eq!((used.sending, used.receiving), (micros(1310), micros(304)));
    let expected = 0.001310 * 1.346_1 + 0.000304 * 0.900_6 + (1.0 - 0.001614) * 0.739_4;
    assert!((medium.energy(StationId(0), at(1_000_000)) - expected).abs() < 1e-9);
}

#[test]
fn packets_queued_for_longer_than_their_lifetime_are_dropped() {
    let mut medium = chain(MediumConfig { lifetime: Some(micros(3000)), ..MediumConfig::default() }, 2);
    // A packet takes 50 to 670 us of waiting and an exchange of 1624 us: the second begins before 3000 us, the third
    // after.
    for packet in 0..4 {
        enqueue(&mut medium, 0, 0, Some(1), packet, 1500);
    }
    let log = run(&mut medium, 1_000_000);
    assert_eq!(log.statuses, [(0, true, 0), (0, true, 1), (0, false, 2), (0, false, 3)]);
    assert_eq!(medium.counters(StationId(0)).expired, 2);
    enqueue(&mut medium, 1_000_000, 0, Some(1), 4, 1500);
    assert_eq!(run(&mut medium, 2_000_000).statuses, [(0, true, 4)]);
}

#[test]
fn urgent_packets_go_before_the_others_but_not_before_the_one_on_the_air_nor_each_other() {
    let mut medium = chain(MediumConfig { queue_frames: 4, ..MediumConfig::default() }, 2);
    for cargo in [1, 2, 3] {
        enqueue(&mut medium, 0, 0, Some(1), cargo, 1000);
    }
    let mut urgent = |cargo| medium.enqueue_urgent(at(0), StationId(0), None, cargo, 100);
    assert_eq!((urgent(11), urgent(12)), (Ok(()), Ok(())));
    assert_eq!(medium.enqueue(at(0), StationId(0), Some(StationId(1)), 4, 1000), Err(4), "the queue is full");
    // And there is a little room for urgent ones.
    let taken = (0..20).filter(|_| medium.enqueue_urgent(at(0), StationId(0), None, 13, 100).is_ok()).count();
    assert_eq!(taken, 4 + URGENT_FRAMES - 5);
    let cargo: Vec<u32> = run(&mut medium, 1_000_000).deliveries.iter().map(|(_, _, _, cargo)| *cargo).collect();
    assert_eq!((&cargo[..3], &cargo[cargo.len() - 2..]), (&[1, 11, 12][..], &[2, 3][..]));
}
