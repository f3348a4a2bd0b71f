//! Snapshot of a stack for the live view.

use anabranch_policy::view::SubflowState;
use anabranch_stack::Stack;
use anabranch_stack::{ConnectionReport, PathReport};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::net::SocketAddr;

/// Maximum number of sampled connections.
pub const MAX_CONNECTIONS: usize = 256;

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct PathSample {
    pub subflow: u32,
    #[serde(rename = "uplink")]
    pub name: String,
    pub remote: SocketAddr,
    pub state: Cow<'static, str>,
    /// Smoothed RTT in milliseconds; none before the first sample.
    #[serde(rename = "rtt_ms")]
    pub rtt: Option<f64>,
    /// Bytes.
    #[serde(rename = "cwnd_bytes")]
    pub cwnd: u64,
    /// Payload bytes acknowledged by the peer since the start.
    #[serde(rename = "sent_bytes")]
    pub sent: u64,
    /// Payload bytes received since the start.
    #[serde(rename = "received_bytes")]
    pub received: u64,
    /// Smoothed loss ratio, 0 to 1.
    #[serde(rename = "loss_ratio")]
    pub loss: f64,
}

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct ConnectionSample {
    pub id: u64,
    pub remote: SocketAddr,
    /// `mptcp`, or `tcp` with the reason.
    pub protocol: String,
    pub paths: Vec<PathSample>,
}

#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Sample {
    /// All connections, including those in TIME-WAIT.
    pub count: usize,
    /// The sampled connections.
    #[serde(rename = "shown")]
    pub connections: Vec<ConnectionSample>,
}

/// Something with counters and no paths: an uplink, or a flow of datagrams.
#[derive(Clone, PartialEq, Debug)]
pub struct Counted {
    /// Unique among all that is shown.
    pub name: String,
    pub state: &'static str,
    /// Milliseconds.
    pub rtt: Option<f64>,
    /// Loss ratio, 0 to 1.
    pub loss: Option<f64>,
    /// Bytes since the start.
    pub sent: u64,
    /// Bytes since the start.
    pub received: u64,
}

/// All that is shown.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct View {
    pub connections: Sample,
    pub uplinks: Vec<Counted>,
    /// Flows of datagrams, those with the most bytes first.
    pub flows: Vec<Counted>,
    /// Warnings, and decisions with their reasons, the newest first.
    pub notes: Vec<String>,
}

impl From<Sample> for View {
    fn from(connections: Sample) -> Self {
        Self { connections, ..Self::default() }
    }
}

impl Sample {
    /// Merges samples of several programs, with unique connection numbers.
    pub fn of_all(samples: Vec<Self>) -> Self {
        let each = samples.len() as u64;
        let mut all = Self::default();
        for (index, sample) in (0..).zip(samples) {
            all.count += sample.count;
            let unique = |sample: ConnectionSample| ConnectionSample { id: sample.id * each + index, ..sample };
            all.connections.extend(sample.connections.into_iter().map(unique));
        }
        all
    }

    /// Merges samples of stacks of one host, with unique connection numbers.
    pub fn of_stacks(stacks: &[Stack], limit: usize) -> Self {
        let count = stacks.len() as u64;
        let numbered = |(index, stack): (u64, &Stack)| {
            let reports = stack.connections(limit);
            let unique = |sample: ConnectionSample| ConnectionSample { id: sample.id * count + index, ..sample };
            reports.iter().map(|report| unique(connection(report))).collect::<Vec<_>>()
        };
        let mut connections: Vec<_> = (0..).zip(stacks).flat_map(numbered).collect();
        connections.sort_by_key(|connection| connection.id);
        connections.truncate(limit);
        Self { count: stacks.iter().map(Stack::connection_count).sum(), connections }
    }
}

fn connection(report: &ConnectionReport) -> ConnectionSample {
    use anabranch_mptcp::Protocol;
    let protocol = match (report.protocol, report.fallback) {
        (Protocol::Negotiating, _) => "opening".to_owned(),
        (Protocol::Multipath, _) => "mptcp".to_owned(),
        (Protocol::Tcp, None) => "tcp".to_owned(),
        (Protocol::Tcp, Some(cause)) => format!("tcp: {}", anabranch_stack::explain(cause)),
    };
    let paths = report.paths.iter().map(path).collect();
    ConnectionSample { id: report.id.0, remote: report.remote, protocol, paths }
}

fn path(report: &PathReport) -> PathSample {
    let view = &report.subflow.view;
    let milliseconds = view.smoothed_rtt.as_secs_f64() * 1e3;
    PathSample {
        subflow: view.id.0,
        name: report.name.clone(),
        remote: report.subflow.remote,
        state: Cow::Borrowed(match view.state {
            SubflowState::Opening => "opening",
            SubflowState::Closing => "closing",
            SubflowState::Established if view.suspended => "suspended",
            SubflowState::Established if view.stale => "stalled",
            SubflowState::Established if view.backup => "backup",
            SubflowState::Established => "up",
        }),
        rtt: (milliseconds > 0.0 && milliseconds < 1e9).then_some(milliseconds),
        cwnd: view.cwnd,
        sent: view.counters.bytes_acked,
        received: report.subflow.bytes_received,
        loss: view.loss_rate,
    }
}
