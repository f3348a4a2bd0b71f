//! Movements: tracks of nodes, as waypoints with straight legs between them.

use crate::radio::Position;
use anabranch_policy::time::{Duration, Instant};

/// Linear interpolation between two positions; `share` is 0 to 1.
pub(super) fn between(from: Position, to: Position, share: f64) -> Position {
    Position { x: from.x + (to.x - from.x) * share, y: from.y + (to.y - from.y) * share }
}

/// The position of a node at a time; it moves at constant speed to the next waypoint.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Waypoint {
    pub time: Instant,
    pub position: Position,
}

/// The track of one node: waypoints in order of time. The node stands still before the first and after the last.
#[derive(Clone, PartialEq, Debug, Default)]
pub(super) struct Track {
    pub(super) waypoints: Vec<Waypoint>,
}

impl Track {
    /// Adds a waypoint; times do not decrease. Two of the same time are a jump.
    pub(super) fn push(&mut self, time: Instant, position: Position) {
        if let [.., before, last] = self.waypoints.as_mut_slice()
            && before.position == last.position
            && last.position == position
        {
            last.time = time;
            return;
        }
        self.waypoints.push(Waypoint { time, position });
    }

    /// The last waypoint at or before a time, and the next.
    pub(super) fn leg(&self, at: Instant) -> (Option<&Waypoint>, Option<&Waypoint>) {
        let next = self.waypoints.partition_point(|waypoint| waypoint.time <= at);
        (next.checked_sub(1).and_then(|index| self.waypoints.get(index)), self.waypoints.get(next))
    }

    pub(super) fn position(&self, at: Instant) -> Position {
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

/// The tracks of all nodes.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Movement {
    pub(super) tracks: Vec<Track>,
}

impl Movement {
    /// Nodes that do not move.
    pub fn fixed(positions: impl IntoIterator<Item = Position>) -> Self {
        let stay = |position| Track { waypoints: vec![Waypoint { time: Instant::ZERO, position }] };
        Self { tracks: positions.into_iter().map(stay).collect() }
    }
    pub fn nodes(&self) -> usize {
        self.tracks.len()
    }
    /// The position of a node; unknown nodes are at the origin.
    pub fn position(&self, node: usize, at: Instant) -> Position {
        self.tracks.get(node).map_or_else(Position::default, |track| track.position(at))
    }
    /// Velocity of a node in metres per second, east and north; zero while it stands still.
    pub fn velocity(&self, node: usize, at: Instant) -> (f64, f64) {
        let Some((Some(from), Some(to))) = self.tracks.get(node).map(|track| track.leg(at)) else { return (0.0, 0.0) };
        let seconds = to.time.since(from.time).as_secs_f64();
        ((to.position.x - from.position.x) / seconds, (to.position.y - from.position.y) / seconds)
    }
    /// Until when a node stands still: `at` if it is moving, never if it does not move any more.
    pub fn stands_until(&self, node: usize, at: Instant) -> Instant {
        let Some(track) = self.tracks.get(node) else { return Instant::NEVER };
        match track.leg(at) {
            (_, None) => Instant::NEVER,
            (None, Some(first)) => first.time,
            (Some(from), Some(to)) if from.position == to.position => to.time,
            (Some(_), Some(_)) => at,
        }
    }
    #[cfg(test)]
    pub(crate) fn waypoints(&self, node: usize) -> &[Waypoint] {
        self.tracks.get(node).map_or(&[], |track| &track.waypoints)
    }
    /// The movement shifted in space. BonnMotion's ns-2 files are 10 m to the north-east of its native ones.
    #[must_use]
    pub fn shifted(mut self, x: f64, y: f64) -> Self {
        for waypoint in self.tracks.iter_mut().flat_map(|track| &mut track.waypoints) {
            waypoint.position = Position { x: waypoint.position.x + x, y: waypoint.position.y + y };
        }
        self
    }
    /// The movement without its first part: positions at time `by` become those at the start.
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

/// A time in seconds from a file; negative values and NaN become the start.
pub(super) fn at_seconds(seconds: f64) -> Instant {
    Instant::ZERO + Duration::from_secs_f64(seconds)
}
