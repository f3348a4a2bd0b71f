//! Owns the output of the router: packets, events, and their counters.

use std::collections::VecDeque;
use std::sync::Arc;

use anabranch_wire::ospf::{AreaId, Body, InstanceId, InterfaceId, Lls, Packet, RouterId};

use crate::config::Config;
use crate::counters::{Counters, DropReason};
use crate::verbs::{Destination, Event, IPV6_HEADER, Outgoing};

/// The queues of packets and events that the caller polls, and all counters.
pub(crate) struct Output {
    router: RouterId,
    area: AreaId,
    instance: InstanceId,
    packets: VecDeque<Outgoing>,
    events: VecDeque<Event>,
    /// Limit of queued events.
    most_events: usize,
    pub counters: Counters,
}

impl Output {
    pub fn new(config: &Config) -> Self {
        Self {
            router: config.router_id,
            area: config.area,
            instance: config.instance,
            packets: VecDeque::new(),
            events: VecDeque::new(),
            most_events: config.limits.events,
            counters: Counters::default(),
        }
    }

    /// Queues a packet.
    pub fn send(
        &mut self,
        interface: InterfaceId,
        destination: Destination,
        body: Body,
        lls: Option<Lls>,
    ) -> Arc<Packet> {
        let packet = Arc::new(Packet { router: self.router, area: self.area, instance: self.instance, body, lls });
        self.send_again(interface, destination, &packet);
        packet
    }

    /// Queues a packet that was sent before.
    pub fn send_again(&mut self, interface: InterfaceId, destination: Destination, packet: &Arc<Packet>) {
        self.counters.count_sent(packet.body.packet_type(), IPV6_HEADER + packet.encoded_len());
        self.packets.push_back(Outgoing { interface, destination, packet: Arc::clone(packet) });
    }

    /// Queues an event. If there are too many, the oldest is dropped.
    pub fn tell(&mut self, event: Event) {
        if self.events.len() >= self.most_events {
            self.events.pop_front();
            self.counters.drop(DropReason::Event);
        }
        self.events.push_back(event);
    }

    pub fn next_packet(&mut self) -> Option<Outgoing> {
        self.packets.pop_front()
    }

    pub fn next_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_wire::ospf::LinkStateAcknowledgment;

    fn output(events: usize) -> Output {
        let mut config = Config::new(RouterId(7));
        config.limits.events = events;
        Output::new(&config)
    }

    #[test]
    fn a_packet_carries_the_routers_header_and_is_counted_each_time() {
        let mut output = output(8);
        let body = Body::LinkStateAcknowledgment(LinkStateAcknowledgment { headers: Vec::new() });
        let packet = output.send(InterfaceId(1), Destination::AllSpfRouters, body, None);
        output.send_again(InterfaceId(2), Destination::AllSpfRouters, &packet);
        let sent: Vec<Outgoing> = core::iter::from_fn(|| output.next_packet()).collect();
        let interfaces: Vec<u32> = sent.iter().map(|one| one.interface.0).collect();
        assert_eq!((interfaces, packet.router), (vec![1, 2], RouterId(7)));
        assert_eq!(output.counters.sent, [0, 0, 0, 0, 2]);
        // An IPv6 and an OSPF header each.
        assert_eq!(output.counters.sent_bytes, [0, 0, 0, 0, 2 * (40 + 16)]);
    }

    #[test]
    fn the_oldest_event_makes_room_for_a_new_one() {
        let mut output = output(2);
        let level = |interface| Event::Level { interface: InterfaceId(interface), level: Default::default() };
        (1..=3).for_each(|interface| output.tell(level(interface)));
        assert_eq!(output.next_event(), Some(level(2)));
        assert_eq!(output.next_event(), Some(level(3)));
        assert_eq!(output.next_event(), None);
        assert_eq!(output.counters.dropped(DropReason::Event), 1);
    }
}
