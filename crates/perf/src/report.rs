//! The results. The fields are those of the JSON, see docs/perf.md.

use super::plan::Plan;
use core::net::SocketAddr;
use serde::{Deserialize, Serialize};

/// The version of the JSON's fields; it increases when a field is removed or changes its meaning.
pub const SCHEMA: u32 = 1;

/// The program and host at one end.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct About {
    /// `anabranch`, or the kernel's `mptcp` or `tcp`.
    pub stack: String,
    /// Policies of our stack, or the congestion control requested from the kernel.
    pub policies: String,
    /// Version of this program.
    pub version: String,
    /// The kernel's name and release.
    pub kernel: String,
    pub host: String,
}

/// A path during an interval. Values unknown at the receiver are missing.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct PathInterval {
    /// The stream, from 0.
    pub stream: u32,
    /// The subflow's number in its connection.
    pub subflow: u32,
    /// The local interface, or the local address if that has none.
    pub name: String,
    pub local: SocketAddr,
    pub remote: SocketAddr,
    /// Payload bytes acknowledged (sender) or received (receiver).
    pub bytes: u64,
    pub bits_per_second: f64,
    /// Share of the bytes of all paths, 0 to 1.
    pub share: f64,
    /// Smoothed round-trip time, milliseconds.
    pub rtt_ms: Option<f64>,
    /// Congestion window, bytes.
    pub cwnd: Option<u64>,
    /// Payload bytes retransmitted.
    pub retransmitted: Option<u64>,
    /// `opening`, `established`, `backup`, `suspended`, `closing` or `gone`.
    pub state: String,
}

/// One direction during an interval.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Interval {
    /// Seconds from the start of the window.
    pub start: f64,
    /// Seconds from the start of the window.
    pub end: f64,
    /// It is not measured.
    pub omitted: bool,
    /// Payload bytes acknowledged at data level (sender) or read by the application (receiver).
    pub bytes: u64,
    pub bits_per_second: f64,
    /// The paths of all streams.
    pub paths: Vec<PathInterval>,
}

/// A path over the whole window, without the omitted time.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct PathTotal {
    /// The stream, from 0.
    pub stream: u32,
    /// The subflow's number in its connection.
    pub subflow: u32,
    /// The local interface, or the local address if that has none.
    pub name: String,
    pub local: SocketAddr,
    pub remote: SocketAddr,
    /// Payload bytes acknowledged (sender) or received (receiver).
    pub bytes: u64,
    /// Share of the bytes of all paths, 0 to 1.
    pub share: f64,
    /// Payload bytes retransmitted.
    pub retransmitted: Option<u64>,
    /// Smoothed round-trip time at the end, milliseconds.
    pub rtt_ms: Option<f64>,
    /// Lowest round-trip time, milliseconds.
    pub min_rtt_ms: Option<f64>,
    /// Highest congestion window seen, bytes.
    pub max_cwnd: Option<u64>,
}

/// One end of one direction.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Side {
    /// Payload bytes acknowledged at data level (sender) or read by the application (receiver), without the omitted
    /// time.
    pub bytes: u64,
    /// Seconds measured.
    pub seconds: f64,
    /// `bytes` as a rate; at the receiver, the goodput.
    pub bits_per_second: f64,
    pub intervals: Vec<Interval>,
    pub paths: Vec<PathTotal>,
}

/// Both ends of one direction.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Transfer {
    /// The sender's; `None` if the peer is no perf server.
    pub sent: Option<Side>,
    /// The receiver's, likewise.
    pub received: Option<Side>,
}

impl Transfer {
    /// Bits per second received, or acknowledged if the receiver's are unknown.
    pub fn goodput(&self) -> f64 {
        self.received.as_ref().or(self.sent.as_ref()).map_or(0.0, |side| side.bits_per_second)
    }
}

/// One connection of the test, as seen by the client.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct StreamReport {
    /// Its number, from 0.
    pub stream: u32,
    /// `mptcp`, `tcp`, or `unknown` with the sockets of a kernel before 5.16.
    pub protocol: String,
    /// The reason for a fallback to plain TCP.
    pub fallback: Option<String>,
}

/// The end that stopped a test.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stopper {
    Client,
    Server,
}

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Report {
    /// [`SCHEMA`].
    pub schema: u32,
    /// The client.
    pub client: About,
    /// The server; `None` if it is no perf server.
    pub server: Option<About>,
    /// The server's address.
    pub remote: SocketAddr,
    /// The requested plan.
    pub plan: Plan,
    pub streams: Vec<StreamReport>,
    /// From client to server.
    pub up: Option<Transfer>,
    /// From server to client.
    pub down: Option<Transfer>,
    /// The end that stopped the test before its time; the results are those until then.
    #[serde(default)]
    pub interrupted: Option<Stopper>,
}

/// Makes a text of the peer printable: no control characters, and a limited length.
fn tame(text: &mut String) {
    if text.len() > 64 || text.chars().any(char::is_control) {
        *text = text.chars().filter(|letter| !letter.is_control()).take(64).collect();
    }
}

impl About {
    /// Makes the peer's texts printable.
    pub(super) fn tamed(mut self) -> Self {
        [&mut self.stack, &mut self.version, &mut self.kernel, &mut self.host].into_iter().for_each(tame);
        self.policies = self.policies.chars().filter(|letter| !letter.is_control()).take(512).collect();
        self
    }
}

impl Interval {
    /// Makes the peer's texts printable.
    pub(super) fn tamed(mut self) -> Self {
        self.paths.iter_mut().flat_map(|path| [&mut path.name, &mut path.state]).for_each(tame);
        self
    }
}

impl Side {
    /// Makes the peer's texts printable.
    pub(super) fn tamed(mut self) -> Self {
        self.intervals = self.intervals.into_iter().map(Interval::tamed).collect();
        self.paths.iter_mut().for_each(|path| tame(&mut path.name));
        self
    }
}
