//! Random direction with reflection, and the folding of legs that would leave the area.

use super::area::{Area, Span};
use super::movement::{Track, at_seconds};
use crate::radio::Position;
use crate::random::RandomStream;
use anabranch_policy::time::Instant;

/// A track that is reflected at the edges, built leg by leg.
pub(super) struct Reflected {
    area: Area,
    pub(super) track: Track,
    pub(super) time: f64,
    here: Position,
}

/// Which components of the velocity were reversed on a leg.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Turned {
    pub(super) x: bool,
    pub(super) y: bool,
}

impl Reflected {
    pub(super) fn new(area: Area, start: Position) -> Self {
        let mut track = Track::default();
        track.push(Instant::ZERO, start);
        Self { area, track, time: 0.0, here: start }
    }

    /// Continues with a velocity for some seconds, with reflection at the edges.
    pub(super) fn go(&mut self, mut x: f64, mut y: f64, mut seconds: f64) -> Turned {
        let mut turned = Turned::default();
        while seconds > 0.0 {
            let (to_x, to_y) = (until_edge(self.here.x, x, self.area.x), until_edge(self.here.y, y, self.area.y));
            let leg = seconds.min(to_x).min(to_y);
            let to = Position {
                x: (self.here.x + x * leg).clamp(0.0, self.area.x),
                y: (self.here.y + y * leg).clamp(0.0, self.area.y),
            };
            self.time += leg;
            seconds -= leg;
            self.track.push(at_seconds(self.time), to);
            self.here = to;
            if seconds > 0.0 && leg == to_x {
                x = -x;
                turned.x = !turned.x;
            }
            if seconds > 0.0 && leg == to_y {
                y = -y;
                turned.y = !turned.y;
            }
        }
        turned
    }
}

/// Seconds until a coordinate that changes at `speed` reaches an edge, 0 or `extent`. From an edge inwards that is the
/// opposite edge.
fn until_edge(at: f64, speed: f64, extent: f64) -> f64 {
    if speed > 0.0 {
        (extent - at) / speed
    } else if speed < 0.0 {
        at / -speed
    } else {
        f64::INFINITY
    }
}

pub(super) fn draw(area: Area, speed: Span, leg: f64, duration: f64, random: &mut RandomStream) -> Track {
    let mut way = Reflected::new(area, area.draw(random));
    while way.time < duration {
        let (speed, turn) = (speed.draw(random), random.between(0.0, 2.0 * core::f64::consts::PI));
        let seconds = random.exponential(leg).max(1e-6);
        way.go(speed * libm::cos(turn), speed * libm::sin(turn), seconds);
    }
    way.track
}

#[cfg(test)]
mod tests {
    use super::super::movement::between;
    use super::*;

    #[test]
    fn a_leg_over_two_edges_is_folded_twice() {
        let mut way = Reflected::new(Area { x: 100.0, y: 50.0 }, Position { x: 90.0, y: 10.0 });
        // East at 10 m/s: at the edge after 1 s; north at 4 m/s: at the edge after 10 s, when x is at 10 m on its way back.
        let turned = way.go(10.0, 4.0, 12.0);
        assert_eq!(turned, Turned { x: false, y: true }); // x turned at 100 m and, after 11 s, at 0 m
        let places: Vec<(f64, f64, f64)> =
            way.track.waypoints.iter().map(|w| (w.time.as_secs_f64(), w.position.x, w.position.y)).collect();
        let expected =
            [(0.0, 90.0, 10.0), (1.0, 100.0, 14.0), (10.0, 10.0, 50.0), (11.0, 0.0, 46.0), (12.0, 10.0, 42.0)];
        assert_eq!(places, expected);
        let half = between(Position { x: 0.0, y: 0.0 }, Position { x: 10.0, y: 4.0 }, 0.5);
        assert_eq!(half, Position { x: 5.0, y: 2.0 });
    }
}
