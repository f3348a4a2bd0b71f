//! The plan of a measurement.

use serde::{Deserialize, Serialize};

/// Most streams of a test.
pub(crate) const MAX_STREAMS: u32 = 128;
/// Seconds of the longest test.
const MAX_SECONDS: f64 = 86_400.0;
/// Most intervals of a test, which bounds its report.
const MAX_INTERVALS: f64 = 20_000.0;

/// Which end sends.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Direction {
    /// The client sends.
    #[default]
    Up,
    /// The server sends.
    Down,
    /// Both at once on the same streams.
    Both,
}

impl Direction {
    /// Whether the client sends.
    pub fn is_up(self) -> bool {
        self != Self::Down
    }
    /// Whether the server sends.
    pub fn is_down(self) -> bool {
        self != Self::Up
    }
    /// Whether both send.
    pub(super) fn is_both(self) -> bool {
        self == Self::Both
    }
}

/// The length of a test.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Length {
    /// Seconds after the omitted ones.
    Seconds(f64),
    /// Bytes in each direction, over all streams.
    Bytes(u64),
}

/// A test.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Plan {
    /// Which end sends.
    pub direction: Direction,
    pub length: Length,
    /// Seconds at the start that are not measured.
    pub omit: f64,
    /// Number of parallel connections.
    pub streams: u32,
    /// Seconds between reports.
    pub interval: f64,
    /// Bytes of each write.
    pub write_size: u32,
}

impl Default for Plan {
    fn default() -> Self {
        Self {
            direction: Direction::Up,
            length: Length::Seconds(10.0),
            omit: 0.0,
            streams: 1,
            interval: 1.0,
            write_size: 128 * 1024,
        }
    }
}

impl Plan {
    /// Validates the plan.
    ///
    /// # Errors
    /// The problem, in a sentence.
    pub fn check(&self) -> Result<(), &'static str> {
        let in_range = |value: f64, least: f64, most: f64| value >= least && value <= most;
        let length = match self.length {
            Length::Seconds(seconds) => {
                if !in_range(seconds, 0.1, MAX_SECONDS) {
                    return Err("the test must last between 0.1 and 86400 seconds");
                }
                seconds
            }
            Length::Bytes(bytes) => {
                if bytes == 0 || bytes > 1 << 50 {
                    return Err("the test must carry between 1 byte and 1 PiB");
                }
                0.0
            }
        };
        if !in_range(self.omit, 0.0, 3_600.0) {
            return Err("at most 3600 seconds can be omitted");
        }
        if !in_range(self.interval, 0.05, 3_600.0) || (length + self.omit) / self.interval > MAX_INTERVALS {
            return Err("the interval must be between 0.05 and 3600 seconds, and the test have at most 20000 of them");
        }
        if !(1..=MAX_STREAMS).contains(&self.streams) {
            return Err("there can be between 1 and 128 streams");
        }
        if !(1..=1024 * 1024).contains(&self.write_size) {
            return Err("a write has between 1 byte and 1 MiB");
        }
        Ok(())
    }

    /// Seconds of each direction's window, including the omitted ones; `None` if bytes end it.
    pub(super) fn window(&self) -> Option<f64> {
        match self.length {
            Length::Seconds(seconds) => Some(self.omit + seconds),
            Length::Bytes(_) => None,
        }
    }

    /// Bytes of a stream in each direction; `None` if time ends it.
    pub(super) fn bytes_of(&self, stream: u32) -> Option<u64> {
        let Length::Bytes(bytes) = self.length else { return None };
        let streams = u64::from(self.streams.max(1));
        Some(bytes / streams + u64::from(u64::from(stream) < bytes % streams))
    }

    /// Most intervals that a side reports.
    pub(super) fn max_intervals() -> usize {
        MAX_INTERVALS as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_carried_out_is_refused_in_a_sentence() {
        let default = Plan::default();
        assert_eq!(default.check(), Ok(()));
        for wrong in [
            Plan { length: Length::Seconds(0.0), ..default.clone() },
            Plan { length: Length::Seconds(f64::NAN), ..default.clone() },
            Plan { length: Length::Seconds(f64::INFINITY), ..default.clone() },
            Plan { length: Length::Bytes(0), ..default.clone() },
            Plan { omit: -1.0, ..default.clone() },
            Plan { interval: 0.0, ..default.clone() },
            Plan { interval: 0.05, length: Length::Seconds(2_000.0), ..default.clone() },
            Plan { streams: 0, ..default.clone() },
            Plan { streams: 129, ..default.clone() },
            Plan { write_size: 0, ..default },
        ] {
            assert!(wrong.check().is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn bytes_are_shared_out_to_the_last() {
        let plan = Plan { length: Length::Bytes(10), streams: 4, ..Plan::default() };
        let shares: Vec<_> = (0..4).filter_map(|stream| plan.bytes_of(stream)).collect();
        assert_eq!(shares, [3, 3, 2, 2]);
    }
}
