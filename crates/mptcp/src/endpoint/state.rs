//! A host's state: addresses, listeners, connections, and what waits to be passed on.

use super::connections::Connections;
use super::error::OperationError;
use super::random::Random;
use crate::config::{ConnectionConfig, EndpointConfig};
use crate::connection::{Connection, Opening, Workspace};
use crate::event::Event;
use crate::keys::{Derived, Key};
use crate::stats::EndpointCounters;
use anabranch_policy::ids::{AddressId, ConnectionId};
use anabranch_policy::path_manager::{PathAction, PathManager};
use anabranch_policy::time::Instant;
use anabranch_wire::Packet;
use core::cmp::Reverse;
use core::net::{IpAddr, SocketAddr};
use std::collections::{BinaryHeap, VecDeque};
use std::sync::Arc;

/// A local address.
#[derive(Clone, Copy, Debug)]
pub(super) struct LocalAddress {
    pub(super) id: AddressId,
    pub(super) address: IpAddr,
    /// What it is announced as.
    pub(super) public: IpAddr,
}

/// A host.
pub struct Endpoint {
    pub(super) config: EndpointConfig,
    pub(super) random: Random,
    pub(super) addresses: Vec<LocalAddress>,
    pub(super) listeners: Vec<(u16, Arc<ConnectionConfig>)>,
    pub(super) connections: Connections,
    /// Connections that came in and may still be in their handshake.
    pub(super) half_open: Vec<ConnectionId>,
    pub(super) path_manager: Box<dyn PathManager>,
    pub(super) path_actions: Vec<PathAction>,
    pub(super) path_wake: Instant,
    pub(super) workspace: Workspace,
    /// Connections that may have something to send, each once.
    pub(super) ready: VecDeque<ConnectionId>,
    pub(super) timers: BinaryHeap<Reverse<(Instant, ConnectionId)>>,
    pub(super) resets: VecDeque<Packet>,
    pub(super) events: VecDeque<Event>,
    pub(super) traces: VecDeque<ConnectionId>,
    pub(super) counters: EndpointCounters,
}

impl Endpoint {
    /// A host without addresses.
    pub fn new(config: EndpointConfig, path_manager: Box<dyn PathManager>) -> Self {
        Self {
            random: Random::new(config.seed),
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

    pub(super) fn opening(
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
    pub(super) fn free_port(&mut self, local: IpAddr, remote: SocketAddr) -> Option<u16> {
        let first = self.random.next_u32();
        (0..16_384_u32).find_map(|step| {
            let port = 49_152 + (first.wrapping_add(step) % 16_384) as u16;
            (!self.connections.has_route(SocketAddr::new(local, port), remote)).then_some(port)
        })
    }

    pub(super) fn open_for_writing(&mut self, id: ConnectionId) -> Result<&mut Connection, OperationError> {
        let connection = self.open(id)?;
        match connection.verdict() {
            _ if connection.write_closed() => Err(OperationError::SendClosed),
            Some(cause) => Err(OperationError::Ended(cause)),
            None => Ok(connection),
        }
    }

    pub(super) fn open(&mut self, id: ConnectionId) -> Result<&mut Connection, OperationError> {
        let connection = self.connections.get_mut(id).filter(|connection| connection.closed().is_none());
        connection.ok_or(OperationError::NoConnection)
    }

    pub(super) fn push_event(&mut self, event: Event) {
        if self.events.len() >= self.config.max_events {
            self.counters.dropped_events += 1;
        } else {
            self.events.push_back(event);
        }
    }

    /// Lists a connection for output and traces. Its timer is armed when its output has been drained.
    pub(super) fn list(&mut self, id: ConnectionId) {
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
    pub(super) fn arm(&mut self, id: ConnectionId) {
        let Some(connection) = self.connections.get_mut(id) else { return };
        let due = connection.next_timeout();
        if due < connection.output.armed {
            connection.output.armed = due;
            self.timers.push(Reverse((due, id)));
        }
    }
}

/// Whether an address is that of one host, as both ends of a connection must be.
pub(super) fn is_one_host(address: IpAddr) -> bool {
    let broadcast = matches!(address, IpAddr::V4(address) if address.is_broadcast());
    !(address.is_multicast() || address.is_unspecified() || broadcast)
}
