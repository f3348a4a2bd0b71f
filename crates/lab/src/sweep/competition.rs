//! The second design: networks with competing connections, pausing paths or mobility. `docs/measurements/sweep.md`
//! defines the dimensions and the traces of the walk and of the satellite.
//!
//! It has its own sequence, so that the points of the first design do not change.

use super::point::{Class, Competition, Place, Point, PointPath, Span};
use crate::spread::{logarithmic, rounded};
use anabranch_sim::random::RandomStream;

/// Changes the scrambling so that it differs from the first design.
const OTHER: u32 = 0x9e37_79b9;
/// Packet size in bytes for queue capacities.
const PACKET: f64 = 1500.0;
/// Minimum queue capacity in packets.
const LEAST_QUEUE: f64 = 5.0;
/// Numbers of connections of a crowd.
const CROWDS: [u32; 5] = [10, 20, 30, 40, 50];
/// Wi-Fi range in the walk in metres, and the exponent of the rate's decrease with distance.
const REACH: f64 = 60.0;
const FALL: f64 = 1.5;
/// Interval of satellite handovers, seconds.
const HANDOVER: f64 = 15.0;

/// `count` points of the sequence of `seed`, starting at `first`.
pub fn points(seed: u32, first: u32, count: u32) -> Vec<Point> {
    (first..first.saturating_add(count).min(super::design::MOST)).map(|number| point(seed, number)).collect()
}

pub fn point(seed: u32, number: u32) -> Point {
    let place = Place { seed: seed ^ OTHER, number };
    let class = Class::COMPETITION[place.one_of(0, Class::COMPETITION.len())];
    let mut point = Point {
        seed,
        number,
        class,
        paths: (0..2).map(|path| path_at(place, 4 + 3 * path)).collect(),
        receive_buffer: None,
        download: place.one_of(1, 2) == 1,
        change: None,
        span: Span { warm_up: 10.0, counted: 30.0 },
        competition: None,
    };
    let beside = |control| Competition {
        connections: 1,
        others: Some((control, [1, 4][place.one_of(2, 2)], on(place))),
        shared: None,
    };
    let alone = Competition { connections: 1, others: None, shared: None };
    point.competition = Some(match class {
        Class::Crowd => Competition { connections: CROWDS[place.one_of(2, CROWDS.len())], ..alone },
        Class::BesideNewReno => beside("new_reno"),
        Class::BesideBbr => beside("bbr"),
        Class::SharedBottleneck => share(&mut point, beside("cubic")),
        Class::CoDel => {
            point.paths.iter_mut().for_each(use_codel);
            beside("cubic")
        }
        Class::Pauses => {
            pauses(&mut point, place);
            alone
        }
        Class::Walk => {
            walk(&mut point);
            alone
        }
        Class::Satellite => {
            satellite(&mut point, place);
            alone
        }
        _ => beside("cubic"),
    });
    point
}

/// Indices of the paths with competing TCP: the first, or both.
fn on(place: Place) -> Vec<usize> {
    if place.one_of(3, 2) == 0 { vec![0] } else { vec![0, 1] }
}

/// 5 to 100 Mbit/s and queues of 0.05 to 4 bandwidth-delay products, log-uniform; RTT of 10 to 160 ms.
fn path_at(place: Place, first: u32) -> PointPath {
    let rate = rounded(logarithmic(place.at(first), 5.0, 100.0));
    let round_trip = (logarithmic(place.at(first + 1), 10.0, 160.0) * 10.0).round() / 10.0;
    with_queue(rate, round_trip, logarithmic(place.at(first + 2), 0.05, 4.0) * round_trip)
}

/// A path whose full queue adds `queueing` ms.
fn with_queue(rate: f64, round_trip: f64, queueing: f64) -> PointPath {
    let queue = (rate * 1e3 * queueing / 8.0 / PACKET).round().max(LEAST_QUEUE);
    let queueing = (queue * PACKET * 8.0 / rate / 1e3 * 10.0).round() / 10.0;
    PointPath { rate, round_trip, queueing, queue: queue as u64, ..PointPath::default() }
}

/// CoDel with a capacity of four bandwidth-delay products, at least 20 packets.
fn use_codel(path: &mut PointPath) {
    *path = with_queue(path.rate, path.round_trip, 4.0 * path.round_trip);
    path.queue = path.queue.max(20);
    path.codel = true;
}

/// The first path becomes the shared bottleneck. The access links are fast; the second one's RTT is up to 20 ms longer.
fn share(point: &mut Point, competition: Competition) -> Competition {
    let shared = point.paths[0].clone();
    let longer = (point.paths[1].round_trip / 8.0 * 10.0).round() / 10.0;
    point.paths = [1.0, 1.0 + longer].map(|round_trip| with_queue(1000.0, round_trip, 12.0)).to_vec();
    let others = competition.others.map(|(control, count, _)| (control, count, vec![0]));
    Competition { others, shared: Some(shared), ..competition }
}

/// One to three pauses of one path for 0.2 to 4 s each, with a queue of 100 to 2000 ms.
fn pauses(point: &mut Point, place: Place) {
    let mut luck = luck(point);
    let which = place.one_of(2, 2);
    let count = 1 + place.one_of(3, 3);
    for path in &mut point.paths {
        *path = with_queue(path.rate, path.round_trip, luck.between(100.0, 2000.0));
    }
    let (begin, slot) = (point.span.warm_up, point.span.counted / count as f64);
    for number in 0..count {
        let from = tenth(begin + slot * number as f64 + luck.between(1.0, (slot - 5.0).max(2.0)));
        let length = tenth(logarithmic(luck.between(0.0, 1.0), 0.2, 4.0)).max(0.2);
        point.paths[which].paused.push((from, tenth(from + length)));
    }
}

/// A user walks around a Wi-Fi access point at 1.4 m/s with constant cellular coverage.
///
/// Wi-Fi: the distance d varies between 5 m and the range D with random turns. The rate is R (1 - d/D)^1.5, with 30 %
/// variation and a minimum of R/20. Beyond 3/4 of the range it pauses in each second with probability 1/4 for 0.2 to 3
/// s. Cellular: the logarithm of the rate is a random walk with steps of up to 30 %, between 1/5 and 2 times its mean;
/// the queue holds 1 s. In each second it pauses with probability 1/50 for 0.2 to 1 s.
fn walk(point: &mut Point) {
    let mut luck = luck(point);
    point.span.counted = 45.0;
    let end = (point.span.warm_up + point.span.counted) as u32;
    let (wifi, cellular) = (point.paths[0].rate, (point.paths[1].rate / 2.0).max(5.0));
    point.paths[0] = with_queue(wifi, luck.between(4.0, 20.0).round(), 200.0);
    point.paths[1] = with_queue(rounded(cellular), luck.between(30.0, 80.0).round(), 1000.0);
    let (mut distance, mut away, mut factor) = (luck.between(5.0, REACH / 2.0), true, 1.0f64);
    for second in 1..end {
        let at = f64::from(second);
        away = if distance >= REACH { false } else { distance <= 5.0 || away != (luck.between(0.0, 1.0) < 1.0 / 20.0) };
        distance = (distance + if away { 1.4 } else { -1.4 }).clamp(5.0, REACH);
        let here = (1.0 - distance / REACH).powf(FALL) * luck.between(0.7, 1.3);
        point.paths[0].rates.push((at, rounded(wifi * here.clamp(0.05, 1.0))));
        if distance > 0.75 * REACH && luck.between(0.0, 1.0) < 0.25 {
            pause(&mut point.paths[0], at, luck.between(0.2, 3.0));
        }
        factor = (factor * 1.3f64.powf(luck.between(-1.0, 1.0))).clamp(0.2, 2.0);
        point.paths[1].rates.push((at, rounded(cellular * factor)));
        if luck.between(0.0, 1.0) < 1.0 / 50.0 {
            pause(&mut point.paths[1], at, luck.between(0.2, 1.0));
        }
    }
}

/// A low-orbit satellite: a handover every 15 s, with a pause of 50 to 300 ms and a new rate of 0.5 to 1.5 times the
/// mean. The RTT is drawn from 25 to 70 ms at the same times and linearly interpolated. The queue holds 150 ms; 0.1 to
/// 1 % of packets are lost. The second path is a cellular network with a constant rate.
fn satellite(point: &mut Point, place: Place) {
    let mut luck = luck(point);
    point.span.counted = 45.0;
    let end = point.span.warm_up + point.span.counted;
    let mean = rounded(logarithmic(place.at(4), 20.0, 100.0));
    let mut path = with_queue(mean, 25.0, 150.0);
    path.varying = Some((70.0, HANDOVER));
    path.loss = rounded(logarithmic(place.at(6), 0.001, 0.01));
    let (mut at, mut last) = (tenth(luck.between(1.0, HANDOVER)), mean);
    while at < end {
        let next = rounded(mean * luck.between(0.5, 1.5));
        pause(&mut path, at, luck.between(0.05, 0.3));
        path.rates.extend([(at, last), (at, next)]);
        (at, last) = (at + HANDOVER, next);
    }
    point.paths[0] = path;
    point.paths[1] = with_queue(rounded((point.paths[1].rate / 2.0).max(5.0)), 50.0, 500.0);
}

/// Pauses of a path must not touch.
fn pause(path: &mut PointPath, from: f64, length: f64) {
    if path.paused.last().is_none_or(|(_, to)| *to < from) {
        path.paused.push((from, ((from + length) * 100.0).round() / 100.0));
    }
}

fn tenth(value: f64) -> f64 {
    (value * 10.0).round() / 10.0
}

fn luck(point: &Point) -> RandomStream {
    RandomStream::new(u64::from(point.seed), &format!("competition/point {}", point.number))
}

#[cfg(test)]
mod tests {
    use super::super::cast::Ends;
    use super::super::network::Load;
    use super::*;
    use crate::scenario::Document;

    #[test]
    fn each_point_is_a_scenario_with_those_who_compete() {
        for point in points(1, 0, 128) {
            let text = point.text(Ends::Ours, Load::Bulk);
            let scenario = Document::embedded("point", &text, &[]).scenario().expect(&text);
            let competition = point.competition.as_ref().expect("it is of the second design");
            assert_eq!(scenario.connections, competition.connections);
            let others: u32 = competition.others.iter().map(|(_, count, paths)| count * paths.len() as u32).sum();
            assert_eq!(scenario.beside.iter().map(|beside| beside.count).sum::<u32>(), others);
            assert_eq!(scenario.shared.len(), usize::from(competition.shared.is_some()));
            let paused = |path: &crate::scenario::model::Path| path.links[0].paused.len();
            let pauses: usize = point.paths.iter().map(|path| path.paused.len()).sum();
            assert_eq!(scenario.paths.iter().map(paused).sum::<usize>(), pauses);
        }
    }

    #[test]
    fn of_288_points_each_class_has_its_share_and_what_it_is_named_after() {
        let points = points(7, 0, 288);
        for class in Class::COMPETITION {
            let of: Vec<&Point> = points.iter().filter(|point| point.class == class).collect();
            assert!((28..=36).contains(&of.len()), "{class:?}: {}", of.len());
            for point in of {
                let competition = point.competition.as_ref().expect("it is of the second design");
                let paused = point.paths.iter().any(|path| !path.paused.is_empty());
                match class {
                    Class::Crowd => assert!((10..=50).contains(&competition.connections)),
                    Class::SharedBottleneck => assert!(competition.shared.is_some()),
                    Class::CoDel => assert!(point.paths.iter().all(|path| path.codel)),
                    Class::Pauses | Class::Satellite => assert!(paused),
                    Class::Walk => assert!(point.paths.iter().all(|path| path.rates.len() == 54)),
                    _ => assert!(competition.others.is_some()),
                }
            }
        }
        // The first design has other points at the same indices.
        assert!(super::super::design::points(7, 0, 288).iter().all(|point| point.competition.is_none()));
    }
}
