//! The counters of a connection and its paths at one moment.

use core::net::SocketAddr;

/// A path at a moment; totals are since the connection began.
#[derive(Clone, PartialEq, Debug)]
pub struct PathReading {
    /// The subflow's number in its connection.
    pub subflow: u32,
    /// The local interface, or the local address if it has none.
    pub name: String,
    /// Local address and port.
    pub local: SocketAddr,
    /// The peer's.
    pub remote: SocketAddr,
    /// Payload acknowledged, bytes.
    pub acknowledged: u64,
    /// Payload that came, bytes.
    pub received: u64,
    /// Payload sent again, bytes.
    pub retransmitted: u64,
    /// Smoothed round-trip time, milliseconds.
    pub rtt_ms: Option<f64>,
    /// The least, milliseconds.
    pub min_rtt_ms: Option<f64>,
    /// Congestion window, bytes.
    pub cwnd: u64,
    /// `opening`, `established`, `backup`, `suspended`, `closing` or `gone`.
    pub state: &'static str,
}

/// A connection at a moment.
#[derive(Clone, PartialEq, Debug, Default)]
pub(crate) struct Reading {
    /// Bytes acknowledged at data level; none once the connection is gone.
    pub acknowledged: Option<u64>,
    pub paths: Vec<PathReading>,
}
