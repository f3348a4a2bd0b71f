//! What an agent sees: features of each path and of the connection, over the last step.

use anabranch_mptcp::{ConnectionInfo, SubflowInfo, TcpState};
use anabranch_policy::observation::{
    Bytes, ConnectionSample, Feature, Observer, PATH_FEATURES, PathSample, SENDER_FEATURES, kilobytes,
    megabits_per_second, milliseconds, path_of, share, write,
};
use anabranch_policy::time::Duration;
use std::str::FromStr;

/// Features of the connection at both ends, in order, after those of the paths.
pub const CONNECTION_FEATURES: [Feature; 6] = [
    Feature::new("goodput", "Mbit/s"),
    Feature::new("outstanding", "kB"),
    Feature::new("window_left", "kB"),
    Feature::new("out_of_order", "kB"),
    Feature::new("reinjected", "kB"),
    Feature::new("stalled", "ms"),
];

/// Whose knowledge an observation is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Observes {
    /// The paths, and what sender and receiver know of the connection.
    BothEnds,
    /// The paths and [`SENDER_FEATURES`]: what a scheduler can see on a real network.
    Sender,
}

impl Observes {
    /// Features of the connection.
    pub fn connection_features(self) -> &'static [Feature] {
        match self {
            Self::BothEnds => &CONNECTION_FEATURES,
            Self::Sender => &SENDER_FEATURES,
        }
    }

    /// Numbers of an observation.
    pub fn count(self, paths: usize) -> usize {
        paths * PATH_FEATURES.len() + self.connection_features().len()
    }
}

impl FromStr for Observes {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        match name {
            "both_ends" => Ok(Self::BothEnds),
            "sender" => Ok(Self::Sender),
            _ => Err(format!("'{name}' is none of both_ends, sender")),
        }
    }
}

/// Counters at the end of the step before.
#[derive(Clone, Debug)]
pub struct Before {
    observes: Observes,
    observer: Observer,
    delivered: u64,
    reinjected: u64,
    /// Length of the present stall.
    stalled: Duration,
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
    pub fn new(observes: Observes, paths: usize) -> Self {
        let observer = Observer::new(paths);
        Self { observes, observer, delivered: 0, reinjected: 0, stalled: Duration::ZERO }
    }

    /// Writes the features of the step that took `step` and ends now. `ends` are sender and receiver.
    pub fn observe(&mut self, ends: &[Option<ConnectionInfo>; 2], step: Duration, features: &mut [f32]) -> Totals {
        features.fill(0.0);
        let [Some(sender), receiver] = ends else { return Totals::default() };
        let (of_paths, of_connection) = features.split_at_mut(self.observer.path_features());
        let (delay, loss) = self.observe_paths(sender, step, of_paths);
        let delivered = receiver.as_ref().map_or(self.delivered, |receiver| receiver.bytes_received);
        let new = delivered.saturating_sub(self.delivered);
        self.stalled = if new > 0 { Duration::ZERO } else { self.stalled + step };
        let goodput = megabits_per_second(new, step);
        let known = known_to(sender);
        match self.observes {
            Observes::Sender => self.observer.observe_sender(&known, step, of_connection),
            Observes::BothEnds => {
                let values = [
                    goodput,
                    kilobytes(known.outstanding),
                    kilobytes(known.window_left),
                    kilobytes(receiver.as_ref().map_or(0, |receiver| receiver.out_of_order)),
                    kilobytes(sender.bytes_reinjected.saturating_sub(self.reinjected)),
                    milliseconds(self.stalled),
                ];
                write(of_connection, &values);
            }
        }
        (self.delivered, self.reinjected) = (delivered, sender.bytes_reinjected);
        Totals { goodput, delay, loss, stalled: self.stalled.as_secs_f64() }
    }

    /// The mean delay in ms, and the share that was lost.
    fn observe_paths(&mut self, sender: &ConnectionInfo, step: Duration, features: &mut [f32]) -> (f64, f64) {
        let (mut sent, mut lost, mut delay, mut weight) = (0, 0, 0.0, 0.0);
        for sample in sender.subflows.iter().filter_map(sample) {
            let Some(new) = self.observer.observe_path(&sample, step, features) else { continue };
            sent += new.sent;
            lost += new.lost;
            // A subflow without acknowledgements counts as a byte.
            weight += new.acked.max(1) as f64;
            delay += milliseconds(sample.smoothed_rtt) * new.acked.max(1) as f64;
        }
        (if weight > 0.0 { delay / weight } else { 0.0 }, share(lost, sent))
    }
}

fn known_to(sender: &ConnectionInfo) -> ConnectionSample {
    let outstanding = sender.snd_nxt.saturating_sub(sender.snd_una);
    ConnectionSample { acked: sender.snd_una, outstanding, window_left: sender.snd_wnd.saturating_sub(outstanding) }
}

/// None if the subflow is not established.
fn sample(subflow: &SubflowInfo) -> Option<PathSample> {
    let SubflowInfo { identity, round_trip, bytes, .. } = subflow;
    matches!(subflow.state, TcpState::Established | TcpState::CloseWait).then(|| PathSample {
        path: path_of(identity.local_address, identity.remote_address),
        suspended: subflow.priority.suspended,
        smoothed_rtt: round_trip.rtt,
        min_rtt: round_trip.min_rtt,
        mss: subflow.snd_mss,
        cwnd: subflow.snd_cwnd,
        in_flight: subflow.in_flight,
        bytes: Bytes { sent: bytes.sent, acked: bytes.acked, lost: bytes.lost },
        since_progress: subflow.last.progress,
    })
}
