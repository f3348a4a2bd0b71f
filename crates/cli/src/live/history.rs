//! Rates of paths over the last samples.

use super::sample::{ConnectionSample, PathSample, Sample};
use std::collections::{BTreeMap, VecDeque};

/// Samples kept: one minute.
pub const REMEMBERED: usize = 120;

/// Connection and subflow.
type Key = (u64, u32);

/// History of a path.
#[derive(Clone, Debug, Default)]
pub struct PathHistory {
    /// Payload bytes acknowledged and received at the latest sample.
    seen: (u64, u64),
    /// Rates up and down, bits per second, latest last.
    pub rates: VecDeque<(f64, f64)>,
}

impl PathHistory {
    /// Latest rates up and down, bits per second.
    pub fn rate(&self) -> (f64, f64) {
        self.rates.back().copied().unwrap_or_default()
    }
}

/// The latest sample, and rates before it.
#[derive(Clone, Debug, Default)]
pub struct History {
    /// Seconds since the start.
    pub time: f64,
    pub sample: Sample,
    paths: BTreeMap<Key, PathHistory>,
}

impl History {
    /// Adds a sample taken at `now`, seconds.
    pub fn add(&mut self, sample: Sample, now: f64) {
        let span = now - self.time;
        let mut paths = BTreeMap::new();
        for connection in &sample.connections {
            for path in &connection.paths {
                let key = (connection.id, path.subflow);
                // Data before the first sample has no rate.
                let fresh = PathHistory { seen: (path.sent, path.received), ..PathHistory::default() };
                let mut history = self.paths.remove(&key).unwrap_or(fresh);
                let rate = |now: u64, before: u64| {
                    if span > 0.0 { now.saturating_sub(before) as f64 * 8.0 / span } else { 0.0 }
                };
                history.rates.push_back((rate(path.sent, history.seen.0), rate(path.received, history.seen.1)));
                if history.rates.len() > REMEMBERED {
                    history.rates.pop_front();
                }
                history.seen = (path.sent, path.received);
                paths.insert(key, history);
            }
        }
        self.paths = paths;
        self.sample = sample;
        self.time = now;
    }

    /// History of a path; none if it is not in the latest sample.
    pub fn path(&self, connection: &ConnectionSample, path: &PathSample) -> Option<&PathHistory> {
        self.paths.get(&(connection.id, path.subflow))
    }

    /// A connection's rates up and down, bits per second.
    pub fn connection_rate(&self, connection: &ConnectionSample) -> (f64, f64) {
        let rates = connection.paths.iter().filter_map(|path| Some(self.path(connection, path)?.rate()));
        rates.fold((0.0, 0.0), |(up, down), (path_up, path_down)| (up + path_up, down + path_down))
    }

    /// Total rates up and down of all sampled connections.
    pub fn total(&self) -> (f64, f64) {
        let rates = self.sample.connections.iter().map(|connection| self.connection_rate(connection));
        rates.fold((0.0, 0.0), |(up, down), (more_up, more_down)| (up + more_up, down + more_down))
    }
}
