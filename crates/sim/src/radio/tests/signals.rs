//! Path loss, shadowing and capture.

use super::*;

fn path_loss(shadowing: f64) -> PathLoss {
    PathLoss { shadowing, ..PathLoss::default() }
}

fn medium(path_loss: PathLoss, seed: u64, places: &[(f64, f64)]) -> Medium<u32> {
    let config = MediumConfig { reach: Reach::PathLoss(path_loss), ..MediumConfig::default() };
    let mut medium = Medium::new(config, seed, "channel");
    for (x, y) in places {
        medium.add_station(Position { x: *x, y: *y });
    }
    medium
}

#[test]
fn the_signal_falls_by_the_logarithm_of_the_distance_and_is_told() {
    // 15 dBm less 40 dB over the first metre, less 30 dB for each factor of ten.
    assert!((path_loss(0.0).mean_signal(10.0) + 55.0).abs() < 1e-9);
    assert!((path_loss(0.0).mean_signal(100.0) + 85.0).abs() < 1e-9);
    assert!((path_loss(0.0).mean_signal(0.0) + 25.0).abs() < 1e-9);
    // The signal is -82 dBm at 10^(57 / 30) = 79.4 m.
    let mut medium = medium(path_loss(0.0), 1, &[(0.0, 0.0), (79.0, 0.0), (80.0, 0.0)]);
    medium.enqueue(at(0), StationId(0), None, 7, 100).unwrap();
    let _ = std::iter::from_fn(|| {
        let due = medium.poll_timeout();
        (due != Instant::NEVER).then(|| medium.handle_timeout(due))
    })
    .count();
    let delivery = medium.poll_delivery().expect("the nearer one");
    assert_eq!(delivery.to, StationId(1));
    let expected = 15.0 - 40.0 - 30.0 * libm::log10(79.0);
    assert!((f64::from(delivery.signal.unwrap()) - expected).abs() < 1e-4, "{delivery:?}");
    assert_eq!(medium.poll_delivery(), None);
}

/// The shadowing of one position pair in many runs, in units of its deviation.
fn shadows(from: (f64, f64), to: (f64, f64)) -> Vec<f64> {
    let deviation = 4.0;
    let one = |seed| {
        let mut medium = medium(path_loss(deviation), seed, &[from, to]);
        let signal = medium.hears(StationId(0), StationId(1)).expect("they are near").expect("there is a signal");
        let back = medium.hears(StationId(1), StationId(0)).expect("they are near");
        assert_eq!(back, Some(signal), "a link is as good in both directions");
        let distance = f64::hypot(from.0 - to.0, from.1 - to.1);
        (f64::from(signal) - path_loss(0.0).mean_signal(distance)) / deviation
    };
    (0..800).map(one).collect()
}

fn correlation(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>() / a.len() as f64
}

#[test]
fn shadows_have_their_deviation_and_are_alike_within_the_correlation_distance() {
    let here = shadows((0.0, 0.0), (20.0, 0.0));
    let mean = here.iter().sum::<f64>() / here.len() as f64;
    assert!(mean.abs() < 0.1, "{mean}");
    assert!((correlation(&here, &here) - 1.0).abs() < 0.15, "{}", correlation(&here, &here));
    // 1/e at 20 m moved by one end; the square of that if the other has moved too; none far away.
    let near = correlation(&here, &shadows((0.0, 20.0), (20.0, 0.0)));
    assert!((near - 0.368).abs() < 0.12, "{near}");
    let both = correlation(&here, &shadows((0.0, 20.0), (20.0, 20.0)));
    assert!((both - 0.135).abs() < 0.12, "{both}");
    let far = correlation(&here, &shadows((500.0, 0.0), (520.0, 0.0)));
    assert!(far.abs() < 0.12, "{far}");
}

#[test]
fn a_much_stronger_frame_survives_only_where_capture_is_on() {
    let received = |overlap| {
        let config = MediumConfig { reach: Reach::PathLoss(path_loss(0.0)), overlap, ..MediumConfig::default() };
        let mut medium = Medium::new(config, 1, "channel");
        // The receiver is 10 m from one sender and 70 m from the other: 25 dB. The senders do not hear each other in
        // time, since both begin at once.
        for x in [0.0, 10.0, 80.0] {
            medium.add_station(Position { x, y: 0.0 });
        }
        enqueue(&mut medium, 1000, 0, None, 1, 100);
        enqueue(&mut medium, 1000, 2, None, 2, 100);
        run(&mut medium, 100_000).deliveries.iter().filter(|(_, _, to, _)| *to == 1).count()
    };
    assert_eq!(received(Overlap::Spoils), 0);
    assert_eq!(received(Overlap::Capture(10.0)), 1);
    assert_eq!(received(Overlap::Capture(30.0)), 0);
    assert_eq!(received(Overlap::Despreads), 1);
}

#[test]
fn a_slow_frame_survives_an_equal_one_if_it_came_first_and_a_fast_one_does_not() {
    let failed = |rate: f64| {
        let data_rate = megabits(rate);
        let mut medium = chain(MediumConfig { data_rate, overlap: Overlap::Despreads, ..MediumConfig::default() }, 3);
        enqueue(&mut medium, 1000, 0, Some(1), 1, 1000);
        let _ = run(&mut medium, 1001);
        // While sending, from a station that cannot hear station 0.
        enqueue(&mut medium, 1500, 2, None, 2, 100);
        let _ = run(&mut medium, 1500 + 100_000);
        medium.counters(StationId(0)).data_failed
    };
    assert_eq!(failed(1.0), 0);
    assert!(failed(11.0) >= 1);
}

#[test]
fn fading_softens_the_edge_of_a_disk() {
    // At a margin in dB above the threshold, Rayleigh fading loses 1 - exp(-10^(-dB / 10)) of the frames.
    for (decibels, expected) in [(0.0, 0.632), (3.0, 0.394), (10.0, 0.095), (-3.0, 0.864)] {
        let distance = libm::pow(10.0, (57.0 - decibels) / 30.0);
        let mut medium = medium(PathLoss { fading: 1, ..path_loss(0.0) }, 1, &[(0.0, 0.0), (distance, 0.0)]);
        let (frames, mut received, mut signals) = (4000, 0, 0.0);
        for frame in 0..frames {
            enqueue(&mut medium, frame * 10_000, 0, None, 0, 100);
            medium.handle_timeout(at(frame * 10_000 + 9_000));
            while let Some(delivery) = medium.poll_delivery() {
                received += 1;
                signals += f64::from(delivery.signal.unwrap());
            }
        }
        let lost = 1.0 - f64::from(received) / frames as f64;
        assert!((lost - expected).abs() < 0.03, "{decibels} dB: {lost}");
        // Only stronger frames are received, so their mean hardly depends on the distance.
        assert!(signals / f64::from(received) > -82.0);
    }
}

#[test]
fn more_scattered_ways_make_fading_milder() {
    let lost = |fading| {
        let distance = libm::pow(10.0, (57.0 - 3.0) / 30.0);
        let mut medium = medium(PathLoss { fading, ..path_loss(0.0) }, 1, &[(0.0, 0.0), (distance, 0.0)]);
        for frame in 0..2000 {
            enqueue(&mut medium, frame * 10_000, 0, None, 0, 100);
            medium.handle_timeout(at(frame * 10_000 + 9_000));
        }
        2000 - medium.counters(StationId(1)).received
    };
    let [none, one, three] = [0, 1, 3].map(lost);
    assert!(none == 0 && three < one && three > 0, "{none} {one} {three}");
}
