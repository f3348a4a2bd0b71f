//! Where nodes are, and when: movements that models draw or that files tell, all as straight legs between waypoints.
//!
//! A movement is complete before the run: drawn from the seed by a model ([`Model::draw`]), or read from the text of an ns-2
//! ([`ns2::read`]) or BonnMotion file ([`bonnmotion::read`]). Each node draws from a stream of its own, so that a node more
//! changes nobody else's way. Lengths are metres, speeds metres per second.

mod area;
pub mod bonnmotion;
mod gauss_markov;
mod group;
mod model;
pub mod ns2;
mod random_direction;
mod random_waypoint;
#[cfg(test)]
mod tests;

pub use area::{Area, Span};
pub use model::Model;

use crate::radio::Position;
use anabranch_policy::time::{Duration, Instant};

/// The place that is `share` of the way from one place to another, 0 to 1.
fn between(from: Position, to: Position, share: f64) -> Position {
    Position { x: from.x + (to.x - from.x) * share, y: from.y + (to.y - from.y) * share }
}

/// Why there is no movement.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
pub enum MobilityError {
    /// A number that a model cannot take.
    #[error("{name} is {value}, which is not {expected}")]
    BadValue {
        /// What is wrong.
        name: &'static str,
        /// What was given.
        value: f64,
        /// What it must be.
        expected: &'static str,
    },
    /// A line of a file that means nothing.
    #[error("line {line}: {reason}")]
    BadLine {
        /// Counted from 1.
        line: usize,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// More nodes than a movement may have.
    #[error("more than {MAX_NODES} nodes")]
    TooManyNodes,
}

/// The most nodes of a movement.
pub const MAX_NODES: usize = 100_000;

/// Where a node is at a moment; between two waypoints it goes straight and evenly.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Waypoint {
    /// When.
    pub time: Instant,
    /// Where.
    pub position: Position,
}

/// The way of one node: waypoints in order of time. Before the first it stands there, after the last likewise.
#[derive(Clone, PartialEq, Debug, Default)]
struct Track {
    waypoints: Vec<Waypoint>,
}

impl Track {
    /// Adds a waypoint; times do not fall. Two of the same time are a jump.
    fn push(&mut self, time: Instant, position: Position) {
        if let [.., before, last] = self.waypoints.as_mut_slice()
            && before.position == last.position
            && last.position == position
        {
            last.time = time;
            return;
        }
        self.waypoints.push(Waypoint { time, position });
    }

    /// The waypoint at or before a time, and the next.
    fn leg(&self, at: Instant) -> (Option<&Waypoint>, Option<&Waypoint>) {
        let next = self.waypoints.partition_point(|waypoint| waypoint.time <= at);
        (next.checked_sub(1).and_then(|index| self.waypoints.get(index)), self.waypoints.get(next))
    }

    fn position(&self, at: Instant) -> Position {
        match self.leg(at) {
            (Some(from), Some(to)) => {
                let share = at.since(from.time).as_nanos() as f64 / to.time.since(from.time).as_nanos() as f64;
                between(from.position, to.position, share)
            }
            (Some(only), None) | (None, Some(only)) => only.position,
            (None, None) => Position::default(),
        }
    }
}

/// The ways of all nodes.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Movement {
    tracks: Vec<Track>,
}

impl Movement {
    /// Nodes that stay where they are.
    pub fn fixed(positions: impl IntoIterator<Item = Position>) -> Self {
        let stay = |position| Track { waypoints: vec![Waypoint { time: Instant::ZERO, position }] };
        Self { tracks: positions.into_iter().map(stay).collect() }
    }
    /// How many nodes there are.
    pub fn nodes(&self) -> usize {
        self.tracks.len()
    }
    /// Where a node is. A node that the movement does not have is at the origin.
    pub fn position(&self, node: usize, at: Instant) -> Position {
        self.tracks.get(node).map_or_else(Position::default, |track| track.position(at))
    }
    /// Velocity of a node in metres per second, east and north; zero while it stands.
    pub fn velocity(&self, node: usize, at: Instant) -> (f64, f64) {
        let Some((Some(from), Some(to))) = self.tracks.get(node).map(|track| track.leg(at)) else { return (0.0, 0.0) };
        let seconds = to.time.since(from.time).as_secs_f64();
        ((to.position.x - from.position.x) / seconds, (to.position.y - from.position.y) / seconds)
    }
    /// Until when a node stays where it is at a time: that time itself if it is moving, never if it moves no more.
    pub fn stands_until(&self, node: usize, at: Instant) -> Instant {
        let Some(track) = self.tracks.get(node) else { return Instant::NEVER };
        match track.leg(at) {
            (_, None) => Instant::NEVER,
            (None, Some(first)) => first.time,
            (Some(from), Some(to)) if from.position == to.position => to.time,
            (Some(_), Some(_)) => at,
        }
    }
    /// The waypoints of a node.
    pub fn waypoints(&self, node: usize) -> &[Waypoint] {
        self.tracks.get(node).map_or(&[], |track| &track.waypoints)
    }
    /// The same movement elsewhere. BonnMotion's ns-2 files lie 10 m to the north-east of its own.
    #[must_use]
    pub fn shifted(mut self, x: f64, y: f64) -> Self {
        for waypoint in self.tracks.iter_mut().flat_map(|track| &mut track.waypoints) {
            waypoint.position = Position { x: waypoint.position.x + x, y: waypoint.position.y + y };
        }
        self
    }
    /// The same movement begun later: what was at `by` is at the start of the run.
    #[must_use]
    pub fn skipped(mut self, by: Duration) -> Self {
        let start = Instant::ZERO + by;
        for track in &mut self.tracks {
            let position = track.position(start);
            track.waypoints.retain(|waypoint| waypoint.time > start);
            track.waypoints.insert(0, Waypoint { time: start, position });
            for waypoint in &mut track.waypoints {
                waypoint.time = waypoint.time - by;
            }
        }
        self
    }
}

/// A time in seconds as files have it; negative and not-a-number become the start.
fn at_seconds(seconds: f64) -> Instant {
    Instant::ZERO + Duration::from_secs_f64(seconds)
}
