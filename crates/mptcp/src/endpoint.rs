//! A host: its addresses, listeners and connections, and which of them a segment belongs to.

use crate::config::{ConnectionConfig, EndpointConfig};
use crate::event::{Event, TraceRecord};
use anabranch_policy::ids::{AddressId, ConnectionId};
use anabranch_policy::path_manager::PathManager;
use anabranch_policy::time::Instant;
use anabranch_policy::view::{ConnectionView, SubflowView};
use anabranch_wire::Packet;
use bytes::Bytes;
use core::net::{IpAddr, SocketAddr};

/// Counters of one connection. All are totals since it began; bytes are payload.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ConnectionStats {
    /// Bytes sent for the first time.
    pub bytes_sent: u64,
    /// Bytes acknowledged at data level.
    pub bytes_acked: u64,
    /// Bytes sent again on the same subflow.
    pub bytes_retransmitted: u64,
    /// Bytes sent again on another subflow after a failure.
    pub bytes_reinjected: u64,
    /// Bytes sent twice on purpose (redundancy, opportunistic retransmission, probes).
    pub bytes_duplicated: u64,
    /// Bytes delivered in order to the application's side of the receive buffer.
    pub bytes_delivered: u64,
    /// Bytes that arrived and had arrived before.
    pub duplicate_bytes_received: u64,
    /// Episodes in which the receive buffer was blocked.
    pub blocked_episodes: u64,
    /// Retransmission timeouts, all subflows together.
    pub timeouts: u64,
    /// Segments sent, acknowledgements included.
    pub segments_sent: u64,
    /// Segments received.
    pub segments_received: u64,
}

/// The receiving side of a connection now, bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ReceiveState {
    /// Next byte expected, from 0.
    pub next: u64,
    /// In order, not yet read.
    pub readable: u64,
    /// Held out of order.
    pub out_of_order: u64,
    /// Size of the receive buffer.
    pub buffer: u64,
}

/// Why an operation of the application cannot be done.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum OperationError {
    /// There is no such connection (any more).
    #[error("no such connection")]
    NoConnection,
    /// Our direction is closed.
    #[error("the sending direction is closed")]
    SendClosed,
    /// The port is taken.
    #[error("the port is in use")]
    PortInUse,
    /// No local address of the right family, or not the one named.
    #[error("no local address to reach the peer from")]
    NoAddress,
    /// The configured limit is reached.
    #[error("too many connections")]
    LimitReached,
}

/// A host.
pub struct Endpoint {}

#[allow(unused_variables, missing_docs)]
impl Endpoint {
    /// A host without addresses.
    pub fn new(config: EndpointConfig, path_manager: Box<dyn PathManager>) -> Self {
        Self {}
    }
    /// A local address can be used. Ids are stable; the caller numbers them from 1 as Linux does.
    pub fn handle_address_up(&mut self, now: Instant, id: AddressId, address: IpAddr) {}
    /// A local address is gone.
    pub fn handle_address_down(&mut self, now: Instant, id: AddressId) {}
    /// Accepts connections on a port of every local address.
    pub fn listen(&mut self, port: u16, config: ConnectionConfig) -> Result<(), OperationError> {
        Ok(())
    }
    /// Opens a connection, from `local` or from the first address of the right family.
    pub fn connect(
        &mut self,
        now: Instant,
        local: Option<IpAddr>,
        remote: SocketAddr,
        config: ConnectionConfig,
    ) -> Result<ConnectionId, OperationError> {
        Err(OperationError::NoAddress)
    }
    /// Takes as much of `data` as the send buffer holds; gives the bytes taken. [`Event::Writable`] follows a short write.
    pub fn write(&mut self, now: Instant, id: ConnectionId, data: Bytes) -> Result<usize, OperationError> {
        Err(OperationError::NoConnection)
    }
    /// The next bytes in order, at most `max`; none if there are none now.
    pub fn read(&mut self, now: Instant, id: ConnectionId, max: usize) -> Option<Bytes> {
        None
    }
    /// No more will be written: DATA_FIN and FIN follow the last byte. Reading goes on.
    pub fn close(&mut self, now: Instant, id: ConnectionId) -> Result<(), OperationError> {
        Ok(())
    }
    /// Ends the connection at once (MP_FASTCLOSE or RST).
    pub fn abort(&mut self, now: Instant, id: ConnectionId) -> Result<(), OperationError> {
        Ok(())
    }
    /// A packet came in.
    pub fn handle_packet(&mut self, now: Instant, packet: Packet) {}
    /// The time that [`Self::poll_timeout`] named has come; early and late calls do no harm.
    pub fn handle_timeout(&mut self, now: Instant) {}
    /// The next packet to send now.
    pub fn poll_transmit(&mut self, now: Instant) -> Option<Packet> {
        None
    }
    /// The next event for the application.
    pub fn poll_event(&mut self) -> Option<Event> {
        None
    }
    /// When [`Self::handle_timeout`] is due, [`Instant::NEVER`] if nothing is pending.
    pub fn poll_timeout(&mut self) -> Instant {
        Instant::NEVER
    }
    /// The next trace record of connections with [`ConnectionConfig::trace`]; drain after every input.
    pub fn poll_trace(&mut self) -> Option<TraceRecord> {
        None
    }
    /// The sending side of a connection now.
    pub fn connection_view(&self, now: Instant, id: ConnectionId) -> Option<ConnectionView> {
        None
    }
    /// Its subflows now, in order of id.
    pub fn subflow_views(&self, now: Instant, id: ConnectionId) -> Vec<SubflowView> {
        Vec::new()
    }
    /// The receiving side of a connection now.
    pub fn receive_state(&self, id: ConnectionId) -> Option<ReceiveState> {
        None
    }
    /// Its counters.
    pub fn stats(&self, id: ConnectionId) -> Option<ConnectionStats> {
        None
    }
}
