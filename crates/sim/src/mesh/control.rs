//! Routers on the nodes: their packets are sent by radio with exact lengths, received packets and acknowledgements of
//! frames are passed to them, and their nodes forward by their routes.
//!
//! Packets for all routers are broadcast frames, packets for one neighbour are acknowledged ones. In the lab packets
//! are shared and not encoded; with `--wire` each is emitted, parsed and compared. A node queries its router for a
//! route when it first needs one, and again after the routes have changed.

use super::agent::Agent;
use super::forwarding::NextHop;
use super::freight::{Control, Freight};
use super::naming::{interface_id, link_local, node_of, radio_of, router_id};
use super::{Mesh, NodeId, Radio, RadioId};
use crate::address::InterfaceId;
use crate::event_queue::Target;
use crate::network::Network;
use crate::radio::{Delivery, Status};
use crate::trace_hash::Digest;
use anabranch_policy::time::Instant;
use anabranch_routing::{Destination, Event, InterfaceChange, NeighborState, Outgoing, Reception};
use anabranch_wire::ospf::{ALL_SPF_ROUTERS, Compatibility, Integrity, Packet, Prefix, RouterId};
use core::net::Ipv6Addr;
use std::sync::Arc;

/// Bytes of an IPv6 header.
const IPV6_HEADER: u32 = 40;

impl Network {
    /// A router's event is due.
    pub(crate) fn handle_router_event(&mut self, now: Instant, node: NodeId) {
        let place = &mut self.mesh.nodes[node.index()];
        let Some(agent) = &mut place.agent else { return };
        if agent.armed > now {
            return;
        }
        agent.armed = Instant::NEVER;
        if agent.started {
            agent.router.handle_timeout(now);
        } else {
            agent.started = true;
            for radio in 0..place.radios.len() {
                let interface = interface_id(RadioId(radio as u8));
                // A radio that was not assigned to the router is unknown to it.
                let _ = agent.router.handle_interface(now, interface, InterfaceChange::Up);
            }
        }
        self.drain_router(now, node);
    }
    /// A router's packet has been received.
    pub(super) fn on_control(
        &mut self,
        now: Instant,
        (node, radio): (NodeId, RadioId),
        delivery: &Delivery<super::FreightId>,
        control: &Control,
    ) {
        let at = super::BY_RADIO | delivery.to.0;
        self.hash.add(now.as_nanos(), at, control.digest, u32::from(delivery.broadcast));
        let place = &mut self.mesh.nodes[node.index()];
        let Some(agent) = place.agent.as_mut().filter(|agent| agent.started) else { return };
        place.counters.control.received_packets += 1;
        let how = Reception { source: control.source, multicast: delivery.broadcast, signal: delivery.signal };
        agent.router.handle_packet(now, interface_id(radio), &how, &control.packet);
        self.drain_router(now, node);
    }
    /// Reports the fate of a unicast frame, whatever it carried, to the router.
    pub(super) fn tell_router(
        &mut self,
        now: Instant,
        (node, radio): (NodeId, RadioId),
        status: &Status<super::FreightId>,
    ) {
        let Some(to) = status.destination else { return };
        let Some(Radio { channel, .. }) = self.mesh.station(node, radio) else { return };
        let (neighbor, _) = self.mesh.channels[channel.index()].owners[to.0 as usize];
        let Some(agent) = self.mesh.nodes[node.index()].agent.as_mut().filter(|agent| agent.started) else { return };
        agent.router.handle_transmit_status(now, interface_id(radio), router_id(neighbor), status.delivered);
        self.drain_router(now, node);
    }
    /// Takes all outputs of a router after an input.
    fn drain_router(&mut self, now: Instant, node: NodeId) {
        while let Some(outgoing) = self.mesh.agent(node).and_then(|agent| agent.router.poll_transmit()) {
            self.send_control(now, node, &outgoing);
        }
        let place = &mut self.mesh.nodes[node.index()];
        let Some(agent) = &mut place.agent else { return };
        let mut changed = false;
        while let Some(event) = agent.router.poll_event() {
            match event {
                Event::Routes => changed = true,
                Event::Neighbor { from, to, .. } => {
                    let crosses = |state| u64::from((from >= state) != (to >= state));
                    place.counters.neighbor_changes += crosses(NeighborState::TwoWay);
                    place.counters.adjacency_changes += crosses(NeighborState::Full);
                }
                Event::Level { .. } | Event::Unfinished { .. } | Event::Restart { .. } => {}
            }
        }
        if changed {
            place.table.forget();
            place.counters.route_changes += 1;
        }
        let due = agent.router.poll_timeout().unwrap_or(Instant::NEVER);
        if due < agent.armed {
            agent.armed = due.max(now);
            self.events.put(agent.armed, Target::new(super::ROUTER_EVENT, node.index()));
        }
    }
    fn send_control(&mut self, now: Instant, node: NodeId, outgoing: &Outgoing) {
        let Some(radio) = radio_of(outgoing.interface) else { return };
        let Some(Radio { channel, station, .. }) = self.mesh.station(node, radio) else { return };
        let source = link_local(node, radio);
        let (to, address) = match outgoing.destination {
            Destination::AllSpfRouters => (None, ALL_SPF_ROUTERS),
            Destination::Neighbor(neighbor, address) => {
                // A neighbour without a radio on this channel cannot have been heard on it.
                let Some(to) = self.mesh.station_of(neighbor, channel) else { return };
                (Some(to), address)
            }
        };
        let packet = self.control_through_bytes(&outgoing.packet, source, address);
        let length = packet.encoded_len() as u32 + IPV6_HEADER;
        let (kind, urgent) = (usize::from(packet.body.packet_type()) - 1, packet.body.is_urgent());
        let digest = digest_of(&packet, length);
        let freight = self.mesh.freight.store(Freight::Control(Control { packet, source, digest }));
        let medium = &mut self.mesh.channels[channel.index()].medium;
        let sent = if urgent {
            medium.enqueue_urgent(now, station, to, freight, length)
        } else {
            medium.enqueue(now, station, to, freight, length)
        };
        let counters = &mut self.mesh.nodes[node.index()].counters.control;
        counters.packets[kind] += 1;
        counters.bytes[kind] += u64::from(length);
        if let Err(freight) = sent {
            counters.refused += 1;
            self.mesh.freight.release(freight);
        }
        self.mesh.touch(channel);
    }
    /// With `--wire`: emits a packet as bytes and parses it again.
    fn control_through_bytes(&mut self, packet: &Arc<Packet>, source: Ipv6Addr, destination: Ipv6Addr) -> Arc<Packet> {
        let Some(check) = &mut self.wire else { return Arc::clone(packet) };
        let integrity = Integrity::Checksum { source, destination };
        let mut bytes = Vec::new();
        let result = match packet.encode(integrity, Compatibility::default(), &mut bytes) {
            Err(error) => Err(format!("cannot be written ({error}): {packet:?}")),
            Ok(()) if bytes.len() != packet.encoded_len() => {
                Err(format!("is {} bytes and not {}: {packet:?}", bytes.len(), packet.encoded_len()))
            }
            Ok(()) => match Packet::decode(&bytes, integrity, Compatibility::default()) {
                Err(error) => Err(format!("cannot be read ({error}): {packet:?}")),
                Ok(read) if read.packet != **packet => Err(format!("differs: sent {packet:?}, read {read:?}")),
                Ok(read) => Ok(Arc::new(read.packet)),
            },
        };
        check.packets += 1;
        result.unwrap_or_else(|mismatch| {
            check.mismatches += 1;
            check.first_mismatch.get_or_insert(mismatch);
            Arc::clone(packet)
        })
    }
}

/// The digest of a packet for the trace hash: sender, type and length.
fn digest_of(packet: &Packet, length: u32) -> u64 {
    let mut digest = Digest::default();
    digest.add(u64::from(packet.router.0) << 32 | u64::from(length) << 8 | u64::from(packet.body.packet_type()));
    digest.value()
}

impl Mesh {
    fn agent(&mut self, node: NodeId) -> Option<&mut Agent> {
        self.nodes[node.index()].agent.as_mut()
    }
    /// The station of a router's node on a channel.
    fn station_of(&self, router: RouterId, channel: super::ChannelId) -> Option<crate::radio::StationId> {
        let radios = &self.nodes.get(node_of(router)?.index())?.radios;
        radios.iter().find(|radio| radio.channel == channel).map(|radio| radio.station)
    }
    /// Puts the node's router's route to a destination into the node's table.
    pub(super) fn ask_router(&mut self, node: NodeId, destination: InterfaceId) {
        if let Some(hops) = self.hops_of_router(node, destination) {
            self.nodes[node.index()].table.set(destination, &hops);
        }
    }
    /// The next hops of the node's router to a destination; none without a router or a route.
    pub(super) fn hops_of_router(&self, node: NodeId, destination: InterfaceId) -> Option<Vec<NextHop>> {
        let agent = self.nodes[node.index()].agent.as_ref()?;
        let asked = self.lanes.base(destination);
        let address = if self.ipv6 { asked.ipv6() } else { asked.ipv4() };
        let route = agent.router.routes().prefixes.get(&Prefix::host(address))?;
        // Lanes follow the choice for lane 0, since nothing is heard on their own radios.
        let chosen = agent.router.choose(&route.next_hops);
        let weight = |router: RouterId| chosen.iter().find(|one| one.hop.router == router).map_or(1, |one| one.weight);
        let first: Vec<_> = chosen.iter().map(|one| one.hop).collect();
        let hop = |hop: &anabranch_routing::NextHop| {
            let radio = radio_of(hop.interface)?;
            let channel = self.station(node, radio)?.channel;
            let station = self.station_of(hop.router, channel)?;
            Some(NextHop { radio, station, weight: weight(hop.router).into() })
        };
        let radios = |node: NodeId| self.nodes.get(node.index()).map_or(0, |node| node.radios.len());
        let hops = self.lanes.next_hops_to(&agent.router, destination, (route.destination, &first), radios);
        Some(hops.iter().filter_map(hop).collect())
    }
}
