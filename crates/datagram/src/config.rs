//! What clients and servers are told at the start, and what they tell of their paths.

use anabranch_policy::datagram::DatagramPolicy;
use anabranch_policy::time::Duration;
use core::net::SocketAddr;
use std::sync::Arc;

/// What a client needs to know.
#[derive(Debug)]
pub struct ClientConfig {
    /// Where the server's UDP socket is.
    pub server: SocketAddr,
    /// The shared key.
    pub key: [u8; 32],
    /// The interfaces to use; empty: all with a default route, followed as they come and go.
    pub interfaces: Vec<String>,
    /// Which paths carry what this end sends.
    pub policy: Box<dyn DatagramPolicy>,
}

/// Whether clients may reach an address.
pub type Allow = Arc<dyn Fn(SocketAddr) -> bool + Send + Sync>;

/// Makes the policy of one client.
pub type PolicyFactory = Arc<dyn Fn() -> Box<dyn DatagramPolicy> + Send + Sync>;

/// Is told, in a line, what a user should hear of.
pub type Journal = Arc<dyn Fn(&str) + Send + Sync>;

/// What a server needs to know.
#[derive(Clone)]
pub struct ServerConfig {
    /// Where it listens.
    pub bind: SocketAddr,
    /// The keys of which a client must prove one.
    pub keys: Vec<[u8; 32]>,
    /// What clients may reach.
    pub allow: Allow,
    /// Which paths carry what this end sends.
    pub policy: PolicyFactory,
    /// Where questions for the resolver go, in order.
    pub nameservers: Vec<SocketAddr>,
    /// What keeps clients from taking everything.
    pub limits: Limits,
    /// Who is told of what a user should know.
    pub journal: Option<Journal>,
}

/// What keeps clients from taking everything.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Most clients at a time.
    pub clients: usize,
    /// Most mappings (inside addresses that have a socket) of one client.
    pub mappings_per_client: usize,
    /// Most mappings of all.
    pub mappings: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { clients: 1_024, mappings_per_client: 12_288, mappings: 16_384 }
    }
}

/// What is known of a path of a client.
#[derive(Clone, PartialEq, Debug)]
pub struct PathReport {
    /// The interface, or `udp`.
    pub name: String,
    /// Whether the server answers over it.
    pub usable: bool,
    /// The smoothed round trip, once there is one.
    pub round_trip: Option<Duration>,
    /// The share of what this end sent that was lost lately.
    pub loss: f64,
    /// The smoothed variation of the one-way delay of what this end sends (RFC 3550).
    pub jitter: Duration,
    /// Sealed datagrams sent, all kinds.
    pub datagrams_sent: u64,
    /// Their bytes, without the headers of UDP and IP.
    pub bytes_sent: u64,
    /// Sealed datagrams received and found good.
    pub datagrams_received: u64,
    /// Their bytes.
    pub bytes_received: u64,
}
