//! A host: its addresses, listeners and connections, and which of them a segment belongs to.

mod arrivals;
mod connections;
mod info;
mod paths;
mod random;
#[cfg(test)]
mod tests;

use crate::config::{ConnectionConfig, EndpointConfig};
use crate::connection::{Connection, JoinedSegments, MessageError, Opening, Protocol, Workspace};
use crate::event::{CloseCause, Event, TraceRecord};
use crate::keys::{Derived, Key};
use crate::record::{MessageOptions, Record};
use crate::stats::{ConnectionStats, EndpointCounters, ReceiveState, SubflowReport};
use anabranch_policy::ids::{AddressId, ConnectionId, SubflowId};
use anabranch_policy::path_manager::{PathAction, PathEvent, PathManager};
use anabranch_policy::reliability::PlayOutClock;
use anabranch_policy::time::{Duration, Instant};
use anabranch_policy::view::{ConnectionView, SubflowView};
use anabranch_wire::{Packet, PacketTooBig};
use bytes::Bytes;
use connections::Connections;
use core::cmp::Reverse;
use core::net::{IpAddr, SocketAddr};
use std::collections::{BinaryHeap, VecDeque};
use std::sync::Arc;

/// Why an operation of the application cannot be done.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum OperationError {
    /// There is no such connection (any more).
    #[error("no such connection")]
    NoConnection,
    /// Our direction is closed.
    #[error("the sending direction is closed")]
    SendClosed,
    /// The connection is over, but for what arrived before and can still be read.
    #[error("the connection is over: {0}")]
    Ended(CloseCause),
    /// The port is taken.
    #[error("the port is in use")]
    PortInUse,
    /// No local address of the right family, or not the one named.
    #[error("no local address to reach the peer from")]
    NoAddress,
    /// The peer's address is not that of one host: multicast, broadcast or unspecified (RFC 9293, MUST-46).
    #[error("the peer's address is not that of one host")]
    NoPeer,
    /// The configured limit is reached.
    #[error("too many connections")]
    LimitReached,
    /// The connection carries bytes and not messages, or the reverse.
    #[error("the connection carries bytes where messages are written, or messages where bytes are")]
    WrongFraming,
    /// The message never fits: it is longer than the send buffer, or its play-out time is beyond what its header can say.
    #[error("the message is longer than the send buffer, or its play-out time beyond 2^48 microseconds")]
    MessageTooLong,
}

/// A local address.
#[derive(Clone, Copy, Debug)]
struct LocalAddress {
    id: AddressId,
    address: IpAddr,
    /// What it is announced as.
    public: IpAddr,
}

/// A host.
pub struct Endpoint {
    config: EndpointConfig,
    random: random::Random,
    addresses: Vec<LocalAddress>,
    listeners: Vec<(u16, Arc<ConnectionConfig>)>,
    connections: Connections,
    /// Connections that came in and may still be in their handshake.
    half_open: Vec<ConnectionId>,
    path_manager: Box<dyn PathManager>,
    path_actions: Vec<PathAction>,
    path_wake: Instant,
    workspace: Workspace,
    /// Connections that may have something to send, each once.
    ready: VecDeque<ConnectionId>,
    timers: BinaryHeap<Reverse<(Instant, ConnectionId)>>,
    resets: VecDeque<Packet>,
    events: VecDeque<Event>,
    traces: VecDeque<ConnectionId>,
    counters: EndpointCounters,
}

/// Whether an address is that of one host, as both ends of a connection must be.
fn is_one_host(address: IpAddr) -> bool {
    let broadcast = matches!(address, IpAddr::V4(address) if address.is_broadcast());
    !(address.is_multicast() || address.is_unspecified() || broadcast)
}

/// Most resets to strangers that wait to be sent.
const MAX_RESETS: usize = 256;

impl Endpoint {
    /// A host without addresses.
    pub fn new(config: EndpointConfig, path_manager: Box<dyn PathManager>) -> Self {
        Self {
            random: random::Random::new(config.seed),
            connections: Connections::new(config.seed),
            config,
            addresses: Vec::new(),
            listeners: Vec::new(),
            half_open: Vec::new(),
            path_manager,
            path_actions: Vec::new(),
            path_wake: Instant::NEVER,
            workspace: Workspace::default(),
            ready: VecDeque::new(),
            timers: BinaryHeap::new(),
            resets: VecDeque::new(),
            events: VecDeque::new(),
            traces: VecDeque::new(),
            counters: EndpointCounters::default(),
        }
    }

    /// A local address can be used. Ids are stable; the caller numbers them from 1 as Linux does.
    pub fn handle_address_up(&mut self, now: Instant, id: AddressId, address: IpAddr) {
        self.handle_address_up_as(now, id, address, address);
    }

    /// As [`Self::handle_address_up`], for an address that peers reach under another: `public` goes out in ADD_ADDR, since a
    /// router before us translates it to `address`.
    pub fn handle_address_up_as(&mut self, now: Instant, id: AddressId, address: IpAddr, public: IpAddr) {
        self.addresses.retain(|known| known.id != id && known.address != address);
        self.addresses.push(LocalAddress { id, address, public });
        self.tell_path_manager(now, &PathEvent::AddressUp { id, address });
        self.carry_out(now);
    }

    /// A local address is gone.
    pub fn handle_address_down(&mut self, now: Instant, id: AddressId) {
        self.addresses.retain(|known| known.id != id);
        let ids: Vec<ConnectionId> = self.connections.ids().collect();
        for connection in ids {
            if let Some(connection) = self.connections.get_mut(connection) {
                connection.leave_address(now, id);
            }
            self.settle(now, connection);
        }
        self.tell_path_manager(now, &PathEvent::AddressDown { id });
        self.carry_out(now);
    }

    /// Accepts connections on a port of every local address.
    ///
    /// # Errors
    /// [`OperationError::PortInUse`] if somebody listens there already.
    pub fn listen(&mut self, port: u16, config: ConnectionConfig) -> Result<(), OperationError> {
        if self.listeners.iter().any(|(taken, _)| *taken == port) {
            return Err(OperationError::PortInUse);
        }
        self.listeners.push((port, Arc::new(config)));
        Ok(())
    }

    /// No longer accepts connections on a port; those that are there go on.
    pub fn unlisten(&mut self, port: u16) {
        self.listeners.retain(|(taken, _)| *taken != port);
    }

    /// Opens a connection, from `local` or from the first address of the right family.
    ///
    /// # Errors
    /// [`OperationError::NoPeer`], [`OperationError::NoAddress`], [`OperationError::LimitReached`], or [`OperationError::PortInUse`] if all ports are.
    pub fn connect(
        &mut self,
        now: Instant,
        local: Option<IpAddr>,
        remote: SocketAddr,
        config: ConnectionConfig,
    ) -> Result<ConnectionId, OperationError> {
        let fits = |known: &&LocalAddress| match local {
            Some(local) => known.address == local,
            None => known.address.is_ipv4() == remote.is_ipv4(),
        };
        if !is_one_host(remote.ip()) {
            return Err(OperationError::NoPeer);
        }
        let from = self.addresses.iter().find(fits).copied().ok_or(OperationError::NoAddress)?;
        if self.connections.len() >= self.config.max_connections {
            return Err(OperationError::LimitReached);
        }
        let port = self.free_port(from.address, remote).ok_or(OperationError::PortInUse)?;
        let local = SocketAddr::new(from.address, port);
        let opening = self.opening(now, Arc::new(config), local, remote, from.id);
        let id = self.connections.insert(Connection::connect(now, opening));
        self.connections.add_route(local, remote, id);
        self.settle(now, id);
        Ok(id)
    }

    fn opening(
        &mut self,
        now: Instant,
        config: Arc<ConnectionConfig>,
        local: SocketAddr,
        remote: SocketAddr,
        local_address: AddressId,
    ) -> Opening {
        let (key, derived) = self.fresh_key(config.multipath);
        Opening {
            id: self.connections.next_id(),
            key,
            derived,
            initial: self.random.initial_sequence(now, local, remote),
            stamp_offset: self.random.next_u32(),
            local,
            remote,
            local_address,
            measurements: self.path_manager.measurements(),
            forward_delays: self.path_manager.forward_delays(),
            config,
        }
    }

    /// A key whose token no other connection has (RFC 8684, section 3.1).
    fn fresh_key(&mut self, multipath: bool) -> (Key, Derived) {
        if !multipath {
            return (Key(0), Derived { token: 0, initial_data_seq: 0 });
        }
        loop {
            let key = Key(self.random.next_u64());
            let derived = key.derive();
            if !self.connections.has_token(derived.token) {
                return (key, derived);
            }
        }
    }

    /// A free port from the dynamic range, at random (RFC 6056, algorithm 1).
    fn free_port(&mut self, local: IpAddr, remote: SocketAddr) -> Option<u16> {
        let first = self.random.next_u32();
        (0..16_384_u32).find_map(|step| {
            let port = 49_152 + (first.wrapping_add(step) % 16_384) as u16;
            (!self.connections.has_route(SocketAddr::new(local, port), remote)).then_some(port)
        })
    }

    /// Takes as much of `data` as the send buffer holds; gives the bytes taken. [`Event::Writable`] follows a short write.
    ///
    /// # Errors
    /// [`OperationError::NoConnection`], [`OperationError::SendClosed`] after [`Self::close`], [`OperationError::Ended`], or
    /// [`OperationError::WrongFraming`] where messages are written.
    pub fn write(&mut self, now: Instant, id: ConnectionId, data: Bytes) -> Result<usize, OperationError> {
        let connection = self.open_for_writing(id)?;
        if !connection.takes_bytes() {
            return Err(OperationError::WrongFraming);
        }
        let taken = connection.write(data);
        self.settle(now, id);
        Ok(taken)
    }

    /// Takes a message, whole, and gives its number; none if the send buffer has no room for it now:
    /// [`Event::Writable`] follows. Its header goes into the stream before it ([`anabranch_wire::message`]).
    ///
    /// # Errors
    /// [`OperationError::NoConnection`], [`OperationError::SendClosed`] after [`Self::close`], [`OperationError::Ended`],
    /// [`OperationError::WrongFraming`] unless [`ConnectionConfig::framing`] says messages, and
    /// [`OperationError::MessageTooLong`].
    pub fn write_message(
        &mut self,
        now: Instant,
        id: ConnectionId,
        payload: Bytes,
        options: &MessageOptions,
    ) -> Result<Option<u32>, OperationError> {
        let connection = self.open_for_writing(id)?;
        let taken = connection.write_message(now, payload, options).map_err(|error| match error {
            MessageError::NotFramed => OperationError::WrongFraming,
            MessageError::TooLong => OperationError::MessageTooLong,
        })?;
        self.settle(now, id);
        Ok(taken)
    }

    /// How many bytes [`Self::write`] would take now; none if there is no such connection.
    pub fn room(&self, id: ConnectionId) -> Option<u64> {
        self.connections.get(id).map(Connection::room)
    }

    /// The next bytes in order, at most `max`; none if there are none now. Where something was given up it gives none any
    /// more, and none at all where messages are written: [`Self::read_record`] reads those, [`Self::read_stops`] tells.
    pub fn read(&mut self, now: Instant, id: ConnectionId, max: usize) -> Option<Bytes> {
        let bytes = self.connections.get_mut(id)?.read(now, max);
        self.settle(now, id);
        bytes
    }

    /// The next record: bytes, a message, or a gap. In a stream of bytes of which nothing is given up it is
    /// [`Self::read`], with the offset.
    pub fn read_record(&mut self, now: Instant, id: ConnectionId) -> Option<Record> {
        let record = self.connections.get_mut(id)?.read_record(now);
        self.settle(now, id);
        record
    }

    /// Whether [`Self::read`] gives nothing now that time will change: a gap comes next, or messages.
    pub fn read_stops(&self, id: ConnectionId) -> bool {
        self.connections.get(id).is_some_and(Connection::read_stops)
    }

    /// When messages of the peer's are to be played ([`PlayOutClock`]); none where there are no messages.
    pub fn play_out_clock(&self, id: ConnectionId) -> Option<PlayOutClock> {
        self.connections.get(id)?.play_out_clock()
    }

    /// Which path the peer called its worst when it gave something up last, and how much longer its forward delay was than the
    /// least; none if it never did, or does not measure them (path manager `one_way_delay` at its end).
    pub fn worst_path_of_peer(&self, id: ConnectionId) -> Option<(SubflowId, Duration)> {
        self.connections.get(id)?.worst_path_of_peer()
    }

    /// No more will be written: DATA_FIN and FIN follow the last byte. Reading goes on.
    ///
    /// # Errors
    /// [`OperationError::NoConnection`].
    pub fn close(&mut self, now: Instant, id: ConnectionId) -> Result<(), OperationError> {
        self.open(id)?.close(now);
        self.settle(now, id);
        Ok(())
    }

    /// The application is done with both directions: as [`Self::close`], but nobody will read. What waits unread, or
    /// comes, resets the connection (RFC 1122, section 4.2.2.13), and the peer's FIN is awaited for
    /// [`crate::TcpConfig::fin_wait_2`] only.
    ///
    /// # Errors
    /// [`OperationError::NoConnection`].
    pub fn discard(&mut self, now: Instant, id: ConnectionId) -> Result<(), OperationError> {
        self.open(id)?.discard(now);
        self.settle(now, id);
        Ok(())
    }

    /// Holds small segments back while data is in flight, or not ([`crate::TcpConfig::nagle`] says how it begins).
    ///
    /// # Errors
    /// [`OperationError::NoConnection`].
    pub fn set_nagle(&mut self, now: Instant, id: ConnectionId, on: bool) -> Result<(), OperationError> {
        self.open(id)?.set_nagle(on);
        self.settle(now, id);
        Ok(())
    }

    /// Changes the application's priority, 1 (highest) to 6; others are brought into that range. Policies see it from now on.
    ///
    /// # Errors
    /// [`OperationError::NoConnection`].
    pub fn set_priority(&mut self, id: ConnectionId, priority: u8) -> Result<(), OperationError> {
        self.open(id)?.set_priority(priority);
        Ok(())
    }

    /// Tells policies for how long the peer's player can go on with what it has, so that a scheduler such as
    /// `deadline_reinjection` can see to it that it does not run dry; it counts down by itself until it is told anew. None:
    /// it is not known, as at the start.
    ///
    /// # Errors
    /// [`OperationError::NoConnection`].
    pub fn set_play_out_left(
        &mut self,
        now: Instant,
        id: ConnectionId,
        left: Option<Duration>,
    ) -> Result<(), OperationError> {
        self.open(id)?.set_play_out_left(now, left);
        self.settle(now, id);
        Ok(())
    }

    /// Ends the connection at once (MP_FASTCLOSE or RST).
    ///
    /// # Errors
    /// [`OperationError::NoConnection`].
    pub fn abort(&mut self, now: Instant, id: ConnectionId) -> Result<(), OperationError> {
        self.open(id)?.abort(now);
        self.settle(now, id);
        Ok(())
    }

    fn open_for_writing(&mut self, id: ConnectionId) -> Result<&mut Connection, OperationError> {
        let connection = self.open(id)?;
        match connection.verdict() {
            _ if connection.write_closed() => Err(OperationError::SendClosed),
            Some(cause) => Err(OperationError::Ended(cause)),
            None => Ok(connection),
        }
    }

    fn open(&mut self, id: ConnectionId) -> Result<&mut Connection, OperationError> {
        let connection = self.connections.get_mut(id).filter(|connection| connection.closed().is_none());
        connection.ok_or(OperationError::NoConnection)
    }

    /// A packet came in.
    pub fn handle_packet(&mut self, now: Instant, mut packet: Packet) {
        let local = SocketAddr::new(packet.ip.destination, packet.segment.destination_port);
        let remote = SocketAddr::new(packet.ip.source, packet.segment.source_port);
        match self.connections.route(local, remote) {
            Some(id) => {
                if let Some(connection) = self.connections.get_mut(id) {
                    connection.handle_segment(now, local, remote, packet.ip.ecn, &mut packet.segment);
                }
                self.settle(now, id);
            }
            None => self.handle_stranger(now, local, remote, &packet),
        }
    }

    /// A router says that a packet of ours was too big for its next link. Gives whether the segments of a subflow became shorter by
    /// it; what does not fit to anything in flight, or names a size that no path has, is counted and ignored (RFC 5927).
    pub fn handle_packet_too_big(&mut self, now: Instant, message: &PacketTooBig) -> bool {
        let id = self.connections.route(message.source, message.destination);
        let connection = id.and_then(|id| self.connections.get_mut(id));
        let believed = connection.is_some_and(|connection| connection.handle_packet_too_big(now, message));
        self.counters.refused_too_big += u64::from(!believed);
        id.into_iter().for_each(|id| self.settle(now, id));
        believed
    }

    /// The time that [`Self::poll_timeout`] named has come; early and late calls do no harm.
    pub fn handle_timeout(&mut self, now: Instant) {
        while let Some(&Reverse((at, id))) = self.timers.peek() {
            if at > now {
                break;
            }
            self.timers.pop();
            let Some(connection) = self.connections.get_mut(id).filter(|connection| connection.output.armed == at)
            else {
                continue;
            };
            connection.output.armed = Instant::NEVER;
            if connection.next_timeout() <= now {
                connection.handle_timeout(now);
            }
            self.settle(now, id);
        }
        if self.path_wake <= now {
            self.path_wake = Instant::NEVER;
            self.tell_path_manager(now, &PathEvent::Wake);
            self.carry_out(now);
        }
    }

    /// The next packet to send now.
    pub fn poll_transmit(&mut self, now: Instant) -> Option<Packet> {
        if let Some(packet) = self.resets.pop_front() {
            return Some(packet);
        }
        while let Some(&id) = self.ready.front() {
            if let Some(connection) = self.connections.get_mut(id) {
                if let Some(packet) = connection.poll_transmit(now, &mut self.workspace) {
                    if connection.output.has_trace() && self.traces.back() != Some(&id) {
                        self.traces.push_back(id);
                    }
                    return Some(packet);
                }
                connection.output.listed = false;
            }
            self.ready.pop_front();
            self.pass_on_notices(now, id);
            if !self.forget_if_over(now, id) {
                self.arm(id);
            }
        }
        None
    }

    /// Whether the packet given last must leave by itself: it is data that had been sent before, whose mapping is known to the
    /// peer and must not grow, or a probe of the path's largest packet.
    pub fn resends(&self) -> bool {
        self.workspace.resends
    }

    /// Segments that [`Self::poll_transmit`] gave, none of them sent before, left as one.
    pub fn handle_joined(&mut self, joined: &JoinedSegments) {
        let id = self.connections.route(joined.local, joined.remote);
        if let Some(connection) = id.and_then(|id| self.connections.get_mut(id)) {
            connection.handle_joined(joined);
        }
    }

    /// The next event for the application.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// When [`Self::handle_timeout`] is due, [`Instant::NEVER`] if nothing is pending. May be early, never late.
    pub fn poll_timeout(&mut self) -> Instant {
        for at in 0..self.ready.len() {
            if let Some(&id) = self.ready.get(at) {
                self.arm(id);
            }
        }
        let connections = self.timers.peek().map_or(Instant::NEVER, |Reverse((at, _))| *at);
        connections.min(self.path_wake)
    }

    /// The next trace record of connections with [`ConnectionConfig::trace`]; drain after every input.
    pub fn poll_trace(&mut self) -> Option<TraceRecord> {
        while let Some(&id) = self.traces.front() {
            if let Some(record) = self.connections.get_mut(id).and_then(|connection| connection.output.poll_trace()) {
                return Some(record);
            }
            self.traces.pop_front();
        }
        None
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
        self.connections.len()
    }

    fn push_event(&mut self, event: Event) {
        if self.events.len() >= self.config.max_events {
            self.counters.dropped_events += 1;
        } else {
            self.events.push_back(event);
        }
    }

    /// After anything happened to a connection: passes on its notices, lists it for output, and forgets it when it is
    /// over.
    fn settle(&mut self, now: Instant, id: ConnectionId) {
        self.pass_on_notices(now, id);
        if !self.forget_if_over(now, id) {
            self.list(id);
        }
    }

    /// Forgets a connection of which nothing is left to send or to say. Gives whether it did.
    fn forget_if_over(&mut self, now: Instant, id: ConnectionId) -> bool {
        let over = self.connections.get(id).is_some_and(Connection::is_over);
        if over {
            self.connections.remove(id);
            self.tell_path_manager(now, &PathEvent::ConnectionClosed { connection: id });
        }
        over
    }

    /// Lists a connection for output and traces. Its timer is armed when its output has been drained.
    fn list(&mut self, id: ConnectionId) {
        let Some(connection) = self.connections.get_mut(id) else { return };
        if !connection.output.listed {
            connection.output.listed = true;
            self.ready.push_back(id);
        }
        if connection.output.has_trace() && self.traces.back() != Some(&id) {
            self.traces.push_back(id);
        }
    }

    /// Arms the timer of a connection, if it is due before what is armed already.
    fn arm(&mut self, id: ConnectionId) {
        let Some(connection) = self.connections.get_mut(id) else { return };
        let due = connection.next_timeout();
        if due < connection.output.armed {
            connection.output.armed = due;
            self.timers.push(Reverse((due, id)));
        }
    }
}
