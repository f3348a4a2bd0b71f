//! What is on the links at present.

use super::World;
use crate::address::InterfaceId;
use crate::flow::FlowId;
use crate::identifiers::LinkId;
use crate::link::LinkCounters;
pub use crate::pool::Carried;
use anabranch_policy::time::Instant;

/// A packet under way.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PacketView {
    /// When it arrives at the end of the link; never at rate zero.
    pub arrives: Instant,
    /// Whole packet in bytes.
    pub length: u32,
    pub carried: Carried,
    /// Its source and destination.
    pub ends: (InterfaceId, InterfaceId),
}

/// A link at present.
#[derive(Clone, PartialEq, Debug)]
pub struct LinkView {
    pub up: bool,
    /// Packets and bytes in the queue.
    pub waiting: (usize, u64),
    pub counters: LinkCounters,
}

impl World {
    /// The interfaces of a flow's client and server; none without the flow, or where the client's endpoint chooses.
    pub fn flow_ends(&self, flow: FlowId) -> Option<(InterfaceId, InterfaceId)> {
        let config = &self.flows.get(flow.0 as usize)?.config;
        Some((config.from?, config.to))
    }
    /// Bytes of a flow that applications have read so far, at both ends.
    pub fn bytes_read(&self, flow: FlowId) -> u64 {
        let ends = self.flows.get(flow.0 as usize).map(|flow| &flow.ends);
        ends.into_iter().flatten().map(|end| end.reader.total()).sum()
    }
    /// All flows, in the order of addition.
    pub fn flows(&self) -> impl Iterator<Item = FlowId> + use<> {
        (0..self.flows.len() as u32).map(FlowId)
    }
    /// From now on packets whose data has been sent before, on the same subflow or another, are [`Carried::Again`] where they are
    /// looked at, if the connection's flow is measured ([`FlowConfig::record`](crate::FlowConfig)). Nothing else changes.
    pub fn mark_repeats(&mut self) {
        self.marks_repeats = true;
    }
    /// Brings all links up to date for [`Self::link_view`] and [`Self::packets_on`].
    pub fn settle(&mut self) {
        self.network.settle(self.now);
    }
    /// A link as of its last input.
    ///
    /// # Panics
    /// If this world does not have the link.
    pub fn link_view(&self, link: LinkId) -> LinkView {
        let found = self.network.link(link);
        LinkView { up: found.is_up(), waiting: found.waiting(), counters: *found.counters() }
    }
    /// The packets under way on a link as of its last input, in order of arrival. Those being transmitted are among them.
    ///
    /// # Panics
    /// As [`Self::link_view`].
    pub fn packets_on(&self, link: LinkId) -> impl Iterator<Item = PacketView> + '_ {
        self.network.link(link).under_way().map(|(arrives, id)| {
            let (header, carried) = self.network.pool.carried(*id);
            PacketView { arrives, length: header.length, carried, ends: (header.source, header.destination) }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::link::{DropCause, LinkConfig, QueueLimit};
    use crate::{Change, End, UdpConfig, WorldConfig};
    use anabranch_mptcp::EndpointConfig;
    use anabranch_policy::rate::Rate;
    use anabranch_policy::time::Duration;

    fn millis(millis: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(millis)
    }

    /// Two hosts, and a packet of 1,000 bytes every 8 ms over a link of 1 Mbit/s, which it fills, with a delay of 20 ms.
    fn scene() -> (World, LinkId) {
        let mut world = World::new(WorldConfig { seed: 1, ..WorldConfig::default() });
        let config = LinkConfig::new(Rate::from_bits_per_second(1_000_000), Duration::from_millis(20), 10);
        let [there, back] = ["there", "back"].map(|name| world.add_link(name, &config, End::Hosts, End::Hosts));
        let mut host = |name: &str, sends_on, receives_on| -> InterfaceId {
            let host = world.add_host(name, &EndpointConfig::default(), Box::new(crate::topology::NoPaths));
            world.add_interface(host, sends_on, &[receives_on])
        };
        let (from, to) = (host("a", there, back), host("b", back, there));
        world.add_udp(UdpConfig::steady("load", from, to, Rate::from_bits_per_second(1_000_000), 1_000));
        (world, there)
    }

    #[test]
    fn packets_under_way_and_in_the_queue_are_seen() {
        let (mut world, link) = scene();
        world.run_until(millis(100));
        world.settle();
        let packets: Vec<PacketView> = world.packets_on(link).collect();
        assert!(world.link_view(link).up && packets.len() >= 3, "{packets:?}");
        assert!(packets.iter().all(|packet| packet.arrives > millis(100) && packet.arrives <= millis(130)));
        assert!(packets.iter().all(|packet| packet.length == 1_000 && packet.carried == Carried::Other));
    }

    #[test]
    fn a_link_changes_while_it_is_used() {
        let (mut world, link) = scene();
        world.schedule(millis(100), Change::LinkDelay(link, Duration::from_millis(200)));
        world.schedule(millis(500), Change::LinkLoss(link, 1.0));
        world.run_until(millis(499));
        // 220 ms of packets instead of 28.
        assert!(world.packets_on(link).count() >= 24, "{:?}", world.link_view(link));
        world.run_until(millis(1_000));
        world.settle();
        let lost = world.link_view(link);
        assert!(world.packets_on(link).next().is_none() && lost.counters.drops.get(DropCause::Loss) > 50, "{lost:?}");
        world.schedule(millis(1_000), Change::LinkLoss(link, 0.0));
        world.schedule(millis(1_000), Change::LinkRate(link, Rate::from_bits_per_second(100_000)));
        world.schedule(millis(1_000), Change::LinkQueue(link, QueueLimit::Packets(3)));
        world.run_until(millis(2_000));
        world.settle();
        let slow = world.link_view(link);
        assert_eq!(slow.waiting.0, 3);
        assert!(slow.counters.drops.get(DropCause::Overflow) > 50, "{slow:?}");
    }

    #[test]
    fn a_step_ends_with_a_delivery() {
        let (mut world, link) = scene();
        assert!(world.run_until_delivery(millis(1_000)));
        assert_eq!(world.link_view(link).counters.delivered_packets, 1);
        assert!(!world.run_until_delivery(world.now()));
    }
}
