//! Records when frames are complete at the receiver, and which were on time. It uses the sender's clock, so that all
//! contenders are measured alike, whether or not they delay data until play-out.

use super::packet::Part;
use super::schedule::Frame;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

/// Allowance beyond the latency for all: processing time of the receivers.
pub const GRACE: Duration = Duration::from_millis(20);

/// An incomplete frame.
#[derive(Clone, Debug)]
struct Awaited {
    at: Duration,
    parts: BTreeSet<u16>,
    complete: Option<Duration>,
}

#[derive(Clone, Debug)]
pub struct Judge {
    began: Instant,
    frames: Vec<Awaited>,
}

/// Time from sending to completion of each frame, milliseconds; none if it was never complete.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Delays(pub Vec<Option<f64>>);

impl Judge {
    /// For a stream that starts at `began`.
    pub fn new(began: Instant, frames: &[Frame]) -> Self {
        let awaited = |frame: &Frame| Awaited { at: frame.at, parts: BTreeSet::new(), complete: None };
        Self { began, frames: frames.iter().map(awaited).collect() }
    }

    /// Handles a received part of a frame.
    pub fn part(&mut self, part: Part, now: Instant) {
        let Some(frame) = self.frames.get_mut(part.frame as usize) else { return };
        frame.parts.insert(part.part);
        if frame.parts.len() == usize::from(part.parts) {
            frame.complete.get_or_insert(now.saturating_duration_since(self.began));
        }
    }

    /// Handles a complete frame.
    pub fn frame(&mut self, number: u32, now: Instant) {
        if let Some(frame) = self.frames.get_mut(number as usize) {
            frame.complete.get_or_insert(now.saturating_duration_since(self.began));
        }
    }

    /// Whether all frames are complete.
    pub fn is_complete(&self) -> bool {
        self.frames.iter().all(|frame| frame.complete.is_some())
    }

    /// The result.
    pub fn delays(&self) -> Delays {
        let delay = |frame: &Awaited| Some(frame.complete?.saturating_sub(frame.at).as_secs_f64() * 1e3);
        Delays(self.frames.iter().map(delay).collect())
    }
}

impl Delays {
    /// Number of frames complete within `latency` and the allowance beyond the minimum delay of the network,
    /// milliseconds.
    pub fn on_time(&self, least: f64, latency: f64) -> usize {
        let limit = least + latency + GRACE.as_secs_f64() * 1e3;
        self.0.iter().flatten().filter(|delay| **delay <= limit).count()
    }

    /// Number of complete frames.
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
        // 25 ms of path and 20 ms of allowance: the second frame took 340 ms less a third of one.
        assert_eq!([10.0, 290.0, 300.0].map(|latency| delays.on_time(25.0, latency)), [1, 1, 2]);
    }
}
