//! The design: networks on which policies are compared, spread evenly over the space of path parameters.
//!
//! A point is a position in a unit cube of 23 dimensions, from an Owen-scrambled Sobol sequence (Sobol 1967; Owen 1995;
//! the crate `sobol_burley`). The first dimension selects the class: the four of Paasch, Khalili and Bonaventure, "On
//! the Benefits of Applying Experimental Design to Improve Multipath TCP" (CoNEXT 2013), and a fifth with paths that
//! change. `docs/measurements/sweep.md` defines the range of each dimension.

use super::change;
use super::point::{Class, Place, Point, PointPath, Span};
use crate::spread::{logarithmic, rounded};

/// Length of a sequence: the limit of the crate.
pub const MOST: u32 = 1 << 16;
/// Packet size in bytes for queue capacities.
const PACKET: f64 = 1500.0;
/// Minimum queue in packets: with less, halving the window leaves the link idle at any delay.
const LEAST_QUEUE: f64 = 5.0;
/// Receive buffers in bytes as an application requests them. Half of the points have none (automatic), as most
/// applications do. (A fixed one is shared by all paths: if it is smaller than their bandwidth-delay products, no
/// policy can reach their sum.)
pub const BUFFERS: [Option<u64>; 10] =
    [Some(64 << 10), Some(128 << 10), Some(256 << 10), Some(512 << 10), Some(1 << 20), None, None, None, None, None];
/// Upper ends of the classes in the first dimension, in units of 1/128: 216, 216, 216, 216 and 160 of 1,024 points.
const CLASSES: [(f64, Class); 5] = [
    (27.0, Class::LowBdp),
    (54.0, Class::LowBdpLossy),
    (81.0, Class::HighBdp),
    (108.0, Class::HighBdpLossy),
    (128.0, Class::Changing),
];
/// First dimension of the paths; each has four.
const OF_PATHS: u32 = 4;
/// First dimension of the change.
const OF_CHANGES: u32 = 16;

/// `count` points of the sequence of `seed`, starting at `first`.
pub fn points(seed: u32, first: u32, count: u32) -> Vec<Point> {
    (first..first.saturating_add(count).min(MOST)).map(|number| point(seed, number)).collect()
}

pub fn point(seed: u32, number: u32) -> Point {
    let place = Place { seed, number };
    let unit = place.at(0) * 128.0;
    let class = CLASSES.iter().find(|(end, _)| unit < *end).map_or(Class::Changing, |(_, class)| *class);
    let (high, lossy) = match class {
        Class::LowBdpLossy => (false, true),
        Class::HighBdp => (true, false),
        Class::HighBdpLossy => (true, true),
        Class::Changing => (place.one_of(OF_CHANGES, 2) == 1, place.one_of(OF_CHANGES + 1, 2) == 1),
        _ => (false, false),
    };
    let count = if place.one_of(1, 3) == 2 { 3 } else { 2 };
    let mut point = Point {
        seed,
        number,
        class,
        paths: (0..count).map(|path| path_at(place, OF_PATHS + 4 * path, high, lossy)).collect(),
        receive_buffer: BUFFERS[place.one_of(2, BUFFERS.len())],
        download: place.one_of(3, 2) == 1,
        change: None,
        span: Span { warm_up: 10.0, counted: 20.0 },
        competition: None,
    };
    if class == Class::Changing {
        point.span.counted = 30.0;
        change::apply(&mut point, place, OF_CHANGES + 2);
    }
    point
}

fn path_at(place: Place, first: u32, high: bool, lossy: bool) -> PointPath {
    let (round_trips, queues) = if high { (400.0, 2000.0) } else { (50.0, 100.0) };
    let rate = rounded(logarithmic(place.at(first), 0.1, 100.0));
    let queueing = place.between(first + 2, 0.0, queues);
    let queue = (rate * 1e3 * queueing / 8.0 / PACKET).round().max(LEAST_QUEUE);
    PointPath {
        rate,
        round_trip: (place.between(first + 1, 0.0, round_trips) * 10.0).round() / 10.0,
        queueing: (queue * PACKET * 8.0 / rate / 1e3 * 10.0).round() / 10.0,
        queue: queue as u64,
        loss: if lossy { (place.between(first + 3, 0.0, 0.025) * 1e5).round() / 1e5 } else { 0.0 },
        ..PointPath::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_repeats_the_points_and_another_seed_or_range_does_not() {
        assert_eq!(points(1, 0, 64), points(1, 0, 64));
        assert_eq!(points(1, 16, 16), points(1, 0, 32).split_off(16));
        let numbers = |seed| points(seed, 0, 64).iter().map(|point| point.paths[0].rate).collect::<Vec<_>>();
        assert_ne!(numbers(1), numbers(2));
    }

    #[test]
    fn of_1024_points_each_class_has_its_share_and_a_third_has_three_paths() {
        for seed in [1, 2, 77] {
            let points = points(seed, 0, 1024);
            let of = |class| points.iter().filter(|point| point.class == class).count();
            assert_eq!(Class::ALL.map(of), [216, 216, 216, 216, 160]);
            let triples = points.iter().filter(|point| point.paths.len() == 3).count();
            assert!((330..=352).contains(&triples), "{triples}");
            for buffer in BUFFERS {
                let count = points.iter().filter(|point| point.receive_buffer == buffer).count();
                // A tenth each; half of the points for automatic.
                let (low, high) = if buffer.is_some() { (92, 113) } else { (496, 528) };
                assert!((low..=high).contains(&count), "{buffer:?}: {count}");
            }
        }
    }

    #[test]
    fn each_class_reaches_into_the_corners_of_its_ranges() {
        let points = points(1, 0, 1024);
        for class in Class::ALL.into_iter().take(4) {
            let paths: Vec<&PointPath> =
                points.iter().filter(|point| point.class == class).flat_map(|point| &point.paths).collect();
            let reaches = |value: &dyn Fn(&PointPath) -> f64, low: f64, high: f64| {
                let (least, most) = paths
                    .iter()
                    .fold((f64::MAX, f64::MIN), |(least, most), path| (least.min(value(path)), most.max(value(path))));
                let near = 0.05 * (high - low);
                assert!(least >= low && most <= high, "{class:?}: {least} to {most}");
                assert!(least <= low + near && most >= high - near, "{class:?}: {least} to {most}");
            };
            let high = matches!(class, Class::HighBdp | Class::HighBdpLossy);
            reaches(&|path| path.rate.log10(), -1.0, 2.0);
            reaches(&|path| path.round_trip, 0.0, if high { 400.0 } else { 50.0 });
            let lossy = matches!(class, Class::LowBdpLossy | Class::HighBdpLossy);
            reaches(&|path| path.loss, 0.0, if lossy { 0.025 } else { 0.0 });
            // A short queue of a slow path is raised to five packets, so only fast paths are within the range.
            let fast = |path: &PointPath| if path.rate > 10.0 { path.queueing } else { 50.0 };
            reaches(&fast, 0.0, if high { 2000.0 } else { 100.0 } + 1.0);
            assert!(paths.iter().all(|path| path.queue >= 5));
        }
    }
}
