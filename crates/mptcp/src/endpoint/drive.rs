//! The interface to the driver: packets and timeouts as input; packets, events and deadlines as output.

use super::arrivals::opens;
use super::state::Endpoint;
use crate::connection::{Heed, JoinedSegments};
use crate::event::{Event, TraceRecord};
use anabranch_policy::ids::ConnectionId;
use anabranch_policy::path_manager::PathEvent;
use anabranch_policy::time::Instant;
use anabranch_wire::{IcmpError, Packet};
use core::cmp::Reverse;
use core::net::SocketAddr;

impl Endpoint {
    /// Handles a packet.
    pub fn handle_packet(&mut self, now: Instant, mut packet: Packet) {
        self.handle_packet_in_place(now, &mut packet);
    }

    /// Handles a packet in place, and takes its payload if it is used: moving packets is costly.
    pub fn handle_packet_in_place(&mut self, now: Instant, packet: &mut Packet) {
        match self.connections.recent_route(packet) {
            Some(id) if !opens(&packet.segment) => self.handle_routed(now, id, packet),
            _ => self.handle_any(now, packet),
        }
    }

    #[inline(always)]
    fn handle_routed(&mut self, now: Instant, id: ConnectionId, packet: &mut Packet) {
        let Some(connection) = self.connections.get_mut(id) else { return };
        connection.handle_segment(now, &packet.ip, &mut packet.segment);
        if !connection.is_settled() {
            return self.settle(now, id);
        }
        let readable = connection.output.poll_readable(id);
        if !core::mem::replace(&mut connection.output.listed, true) {
            self.ready.push_back(id);
        }
        readable.into_iter().for_each(|event| self.push_event(event));
    }

    #[inline(never)]
    fn handle_any(&mut self, now: Instant, packet: &mut Packet) {
        let local = SocketAddr::new(packet.ip.destination, packet.segment.destination_port);
        let remote = SocketAddr::new(packet.ip.source, packet.segment.source_port);
        let Some(id) = self.connections.route(local, remote) else {
            return self.handle_unrouted(now, local, remote, packet);
        };
        let may_open = self.may_open(local, &packet.segment);
        let connection = self.connections.get_mut(id).filter(|_| may_open);
        let last = connection.and_then(|connection| connection.end_time_wait(local, remote, &packet.segment));
        if last.is_some() {
            self.settle(now, id);
            return self.handle_unmatched(now, (local, remote), packet, last);
        }
        self.handle_routed(now, id, packet);
    }

    /// An ICMP error about a packet of ours. "Too big" shortens the segments of a subflow; "unreachable" ends a subflow
    /// that the peer has not answered. Returns whether it did. Errors that match nothing in flight, or have an
    /// impossible size, are counted and ignored (RFC 5927).
    pub fn handle_icmp_error(&mut self, now: Instant, error: &IcmpError) -> bool {
        let id = self.connections.route(error.source, error.destination);
        let connection = id.and_then(|id| self.connections.get_mut(id));
        let heed = connection.map_or(Heed::Refused, |connection| connection.handle_icmp_error(now, error));
        match heed {
            Heed::Acted => {}
            Heed::Counted => self.counters.soft_icmp_errors += 1,
            Heed::Refused => self.counters.refused_icmp_errors += 1,
        }
        id.into_iter().for_each(|id| self.settle(now, id));
        heed == Heed::Acted
    }

    /// Handles the deadline of [`Self::poll_timeout`]; early and late calls are harmless.
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
        // Connections at rest have no timer.
        if self.timers.capacity() > 64 && self.timers.capacity() / 4 > self.timers.len() {
            self.timers.shrink_to(self.timers.len() * 2);
        }
        self.time_waits.expire(now);
        if self.path_wake <= now {
            self.path_wake = Instant::NEVER;
            self.tell_path_manager(now, &PathEvent::Wake);
            self.carry_out(now);
        }
    }

    /// The next packet to send.
    pub fn poll_transmit(&mut self, now: Instant) -> Option<Packet> {
        let mut packet = Packet::default();
        self.poll_transmit_into(now, &mut packet).then_some(packet)
    }

    /// Writes the next packet to send into `place`, whose content is replaced: moving packets is costly. Returns false
    /// if there is none; then the content of `place` is undefined.
    pub fn poll_transmit_into(&mut self, now: Instant, place: &mut Packet) -> bool {
        if let Some(packet) = self.answers.pop_front() {
            *place = packet;
            return true;
        }
        while let Some(&id) = self.ready.front() {
            if let Some(connection) = self.connections.get_mut(id) {
                if connection.output.may_send() && connection.poll_transmit(now, &mut self.workspace, place) {
                    if connection.output.has_trace() && self.traces.back() != Some(&id) {
                        self.traces.push_back(id);
                    }
                    return true;
                }
                connection.output.listed = false;
                if connection.is_quiet() {
                    self.ready.pop_front();
                    if let Some(due) = connection.next_to_arm() {
                        self.timers.push(Reverse((due, id)));
                    }
                    continue;
                }
            }
            self.ready.pop_front();
            self.pass_on_notices(now, id);
            self.keep_time_wait(now, id);
            if !self.forget_if_over(now, id) {
                self.arm(id);
            }
        }
        false
    }

    /// Whether the last packet must leave unmerged: it is a retransmission, whose mapping is known to the peer and must
    /// not grow, or a path MTU probe.
    pub fn resends(&self) -> bool {
        self.workspace.resends
    }

    /// Reports that segments of [`Self::poll_transmit`], none of them retransmissions, left as one packet.
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

    /// When [`Self::handle_timeout`] is due; [`Instant::NEVER`] if nothing is pending. May be early, never late.
    pub fn poll_timeout(&mut self) -> Instant {
        for at in 0..self.ready.len() {
            if let Some(&id) = self.ready.get(at) {
                self.arm(id);
            }
        }
        let connections = self.timers.peek().map_or(Instant::NEVER, |Reverse((at, _))| *at);
        connections.min(self.path_wake).min(self.time_waits.next_timeout())
    }

    /// The next trace record of connections with [`crate::ConnectionConfig::trace`]; to be drained after every input.
    pub fn poll_trace(&mut self) -> Option<TraceRecord> {
        while let Some(&id) = self.traces.front() {
            if let Some(record) = self.connections.get_mut(id).and_then(|connection| connection.output.poll_trace()) {
                return Some(record);
            }
            self.traces.pop_front();
        }
        None
    }
}
