//! Random waypoint in its steady state.
//!
//! At a random time, a node is on a leg with a probability proportional to its duration, so long legs and low speeds
//! are more likely, and it pauses for the pauses' share of time. With leg length L, speed V from v0 to v1, pause P
//! (Navidi and Camp 2004):
//!
//! ```text
//! P(pausing) = E[P] / (E[P] + E[L] E[1/V])         E[1/V] = ln(v1 / v0) / (v1 - v0)
//! the leg under way: ends with a density proportional to its length, the node anywhere on it,
//! its speed with a density proportional to 1/v: v0 (v1 / v0)^U
//! the pause under way: with a density proportional to its length, the node anywhere in it
//! ```
//!
//! The mean leg, E(L), in a rectangle a x b is known in closed form, with d its diagonal:
//!
//! ```text
//! (a^3/b^2 + b^3/a^2 + d (3 - a^2/b^2 - b^2/a^2)) / 15 + (b^2/a arcosh(d/b) + a^2/b arcosh(d/a)) / 6
//! ```

use super::area::{Area, Span};
use super::movement::{Track, at_seconds, between};
use crate::radio::Position;
use crate::random::RandomStream;
use anabranch_policy::time::Instant;

/// The mean distance of two positions in a rectangle.
pub(super) fn mean_leg(area: Area) -> f64 {
    let Area { x: a, y: b } = area;
    let d = area.diagonal();
    let (aa, bb) = (a * a / (b * b), b * b / (a * a));
    (a * aa + b * bb + d * (3.0 - aa - bb)) / 15.0
        + (b * b / a * libm::acosh(d / b) + a * a / b * libm::acosh(d / a)) / 6.0
}

/// The mean of 1 / V, in seconds per metre.
fn mean_slowness(speed: Span) -> f64 {
    if speed.most - speed.least < 1e-9 * speed.most {
        return 1.0 / speed.least;
    }
    libm::log(speed.most / speed.least) / (speed.most - speed.least)
}

/// A speed at a random time on a leg: density proportional to 1 / v.
pub(super) fn speed_under_way(speed: Span, random: &mut RandomStream) -> f64 {
    speed.least * libm::pow(speed.most / speed.least, random.uniform())
}

/// Ends of a leg at a random time on it: density proportional to its length, which is at most `longest`.
pub(super) fn leg_under_way(
    longest: f64,
    random: &mut RandomStream,
    place: impl Fn(&mut RandomStream) -> Position,
) -> (Position, Position) {
    loop {
        let (from, to) = (place(random), place(random));
        if random.uniform() * longest < from.distance(to) {
            return (from, to);
        }
    }
}

/// The rest of a pause at a random time in it: density proportional to its length.
fn pause_under_way(pause: Span, random: &mut RandomStream) -> f64 {
    let (low, high) = (pause.least * pause.least, pause.most * pause.most);
    random.uniform() * libm::sqrt(random.between(low, high))
}

pub(super) fn draw(area: Area, speed: Span, pause: Span, duration: f64, random: &mut RandomStream) -> Track {
    let mut track = Track::default();
    let moving = mean_leg(area) * mean_slowness(speed);
    let mut time = 0.0;
    let here;
    if random.uniform() * (moving + pause.mean()) < pause.mean() {
        here = area.draw(random);
        track.push(Instant::ZERO, here);
        time = pause_under_way(pause, random);
        track.push(at_seconds(time), here);
    } else {
        let (from, to) = leg_under_way(area.diagonal(), random, |random| area.draw(random));
        let start = between(from, to, random.uniform());
        track.push(Instant::ZERO, start);
        time += start.distance(to) / speed_under_way(speed, random);
        track.push(at_seconds(time), to);
        here = to;
        time += pause.draw(random);
        track.push(at_seconds(time), here);
    }
    go_on(&mut track, (time, here), (area, speed, pause), duration, random);
    track
}

/// A node that begins to move at time 0, from a uniformly distributed position.
pub(super) fn draw_begun(area: Area, speed: Span, pause: Span, duration: f64, random: &mut RandomStream) -> Track {
    let mut track = Track::default();
    let here = area.draw(random);
    track.push(Instant::ZERO, here);
    go_on(&mut track, (0.0, here), (area, speed, pause), duration, random);
    track
}

/// The least speed in metres per second, so that every leg ends.
const SLOWEST: f64 = 1e-6;

/// Adds legs until the end.
fn go_on(
    track: &mut Track,
    (mut time, mut here): (f64, Position),
    (area, speed, pause): (Area, Span, Span),
    duration: f64,
    random: &mut RandomStream,
) {
    while time < duration {
        let to = area.draw(random);
        time += here.distance(to) / speed.draw(random).max(SLOWEST);
        track.push(at_seconds(time), to);
        time += pause.draw(random);
        track.push(at_seconds(time), to);
        here = to;
    }
}
