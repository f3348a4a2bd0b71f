//! The results. The fields are those of the JSON, described in docs/perf.md.

use super::plan::Plan;
use core::net::SocketAddr;
use serde::{Deserialize, Serialize};

/// The version of the JSON's fields: it goes up when one changes its meaning or goes.
pub const SCHEMA: u32 = 1;

/// The program and host at one end.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct About {
    /// `anabranch`, or the kernel's `mptcp` or `tcp`.
    pub stack: String,
    /// Policies of our stack, or the congestion control asked of the kernel.
    pub policies: String,
    /// Version of this program.
    pub version: String,
    /// The kernel's name and release.
    pub kernel: String,
    /// The host's name.
    pub host: String,
}

/// One path during one interval. What is unknown at the receiving end is missing.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct PathInterval {
    /// The stream, from 0.
    pub stream: u32,
    /// The subflow's number in its connection.
    pub subflow: u32,
    /// The local interface, or the local address if it has none.
    pub name: String,
    /// Local address and port.
    pub local: SocketAddr,
    /// The peer's.
    pub remote: SocketAddr,
    /// Payload acknowledged (sender) or come (receiver).
    pub bytes: u64,
    /// The same as a rate.
    pub bits_per_second: f64,
    /// Of the bytes of all paths, 0 to 1.
    pub share: f64,
    /// Smoothed round-trip time, milliseconds.
    pub rtt_ms: Option<f64>,
    /// Congestion window, bytes.
    pub cwnd: Option<u64>,
    /// Payload sent again, bytes.
    pub retransmitted: Option<u64>,
    /// `opening`, `established`, `backup`, `suspended`, `closing` or `gone`.
    pub state: String,
}

/// One direction during one interval.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Interval {
    /// Seconds from the beginning of the window.
    pub start: f64,
    /// Likewise.
    pub end: f64,
    /// It does not count.
    pub omitted: bool,
    /// Payload acknowledged at data level (sender) or read by the application (receiver).
    pub bytes: u64,
    /// The same as a rate.
    pub bits_per_second: f64,
    /// The paths of all streams.
    pub paths: Vec<PathInterval>,
}

/// One path over the whole window, without what is omitted.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct PathTotal {
    /// The stream, from 0.
    pub stream: u32,
    /// The subflow's number in its connection.
    pub subflow: u32,
    /// The local interface, or the local address if it has none.
    pub name: String,
    /// Local address and port.
    pub local: SocketAddr,
    /// The peer's.
    pub remote: SocketAddr,
    /// Payload acknowledged (sender) or come (receiver).
    pub bytes: u64,
    /// Of the bytes of all paths, 0 to 1.
    pub share: f64,
    /// Payload sent again, bytes.
    pub retransmitted: Option<u64>,
    /// Smoothed round-trip time at the end, milliseconds.
    pub rtt_ms: Option<f64>,
    /// Least round-trip time, milliseconds.
    pub min_rtt_ms: Option<f64>,
    /// Largest congestion window seen, bytes.
    pub max_cwnd: Option<u64>,
}

/// One end of one direction.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Side {
    /// Payload acknowledged at data level (sender) or read by the application (receiver), without what is omitted.
    pub bytes: u64,
    /// In this time.
    pub seconds: f64,
    /// The one over the other: at the receiver, the goodput.
    pub bits_per_second: f64,
    /// Second by second.
    pub intervals: Vec<Interval>,
    /// Path by path.
    pub paths: Vec<PathTotal>,
}

/// Both ends of one direction.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Transfer {
    /// The sender's; none if the peer is a server of another kind.
    pub sent: Option<Side>,
    /// The receiver's; likewise.
    pub received: Option<Side>,
}

impl Transfer {
    /// What arrived, bits per second; what was acknowledged if the receiver cannot say.
    pub fn goodput(&self) -> f64 {
        self.received.as_ref().or(self.sent.as_ref()).map_or(0.0, |side| side.bits_per_second)
    }
}

/// One connection of the test, as the client has it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct StreamReport {
    /// Its number, from 0.
    pub stream: u32,
    /// `mptcp` or `tcp`.
    pub protocol: String,
    /// Why it is plain TCP although MPTCP was offered.
    pub fallback: Option<String>,
}

/// A test.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Report {
    /// [`SCHEMA`].
    pub schema: u32,
    /// The client.
    pub client: About,
    /// The server; none if it is of another kind.
    pub server: Option<About>,
    /// The server's address.
    pub remote: SocketAddr,
    /// What was asked for.
    pub plan: Plan,
    /// The connections.
    pub streams: Vec<StreamReport>,
    /// From client to server.
    pub up: Option<Transfer>,
    /// From server to client.
    pub down: Option<Transfer>,
}

/// A text of the peer's that can be printed: no control characters, not long.
fn tame(text: &mut String) {
    if text.len() > 64 || text.chars().any(char::is_control) {
        *text = text.chars().filter(|letter| !letter.is_control()).take(64).collect();
    }
}

impl About {
    /// The peer's, fit to be printed.
    pub(super) fn tamed(mut self) -> Self {
        [&mut self.stack, &mut self.version, &mut self.kernel, &mut self.host].into_iter().for_each(tame);
        self.policies = self.policies.chars().filter(|letter| !letter.is_control()).take(512).collect();
        self
    }
}

impl Interval {
    /// The peer's, fit to be printed.
    pub(super) fn tamed(mut self) -> Self {
        self.paths.iter_mut().flat_map(|path| [&mut path.name, &mut path.state]).for_each(tame);
        self
    }
}

impl Side {
    /// The peer's, fit to be printed.
    pub(super) fn tamed(mut self) -> Self {
        self.intervals = self.intervals.into_iter().map(Interval::tamed).collect();
        self.paths.iter_mut().for_each(|path| tame(&mut path.name));
        self
    }
}
