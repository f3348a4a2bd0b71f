//! Notes when frames are complete at the receiver, and says which were on time. It has the sender's clock, so that all
//! contenders are measured by the same watch, those that hold data back until it is to be shown and those that do not.

use super::packet::Part;
use super::schedule::Frame;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

/// What is granted to all beyond the latency: the receivers' own working time.
pub const GRACE: Duration = Duration::from_millis(20);

/// A frame on its way.
#[derive(Clone, Debug)]
struct Awaited {
    at: Duration,
    parts: BTreeSet<u16>,
    complete: Option<Duration>,
}

/// Notes frames.
#[derive(Clone, Debug)]
pub struct Judge {
    began: Instant,
    frames: Vec<Awaited>,
}

/// When each frame was complete, milliseconds after it was to be sent; none if it never was.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Delays(pub Vec<Option<f64>>);

impl Judge {
    /// Of a stream that begins at an instant.
    pub fn new(began: Instant, frames: &[Frame]) -> Self {
        let awaited = |frame: &Frame| Awaited { at: frame.at, parts: BTreeSet::new(), complete: None };
        Self { began, frames: frames.iter().map(awaited).collect() }
    }

    /// A part came.
    pub fn part(&mut self, part: Part, now: Instant) {
        let Some(frame) = self.frames.get_mut(part.frame as usize) else { return };
        frame.parts.insert(part.part);
        if frame.parts.len() == usize::from(part.parts) {
            frame.complete.get_or_insert(now.saturating_duration_since(self.began));
        }
    }

    /// A whole frame came.
    pub fn frame(&mut self, number: u32, now: Instant) {
        if let Some(frame) = self.frames.get_mut(number as usize) {
            frame.complete.get_or_insert(now.saturating_duration_since(self.began));
        }
    }

    /// Whether all frames are there.
    pub fn is_complete(&self) -> bool {
        self.frames.iter().all(|frame| frame.complete.is_some())
    }

    /// What came of it.
    pub fn delays(&self) -> Delays {
        let delay = |frame: &Awaited| Some(frame.complete?.saturating_sub(frame.at).as_secs_f64() * 1e3);
        Delays(self.frames.iter().map(delay).collect())
    }
}

impl Delays {
    /// Frames that were complete within `latency` (and the grace) beyond the least delay of the network, milliseconds.
    pub fn on_time(&self, least: f64, latency: f64) -> usize {
        let limit = least + latency + GRACE.as_secs_f64() * 1e3;
        self.0.iter().flatten().filter(|delay| **delay <= limit).count()
    }

    /// Frames that came at all.
    pub fn came(&self) -> usize {
        self.0.iter().flatten().count()
    }
}

#[cfg(test)]
mod tests {
    use super::super::schedule::frames;
    use super::*;
    use anabranch_policy::rate::Rate;

    #[test]
    fn a_frame_is_complete_with_the_last_of_its_parts_and_on_time_by_its_delay() {
        let began = Instant::now();
        let after = |ms| began + Duration::from_millis(ms);
        let mut judge = Judge::new(began, &frames(3, Rate::from_bits_per_second(500_000)));
        let part = |frame, part| Part { frame, part, parts: 2 };
        judge.part(part(0, 1), after(30));
        judge.part(part(0, 1), after(40));
        judge.part(part(0, 0), after(50));
        judge.frame(0, after(900));
        judge.frame(1, after(33 + 340));
        assert!(!judge.is_complete());
        let delays = judge.delays();
        assert_eq!(delays.came(), 2);
        assert_eq!(delays.0.first(), Some(&Some(50.0)));
        // 25 ms of path, 20 ms of grace: the second frame took 340 ms less a third of one.
        assert_eq!([10.0, 290.0, 300.0].map(|latency| delays.on_time(25.0, latency)), [1, 1, 2]);
    }
}
