//! Bytes per path, kept after a path has closed.

use anabranch_perf::PathReading;
use anabranch_perf::messages::Messages;
use serde::Serialize;
use std::collections::BTreeMap;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum End {
    /// Counts acknowledged bytes.
    Sender,
    /// Counts received bytes.
    Receiver,
}

/// Totals of a path over the whole stream.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct PathReport {
    /// Identifier of the subflow.
    pub subflow: u32,
    /// The local interface, or the local address if unknown.
    pub name: String,
    /// Local address.
    pub local: String,
    /// Peer's address.
    pub remote: String,
    /// Payload acknowledged (sender) or received (receiver).
    pub bytes: u64,
    /// Share of the bytes of all paths, 0 to 1.
    pub share: f64,
    /// Payload retransmitted; unknown at the receiver.
    pub retransmitted: Option<u64>,
    /// Smoothed RTT at the end, milliseconds.
    pub rtt_ms: Option<f64>,
}

#[derive(Debug)]
pub struct Paths {
    end: End,
    known: BTreeMap<u32, PathReading>,
}

impl Paths {
    pub fn new(end: End) -> Self {
        Self { end, known: BTreeMap::new() }
    }

    /// Samples the paths; closed paths keep their totals.
    pub fn look(&mut self, messages: &Messages) {
        for path in messages.paths() {
            self.known.insert(path.subflow, path);
        }
    }

    fn bytes(&self, path: &PathReading) -> u64 {
        match self.end {
            End::Sender => path.acknowledged,
            End::Receiver => path.received,
        }
    }

    /// Totals of all paths.
    pub fn report(&self) -> Vec<PathReport> {
        let all: u64 = self.known.values().map(|path| self.bytes(path)).sum();
        let sender = self.end == End::Sender;
        let report = |path: &PathReading| PathReport {
            subflow: path.subflow,
            name: path.name.clone(),
            local: path.local.to_string(),
            remote: path.remote.to_string(),
            bytes: self.bytes(path),
            share: if all == 0 { 0.0 } else { self.bytes(path) as f64 / all as f64 },
            retransmitted: sender.then_some(path.retransmitted),
            rtt_ms: path.rtt_ms.filter(|_| sender),
        };
        self.known.values().map(report).collect()
    }
}

/// `eth0 62 %, wlan0 38 %`; with the peers' addresses if names are equal.
pub fn shares(paths: &[PathReport]) -> String {
    let name = |path: &PathReport| {
        let alike = paths.iter().filter(|other| other.name == path.name).count();
        if alike > 1 { format!("{} to {}", path.name, path.remote) } else { path.name.clone() }
    };
    paths.iter().map(|path| format!("{} {:.0} %", name(path), path.share * 100.0)).collect::<Vec<_>>().join(", ")
}
