//! Configuration of clients and servers, and the state of paths that they report.

use crate::share::ClientKey;
use anabranch_host::ServerAddresses;
use anabranch_policy::datagram::DatagramPolicy;
use anabranch_policy::time::Duration;
use core::net::SocketAddr;
use std::sync::Arc;

/// Configuration of a client.
#[derive(Debug)]
pub struct ClientConfig {
    /// The server's UDP addresses.
    pub server: ServerAddresses,
    /// The shared key.
    pub key: [u8; 32],
    /// The interfaces to use; empty: all that have a default route, tracked as they appear and disappear.
    pub interfaces: Vec<String>,
    /// Chooses the paths for datagrams that this end sends.
    pub policy: Box<dyn DatagramPolicy>,
}

/// Whether clients may reach an address.
pub type Allow = Arc<dyn Fn(SocketAddr) -> bool + Send + Sync>;

/// Makes the policy of a client.
pub type PolicyFactory = Arc<dyn Fn() -> Box<dyn DatagramPolicy> + Send + Sync>;

/// Called with a line of text for the user.
pub type Journal = Arc<dyn Fn(&str) + Send + Sync>;

/// Configuration of a server.
#[derive(Clone)]
pub struct ServerConfig {
    /// The address to listen on.
    pub bind: SocketAddr,
    /// The accepted keys. A client must prove that it has one.
    pub keys: Vec<ClientKey>,
    /// The addresses that clients may reach.
    pub allow: Allow,
    /// Makes the policies that choose the paths for datagrams that this end sends.
    pub policy: PolicyFactory,
    /// The addresses of the resolvers, in order of preference.
    pub nameservers: Vec<SocketAddr>,
    /// Limits on the resources of clients.
    pub limits: Limits,
    /// Called with messages for the user.
    pub journal: Option<Journal>,
}

/// Limits on the resources of clients.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Most clients at a time.
    pub clients: usize,
    /// Most mappings of one client. Each inside address has a mapping with its own socket.
    pub mappings_per_client: usize,
    /// Most mappings of all clients.
    pub mappings: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { clients: 1_024, mappings_per_client: 12_288, mappings: 16_384 }
    }
}

/// The state and counters of a path.
#[derive(Clone, PartialEq, Debug)]
pub struct PathReport {
    /// The name of the interface, or `udp`.
    pub name: String,
    /// Whether the server answers over it.
    pub usable: bool,
    /// The smoothed round-trip time, once measured.
    pub round_trip: Option<Duration>,
    /// The share of the datagrams sent by this end that was lost lately.
    pub loss: f64,
    /// The smoothed variation of the one-way delay of datagrams sent by this end (RFC 3550).
    pub jitter: Duration,
    /// Sealed datagrams sent, of all kinds.
    pub datagrams_sent: u64,
    /// Bytes of these, without UDP and IP headers.
    pub bytes_sent: u64,
    /// Sealed datagrams received and authenticated.
    pub datagrams_received: u64,
    /// Bytes of these, without UDP and IP headers.
    pub bytes_received: u64,
}
