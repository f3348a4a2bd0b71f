//! A reading of the counters of a connection and its paths.

use core::net::SocketAddr;

/// A path's reading; totals are since the start of the connection.
#[derive(Clone, PartialEq, Debug)]
pub struct PathReading {
    /// The subflow's number in its connection.
    pub subflow: u32,
    /// The local interface, or the local address if that has none.
    pub name: String,
    pub local: SocketAddr,
    pub remote: SocketAddr,
    /// Payload bytes acknowledged.
    pub acknowledged: u64,
    /// Payload bytes received.
    pub received: u64,
    /// Payload bytes retransmitted.
    pub retransmitted: u64,
    /// Smoothed round-trip time, milliseconds.
    pub rtt_ms: Option<f64>,
    /// Lowest round-trip time, milliseconds.
    pub min_rtt_ms: Option<f64>,
    /// Congestion window, bytes.
    pub cwnd: u64,
    /// `opening`, `established`, `backup`, `suspended`, `closing` or `gone`.
    pub state: &'static str,
}

/// A connection's reading.
#[derive(Clone, PartialEq, Debug, Default)]
pub(crate) struct Reading {
    /// Bytes acknowledged at data level; `None` once the connection is gone.
    pub acknowledged: Option<u64>,
    pub paths: Vec<PathReading>,
}
