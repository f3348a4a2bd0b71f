//! What the view shows of a stack at one moment.

use anabranch_policy::view::SubflowState;
use anabranch_stack::Stack;
use anabranch_stack::{ConnectionReport, PathReport};
use std::net::SocketAddr;

/// A path.
#[derive(Clone, PartialEq, Debug)]
pub struct PathSample {
    pub subflow: u32,
    pub name: String,
    pub remote: SocketAddr,
    pub state: &'static str,
    /// Milliseconds; none before the first.
    pub rtt: Option<f64>,
    /// Bytes.
    pub cwnd: u64,
    /// Payload acknowledged by the peer, bytes since it began.
    pub sent: u64,
    /// Payload that came, likewise.
    pub received: u64,
    /// Smoothed share of segments lost, 0 to 1.
    pub loss: f64,
}

/// A connection.
#[derive(Clone, PartialEq, Debug)]
pub struct ConnectionSample {
    pub id: u64,
    pub remote: SocketAddr,
    /// `mptcp`, or `tcp` and why.
    pub protocol: String,
    pub paths: Vec<PathSample>,
}

/// A stack.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Sample {
    /// All connections, those in TIME-WAIT included.
    pub count: usize,
    /// Those that are looked at.
    pub connections: Vec<ConnectionSample>,
}

impl Sample {
    pub fn of_stack(stack: &Stack, limit: usize) -> Self {
        let connections = stack.connections(limit).iter().map(connection).collect();
        Self { count: stack.connection_count(), connections }
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
        state: match view.state {
            SubflowState::Opening => "opening",
            SubflowState::Closing => "closing",
            SubflowState::Established if view.suspended => "suspended",
            SubflowState::Established if view.stale => "stalled",
            SubflowState::Established if view.backup => "backup",
            SubflowState::Established => "up",
        },
        rtt: (milliseconds > 0.0 && milliseconds < 1e9).then_some(milliseconds),
        cwnd: view.cwnd,
        sent: view.counters.bytes_acked,
        received: report.subflow.bytes_received,
        loss: view.loss_rate,
    }
}
