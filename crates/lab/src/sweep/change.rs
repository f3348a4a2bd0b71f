//! Changes during the measured part of a run, for points of class `change`.

use super::point::{Change, Place, Point};
use crate::spread::rounded;
use anabranch_sim::random::RandomStream;

/// Minimum and maximum rate of a changing path, Mbit/s: the range of the design.
const RATES: (f64, f64) = (0.1, 100.0);
/// Interval between values of a varying rate, seconds.
const TICK: f64 = 0.5;
/// Factor of a path's rate after fading.
const FADED: f64 = 0.05;

/// Draws the change of `point` from dimensions starting at `first`, and sets it on the paths.
pub fn apply(point: &mut Point, place: Place, first: u32) {
    let kind = Change::ALL[place.one_of(first, Change::ALL.len())];
    point.change = Some(kind);
    let which = place.one_of(first + 1, point.paths.len());
    let begin = point.span.warm_up;
    let tenth = |value: f64| (value * 10.0).round() / 10.0;
    match kind {
        Change::Steps => steps(point, place, first),
        Change::Wander => wander(point),
        Change::Failure => {
            let from = tenth(begin + place.between(first + 2, 2.0, 18.0));
            let to = tenth(from + place.between(first + 3, 1.0, 10.0));
            point.paths[which].down = Some((from, Some(to)));
        }
        Change::Loss => point.paths[which].down = Some((tenth(begin + place.between(first + 2, 2.0, 25.0)), None)),
        Change::Handover => {
            let next = (which + 1 + place.one_of(first + 4, point.paths.len() - 1)) % point.paths.len();
            let from = begin + place.between(first + 2, 2.0, 15.0);
            let length = place.between(first + 3, 2.0, 8.0);
            handover(point, (which, next), from, length);
        }
    }
}

/// Clamped to the range of the design and rounded to three digits.
fn possible(rate: f64) -> f64 {
    rounded(rate.clamp(RATES.0, RATES.1))
}

/// Two to four steps, to between 0.1 and 10 times the initial rate.
fn steps(point: &mut Point, place: Place, first: u32) {
    let mut luck = luck(point);
    let both = place.one_of(first + 2, 2) + 1;
    let which = place.one_of(first + 1, point.paths.len());
    let count = 2 + place.one_of(first + 3, 3);
    let (begin, counted) = (point.span.warm_up, point.span.counted);
    let paths = point.paths.len();
    for turn in 0..both {
        let path = &mut point.paths[(which + turn) % paths];
        let mut last = path.rate;
        for step in 0..count {
            // One in each of as many parts of the measured time.
            let at = begin + counted * (step as f64 + luck.between(0.1, 0.9)) / count as f64;
            let factor = 10f64.powf(luck.between(-1.0, 1.0));
            let (at, next) = ((at * 10.0).round() / 10.0, possible(path.rate * factor));
            path.rates.extend([(at, last), (at, next)]);
            last = next;
        }
    }
}

/// A random walk of the logarithm of each path's rate, in steps of up to 40 %, between 1/4 and 4 times the initial
/// rate.
fn wander(point: &mut Point) {
    let mut luck = luck(point);
    let ticks = ((point.span.warm_up + point.span.counted) / TICK) as u32;
    for path in &mut point.paths {
        let mut factor: f64 = 1.0;
        for tick in 1..ticks {
            factor = (factor * 1.4f64.powf(luck.between(-1.0, 1.0))).clamp(0.25, 4.0);
            path.rates.push((f64::from(tick) * TICK, possible(path.rate * factor)));
        }
    }
}

/// The first path fades and then fails while the second fades in; both always carry something. Fading is geometric,
/// like the rates that a radio selects by signal strength.
fn handover(point: &mut Point, (leaving, coming): (usize, usize), from: f64, length: f64) {
    let ticks = (length / TICK).round().max(1.0) as u32;
    let at = |tick: u32| ((from + f64::from(tick) * TICK) * 10.0).round() / 10.0;
    for tick in 0..=ticks {
        let share = FADED.powf(f64::from(tick) / f64::from(ticks));
        let (old, new) = (point.paths[leaving].rate, point.paths[coming].rate);
        point.paths[leaving].rates.push((at(tick), possible(old * share)));
        point.paths[coming].rates.push((at(tick), possible(new * FADED / share)));
    }
    point.paths[leaving].down = Some((at(ticks + 1), None));
    // Until then it is at its faded rate.
    let full = point.paths[coming].rate;
    point.paths[coming].rate = possible(full * FADED);
}

fn luck(point: &Point) -> RandomStream {
    RandomStream::new(u64::from(point.seed), &format!("sweep/point {}/change", point.number))
}

#[cfg(test)]
mod tests {
    use super::super::design::points;
    use super::super::point::Class;
    use super::*;

    #[test]
    fn each_kind_of_change_has_its_share_and_happens_in_the_counted_part() {
        let points: Vec<Point> =
            points(1, 0, 1024).into_iter().filter(|point| point.class == Class::Changing).collect();
        for kind in Change::ALL {
            let count = points.iter().filter(|point| point.change == Some(kind)).count();
            assert!((24..=40).contains(&count), "{kind:?}: {count}");
        }
        for point in &points {
            let end = point.span.warm_up + point.span.counted;
            let times: Vec<f64> = point.paths.iter().flat_map(|path| path.rates.iter().map(|(at, _)| *at)).collect();
            let downs: Vec<(f64, Option<f64>)> = point.paths.iter().filter_map(|path| path.down).collect();
            assert!(!times.is_empty() || !downs.is_empty(), "{point:?}");
            let counted = |at: f64| (point.span.warm_up..end).contains(&at);
            assert!(times.iter().all(|at| counted(*at)) || point.change == Some(Change::Wander), "{point:?}");
            assert!(downs.iter().all(|(from, to)| counted(*from) && to.is_none_or(counted)), "{point:?}");
            assert!(point.paths.iter().flat_map(|path| &path.rates).all(|(_, rate)| (0.1..=100.0).contains(rate)));
        }
    }

    #[test]
    fn a_handover_always_leaves_a_path() {
        let points = points(1, 0, 1024);
        for point in points.iter().filter(|point| point.change == Some(Change::Handover)) {
            let gone = point.paths.iter().filter(|path| path.down.is_some()).count();
            assert_eq!(gone, 1);
            // The second path has its full rate when the first one fails.
            let leaves = point.paths.iter().find_map(|path| path.down).map(|(from, _)| from).unwrap();
            let coming = point.paths.iter().find(|path| path.down.is_none() && !path.rates.is_empty()).unwrap();
            assert!(coming.rates.last().unwrap().0 < leaves);
            assert!(coming.rates.last().unwrap().1 >= coming.rate);
        }
    }
}
