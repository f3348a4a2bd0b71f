//! Groups: a member's track is the sum of its centre's track and its own track around it.

use super::area::Span;
use super::movement::{Track, at_seconds, between};
use super::random_waypoint::{leg_under_way, speed_under_way};
use crate::radio::Position;
use crate::random::RandomStream;
use anabranch_policy::time::Instant;

/// A uniformly distributed position in a disc around the origin.
fn in_disc(radius: f64, random: &mut RandomStream) -> Position {
    let distance = radius * libm::sqrt(random.uniform());
    let turn = random.between(0.0, 2.0 * core::f64::consts::PI);
    Position { x: distance * libm::cos(turn), y: distance * libm::sin(turn) }
}

/// Random waypoint without pauses in a disc around the origin, in its steady state.
pub(super) fn draw_around(radius: f64, speed: Span, duration: f64, random: &mut RandomStream) -> Track {
    let mut track = Track::default();
    let (from, mut here) = leg_under_way(2.0 * radius, random, |random| in_disc(radius, random));
    let start = between(from, here, random.uniform());
    track.push(Instant::ZERO, start);
    let mut time = start.distance(here) / speed_under_way(speed, random);
    track.push(at_seconds(time), here);
    while time < duration {
        let to = in_disc(radius, random);
        time += here.distance(to) / speed.draw(random);
        track.push(at_seconds(time), to);
        here = to;
    }
    track
}

/// The sum of two tracks and a constant: straight where both are.
pub(super) fn sum(one: &Track, other: &Track, shift: Position) -> Track {
    let mut times: Vec<Instant> = one.waypoints.iter().chain(&other.waypoints).map(|waypoint| waypoint.time).collect();
    times.sort_unstable();
    times.dedup();
    let mut track = Track::default();
    for time in times {
        let (a, b) = (one.position(time), other.position(time));
        track.push(time, Position { x: a.x + b.x + shift.x, y: a.y + b.y + shift.y });
    }
    track
}
