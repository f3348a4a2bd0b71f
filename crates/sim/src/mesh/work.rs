//! Forwarding through the mesh: from a host to its node, by radio from node to node, and to a host again.

use super::forwarding::flow_hash;
use super::freight::Freight;
use super::{
    BY_RADIO, CHANNEL_EVENT, ChannelId, FreightId, MOVEMENT_EVENT, NodeId, PROBE_EVENT, ROUTER_EVENT, Radio, RadioId,
};
use crate::event_queue::Target;
use crate::link::{Cargo, DropCause};
use crate::network::Network;
use crate::pool::PacketId;
use crate::radio::{Delivery, StationId, Status};
use anabranch_policy::time::Instant;

impl Network {
    /// Handles an event of the mesh.
    pub(crate) fn handle_mesh(&mut self, now: Instant, target: Target) {
        match target.kind() {
            CHANNEL_EVENT => self.handle_channel(now, ChannelId(target.index() as u32)),
            ROUTER_EVENT => self.handle_router_event(now, NodeId(target.index() as u32)),
            MOVEMENT_EVENT => self.handle_movement(now),
            PROBE_EVENT => self.handle_probe(now, target.index()),
            _ => {}
        }
        self.drain_mesh(now);
    }
    fn handle_channel(&mut self, now: Instant, id: ChannelId) {
        let channel = &mut self.mesh.channels[id.index()];
        // A stale event: an earlier one has done its work.
        if channel.armed <= now {
            channel.armed = Instant::NEVER;
            channel.medium.handle_timeout(now);
            self.mesh.touch(id);
        }
    }
    /// A packet has arrived at a node from an attached host.
    pub(crate) fn handle_node_packet(&mut self, now: Instant, node: NodeId, id: PacketId) {
        self.mesh.nodes[node.index()].counters.originated += 1;
        self.forward_at_node(now, node, id);
        self.drain_mesh(now);
    }
    /// Forwards a packet from a node to a host or to the next hop.
    fn forward_at_node(&mut self, now: Instant, node: NodeId, id: PacketId) {
        let header = *self.pool.header(id);
        let place = &mut self.mesh.nodes[node.index()];
        if let Some(link) = place.local.get(&header.destination).copied() {
            place.counters.delivered += 1;
            place.counters.hops += u64::from(header.radio_hops);
            return self.offer(now, link, id);
        }
        let flow = flow_hash(place.salt, header.source, header.destination, self.pool.ports(id));
        if place.agent.is_some() && place.table.hops(header.destination).is_empty() {
            self.mesh.ask_router(node, header.destination);
        }
        match self.mesh.nodes[node.index()].table.choose(header.destination, flow) {
            Some(hop) => self.transmit(now, node, hop.radio, Some(hop.station), id),
            None => self.drop_at_node(node, id, DropCause::NoRoute),
        }
    }
    fn drop_at_node(&mut self, node: NodeId, id: PacketId, cause: DropCause) {
        self.mesh.drop_at(node, cause);
        self.pool.discard(id, cause);
    }
    fn transmit(&mut self, now: Instant, node: NodeId, radio: RadioId, to: Option<StationId>, id: PacketId) {
        let Some(Radio { channel, station, .. }) = self.mesh.station(node, radio) else {
            return self.drop_at_node(node, id, DropCause::NoRoute);
        };
        let length = self.pool.header(id).length;
        let freight = self.mesh.freight.store(Freight::Packet(id));
        let medium = &mut self.mesh.channels[channel.index()].medium;
        if let Err(freight) = medium.enqueue(now, station, to, freight, length) {
            self.mesh.freight.release(freight);
            self.drop_at_node(node, id, DropCause::Overflow);
        } else {
            self.mesh.nodes[node.index()].radios[radio.index()].captured.sent += 1;
        }
        self.mesh.touch(channel);
    }
    /// Takes all outputs of channels after an input.
    fn drain_mesh(&mut self, now: Instant) {
        while let Some(id) = self.mesh.touched.pop_front() {
            while let Some(delivery) = self.mesh.channels[id.index()].medium.poll_delivery() {
                self.on_delivery(now, id, &delivery);
            }
            while let Some(status) = self.mesh.channels[id.index()].medium.poll_status() {
                self.on_status(now, id, &status);
            }
            let channel = &mut self.mesh.channels[id.index()];
            let due = channel.medium.poll_timeout();
            if due < channel.armed {
                channel.armed = due;
                self.events.put(due, Target::new(CHANNEL_EVENT, id.index()));
            }
        }
    }
    /// A station has received a frame.
    fn on_delivery(&mut self, now: Instant, channel: ChannelId, delivery: &Delivery<FreightId>) {
        let owner = self.mesh.channels[channel.index()].owners[delivery.to.0 as usize];
        match self.mesh.freight.receive(delivery.cargo) {
            Freight::Packet(id) => self.on_packet(now, channel, owner, delivery.to, id),
            Freight::Control(control) => self.on_control(now, owner, delivery, &control),
            Freight::Gone => {}
        }
    }
    /// A packet has arrived at a node by radio.
    fn on_packet(
        &mut self,
        now: Instant,
        channel: ChannelId,
        (node, radio): (NodeId, RadioId),
        station: StationId,
        id: PacketId,
    ) {
        let header = self.pool.header_mut(id);
        header.radio_hops = header.radio_hops.saturating_add(1);
        let header = *header;
        let at = BY_RADIO | channel.0 << 20 | station.0;
        self.hash.add(now.as_nanos(), at, header.digest, header.changing());
        let place = &mut self.mesh.nodes[node.index()];
        place.radios[radio.index()].captured.received += 1;
        if place.local.contains_key(&header.destination) {
            return self.forward_at_node(now, node, id);
        }
        // RFC 1812, section 5.3.1: the hop limit is decremented before the packet is forwarded.
        if header.hop_limit <= 1 {
            return self.drop_at_node(node, id, DropCause::HopLimit);
        }
        place.counters.forwarded += 1;
        self.pool.header_mut(id).hop_limit -= 1;
        self.forward_at_node(now, node, id);
    }
    /// The fate of a frame is known to its sender.
    fn on_status(&mut self, now: Instant, channel: ChannelId, status: &Status<FreightId>) {
        let owner = self.mesh.channels[channel.index()].owners[status.station.0 as usize];
        let left = self.mesh.freight.release(status.cargo);
        if !status.delivered {
            self.mesh.nodes[owner.0.index()].counters.unacknowledged += 1;
        }
        if let Freight::Packet(id) = left {
            self.drop_at_node(owner.0, id, DropCause::Loss);
        }
        self.tell_router(now, owner, status);
    }
}
