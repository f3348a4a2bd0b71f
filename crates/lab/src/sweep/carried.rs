//! Upper limit of the goodput of a point's paths in the measured time.
//!
//! Out-of-order data received earlier is read when the gap is filled. A TCP that retransmits at the start of the
//! measured time, with seconds of data in its queue, would exceed the path's capacity.

use super::point::{Point, PointPath};

/// Payload of a 1500-byte packet with TCP's headers and timestamps; MPTCP's is smaller.
const PAYLOAD: f64 = 1_448.0 / 1_500.0;

/// Maximum goodput of these paths of a point, Mbit/s.
pub fn most(point: &Point, paths: &[usize]) -> f64 {
    let (warm_up, counted) = (point.span.warm_up, point.span.counted);
    let of = |path: &PointPath| {
        // Data arrives one one-way delay after it was sent.
        let from = (warm_up - path.round_trip / 2e3).max(0.0);
        carried(path, from, from + counted) / counted * PAYLOAD
    };
    let shared = point.competition.as_ref().and_then(|competition| competition.shared.as_ref());
    let paths: f64 = paths.iter().filter_map(|at| point.paths.get(*at)).map(of).sum();
    paths.min(shared.map_or(f64::INFINITY, of))
}

/// Mbit sent by a path between two times.
fn carried(path: &PointPath, from: f64, to: f64) -> f64 {
    let silent = path.paused.iter().copied().chain(path.down.map(|(from, to)| (from, to.unwrap_or(f64::INFINITY))));
    // In order of time: pauses and the outage of a path do not overlap.
    let mut silent: Vec<(f64, f64)> = silent.collect();
    silent.sort_by(|a, b| a.0.total_cmp(&b.0));
    let (mut sum, mut at) = (0.0, from);
    for (begin, end) in silent {
        sum += sent(path, at, begin.clamp(at, to));
        at = end.clamp(at, to);
    }
    sum + sent(path, at, to)
}

/// The same for a path without pauses: rates are linearly interpolated.
fn sent(path: &PointPath, from: f64, to: f64) -> f64 {
    let last = path.rates.last().map_or(path.rate, |(_, rate)| *rate);
    let course = path.rates.iter().copied().chain([(f64::INFINITY, last)]);
    let mut before = (0.0, path.rate);
    let mut sum = 0.0;
    for next in course {
        let (begin, end) = (from.max(before.0), to.min(next.0));
        if end > begin {
            let slope = (next.1 - before.1) / (next.0 - before.0);
            sum += (before.1 + slope * ((begin + end) / 2.0 - before.0)) * (end - begin);
        }
        before = next;
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::super::point::{Class, Span};
    use super::*;

    fn point(path: PointPath) -> Point {
        Point {
            seed: 1,
            number: 0,
            class: Class::Changing,
            paths: vec![PointPath { rate: 3.0, ..PointPath::default() }, path],
            receive_buffer: None,
            download: false,
            change: None,
            span: Span { warm_up: 10.0, counted: 20.0 },
            competition: None,
        }
    }

    /// Mbit carried by the second path from 10 to 30 s, and with a one-way delay of 2 s (sent from 8 to 28 s).
    fn megabits(path: PointPath) -> [f64; 2] {
        let late = PointPath { round_trip: 4_000.0, ..path.clone() };
        [path, late].map(|path| (most(&point(path), &[1]) * 20.0 / PAYLOAD * 1e6).round() / 1e6)
    }

    #[test]
    fn paths_carry_what_their_rates_give_while_it_counts_without_pauses_and_outages() {
        let steady = PointPath { rate: 6.0, ..PointPath::default() };
        assert_eq!(megabits(steady.clone()), [120.0, 120.0]);
        // 5 of 20 s, and everything after 25 s.
        assert_eq!(megabits(PointPath { paused: vec![(12.0, 17.0)], ..steady.clone() }), [90.0, 90.0]);
        assert_eq!(megabits(PointPath { down: Some((25.0, None)), ..steady.clone() }), [90.0, 102.0]);
        assert_eq!(megabits(PointPath { down: Some((5.0, Some(9.0))), ..steady.clone() }), [120.0, 114.0]);
        // A step down to 2 Mbit/s at 20 s; and a linear decrease to 2 from 20 to 24 s.
        let step = vec![(20.0, 6.0), (20.0, 2.0)];
        assert_eq!(megabits(PointPath { rates: step, ..steady.clone() }), [80.0, 88.0]);
        let fall = vec![(20.0, 6.0), (24.0, 2.0)];
        assert_eq!(megabits(PointPath { rates: fall, ..steady.clone() }), [88.0, 96.0]);
    }

    #[test]
    fn both_paths_carry_the_sum_less_headers() {
        let point = point(PointPath { rate: 6.0, ..PointPath::default() });
        assert!((most(&point, &[0, 1]) - 9.0 * 1_448.0 / 1_500.0).abs() < 1e-9);
    }
}
