//! An uplink in a status.

use crate::uplink_care::Roles;
use anabranch_policy::time::Duration;
use serde::{Deserialize, Serialize};
use std::net::IpAddr;

/// An uplink. Totals count from the start, or from when the server moved.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Uplink {
    /// Name of the interface.
    pub name: String,
    /// Whether it has a usable address.
    pub up: bool,
    /// The stack's addresses there.
    pub addresses: Vec<IpAddr>,
    /// Established subflows of the sampled connections.
    pub subflows: usize,
    /// Lowest smoothed RTT among them, milliseconds.
    pub rtt_ms: Option<f64>,
    /// Mean of their smoothed loss ratios, 0 to 1.
    pub loss_ratio: Option<f64>,
    /// IP bytes sent.
    pub sent_bytes: u64,
    /// IP bytes received.
    pub received_bytes: u64,
    pub sent_packets: u64,
    pub received_packets: u64,
    /// Packets that the operating system did not accept.
    pub not_taken_packets: u64,
    /// `primary`, `backup` or `metered`; empty if all uplinks are equal.
    #[serde(default)]
    pub role: String,
    /// Whether a captive portal prevents its use.
    #[serde(default)]
    pub portal: bool,
    /// Bytes through its interface in this day or month, if it has a quota.
    #[serde(default)]
    pub quota_used_bytes: Option<u64>,
    /// The quota.
    #[serde(default)]
    pub quota_bytes: Option<u64>,
    /// Datagrams, if they are carried.
    #[serde(default)]
    pub datagrams: Option<DatagramPath>,
}

/// Datagrams on an uplink.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct DatagramPath {
    /// Whether the peer is known to answer there.
    pub usable: bool,
    /// Smoothed RTT, milliseconds.
    pub rtt_ms: Option<f64>,
    /// Recent loss ratio, 0 to 1; 0 without a server, which counts datagrams.
    pub loss_ratio: f64,
    /// Smoothed jitter, milliseconds.
    pub jitter_ms: f64,
    /// Packets sent, including probes and control.
    pub sent: u64,
    /// Bytes sent, without outer headers.
    pub sent_bytes: u64,
    /// Packets received, including probes and control.
    pub received: u64,
    /// Bytes received, without outer headers.
    pub received_bytes: u64,
}

/// What an established subflow measured.
#[derive(Clone, Copy, Debug)]
pub struct Measured {
    /// Smoothed.
    pub rtt: Duration,
    /// Smoothed, 0 to 1.
    pub loss_ratio: f64,
}

impl DatagramPath {
    pub fn of(report: &anabranch_datagram::PathReport) -> Self {
        Self {
            usable: report.usable,
            rtt_ms: report.round_trip.map(|time| time.as_secs_f64() * 1e3),
            loss_ratio: report.loss,
            jitter_ms: report.jitter.as_secs_f64() * 1e3,
            sent: report.datagrams_sent,
            sent_bytes: report.bytes_sent,
            received: report.datagrams_received,
            received_bytes: report.bytes_received,
        }
    }
}

impl Uplink {
    /// Sets role, portal and quota.
    pub fn play(&mut self, roles: &Roles) {
        let governed = roles.of(&self.name);
        governed.role.clone_into(&mut self.role);
        self.portal = governed.portal;
        (self.quota_used_bytes, self.quota_bytes) = governed.quota.unzip();
    }

    /// Sets RTT and loss from those of the given subflows, by local address, that are on this uplink and established.
    /// An RTT of zero was not measured yet.
    pub fn measure(&mut self, established: impl Iterator<Item = (IpAddr, Measured)>) {
        let (mut losses, mut rtt) = (0.0, f64::INFINITY);
        for (_, measured) in established.filter(|(local, _)| self.addresses.contains(local)) {
            self.subflows += 1;
            losses += measured.loss_ratio;
            let sample = measured.rtt.as_secs_f64() * 1e3;
            rtt = if sample > 0.0 { rtt.min(sample) } else { rtt };
        }
        self.loss_ratio = (self.subflows > 0).then(|| losses / self.subflows as f64);
        // Larger values mean that nothing was measured yet.
        self.rtt_ms = (rtt < 1e9).then_some(rtt);
    }
}
