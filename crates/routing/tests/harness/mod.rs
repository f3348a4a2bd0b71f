//! An ideal radio in memory: routers on channels, links that are up or down, loss and delay, all derived from a seed.

#![allow(dead_code)]

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv6Addr};
use std::sync::Arc;

use anabranch_policy::{Duration, Instant};
use anabranch_routing::config::Manet;
use anabranch_routing::lsa_fullness::LsaFullness;
use anabranch_routing::{
    Config, Destination, Event, InterfaceChange, InterfaceConfig, InterfaceKind, Outgoing, Reception, Router,
};
use anabranch_wire::ospf::{InterfaceId, Packet, Prefix, RouterId};
use rand_chacha::ChaCha8Rng;
use rand_core::{Rng, SeedableRng};

/// A router in the network, by index; its router ID is one more.
pub type Node = usize;
/// A channel, by index; the interface on it has the number one more.
pub type Channel = usize;

/// The parameters of the network.
#[derive(Clone)]
pub struct Setup {
    pub nodes: usize,
    pub channels: usize,
    pub seed: u64,
    /// Probability that a packet is lost at one receiver.
    pub loss: f64,
    /// Longest delay of a packet; the shortest is a tenth of it.
    pub delay: Duration,
    pub hello: Duration,
    pub dead: Duration,
    pub manet: Manet,
    pub link_lsa_suppression: bool,
}

impl Setup {
    pub fn new(nodes: usize, seed: u64) -> Self {
        Self {
            nodes,
            channels: 1,
            seed,
            loss: 0.0,
            delay: Duration::from_millis(2),
            hello: Duration::from_secs(1),
            dead: Duration::from_secs(3),
            manet: Manet { two_hop_refresh: 3, lsa_fullness: LsaFullness::Full, ..Manet::default() },
            link_lsa_suppression: false,
        }
    }
}

struct Delivery {
    to: Node,
    interface: InterfaceId,
    how: Reception,
    packet: Arc<Packet>,
}

pub struct Net {
    pub now: Instant,
    pub routers: Vec<Option<Router>>,
    setup: Setup,
    /// Links by channel and direction.
    links: BTreeSet<(Channel, Node, Node)>,
    /// Loss probability of a link in both directions, if it differs from that of the setup; the smaller node first.
    link_losses: BTreeMap<(Node, Node), f64>,
    queue: BTreeMap<(Instant, u64), Delivery>,
    timers: BTreeSet<(Instant, Node)>,
    timer_of: Vec<Option<Instant>>,
    sequence: u64,
    random: ChaCha8Rng,
    pub events: Vec<(Instant, Node, Event)>,
    pub starts: u64,
    /// Packets sent, with their senders, if recorded.
    pub overheard: Option<Vec<(Node, Arc<Packet>)>>,
}

pub fn id(node: Node) -> RouterId {
    RouterId(node as u32 + 1)
}

pub fn interface(channel: Channel) -> InterfaceId {
    InterfaceId(channel as u32 + 1)
}

pub fn link_local(node: Node, channel: Channel) -> Ipv6Addr {
    Ipv6Addr::new(0xfe80, 0, 0, 0, 0, channel as u16 + 1, 0, node as u16 + 1)
}

/// The address of a node on a channel.
pub fn address(node: Node, channel: Channel) -> IpAddr {
    Ipv6Addr::new(0xfd00, 0, 0, 0, 0, channel as u16 + 1, 0, node as u16 + 1).into()
}

impl Net {
    /// All routers off, and no links.
    pub fn new(setup: Setup) -> Self {
        Self {
            now: Instant::ZERO,
            routers: (0..setup.nodes).map(|_| None).collect(),
            links: BTreeSet::new(),
            link_losses: BTreeMap::new(),
            queue: BTreeMap::new(),
            timers: BTreeSet::new(),
            timer_of: vec![None; setup.nodes],
            sequence: 0,
            random: ChaCha8Rng::seed_from_u64(setup.seed),
            events: Vec::new(),
            starts: 0,
            overheard: None,
            setup,
        }
    }

    /// All routers on, with these links on all channels.
    pub fn with_links(setup: Setup, links: &[(Node, Node)]) -> Self {
        let mut net = Self::new(setup);
        for (a, b) in links {
            net.set_link(*a, *b, true);
        }
        for node in 0..net.setup.nodes {
            net.start(node);
        }
        net
    }

    pub fn random(&mut self) -> f64 {
        f64::from(self.random.next_u32()) / (f64::from(u32::MAX) + 1.0)
    }

    pub fn below(&mut self, most: usize) -> usize {
        (self.random() * most as f64) as usize
    }

    /// Switches a link of all channels on or off, in both directions.
    pub fn set_link(&mut self, a: Node, b: Node, up: bool) {
        for channel in 0..self.setup.channels {
            self.set_direction(channel, a, b, up);
            self.set_direction(channel, b, a, up);
        }
    }

    pub fn set_direction(&mut self, channel: Channel, from: Node, to: Node, up: bool) {
        if up {
            self.links.insert((channel, from, to));
        } else {
            self.links.remove(&(channel, from, to));
        }
    }

    pub fn is_linked(&self, a: Node, b: Node) -> bool {
        self.links.contains(&(0, a, b))
    }

    pub fn set_loss(&mut self, loss: f64) {
        self.setup.loss = loss;
    }

    /// Sets the loss probability of one link, in both directions.
    pub fn set_link_loss(&mut self, a: Node, b: Node, loss: f64) {
        self.link_losses.insert((a.min(b), a.max(b)), loss);
    }

    /// Draws whether a packet is lost on a link.
    pub fn loses(&mut self, from: Node, to: Node) -> bool {
        let known = self.link_losses.get(&(from.min(to), from.max(to))).copied();
        let loss = known.unwrap_or(self.setup.loss);
        loss > 0.0 && self.random() < loss
    }

    /// Switches a router on, with empty memory.
    pub fn start(&mut self, node: Node) {
        self.start_with(node, |_| {});
    }

    pub fn start_with(&mut self, node: Node, change: impl Fn(&mut Config)) {
        self.starts += 1;
        let mut config = Config::new(id(node));
        config.seed = self.setup.seed.wrapping_mul(1009).wrapping_add(self.starts);
        change(&mut config);
        let mut router = Router::new(config).unwrap();
        for channel in 0..self.setup.channels {
            let mut config = InterfaceConfig::manet(interface(channel), link_local(node, channel));
            config.kind = InterfaceKind::Manet(self.setup.manet.clone());
            config.hello_interval = self.setup.hello;
            config.router_dead_interval = self.setup.dead;
            config.link_lsa_suppression = self.setup.link_lsa_suppression;
            config.addresses = vec![(address(node, channel), 128)];
            router.add_interface(self.now, config).unwrap();
            router.handle_interface(self.now, interface(channel), InterfaceChange::Up).unwrap();
        }
        self.routers[node] = Some(router);
        self.drain(node);
    }

    /// Switches a router off without a message.
    pub fn stop(&mut self, node: Node) {
        self.routers[node] = None;
        if let Some(at) = self.timer_of[node].take() {
            self.timers.remove(&(at, node));
        }
    }

    /// Switches a router off after it has left the network.
    pub fn leave(&mut self, node: Node) {
        let now = self.now;
        if let Some(router) = self.routers[node].as_mut() {
            router.leave(now);
        }
        self.drain(node);
        self.stop(node);
    }

    pub fn router(&self, node: Node) -> &Router {
        self.routers[node].as_ref().unwrap()
    }

    pub fn is_on(&self, node: Node) -> bool {
        self.routers[node].is_some()
    }

    pub fn change(&mut self, node: Node, channel: Channel, change: InterfaceChange) {
        let now = self.now;
        self.routers[node].as_mut().unwrap().handle_interface(now, interface(channel), change).unwrap();
        self.drain(node);
    }

    /// Passes a packet to a router as if received from the radio.
    pub fn inject(&mut self, to: Node, channel: Channel, source: Ipv6Addr, multicast: bool, packet: &Packet) {
        let how = Reception { source, multicast, signal: None };
        let now = self.now;
        if let Some(router) = self.routers[to].as_mut() {
            router.handle_packet(now, interface(channel), &how, packet);
        }
        self.drain(to);
    }

    fn drain(&mut self, node: Node) {
        let Some(mut router) = self.routers[node].take() else { return };
        while let Some(outgoing) = router.poll_transmit() {
            self.send(node, outgoing);
        }
        while let Some(event) = router.poll_event() {
            self.events.push((self.now, node, event));
        }
        let next = router.poll_timeout();
        if next != self.timer_of[node] {
            if let Some(at) = self.timer_of[node].take() {
                self.timers.remove(&(at, node));
            }
            if let Some(at) = next {
                self.timers.insert((at, node));
            }
            self.timer_of[node] = next;
        }
        self.routers[node] = Some(router);
    }

    fn send(&mut self, from: Node, outgoing: Outgoing) {
        if let Some(overheard) = &mut self.overheard {
            overheard.push((from, Arc::clone(&outgoing.packet)));
        }
        let channel = outgoing.interface.0 as usize - 1;
        let source = link_local(from, channel);
        let heard = self.links.range((channel, from, 0)..(channel, from + 1, 0)).map(|(_, _, to)| *to);
        let receivers: Vec<Node> = match outgoing.destination {
            Destination::AllSpfRouters => heard.collect(),
            Destination::Neighbor(_, address) => heard.filter(|to| link_local(*to, channel) == address).collect(),
        };
        let multicast = outgoing.destination == Destination::AllSpfRouters;
        for to in receivers {
            if self.loses(from, to) {
                continue;
            }
            let part = 0.1 + 0.9 * self.random();
            let at = self.now + self.setup.delay.mul_f64(part);
            self.sequence += 1;
            let how = Reception { source, multicast, signal: None };
            let packet = Arc::clone(&outgoing.packet);
            let delivery = Delivery { to, interface: outgoing.interface, how, packet };
            self.queue.insert((at, self.sequence), delivery);
        }
    }

    /// Lets time pass.
    pub fn run_for(&mut self, span: Duration) {
        self.run_until(self.now + span);
    }

    pub fn run_until(&mut self, end: Instant) {
        loop {
            let packet = self.queue.first_key_value().map(|(key, _)| key.0);
            let timer = self.timers.first().map(|(at, _)| *at);
            let next = packet.unwrap_or(Instant::NEVER).min(timer.unwrap_or(Instant::NEVER));
            if next > end {
                self.now = end;
                return;
            }
            self.now = self.now.max(next);
            if packet == Some(next) {
                let Some((_, delivery)) = self.queue.pop_first() else { continue };
                if let Some(router) = self.routers[delivery.to].as_mut() {
                    router.handle_packet(self.now, delivery.interface, &delivery.how, &delivery.packet);
                }
                self.drain(delivery.to);
            } else if let Some((at, node)) = self.timers.pop_first() {
                assert!(at <= self.now);
                self.timer_of[node] = None;
                if let Some(router) = self.routers[node].as_mut() {
                    router.handle_timeout(self.now);
                    let next = router.poll_timeout();
                    assert!(next.is_none_or(|next| next > self.now), "a timeout that does not pass: {next:?}");
                }
                self.drain(node);
            }
        }
    }

    /// Bytes sent by a router so far, with IPv6 headers.
    pub fn bytes(&self, node: Node) -> u64 {
        self.router(node).counters().all_sent_bytes()
    }

    /// Hops between routers over the true links of channel 0 among running routers; `None` if unreachable.
    pub fn true_distances(&self, from: Node) -> Vec<Option<u32>> {
        let mut distances = vec![None; self.routers.len()];
        distances[from] = Some(0);
        let mut queue = std::collections::VecDeque::from([from]);
        while let Some(node) = queue.pop_front() {
            for to in 0..self.routers.len() {
                if self.is_on(to) && self.is_linked(node, to) && distances[to].is_none() {
                    distances[to] = distances[node].map(|distance: u32| distance + 1);
                    queue.push_back(to);
                }
            }
        }
        distances
    }

    /// The next hops of a router to another one's address on channel 0.
    pub fn next_hops(&self, from: Node, to: Node) -> Vec<Node> {
        let route = self.router(from).routes().prefixes.get(&Prefix::host(address(to, 0)));
        route.map_or(Vec::new(), |route| route.next_hops.iter().map(|hop| hop.router.0 as usize - 1).collect())
    }
}

/// The paper's mesh: M1 to M8 as 0 to 7, with the links drawn in its figure 8.
pub const FIGURE_8: [(Node, Node); 13] =
    [(0, 1), (0, 2), (0, 3), (1, 4), (1, 5), (2, 4), (2, 5), (2, 6), (3, 5), (3, 6), (4, 7), (5, 7), (6, 7)];
/// The additional links of any disk model with those of figure 8.
pub const LATERAL: [(Node, Node); 4] = [(1, 2), (2, 3), (4, 5), (5, 6)];

/// The paper's mesh with lateral links.
pub fn figure_8_lateral() -> Vec<(Node, Node)> {
    FIGURE_8.into_iter().chain(LATERAL).collect()
}
