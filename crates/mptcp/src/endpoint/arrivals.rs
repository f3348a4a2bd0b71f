//! Segments that belong to no connection: SYNs for a listener, joins by token, and segments to be reset.

use super::error::OperationError;
use super::held::{Held, Holding};
use super::state::{Endpoint, LocalAddress, is_one_host};
use crate::config::ConnectionConfig;
use crate::connection::{Connection, Joining, REASON_MPTCP, REASON_PROHIBITED, TimeWait, TimeWaitVerdict, packet};
use crate::event::Event;
use anabranch_policy::ids::{AddressId, ConnectionId};
use anabranch_policy::time::Instant;
use anabranch_wire::{Flags, MptcpOption, Packet, Segment};
use core::net::SocketAddr;
use std::sync::Arc;

/// Limit of queued answers to segments of no connection or in TIME-WAIT.
pub(super) const MAX_ANSWERS: usize = 256;

/// The fields of a SYN with MP_JOIN.
#[derive(Clone, Copy)]
struct JoinRequest {
    backup: bool,
    address_id: u8,
    token: u32,
    nonce: u32,
}

/// Whether a segment requests a connection or a subflow.
pub(super) fn opens(segment: &Segment) -> bool {
    segment.flags.contains(Flags::SYN) && !segment.flags.intersects(Flags::ACK | Flags::RST | Flags::FIN)
}

fn join_request(segment: &Segment) -> Option<JoinRequest> {
    segment.options.mptcp.iter().find_map(|option| match option {
        MptcpOption::JoinSyn { backup, address_id, token, nonce } => {
            Some(JoinRequest { backup: *backup, address_id: *address_id, token: *token, nonce: *nonce })
        }
        _ => None,
    })
}

impl Endpoint {
    /// Whether a packet belongs to this endpoint, of several that share a host ([`crate::Share`]): it belongs to one of
    /// its connections, or joins one, or is a SYN for a new connection, which any of them may accept.
    pub fn claims(&self, packet: &Packet) -> bool {
        let local = SocketAddr::new(packet.ip.destination, packet.segment.destination_port);
        let remote = SocketAddr::new(packet.ip.source, packet.segment.source_port);
        if self.connections.has_route(local, remote) || self.time_waits.get(local, remote).is_some() {
            return true;
        }
        opens(&packet.segment)
            && join_request(&packet.segment).is_none_or(|join| self.config.share.owns_token(join.token))
    }

    /// Whether a connection has a subflow between these addresses.
    pub fn has_subflow(&self, local: SocketAddr, remote: SocketAddr) -> bool {
        self.connections.has_route(local, remote)
    }

    /// A segment for a subflow in TIME-WAIT whose connection is gone, or for no connection.
    pub(super) fn handle_unrouted(&mut self, now: Instant, local: SocketAddr, remote: SocketAddr, packet: &Packet) {
        let may_open = self.may_open(local, &packet.segment);
        let Some(time_wait) = self.time_waits.get_mut(local, remote) else {
            return self.handle_unmatched(now, (local, remote), packet, None);
        };
        if may_open && time_wait.accepts_syn(&packet.segment) {
            let last = self.time_waits.remove(local, remote);
            return self.handle_unmatched(now, (local, remote), packet, last);
        }
        match time_wait.handle_segment(now, &packet.segment) {
            TimeWaitVerdict::Drop => {}
            TimeWaitVerdict::Acknowledge if self.answers.len() < MAX_ANSWERS => {
                self.answers.push_back(time_wait.acknowledgement(now));
            }
            TimeWaitVerdict::Acknowledge => self.counters.unknown += 1,
            TimeWaitVerdict::Reset => drop(self.time_waits.remove(local, remote)),
        }
    }

    /// A segment for no connection. If it ended a TIME-WAIT, `last` is the state of that.
    pub(super) fn handle_unmatched(
        &mut self,
        now: Instant,
        (local, remote): (SocketAddr, SocketAddr),
        packet: &Packet,
        last: Option<TimeWait>,
    ) {
        // RFC 9293, MUST-57 and MUST-63: silently.
        if !is_one_host(local.ip()) || !is_one_host(remote.ip()) {
            self.counters.unknown += 1;
            return;
        }
        let segment = &packet.segment;
        let ours = self.addresses.iter().find(|known| known.address == local.ip()).copied();
        if ours.is_none() && self.held.is_used() && opens(segment) && join_request(segment).is_none() {
            return self.hold(local, remote, packet, last);
        }
        let Some(ours) = ours.filter(|_| opens(segment)) else {
            if ours.is_some() && self.listener(local.port()).is_some() && !segment.flags.contains(Flags::ACK) {
                // Neither a SYN nor an acknowledgement: a listener drops it (RFC 9293, section 3.10.7.2), as Linux does
                // a SYN with FIN.
                self.counters.unknown += 1;
                return;
            }
            return self.refuse(local, remote, segment, None);
        };
        match join_request(segment) {
            Some(join) => self.accept_join(now, ours, (local, remote), &join, packet, last),
            None => self.accept(now, ours, (local, remote), packet, last),
        }
    }

    /// Whether a segment is a SYN that somebody here would take. Another one does not end a TIME-WAIT: it is challenged,
    /// as in any state (RFC 9293, section 3.10.7.4; Linux, too).
    pub(super) fn may_open(&self, local: SocketAddr, segment: &Segment) -> bool {
        let ours = || self.addresses.iter().any(|known| known.address == local.ip());
        let taken = || if ours() { self.listener(local.port()).is_some() } else { self.held.is_used() };
        opens(segment) && (join_request(segment).is_some() || taken())
    }

    fn listener(&self, port: u16) -> Option<&Arc<ConnectionConfig>> {
        let on = |port: u16| self.listeners.iter().find(|(listening, _)| *listening == port);
        on(port).or_else(|| on(0)).map(|(_, config)| config)
    }

    /// Asks the application about a SYN for a foreign address, once.
    fn hold(&mut self, local: SocketAddr, remote: SocketAddr, syn: &Packet, last: Option<TimeWait>) {
        let room = self.events.len() < self.config.max_events;
        match self.held.hold((local, remote), syn, last, room) {
            Holding::New => self.push_event(Event::Asked { local, remote }),
            Holding::Again => self.counters.repeated_syns += 1,
            // Dropped without an answer: the peer retransmits it, and there may be space then.
            Holding::Full => self.counters.refused_by_limit += 1,
        }
    }

    /// Accepts the connection of a waiting SYN, as if there were a listener with `config` at its destination.
    /// [`Event::Accepted`] follows after the handshake, or [`Event::Closed`] if it fails.
    ///
    /// # Errors [`OperationError::NoPeer`] if no such SYN waits, [`OperationError::LimitReached`] with too many
    /// connections. The SYN no longer waits then.
    pub fn accept_held(
        &mut self,
        now: Instant,
        local: SocketAddr,
        remote: SocketAddr,
        config: ConnectionConfig,
    ) -> Result<ConnectionId, OperationError> {
        let Held { syn, last } = self.held.release((local, remote)).ok_or(OperationError::NoPeer)?;
        // The destination is not a local address, so nothing else uses it.
        let admitted = self.admit(now, Arc::new(config), AddressId(0), (local, remote), &syn, last);
        let id = admitted.ok_or(OperationError::LimitReached)?;
        if let Some(connection) = self.connections.get_mut(id) {
            connection.introduce();
        }
        Ok(id)
    }

    /// Answers a waiting SYN with a reset, as if there were no listener.
    pub fn refuse_held(&mut self, local: SocketAddr, remote: SocketAddr) {
        if let Some(held) = self.held.release((local, remote)) {
            self.refuse(local, remote, &held.syn.segment, None);
        }
    }

    /// Removes a waiting SYN without an answer, and returns it.
    pub fn drop_held(&mut self, local: SocketAddr, remote: SocketAddr) -> Option<Packet> {
        self.held.release((local, remote)).map(|held| held.syn)
    }

    /// Creates a connection if there is a listener on the port.
    fn accept(
        &mut self,
        now: Instant,
        ours: LocalAddress,
        (local, remote): (SocketAddr, SocketAddr),
        syn: &Packet,
        last: Option<TimeWait>,
    ) {
        let Some(config) = self.listener(local.port()).cloned() else {
            return self.refuse(local, remote, &syn.segment, None);
        };
        self.admit(now, config, ours.id, (local, remote), syn, last);
    }

    /// Creates a connection, unless the limit is reached.
    fn admit(
        &mut self,
        now: Instant,
        config: Arc<ConnectionConfig>,
        local_address: AddressId,
        (local, remote): (SocketAddr, SocketAddr),
        syn: &Packet,
        last: Option<TimeWait>,
    ) -> Option<ConnectionId> {
        if self.connections.len() >= self.config.max_connections || self.config.max_half_open == 0 {
            self.counters.refused_by_limit += 1;
            return None;
        }
        self.make_room_for_a_handshake(now);
        let opening = self.opening(now, config, local, remote, local_address, last);
        let id = self.connections.insert(Connection::accept(now, opening, syn));
        self.connections.add_route(local, remote, id);
        self.half_open.push(id);
        self.settle(now, id);
        Some(id)
    }

    /// At the limit of handshakes, silently drops the oldest quarter: a SYN flood must not block other peers (RFC 4987,
    /// section 3.3).
    fn make_room_for_a_handshake(&mut self, now: Instant) {
        let most = self.config.max_half_open;
        if self.half_open.len() < most {
            return;
        }
        let connections = &self.connections;
        self.half_open.retain(|id| connections.get(*id).is_some_and(Connection::is_half_open));
        let excess = (self.half_open.len() + (most / 4).max(1)).saturating_sub(most);
        let evicted: Vec<ConnectionId> = self.half_open.drain(..excess).collect();
        for id in evicted {
            self.counters.evicted_handshakes += 1;
            if let Some(connection) = self.connections.get_mut(id) {
                connection.abort_handshake(now);
            }
            self.settle(now, id);
        }
    }

    /// Adds a subflow to a connection if the token is ours and the limit allows it (RFC 8684, section 3.2).
    fn accept_join(
        &mut self,
        now: Instant,
        ours: LocalAddress,
        (local, remote): (SocketAddr, SocketAddr),
        join: &JoinRequest,
        syn: &Packet,
        last: Option<TimeWait>,
    ) {
        let id = self.connections.by_token(join.token);
        let allowed = id.and_then(|id| self.connections.get(id)).map(Connection::may_accept_join);
        let (Some(id), Some(true)) = (id, allowed) else {
            self.counters.refused_joins += 1;
            let reason = if allowed.is_some() { REASON_PROHIBITED } else { REASON_MPTCP };
            return self.refuse(local, remote, &syn.segment, Some(reason));
        };
        let joining = Joining {
            local,
            remote,
            local_address: ours.id,
            remote_address: AddressId(join.address_id),
            initial: self.initial_sequence(now, local, remote, last),
            nonce: self.random.next_u32(),
            backup: join.backup,
        };
        if let Some(connection) = self.connections.get_mut(id) {
            connection.accept_join(now, joining, join.nonce, syn);
        }
        self.connections.add_route(local, remote, id);
        self.settle(now, id);
    }

    /// Answers a segment that belongs to no connection with a reset (RFC 9293, section 3.10.7.1).
    fn refuse(&mut self, local: SocketAddr, remote: SocketAddr, segment: &Segment, reason: Option<u8>) {
        self.counters.unknown += 1;
        if segment.flags.contains(Flags::RST) || self.answers.len() >= MAX_ANSWERS {
            return;
        }
        let mut reset = Segment {
            source_port: local.port(),
            destination_port: remote.port(),
            flags: Flags::RST,
            ..Segment::default()
        };
        if segment.flags.contains(Flags::ACK) {
            reset.seq = segment.ack;
        } else {
            reset.flags |= Flags::ACK;
            reset.ack = segment.seq + segment.sequence_length();
        }
        reset.options.mptcp.extend(reason.map(|reason| MptcpOption::TcpReset { transient: false, flags: 0, reason }));
        self.answers.push_back(packet(local, remote, reset));
    }
}
