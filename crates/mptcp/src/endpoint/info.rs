//! What can be asked of a connection.

use super::state::Endpoint;
use crate::connection::{Connection, Protocol};
use crate::info::ConnectionInfo;
use crate::stats::{ConnectionStats, EndpointCounters, ReceiveState, SubflowReport};
use anabranch_policy::ids::ConnectionId;
use anabranch_policy::time::Instant;
use anabranch_policy::view::{ConnectionView, SubflowView};
use core::net::SocketAddr;

impl Endpoint {
    /// All that is known of a connection and its subflows now; none of a connection that is gone.
    pub fn info(&self, now: Instant, id: ConnectionId) -> Option<ConnectionInfo> {
        self.connections.get(id).map(|connection| connection.info(now))
    }

    /// The sending side of a connection now.
    pub fn connection_view(&self, now: Instant, id: ConnectionId) -> Option<ConnectionView> {
        self.connections.get(id).map(|connection| connection.view(now))
    }

    /// Its subflows now, in order of id.
    pub fn subflow_views(&self, _now: Instant, id: ConnectionId) -> Vec<SubflowView> {
        let mut views = Vec::new();
        self.connections.get(id).into_iter().for_each(|connection| connection.subflow_views(&mut views));
        views
    }

    /// Its subflows now with addresses and counters, in order of id; none of a connection that is gone.
    pub fn subflow_reports(&self, id: ConnectionId) -> Vec<SubflowReport> {
        self.connections.get(id).map(Connection::subflow_reports).unwrap_or_default()
    }

    /// The receiving side of a connection now.
    pub fn receive_state(&self, id: ConnectionId) -> Option<ReceiveState> {
        self.connections.get(id).map(Connection::receive_state)
    }

    /// Its counters.
    pub fn stats(&self, id: ConnectionId) -> Option<ConnectionStats> {
        self.connections.get(id).map(Connection::stats)
    }

    /// The peer's address and port, as the connection was opened.
    pub fn remote(&self, id: ConnectionId) -> Option<SocketAddr> {
        self.connections.get(id).map(Connection::initial_remote)
    }

    /// What is spoken.
    pub fn protocol(&self, id: ConnectionId) -> Option<Protocol> {
        self.connections.get(id).map(Connection::protocol)
    }

    /// What this host dropped or could not do.
    pub fn counters(&self) -> EndpointCounters {
        self.counters
    }

    /// How many connections there are, those in TIME-WAIT included.
    pub fn connection_count(&self) -> usize {
        self.connections.len() + self.time_waits.len()
    }
}
