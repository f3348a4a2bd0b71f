//! The links between the ports: a sans-IO machine that takes packets at ports and returns them at others.

use super::frame::{Frame, Frames};
use anabranch_policy::rate::Rate;
use anabranch_policy::time::Instant;
use anabranch_sim::link::{Link, LinkConfig, LinkCounters};
use anabranch_sim::{UdpConfig, UdpSource};
use core::net::IpAddr;
use std::collections::VecDeque;

/// A place where hosts are attached; counts up from 0.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct PortId(pub usize);

/// A link in one direction; counts up from 0.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct LinkId(pub usize);

/// A table of routes; counts up from 0.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct RoutesId(pub usize);

/// Where a packet goes next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Hop {
    /// Into a link.
    Link(LinkId),
    /// Out of the network.
    Port(PortId),
    /// To where a table says for its destination.
    Routes(RoutesId),
}

/// A range of addresses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Prefix {
    /// An address in it.
    pub address: IpAddr,
    /// How many of the first bits all of them share.
    pub bits: u8,
}

impl Prefix {
    /// Whether `address` is in it.
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

/// Something that happens to a link at a given time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Change {
    /// It goes up or down.
    State(LinkId, bool),
    /// It has a fixed rate from now on.
    Rate(LinkId, Rate),
}

/// A packet that leaves the network.
#[derive(PartialEq, Eq, Debug)]
pub struct Delivery {
    /// When, as the links compute it.
    pub at: Instant,
    /// Where.
    pub port: PortId,
    /// What; to be handed back with [`Network::give_back`].
    pub frame: Frame,
}

/// What a network counts beside its links.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct NetworkCounters {
    /// Packets with no route, of a port that leads nowhere, or for a group or a link alone, which no router forwards.
    pub no_route: u64,
    /// What is not IP.
    pub malformed: u64,
    /// Packets refused because too many were under way: more than [`Network::LIMIT`] bytes.
    pub overruns: u64,
    /// Packets of cross traffic that came to their end.
    pub cross_traffic: u64,
}

#[derive(Debug)]
struct Slot {
    name: String,
    link: Link<Frame>,
    to: Hop,
    due: Instant,
}

/// A source of cross traffic, and the link that it loads.
#[derive(Debug)]
struct Source {
    source: UdpSource,
    stop: Instant,
    link: usize,
    due: Instant,
    /// Whether a packet is due then; else it only looks again.
    sends: bool,
}

/// What comes next, by kind and place.
#[derive(Clone, Copy, Debug)]
enum Next {
    Change,
    Source(usize),
    Link(usize),
}

/// Links, routes and what changes them, between ports.
///
/// Inputs are [`Self::handle_packet`] and [`Self::handle_timeout`], outputs [`Self::poll_delivery`] and
/// [`Self::poll_timeout`]. Time must not go back from one input to the next.
#[derive(Debug)]
pub struct Network {
    seed: u64,
    links: Vec<Slot>,
    routes: Vec<Vec<(Prefix, Hop)>>,
    /// Where what comes in at each port goes.
    ports: Vec<Option<Hop>>,
    changes: VecDeque<(Instant, Change)>,
    sources: Vec<Source>,
    frames: Frames,
    deliveries: VecDeque<Delivery>,
    counters: NetworkCounters,
    due: Instant,
}

impl Network {
    /// Most bytes under way at once.
    pub const LIMIT: u64 = 512 << 20;

    /// A network without anything; its links draw their luck from this seed and their names.
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

    /// A port more; what comes in there is dropped until it is connected.
    pub fn add_port(&mut self) -> PortId {
        self.ports.push(None);
        PortId(self.ports.len() - 1)
    }

    /// How many ports there are.
    pub fn ports(&self) -> usize {
        self.ports.len()
    }

    /// What comes in at a port goes there.
    pub fn connect(&mut self, port: PortId, to: Hop) {
        if let Some(hop) = self.ports.get_mut(port.0) {
            *hop = Some(to);
        }
    }

    /// A link more. It has the luck of the lab's link of this name in the run with this seed.
    pub fn add_link(&mut self, name: &str, config: &LinkConfig, to: Hop) -> LinkId {
        let link = Link::new(config, self.seed, &format!("link/{name}"));
        self.links.push(Slot { name: name.to_owned(), link, to, due: Instant::NEVER });
        LinkId(self.links.len() - 1)
    }

    /// A table of routes: the first prefix that contains a destination decides.
    pub fn add_routes(&mut self, routes: Vec<(Prefix, Hop)>) -> RoutesId {
        self.routes.push(routes);
        RoutesId(self.routes.len() - 1)
    }

    /// Has a link change at a time.
    pub fn schedule(&mut self, at: Instant, change: Change) {
        let place = self.changes.partition_point(|(other, _)| *other <= at);
        self.changes.insert(place, (at, change));
        self.due = self.due.min(at);
    }

    /// Cross traffic on a link, as the lab's source of this name sends it in the run with this seed; its packets go no
    /// further. The interfaces of `config` mean nothing here.
    pub fn add_cross_traffic(&mut self, config: UdpConfig, LinkId(link): LinkId) {
        let (due, stop) = (config.start, config.stop);
        self.sources.push(Source { source: UdpSource::new(config, self.seed), stop, link, due, sends: false });
        self.due = self.due.min(due);
    }

    /// The links with what they have counted, in the order in which they were added.
    pub fn links(&self) -> impl Iterator<Item = (&str, &LinkCounters)> {
        self.links.iter().map(|slot| (slot.name.as_str(), slot.link.counters()))
    }

    /// What has been counted beside.
    pub fn counters(&self) -> NetworkCounters {
        self.counters
    }

    /// Packets under way.
    pub fn under_way(&self) -> usize {
        self.frames.under_way()
    }

    /// A packet comes in at a port.
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

    /// Does what is due by now; the time of each step is that at which it was due.
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

    /// When [`Self::handle_timeout`] is due.
    pub fn poll_timeout(&self) -> Instant {
        self.due
    }

    /// Takes a delivered packet back, for its buffer.
    pub fn give_back(&mut self, frame: Frame) {
        self.frames.give_back(frame);
    }

    /// What comes first. There are few links, so that looking at all of them is quicker than keeping an order.
    fn earliest(&self) -> Option<(Instant, Next)> {
        let links = self.links.iter().enumerate().map(|(index, slot)| (slot.due, Next::Link(index)));
        let change = self.changes.front().map(|(at, _)| (*at, Next::Change));
        let sources = self.sources.iter().enumerate().map(|(index, source)| (source.due, Next::Source(index)));
        // Of several at once the first, and a change before all packets.
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
            // A table that points to a table could go round in circles.
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

    /// What is for a group or for this link alone stays where it is: were it let through, a host's search for
    /// routers would take part in the links' luck.
    fn can_be_routed(&self) -> bool {
        let on_link = |address: IpAddr| match address {
            IpAddr::V4(address) => address.is_link_local() || address.is_broadcast() || address.is_unspecified(),
            IpAddr::V6(address) => address.is_unicast_link_local() || address.is_unspecified(),
        };
        !(self.destination.is_multicast() || on_link(self.destination) || on_link(self.source))
    }
}
