//! The state of a host: addresses, listeners, connections and queued output.

use super::connections::{Connections, keyed_hash};
use super::error::OperationError;
use super::held::HeldSyns;
use super::random::Random;
use super::time_wait_table::TimeWaitTable;
use super::uplinks::Uplinks;
use crate::config::{ConnectionConfig, EndpointConfig, Ports};
use crate::connection::{Connection, Opening, TimeWait, Workspace};
use crate::event::Event;
use crate::keys::{Derived, Key};
use crate::stats::EndpointCounters;
use anabranch_policy::ids::{AddressId, ConnectionId};
use anabranch_policy::path_manager::{PathAction, PathManager};
use anabranch_policy::time::Instant;
use anabranch_wire::{Packet, SeqNumber};
use core::cmp::Reverse;
use core::net::{IpAddr, SocketAddr};
use std::collections::{BinaryHeap, VecDeque};
use std::sync::Arc;

#[derive(Clone, Copy, Debug)]
pub(super) struct LocalAddress {
    pub(super) id: AddressId,
    pub(super) address: IpAddr,
    /// The address announced in ADD_ADDR.
    pub(super) public: IpAddr,
}

pub struct Endpoint {
    pub(super) config: EndpointConfig,
    pub(super) random: Random,
    pub(super) addresses: Vec<LocalAddress>,
    pub(super) uplinks: Uplinks,
    pub(super) listeners: Vec<(u16, Arc<ConnectionConfig>)>,
    pub(super) connections: Connections,
    pub(super) time_waits: TimeWaitTable,
    /// The position in the range of ports.
    pub(super) next_port: u32,
    /// Incoming connections that may still be in their handshake.
    pub(super) half_open: Vec<ConnectionId>,
    pub(super) held: HeldSyns,
    pub(super) path_manager: Box<dyn PathManager>,
    pub(super) path_actions: Vec<PathAction>,
    pub(super) path_wake: Instant,
    pub(super) workspace: Workspace,
    /// Connections that may have something to send, without repetition.
    pub(super) ready: VecDeque<ConnectionId>,
    pub(super) timers: BinaryHeap<Reverse<(Instant, ConnectionId)>>,
    pub(super) answers: VecDeque<Packet>,
    pub(super) events: VecDeque<Event>,
    pub(super) traces: VecDeque<ConnectionId>,
    pub(super) counters: EndpointCounters,
}

impl Endpoint {
    /// A host without addresses.
    pub fn new(config: EndpointConfig, path_manager: Box<dyn PathManager>) -> Self {
        let hash = keyed_hash(config.seed);
        let random = Random::new(config.seed, config.origin);
        Self {
            connections: Connections::new(hash.clone()),
            time_waits: TimeWaitTable::new(config.max_time_waits, hash.clone()),
            held: HeldSyns::new(config.max_held_syns, hash),
            next_port: random.first_port(config.ports.range().len() as u32),
            random,
            config,
            addresses: Vec::new(),
            uplinks: Uplinks::default(),
            listeners: Vec::new(),
            half_open: Vec::new(),
            path_manager,
            path_actions: Vec::new(),
            path_wake: Instant::NEVER,
            workspace: Workspace::default(),
            ready: VecDeque::new(),
            timers: BinaryHeap::new(),
            answers: VecDeque::new(),
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
        last: Option<TimeWait>,
    ) -> Opening {
        let (key, derived) = self.fresh_key(config.multipath);
        Opening {
            id: self.connections.next_id(),
            key,
            derived,
            initial: self.initial_sequence(now, local, remote, last),
            stamp_offset: match self.config.ports {
                Ports::Random => self.random.next_u32(),
                Ports::HashBased { .. } => self.random.stamp_offset(remote.ip()),
            },
            local,
            remote,
            local_address,
            measurements: self.path_manager.measurements(),
            forward_delays: self.path_manager.forward_delays(),
            config,
        }
    }

    /// A key whose token is unused (RFC 8684, section 3.1) and belongs to this endpoint's share of the host.
    fn fresh_key(&mut self, multipath: bool) -> (Key, Derived) {
        if !multipath {
            return (Key(0), Derived { token: 0, initial_data_seq: 0 });
        }
        loop {
            let key = Key(self.random.next_u64());
            let derived = key.derive();
            if self.config.share.owns_token(derived.token) && !self.connections.has_token(derived.token) {
                return (key, derived);
            }
        }
    }

    /// The initial sequence number between these addresses; `last` is the previous connection.
    pub(super) fn initial_sequence(
        &self,
        now: Instant,
        local: SocketAddr,
        remote: SocketAddr,
        last: Option<TimeWait>,
    ) -> SeqNumber {
        let proposed = self.random.initial_sequence(now, local, remote);
        last.map_or(proposed, |last| last.initial_after(proposed))
    }

    /// A free local port, and what is left of the last connection that used it.
    pub(super) fn free_port(
        &mut self,
        now: Instant,
        local: IpAddr,
        remote: SocketAddr,
    ) -> Option<(u16, Option<TimeWait>)> {
        let ports = self.config.ports.range();
        let (low, count) = (*ports.start(), ports.len().max(1) as u32);
        let start = match self.config.ports {
            Ports::Random => self.random.next_u32(),
            Ports::HashBased { .. } => {
                self.next_port = (self.next_port + 1) % count;
                self.next_port + self.random.port_offset(local, remote) % count
            }
        };
        (0..count).find_map(|step| {
            let port = low + (start.wrapping_add(step) % count) as u16;
            let local = SocketAddr::new(local, port);
            if self.connections.has_route(local, remote) {
                return None;
            }
            match self.time_waits.get(local, remote) {
                None => Some((port, None)),
                Some(last) if last.allows_reuse(now) => Some((port, self.time_waits.remove(local, remote))),
                Some(_) => None,
            }
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

    /// Queues a connection for output and traces. Its timer is armed when its output has been drained.
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

    /// Arms the timer of a connection, if it is earlier than the one armed.
    pub(super) fn arm(&mut self, id: ConnectionId) {
        let Some(connection) = self.connections.get_mut(id) else { return };
        if let Some(due) = connection.next_to_arm() {
            self.timers.push(Reverse((due, id)));
        }
    }
}

/// Whether an address can be an end of a connection: not multicast, broadcast or unspecified.
pub(super) fn is_one_host(address: IpAddr) -> bool {
    let broadcast = matches!(address, IpAddr::V4(address) if address.is_broadcast());
    !(address.is_multicast() || address.is_unspecified() || broadcast)
}
