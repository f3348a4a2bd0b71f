//! The links between the ports: a sans-IO machine that accepts packets at ports and returns them at others.

use super::frame::{Frame, Frames};
use anabranch_policy::rate::Rate;
use anabranch_policy::time::Instant;
use anabranch_sim::link::{Link, LinkConfig, LinkCounters};
use anabranch_sim::{UdpConfig, UdpSource};
use core::net::IpAddr;
use std::collections::VecDeque;

/// A port where a host is attached, numbered from 0.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct PortId(pub usize);

/// A link in one direction, numbered from 0.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct LinkId(pub usize);

/// A routing table, numbered from 0.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct RoutesId(pub usize);

/// The next hop of a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Hop {
    Link(LinkId),
    /// Out of the network.
    Port(PortId),
    /// Looked up in a table by destination.
    Routes(RoutesId),
}

/// A range of addresses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Prefix {
    /// An address in it.
    pub address: IpAddr,
    /// The prefix length.
    pub bits: u8,
}

impl Prefix {
    /// Whether `address` is in the range.
    pub fn contains(&self, address: IpAddr) -> bool {
        match (self.address, address) {
            (IpAddr::V4(ours), IpAddr::V4(other)) => {
                let differing = ours.to_bits() ^ other.to_bits();
                differing.leading_zeros() >= u32::from(self.bits.min(32))
            }
            (IpAddr::V6(ours), IpAddr::V6(other)) => {
                let differing = ours.to_bits() ^ other.to_bits();
                differing.leading_zeros() >= u32::from(self.bits.min(128))
            }
            _ => false,
        }
    }
}

/// A scheduled change of a link.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Change {
    /// Goes up or down.
    State(LinkId, bool),
    /// Changes to a fixed rate.
    Rate(LinkId, Rate),
}

/// A packet that leaves the network.
#[derive(PartialEq, Eq, Debug)]
pub struct Delivery {
    /// The time computed by the links.
    pub at: Instant,
    pub port: PortId,
    /// The packet, to be returned with [`Network::give_back`].
    pub frame: Frame,
}

/// Counters beside those of the links.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct NetworkCounters {
    /// Packets without a route, from an unconnected port, or to multicast or link-local destinations, which routers do
    /// not forward.
    pub no_route: u64,
    /// Packets that are not IP.
    pub malformed: u64,
    /// Packets refused because more than [`Network::LIMIT`] bytes were in flight.
    pub overruns: u64,
    /// Packets of cross traffic that reached the end of their link.
    pub cross_traffic: u64,
}

#[derive(Debug)]
struct Slot {
    name: String,
    link: Link<Frame>,
    to: Hop,
    due: Instant,
}

/// A source of cross traffic, and its link.
#[derive(Debug)]
struct Source {
    source: UdpSource,
    stop: Instant,
    link: usize,
    due: Instant,
    /// Whether a packet is due then; otherwise the source only updates its state.
    sends: bool,
}

/// The next event, with its index.
#[derive(Clone, Copy, Debug)]
enum Next {
    Change,
    Source(usize),
    Link(usize),
}

/// Links, routes, and scheduled changes, between ports.
///
/// Inputs are [`Self::handle_packet`] and [`Self::handle_timeout`], outputs [`Self::poll_delivery`] and
/// [`Self::poll_timeout`]. Time must not go back from one input to the next.
#[derive(Debug)]
pub struct Network {
    seed: u64,
    links: Vec<Slot>,
    routes: Vec<Vec<(Prefix, Hop)>>,
    /// The first hop of packets from each port.
    ports: Vec<Option<Hop>>,
    changes: VecDeque<(Instant, Change)>,
    sources: Vec<Source>,
    frames: Frames,
    deliveries: VecDeque<Delivery>,
    counters: NetworkCounters,
    due: Instant,
}

impl Network {
    /// Most bytes in flight.
    pub const LIMIT: u64 = 512 << 20;

    /// An empty network; its links derive their random numbers from this seed and their names.
    pub fn new(seed: u64) -> Self {
        Self {
            seed,
            links: Vec::new(),
            routes: Vec::new(),
            ports: Vec::new(),
            changes: VecDeque::new(),
            sources: Vec::new(),
            frames: Frames::default(),
            deliveries: VecDeque::new(),
            counters: NetworkCounters::default(),
            due: Instant::NEVER,
        }
    }

    /// Adds a port. Its packets are dropped until it is connected.
    pub fn add_port(&mut self) -> PortId {
        self.ports.push(None);
        PortId(self.ports.len() - 1)
    }

    /// The number of ports.
    pub fn ports(&self) -> usize {
        self.ports.len()
    }

    /// Sets the first hop of packets from a port.
    pub fn connect(&mut self, port: PortId, to: Hop) {
        if let Some(hop) = self.ports.get_mut(port.0) {
            *hop = Some(to);
        }
    }

    /// Adds a link. Its random numbers equal those of the lab's link with this name and seed.
    pub fn add_link(&mut self, name: &str, config: &LinkConfig, to: Hop) -> LinkId {
        let link = Link::new(config, self.seed, &format!("link/{name}"));
        self.links.push(Slot { name: name.to_owned(), link, to, due: Instant::NEVER });
        LinkId(self.links.len() - 1)
    }

    /// Adds a routing table: the first prefix that contains a destination applies.
    pub fn add_routes(&mut self, routes: Vec<(Prefix, Hop)>) -> RoutesId {
        self.routes.push(routes);
        RoutesId(self.routes.len() - 1)
    }

    /// Schedules a change.
    pub fn schedule(&mut self, at: Instant, change: Change) {
        let place = self.changes.partition_point(|(other, _)| *other <= at);
        self.changes.insert(place, (at, change));
        self.due = self.due.min(at);
    }

    /// Adds cross traffic on a link, identical to that of the lab's source with this name and seed; its packets end
    /// there. The interfaces of `config` are ignored.
    pub fn add_cross_traffic(&mut self, config: UdpConfig, LinkId(link): LinkId) {
        let (due, stop) = (config.start, config.stop);
        self.sources.push(Source { source: UdpSource::new(config, self.seed), stop, link, due, sends: false });
        self.due = self.due.min(due);
    }

    /// The links with their counters, in the order of addition.
    pub fn links(&self) -> impl Iterator<Item = (&str, &LinkCounters)> {
        self.links.iter().map(|slot| (slot.name.as_str(), slot.link.counters()))
    }

    /// The counters beside those of the links.
    pub fn counters(&self) -> NetworkCounters {
        self.counters
    }

    /// Packets in flight.
    pub fn under_way(&self) -> usize {
        self.frames.under_way()
    }

    /// Handles a packet from the host at a port.
    pub fn handle_packet(&mut self, now: Instant, port: PortId, packet: &[u8]) {
        self.handle_timeout(now);
        let Some(ends) = Ends::of(packet) else {
            self.counters.malformed += 1;
            return;
        };
        let Some(hop) = self.ports.get(port.0).copied().flatten().filter(|_| ends.can_be_routed()) else {
            self.counters.no_route += 1;
            return;
        };
        if self.frames.bytes_under_way() > Self::LIMIT {
            self.counters.overruns += 1;
            return;
        }
        let frame = self.frames.take(packet);
        self.forward(now, frame, hop);
    }

    /// Handles events due by now, each at the time at which it was due.
    pub fn handle_timeout(&mut self, now: Instant) {
        while self.due <= now {
            let Some((at, next)) = self.earliest().filter(|(at, _)| *at <= now) else { break };
            match next {
                Next::Link(index) => self.handle_link(at, index),
                Next::Change => self.handle_change(),
                Next::Source(index) => self.handle_source(at, index),
            }
            self.due = self.earliest().map_or(Instant::NEVER, |(at, _)| at);
        }
    }

    /// The next packet that has left the network.
    pub fn poll_delivery(&mut self) -> Option<Delivery> {
        self.deliveries.pop_front()
    }

    /// When to call [`Self::handle_timeout`].
    pub fn poll_timeout(&self) -> Instant {
        self.due
    }

    /// Recycles the buffer of a delivered packet.
    pub fn give_back(&mut self, frame: Frame) {
        self.frames.give_back(frame);
    }

    /// The earliest event. There are few links, so that a linear search is faster than a queue.
    fn earliest(&self) -> Option<(Instant, Next)> {
        let links = self.links.iter().enumerate().map(|(index, slot)| (slot.due, Next::Link(index)));
        let change = self.changes.front().map(|(at, _)| (*at, Next::Change));
        let sources = self.sources.iter().enumerate().map(|(index, source)| (source.due, Next::Source(index)));
        // Among simultaneous events the first, and changes before packets.
        change.into_iter().chain(sources).chain(links).min_by_key(|(at, _)| *at).filter(|(at, _)| *at != Instant::NEVER)
    }

    fn handle_link(&mut self, at: Instant, index: usize) {
        let Some(slot) = self.links.get_mut(index) else { return };
        slot.link.handle_timeout(at, &mut self.frames);
        let to = slot.to;
        while let Some(frame) = self.links.get_mut(index).and_then(|slot| slot.link.poll_delivery(at)) {
            if frame.is_cross_traffic() {
                self.counters.cross_traffic += 1;
                self.frames.give_back(frame);
            } else {
                self.forward(at, frame, to);
            }
        }
        self.arm(index);
    }

    fn handle_change(&mut self) {
        let Some((at, change)) = self.changes.pop_front() else { return };
        let (Change::State(LinkId(index), _) | Change::Rate(LinkId(index), _)) = change;
        let Some(slot) = self.links.get_mut(index) else { return };
        match change {
            Change::State(_, up) => slot.link.handle_state(at, up, &mut self.frames),
            Change::Rate(_, rate) => slot.link.handle_rate(at, rate, &mut self.frames),
        }
        self.arm(index);
    }

    fn handle_source(&mut self, at: Instant, index: usize) {
        let Some(Source { source, stop, link, due, sends }) = self.sources.get_mut(index) else { return };
        if at >= *stop {
            *due = Instant::NEVER;
            return;
        }
        let (length, link) = (sends.then(|| source.packet()), *link);
        (*due, *sends) = source.next(at);
        if let Some(length) = length {
            let frame = self.frames.cross_traffic(length);
            self.forward(at, frame, Hop::Link(LinkId(link)));
        }
    }

    fn forward(&mut self, at: Instant, frame: Frame, hop: Hop) {
        let hop = match hop {
            Hop::Routes(routes) => self.route(routes, &frame),
            _ => Some(hop),
        };
        match hop {
            Some(Hop::Link(LinkId(index))) => match self.links.get_mut(index) {
                Some(slot) => {
                    slot.link.handle_packet(at, frame, &mut self.frames);
                    self.arm(index);
                }
                None => self.lose(frame),
            },
            Some(Hop::Port(port)) => self.deliveries.push_back(Delivery { at, port, frame }),
            // A table that points to a table could form a loop.
            Some(Hop::Routes(_)) | None => self.lose(frame),
        }
    }

    fn route(&self, RoutesId(table): RoutesId, frame: &Frame) -> Option<Hop> {
        let destination = Ends::of(frame.bytes())?.destination;
        let routes = self.routes.get(table)?;
        routes.iter().find(|(prefix, _)| prefix.contains(destination)).map(|(_, hop)| *hop)
    }

    fn lose(&mut self, frame: Frame) {
        self.counters.no_route += 1;
        self.frames.give_back(frame);
    }

    fn arm(&mut self, index: usize) {
        if let Some(slot) = self.links.get_mut(index) {
            slot.due = slot.link.poll_timeout();
            self.due = self.due.min(slot.due);
        }
    }
}

/// The addresses of a packet.
#[derive(Clone, Copy, Debug)]
struct Ends {
    source: IpAddr,
    destination: IpAddr,
}

impl Ends {
    fn of(packet: &[u8]) -> Option<Self> {
        match packet.first()? >> 4 {
            4 if packet.len() >= 20 => {
                let source = *packet.get(12..)?.first_chunk::<4>()?;
                let destination = *packet.get(16..)?.first_chunk::<4>()?;
                Some(Self { source: source.into(), destination: destination.into() })
            }
            6 if packet.len() >= 40 => {
                let source = *packet.get(8..)?.first_chunk::<16>()?;
                let destination = *packet.get(24..)?.first_chunk::<16>()?;
                Some(Self { source: source.into(), destination: destination.into() })
            }
            _ => None,
        }
    }

    /// Multicast and link-local packets are not forwarded: otherwise a host's router solicitations would consume the
    /// links' random numbers.
    fn can_be_routed(&self) -> bool {
        let on_link = |address: IpAddr| match address {
            IpAddr::V4(address) => address.is_link_local() || address.is_broadcast() || address.is_unspecified(),
            IpAddr::V6(address) => address.is_unicast_link_local() || address.is_unspecified(),
        };
        !(self.destination.is_multicast() || on_link(self.destination) || on_link(self.source))
    }
}
