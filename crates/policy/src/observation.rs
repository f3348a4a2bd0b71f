//! What a learning agent sees of a sender: numbers about each path and the connection over an interval. The lab's
//! environments show them to an agent while it is trained, and the scheduler `learned` to what was learned.

use crate::ids::AddressId;
use crate::time::{Duration, Instant};
use crate::view::{ConnectionView, SubflowState, SubflowView};

/// A number of an observation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Feature {
    pub name: &'static str,
    pub unit: &'static str,
}

impl Feature {
    pub const fn new(name: &'static str, unit: &'static str) -> Self {
        Self { name, unit }
    }
}

/// Features of each path, in order; all zero while it has no established subflow. Rates are over the interval, `sent`
/// without retransmissions.
pub const PATH_FEATURES: [Feature; 10] = [
    Feature::new("established", "1"),
    Feature::new("suspended", "1"),
    Feature::new("smoothed_rtt", "ms"),
    Feature::new("min_rtt", "ms"),
    Feature::new("cwnd", "segments"),
    Feature::new("in_flight", "segments"),
    Feature::new("acked", "Mbit/s"),
    Feature::new("sent", "Mbit/s"),
    Feature::new("lost", "share of sent"),
    Feature::new("since_progress", "ms"),
];

/// Features of the connection that its sender knows, in order, after those of the paths.
pub const SENDER_FEATURES: [Feature; 3] =
    [Feature::new("acked", "Mbit/s"), Feature::new("outstanding", "kB"), Feature::new("window_left", "kB")];

/// Place of a subflow's path among the features. At the client it is the place of the local address, whose identifiers
/// count from 1. A server's own address has identifier 0 (RFC 8684, section 3.4.1), and the client's address tells
/// paths apart.
pub fn path_of(local: AddressId, remote: AddressId) -> usize {
    let address = if local.0 == 0 { remote } else { local };
    usize::from(address.0.saturating_sub(1))
}

/// Bytes of a subflow since it was opened, first transmissions only.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Bytes {
    pub sent: u64,
    pub acked: u64,
    pub lost: u64,
}

/// An established subflow at the end of an interval.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct PathSample {
    /// As of [`path_of`].
    pub path: usize,
    pub suspended: bool,
    pub smoothed_rtt: Duration,
    /// Zero before the first sample.
    pub min_rtt: Duration,
    /// Maximum payload of a segment, in bytes.
    pub mss: u32,
    /// In bytes.
    pub cwnd: u64,
    /// In bytes.
    pub in_flight: u64,
    pub bytes: Bytes,
    /// Since an acknowledgement made progress.
    pub since_progress: Duration,
}

impl PathSample {
    /// None if the subflow is not established.
    pub fn of(view: &SubflowView, now: Instant) -> Option<Self> {
        let counters = &view.counters;
        (view.state == SubflowState::Established).then(|| Self {
            path: path_of(view.local_address, view.remote_address),
            suspended: view.suspended,
            smoothed_rtt: view.smoothed_rtt,
            min_rtt: if view.smoothed_rtt.is_zero() { Duration::ZERO } else { view.min_rtt },
            mss: view.mss,
            cwnd: view.cwnd,
            in_flight: view.in_flight,
            bytes: Bytes { sent: counters.bytes_sent, acked: counters.bytes_acked, lost: counters.bytes_lost },
            since_progress: now.since(view.last_progress),
        })
    }
}

/// A connection at the end of an interval, in bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ConnectionSample {
    /// Acknowledged at data level since the beginning.
    pub acked: u64,
    /// Sent and not acknowledged at data level.
    pub outstanding: u64,
    /// Rest of the send window.
    pub window_left: u64,
}

impl ConnectionSample {
    pub fn of(view: &ConnectionView) -> Self {
        Self {
            acked: view.data_una,
            outstanding: view.data_nxt.saturating_sub(view.data_una),
            window_left: view.window_left,
        }
    }
}

/// Computes the features of each interval from samples at its end.
#[derive(Clone, Debug)]
pub struct Observer {
    paths: Vec<Bytes>,
    acked: u64,
}

impl Observer {
    /// For this many paths; samples of others are left out.
    pub fn new(paths: usize) -> Self {
        Self { paths: vec![Bytes::default(); paths], acked: 0 }
    }

    /// Numbers that [`Self::observe_path`] writes for all paths.
    pub fn path_features(&self) -> usize {
        self.paths.len() * PATH_FEATURES.len()
    }

    /// Writes the features of a path, for an interval of this length. Gives what was sent, acknowledged and lost in it;
    /// none if the observation does not have this path.
    pub fn observe_path(&mut self, sample: &PathSample, interval: Duration, features: &mut [f32]) -> Option<Bytes> {
        let before = self.paths.get_mut(sample.path)?;
        let new = sample.bytes.since(before);
        let segments = |bytes: u64| bytes as f64 / f64::from(sample.mss.max(1));
        let values = [
            1.0,
            f64::from(u8::from(sample.suspended)),
            milliseconds(sample.smoothed_rtt),
            milliseconds(sample.min_rtt),
            segments(sample.cwnd),
            segments(sample.in_flight),
            megabits_per_second(new.acked, interval),
            megabits_per_second(new.sent, interval),
            share(new.lost, new.sent),
            milliseconds(sample.since_progress),
        ];
        write(features.get_mut(sample.path * PATH_FEATURES.len()..)?, &values);
        Some(new)
    }

    /// Writes [`SENDER_FEATURES`].
    pub fn observe_sender(&mut self, sample: &ConnectionSample, interval: Duration, features: &mut [f32]) {
        let acked = sample.acked.saturating_sub(self.acked);
        self.acked = sample.acked;
        let values =
            [megabits_per_second(acked, interval), kilobytes(sample.outstanding), kilobytes(sample.window_left)];
        write(features, &values);
    }
}

impl Bytes {
    /// What was added since `before`, which becomes this.
    fn since(self, before: &mut Self) -> Self {
        // A subflow that was opened again counts from zero.
        let past = if self.sent < before.sent { Self::default() } else { *before };
        *before = self;
        Self {
            sent: self.sent - past.sent,
            acked: self.acked.saturating_sub(past.acked),
            lost: self.lost.saturating_sub(past.lost),
        }
    }
}

/// Writes numbers one after the other.
pub fn write(features: &mut [f32], values: &[f64]) {
    for (feature, value) in features.iter_mut().zip(values) {
        *feature = *value as f32;
    }
}

pub fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

pub fn kilobytes(bytes: u64) -> f64 {
    bytes as f64 * 1e-3
}

pub fn megabits_per_second(bytes: u64, interval: Duration) -> f64 {
    bytes as f64 * 8e-6 / interval.as_secs_f64()
}

/// At most 1; of nothing, 0.
pub fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { (part as f64 / whole as f64).min(1.0) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scheduler::tests::{at, connection, subflow};

    const INTERVAL: Duration = Duration::from_millis(100);

    fn established(sent: u64, acked: u64, lost: u64) -> SubflowView {
        let mut view = subflow(0, 20);
        view.local_address = AddressId(2);
        view.last_progress = at(70);
        (view.counters.bytes_sent, view.counters.bytes_acked, view.counters.bytes_lost) = (sent, acked, lost);
        view
    }

    #[test]
    fn rates_are_of_the_interval_and_an_opened_subflow_counts_from_zero() {
        let mut observer = Observer::new(2);
        let mut rates = |view: SubflowView| {
            let mut features = [0.0; 20];
            let sample = PathSample::of(&view, at(100)).unwrap();
            observer.observe_path(&sample, INTERVAL, &mut features).unwrap();
            assert_eq!(features[..10], [0.0; 10], "it is the second path");
            [features[16], features[17], features[18], features[19]]
        };
        assert_eq!(rates(established(50_000, 25_000, 5_000)), [2.0, 4.0, 0.1, 30.0]);
        assert_eq!(rates(established(75_000, 50_000, 5_000)), [2.0, 2.0, 0.0, 30.0]);
        assert_eq!(rates(established(12_500, 0, 12_500)), [0.0, 1.0, 1.0, 30.0]);
    }

    #[test]
    fn a_subflow_that_is_not_established_and_a_path_beyond_the_last_are_left_out() {
        let opening = SubflowView { state: SubflowState::Opening, ..established(0, 0, 0) };
        assert_eq!(PathSample::of(&opening, at(100)), None);
        let sample = PathSample::of(&established(1, 0, 0), at(100)).unwrap();
        assert_eq!(Observer::new(1).observe_path(&sample, INTERVAL, &mut [0.0; 10]), None);
    }

    #[test]
    fn the_sender_knows_what_is_acknowledged_outstanding_and_left_of_the_window() {
        let view = ConnectionView { data_una: 125_000, data_nxt: 150_000, window_left: 5_000, ..connection(0) };
        let (mut observer, mut features) = (Observer::new(1), [0.0; 3]);
        observer.observe_sender(&ConnectionSample::of(&view), INTERVAL, &mut features);
        assert_eq!(features, [10.0, 25.0, 5.0]);
        observer.observe_sender(&ConnectionSample::of(&view), INTERVAL, &mut features);
        assert_eq!(features, [0.0, 25.0, 5.0]);
    }

    #[test]
    fn a_path_is_told_by_the_address_of_the_client() {
        assert_eq!([1, 2, 16].map(|local| path_of(AddressId(local), AddressId(0))), [0, 1, 15]);
        assert_eq!([0, 2].map(|remote| path_of(AddressId(0), AddressId(remote))), [0, 1]);
    }
}
