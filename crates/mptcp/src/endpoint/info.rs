//! Queries of a connection's state.

use super::state::Endpoint;
use crate::connection::{Connection, Protocol};
use crate::info::ConnectionInfo;
use crate::stats::{ConnectionStats, EndpointCounters, ReceiveState, SubflowReport};
use anabranch_policy::ids::ConnectionId;
use anabranch_policy::time::Instant;
use anabranch_policy::view::{ConnectionView, SubflowView};
use core::net::SocketAddr;

impl Endpoint {
    /// The state of a connection and its subflows; none if the connection does not exist.
    pub fn info(&self, now: Instant, id: ConnectionId) -> Option<ConnectionInfo> {
        self.connections.get(id).map(|connection| connection.info(now))
    }

    /// The connections, those in TIME-WAIT not included.
    pub fn connection_ids(&self) -> impl Iterator<Item = ConnectionId> {
        self.connections.ids()
    }

    /// The sending side of a connection, as policies see it.
    pub fn connection_view(&self, now: Instant, id: ConnectionId) -> Option<ConnectionView> {
        self.connections.get(id).map(|connection| connection.view(now))
    }

    /// Its subflows as policies see them, in order of id.
    pub fn subflow_views(&self, _now: Instant, id: ConnectionId) -> Vec<SubflowView> {
        let mut views = Vec::new();
        self.connections.get(id).into_iter().for_each(|connection| connection.subflow_views(&mut views));
        views
    }

    /// Its subflows with addresses and counters, in order of id; empty if the connection does not exist.
    pub fn subflow_reports(&self, id: ConnectionId) -> Vec<SubflowReport> {
        self.connections.get(id).map(Connection::subflow_reports).unwrap_or_default()
    }

    /// The receiving side of a connection.
    pub fn receive_state(&self, id: ConnectionId) -> Option<ReceiveState> {
        self.connections.get(id).map(Connection::receive_state)
    }

    /// Counters of a connection.
    pub fn stats(&self, id: ConnectionId) -> Option<ConnectionStats> {
        self.connections.get(id).map(Connection::stats)
    }

    /// The peer's address and port of the initial subflow.
    pub fn remote(&self, id: ConnectionId) -> Option<SocketAddr> {
        self.connections.get(id).map(Connection::initial_remote)
    }

    /// MPTCP or plain TCP.
    pub fn protocol(&self, id: ConnectionId) -> Option<Protocol> {
        self.connections.get(id).map(Connection::protocol)
    }

    /// Packets dropped and operations that failed on this host.
    pub fn counters(&self) -> EndpointCounters {
        self.counters
    }

    /// The number of connections, those in TIME-WAIT included.
    pub fn connection_count(&self) -> usize {
        self.connections.len() + self.time_waits.len()
    }
}
