//! Rates over the last samples: of paths, uplinks and flows.

use super::sample::{ConnectionSample, Counted, PathSample, View};
use std::collections::{BTreeMap, VecDeque};

/// Samples kept: one minute.
pub const REMEMBERED: usize = 120;

/// What has a rate.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Key {
    /// Numbers of connection and subflow.
    Path(u64, u32),
    /// Name of an uplink or a flow.
    Named(String),
}

/// Rates of one of them.
#[derive(Clone, Debug, Default)]
pub struct Rates {
    /// Bytes sent and received at the latest sample.
    seen: (u64, u64),
    /// Rates up and down, bits per second, latest last.
    pub latest: VecDeque<(f64, f64)>,
}

impl Rates {
    /// Latest rates up and down, bits per second.
    pub fn rate(&self) -> (f64, f64) {
        self.latest.back().copied().unwrap_or_default()
    }

    /// Adds the bytes of a sample that was taken `span` seconds after the one before.
    fn add(&mut self, now: (u64, u64), span: f64) {
        let rate = |now: u64, before: u64| {
            if span > 0.0 { now.saturating_sub(before) as f64 * 8.0 / span } else { 0.0 }
        };
        self.latest.push_back((rate(now.0, self.seen.0), rate(now.1, self.seen.1)));
        if self.latest.len() > REMEMBERED {
            self.latest.pop_front();
        }
        self.seen = now;
    }
}

/// The latest sample, and rates before it.
#[derive(Clone, Debug, Default)]
pub struct History {
    /// Seconds since the start.
    pub time: f64,
    pub view: View,
    rates: BTreeMap<Key, Rates>,
}

impl History {
    /// Adds a sample taken at `now`, seconds.
    pub fn add(&mut self, view: View, now: f64) {
        let span = now - self.time;
        let paths = view.connections.connections.iter().flat_map(|connection| {
            let key = |path: &PathSample| Key::Path(connection.id, path.subflow);
            connection.paths.iter().map(move |path| (key(path), (path.sent, path.received)))
        });
        let named = view.uplinks.iter().chain(&view.flows);
        let named = named.map(|one| (Key::Named(one.name.clone()), (one.sent, one.received)));
        let mut rates = BTreeMap::new();
        for (key, bytes) in paths.chain(named) {
            // Data before the first sample has no rate.
            let fresh = Rates { seen: bytes, ..Rates::default() };
            let mut known = self.rates.remove(&key).unwrap_or(fresh);
            known.add(bytes, span);
            rates.insert(key, known);
        }
        self.rates = rates;
        self.view = view;
        self.time = now;
    }

    /// Rates of a path; none if it is not in the latest sample.
    pub fn path(&self, connection: &ConnectionSample, path: &PathSample) -> Option<&Rates> {
        self.rates.get(&Key::Path(connection.id, path.subflow))
    }

    /// Rates of an uplink or a flow; none if it is not in the latest sample.
    pub fn counted(&self, one: &Counted) -> Option<&Rates> {
        self.rates.get(&Key::Named(one.name.clone()))
    }

    /// A connection's rates up and down, bits per second.
    pub fn connection_rate(&self, connection: &ConnectionSample) -> (f64, f64) {
        let rates = connection.paths.iter().filter_map(|path| Some(self.path(connection, path)?.rate()));
        rates.fold((0.0, 0.0), |(up, down), (path_up, path_down)| (up + path_up, down + path_down))
    }

    /// Total rates up and down of all sampled connections.
    pub fn total(&self) -> (f64, f64) {
        let rates = self.view.connections.connections.iter().map(|connection| self.connection_rate(connection));
        rates.fold((0.0, 0.0), |(up, down), (more_up, more_down)| (up + more_up, down + more_down))
    }
}
