//! What an agent sees: features of each path and of the connection, over the last step.

use super::agent::path_of;
use anabranch_mptcp::{ConnectionInfo, SubflowInfo};
use anabranch_policy::time::Duration;

/// A feature.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Feature {
    pub name: &'static str,
    pub unit: &'static str,
}

const fn feature(name: &'static str, unit: &'static str) -> Feature {
    Feature { name, unit }
}

/// Features of each path, in order; all zero while it has no subflow.
pub const PATH_FEATURES: [Feature; 10] = [
    feature("established", "1"),
    feature("suspended", "1"),
    feature("smoothed_rtt", "ms"),
    feature("min_rtt", "ms"),
    feature("cwnd", "segments"),
    feature("in_flight", "segments"),
    feature("acked", "Mbit/s"),
    feature("sent", "Mbit/s"),
    feature("lost", "share of sent"),
    feature("since_progress", "ms"),
];

/// Features of the connection, in order, after those of the paths.
pub const CONNECTION_FEATURES: [Feature; 6] = [
    feature("goodput", "Mbit/s"),
    feature("outstanding", "kB"),
    feature("window_left", "kB"),
    feature("out_of_order", "kB"),
    feature("reinjected", "kB"),
    feature("stalled", "ms"),
];

/// Counters at the end of the step before.
#[derive(Clone, Debug, Default)]
pub struct Before {
    paths: Vec<Counters>,
    delivered: u64,
    reinjected: u64,
    /// Length of the present stall.
    stalled: Duration,
}

#[derive(Clone, Copy, Debug, Default)]
struct Counters {
    acked: u64,
    sent: u64,
    lost: u64,
}

/// Sums over the paths of a step, for rewards.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Totals {
    /// Delivered in order at the receiver, Mbit/s.
    pub goodput: f64,
    /// Mean of the smoothed round trips of the established subflows, weighted by what was acknowledged, ms.
    pub delay: f64,
    /// Lost over sent.
    pub loss: f64,
    /// Length of the present stall, s.
    pub stalled: f64,
}

impl Before {
    /// For this many paths.
    pub fn new(paths: usize) -> Self {
        Self { paths: vec![Counters::default(); paths], ..Self::default() }
    }

    /// Writes the features of the step that took `step` and ends now. `ends` are sender and receiver.
    pub fn observe(&mut self, ends: &[Option<ConnectionInfo>; 2], step: Duration, features: &mut [f32]) -> Totals {
        features.fill(0.0);
        let [Some(sender), receiver] = ends else { return Totals::default() };
        let rate = |bytes: u64| bytes as f64 * 8e-6 / step.as_secs_f64();
        let (mut sent, mut lost, mut delay, mut weight) = (0, 0, 0.0, 0.0);
        let (of_paths, of_connection) = features.split_at_mut(self.paths.len() * PATH_FEATURES.len());
        for subflow in &sender.subflows {
            let path = path_of(subflow.identity.local_address);
            let Some(counters) = self.paths.get_mut(path) else { continue };
            let step = counters.since(subflow);
            sent += step.sent;
            lost += step.lost;
            // A subflow without acknowledgements counts as a byte.
            weight += step.acked.max(1) as f64;
            delay += milliseconds(subflow.round_trip.rtt) * step.acked.max(1) as f64;
            let values = [
                1.0,
                f64::from(u8::from(subflow.priority.suspended)),
                milliseconds(subflow.round_trip.rtt),
                milliseconds(subflow.round_trip.min_rtt),
                segments(subflow.snd_cwnd, subflow),
                segments(subflow.in_flight, subflow),
                rate(step.acked),
                rate(step.sent),
                share(step.lost, step.sent),
                milliseconds(subflow.last.progress),
            ];
            write(&mut of_paths[path * PATH_FEATURES.len()..], &values);
        }
        let delivered = receiver.as_ref().map_or(self.delivered, |receiver| receiver.bytes_received);
        let new = delivered.saturating_sub(self.delivered);
        self.stalled = if new > 0 { Duration::ZERO } else { self.stalled + step };
        let outstanding = sender.snd_nxt.saturating_sub(sender.snd_una);
        let values = [
            rate(new),
            outstanding as f64 * 1e-3,
            sender.snd_wnd.saturating_sub(outstanding) as f64 * 1e-3,
            receiver.as_ref().map_or(0, |receiver| receiver.out_of_order) as f64 * 1e-3,
            sender.bytes_reinjected.saturating_sub(self.reinjected) as f64 * 1e-3,
            milliseconds(self.stalled),
        ];
        write(of_connection, &values);
        (self.delivered, self.reinjected) = (delivered, sender.bytes_reinjected);
        Totals {
            goodput: rate(new),
            delay: if weight > 0.0 { delay / weight } else { 0.0 },
            loss: share(lost, sent),
            stalled: self.stalled.as_secs_f64(),
        }
    }
}

impl Counters {
    /// What was added since the step before.
    fn since(&mut self, subflow: &SubflowInfo) -> Self {
        let bytes = &subflow.bytes;
        let now = Self { acked: bytes.acked, sent: bytes.sent + bytes.retrans, lost: bytes.lost };
        // A subflow that was opened again counts from zero.
        let past = if now.sent < self.sent { Self::default() } else { *self };
        *self = now;
        Self {
            acked: now.acked.saturating_sub(past.acked),
            sent: now.sent - past.sent,
            lost: now.lost.saturating_sub(past.lost),
        }
    }
}

fn write(features: &mut [f32], values: &[f64]) {
    for (feature, value) in features.iter_mut().zip(values) {
        *feature = *value as f32;
    }
}

fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

fn segments(bytes: u64, subflow: &SubflowInfo) -> f64 {
    bytes as f64 / f64::from(subflow.snd_mss.max(1))
}

fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { (part as f64 / whole as f64).min(1.0) }
}
