//! The network between the hosts: links, routers, routes, and their events.

use crate::address::{self, InterfaceId};
use crate::datagrams::Transmit;
use crate::event_queue::{EventQueue, Target};
use crate::identifiers::{HostId, LinkId, RouterId};
use crate::link::{Cargo, DropCause, Drops, Link, LinkConfig};
use crate::mesh::{Mesh, NodeId};
use crate::pool::{Header, PacketId, Pool, digest_of};
use crate::trace_hash::{Digest, TraceHash};
use anabranch_policy::time::Instant;
use anabranch_wire::{Ecn, Packet};
use bytes::Bytes;
use std::collections::VecDeque;

/// The receiver at an end of a link.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum End {
    Router(RouterId),
    /// The interfaces attached to the link: of one host, or of several that share it.
    Hosts,
    Node(NodeId),
}

/// The kind of a [`Target`] that is a link; other kinds belong to the world.
pub(crate) const LINK_EVENT: u32 = 0;

/// IPv4 and UDP headers in bytes: the least size of cross-traffic packets.
pub(crate) const UDP_OVERHEAD: u32 = 28;

struct LinkSlot {
    name: String,
    link: Link<PacketId>,
    from: End,
    to: End,
    /// The earliest event of this link in the queue.
    armed: Instant,
    tapped: bool,
    /// Packets pass at once and without an event.
    transparent: bool,
    /// Later packets cannot be delivered before the pending one: always up, one rate, one delay.
    steady: bool,
    /// The hosts at its end, if any.
    hosts: Vec<HostId>,
}

#[derive(Default)]
struct Router {
    /// By destination interface.
    next: Vec<Option<LinkId>>,
    drops: Drops,
}

#[derive(Clone, Debug)]
struct Interface {
    host: HostId,
    sends_on: LinkId,
    receives_on: Vec<LinkId>,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Tapped {
    Tcp(Box<Packet>),
    /// UDP: cross traffic, or of a session.
    Udp {
        source: InterfaceId,
        destination: InterfaceId,
        /// Whole packet in bytes.
        length: u32,
        /// Of a packet of a session: its number, counted from 1, and the payload. That of cross traffic is not modelled.
        session: Option<(u16, Bytes)>,
    },
}

/// Called for packets that tapped links deliver, corrupt packets included.
pub type Tap = Box<dyn FnMut(Instant, LinkId, Tapped)>;

/// The `--wire` mode: every packet is emitted as bytes and parsed again when a host sends it.
#[derive(Clone, Debug, Default)]
pub struct WireCheck {
    pub packets: u64,
    /// Packets that could not be emitted or parsed, or that changed.
    pub mismatches: u64,
    pub first_mismatch: Option<String>,
}

impl WireCheck {
    /// Emits a packet as bytes and parses it again.
    fn through_bytes(&mut self, packet: &mut Packet, scratch: &mut Vec<u8>) {
        scratch.clear();
        let result = match packet.emit(scratch) {
            Err(error) => Err(format!("cannot be written ({error}): {packet:?}")),
            Ok(()) => match Packet::parse(&Bytes::copy_from_slice(scratch)) {
                Err(error) => Err(format!("cannot be read ({error}): {packet:?}")),
                Ok(read) if read != *packet => Err(format!("differs: sent {packet:?}, read {read:?}")),
                Ok(read) => Ok(read),
            },
        };
        self.packets += 1;
        match result {
            Ok(read) => *packet = read,
            Err(mismatch) => {
                self.mismatches += 1;
                self.first_mismatch.get_or_insert(mismatch);
            }
        }
    }
}

pub(crate) struct Network {
    pub(crate) events: EventQueue,
    pub(crate) hash: TraceHash,
    pub(crate) wire: Option<WireCheck>,
    pub(crate) tap: Option<Tap>,
    pub(crate) mesh: Mesh,
    pub(crate) pool: Pool,
    links: Vec<LinkSlot>,
    routers: Vec<Router>,
    interfaces: Vec<Interface>,
    /// Packets that arrived at hosts over transparent links.
    arrivals: VecDeque<Arrival>,
    /// Packets that hosts could not send or did not accept.
    host_drops: Drops,
    routes_are_stale: bool,
    has_mtu: bool,
    scratch: Vec<u8>,
}

impl Network {
    pub(crate) fn new() -> Self {
        Self {
            events: EventQueue::new(),
            hash: TraceHash::default(),
            wire: None,
            tap: None,
            mesh: Mesh::default(),
            pool: Pool::default(),
            links: Vec::new(),
            routers: Vec::new(),
            interfaces: Vec::new(),
            arrivals: VecDeque::new(),
            host_drops: Drops::default(),
            routes_are_stale: false,
            has_mtu: false,
            scratch: Vec::new(),
        }
    }
    pub(crate) fn add_link(&mut self, seed: u64, name: &str, config: &LinkConfig, from: End, to: End) -> LinkId {
        let id = LinkId(self.links.len() as u32);
        self.links.push(LinkSlot {
            name: name.to_owned(),
            link: Link::new(config, seed, &format!("link/{name}")),
            from,
            to,
            armed: Instant::NEVER,
            tapped: false,
            transparent: config.is_transparent(),
            steady: config.is_steady(),
            hosts: Vec::new(),
        });
        self.routes_are_stale = true;
        self.has_mtu |= config.mtu.is_some();
        id
    }
    /// Whether some link has an MTU.
    pub(crate) fn has_mtu(&self) -> bool {
        self.has_mtu
    }
    pub(crate) fn add_router(&mut self) -> RouterId {
        self.routers.push(Router::default());
        self.routes_are_stale = true;
        RouterId(self.routers.len() as u32 - 1)
    }
    pub(crate) fn add_interface(&mut self, host: HostId, sends_on: LinkId, receives_on: &[LinkId]) -> InterfaceId {
        let id = InterfaceId(self.interfaces.len() as u32);
        assert!(id.0 < address::LIMIT, "more interfaces than addresses");
        for link in receives_on {
            let hosts = &mut self.links[link.index()].hosts;
            if !hosts.contains(&host) {
                hosts.push(host);
            }
        }
        self.interfaces.push(Interface { host, sends_on, receives_on: receives_on.to_vec() });
        self.routes_are_stale = true;
        id
    }
    /// Skips indices below `next` for the next interface.
    pub(crate) fn skip_interfaces(&mut self, next: InterfaceId) {
        while self.interfaces.len() < next.index() {
            let nobody = Interface { host: HostId::NOBODY, sends_on: LinkId(u32::MAX), receives_on: Vec::new() };
            self.interfaces.push(nobody);
        }
    }
    pub(crate) fn host_of(&self, interface: InterfaceId) -> Option<HostId> {
        let host = self.interfaces.get(interface.index()).map(|interface| interface.host);
        host.filter(|host| *host != HostId::NOBODY)
    }
    /// The link for packets from an interface.
    pub(crate) fn sends_on(&self, interface: InterfaceId) -> Option<LinkId> {
        let interface = self.interfaces.get(interface.index()).filter(|interface| interface.host != HostId::NOBODY)?;
        Some(interface.sends_on)
    }
    pub(crate) fn links(&self) -> impl Iterator<Item = (&str, &Link<PacketId>)> {
        self.links.iter().map(|slot| (slot.name.as_str(), &slot.link))
    }
    pub(crate) fn link(&self, link: LinkId) -> &Link<PacketId> {
        &self.links[link.index()].link
    }
    pub(crate) fn set_tapped(&mut self, link: LinkId, tapped: bool) {
        self.links[link.index()].tapped = tapped;
    }
    /// Drops at nodes rather than on links: corrupt, no route, hop limit.
    pub(crate) fn node_drops(&self) -> Drops {
        let mut total = self.host_drops;
        self.routers.iter().for_each(|router| total.add_all(&router.drops));
        self.mesh.add_drops(&mut total);
        total
    }
    pub(crate) fn packets_under_way(&self) -> usize {
        self.pool.len()
    }

    /// Computes every router's next link to every interface, by the least number of links; ties go to the link with the
    /// lowest number.
    pub(crate) fn update_routes(&mut self) {
        if !core::mem::take(&mut self.routes_are_stale) {
            return;
        }
        // Links between routers only: a dumbbell has thousands of others, which would be visited for each destination.
        let mut into: Vec<Vec<LinkId>> = vec![Vec::new(); self.routers.len()];
        for (index, slot) in self.links.iter().enumerate() {
            if let (End::Router(_), End::Router(router)) = (slot.from, slot.to) {
                into[router.0 as usize].push(LinkId(index as u32));
            }
        }
        for router in &mut self.routers {
            router.next = vec![None; self.interfaces.len()];
        }
        for (destination, interface) in self.interfaces.iter().enumerate() {
            let mut frontier: VecDeque<LinkId> = interface.receives_on.iter().copied().collect();
            while let Some(link) = frontier.pop_front() {
                let End::Router(router) = self.links[link.index()].from else { continue };
                let next = &mut self.routers[router.0 as usize].next[destination];
                if next.is_none() {
                    *next = Some(link);
                    frontier.extend(&into[router.0 as usize]);
                }
            }
        }
    }

    /// A host sends the TCP packet in the pool's next slot over the link of its source interface; `again`: its data has been
    /// sent before.
    #[inline]
    pub(crate) fn send_tcp(&mut self, now: Instant, host: HostId, again: bool) {
        let packet = self.pool.next_place();
        let (source, destination) = (packet.ip.source, packet.ip.destination);
        let family = u64::from(source.is_ipv6()) << 63;
        let ends = (InterfaceId::of(source), InterfaceId::of(destination));
        let (Some(source), Some(destination)) = ends else { return self.host_drops.add(DropCause::NoRoute) };
        let link = match self.interfaces.get(source.index()) {
            Some(interface) if interface.host == host => interface.sends_on,
            _ => return self.host_drops.add(DropCause::NoRoute),
        };
        if let Some(check) = &mut self.wire {
            check.through_bytes(packet, &mut self.scratch);
        }
        let ends = family | u64::from(source.0) << 32 | u64::from(destination.0);
        let header = Header {
            digest: digest_of(packet, ends, &mut self.scratch),
            source,
            destination,
            length: packet.wire_len() as u32,
            hop_limit: packet.ip.hop_limit,
            ecn: packet.ip.ecn,
            again,
            ..Header::NOTHING
        };
        let id = self.pool.insert(header);
        self.offer(now, link, id);
    }
    /// Sends a UDP packet of cross traffic; its `number` within its source makes it distinct in the trace hash.
    pub(crate) fn send_udp(&mut self, now: Instant, ends: (InterfaceId, InterfaceId), length: u32, number: u64) {
        let (source, destination) = ends;
        let Some(link) = self.sends_on(source) else {
            return self.host_drops.add(DropCause::NoRoute);
        };
        let mut digest = Digest::default();
        digest.add(u64::from(source.0) << 32 | u64::from(destination.0));
        digest.add(number << 16 ^ u64::from(length));
        let digest = digest.value();
        let ecn = Ecn::NotCapable;
        let header =
            Header { digest, source, destination, length, hop_limit: 64, ecn, is_udp: true, ..Header::NOTHING };
        let id = self.pool.insert(header);
        self.offer(now, link, id);
    }
    /// Sends a packet of a session, counted from 1. Its payload is encrypted with other keys in each run, so the trace
    /// hash covers only its length and its `number`.
    pub(crate) fn send_carried(&mut self, now: Instant, session: u16, packet: Transmit, number: u64) {
        let Transmit { from, to, payload } = packet;
        let Some(link) = self.sends_on(from) else {
            return self.host_drops.add(DropCause::NoRoute);
        };
        let length = payload.len() as u32 + UDP_OVERHEAD;
        let mut digest = Digest::default();
        digest.add(u64::from(from.0) << 32 | u64::from(to.0));
        digest.add(number << 16 ^ u64::from(length));
        digest.add(u64::from(session));
        let (digest, ecn) = (digest.value(), Ecn::NotCapable);
        let (source, destination, hop_limit) = (from, to, 64);
        let header =
            Header { digest, source, destination, length, hop_limit, ecn, is_udp: true, session, ..Header::NOTHING };
        let id = self.pool.insert_carried(header, payload);
        self.offer(now, link, id);
    }
    /// A packet is offered to a link. It passes transparent links at once.
    #[inline]
    pub(crate) fn offer(&mut self, now: Instant, mut link: LinkId, id: PacketId) {
        loop {
            let slot = &mut self.links[link.index()];
            if !slot.transparent {
                slot.link.handle_packet(now, id, &mut self.pool);
                // Later packets do not arrive earlier.
                if slot.armed == Instant::NEVER || !slot.steady {
                    Self::arm(&mut self.events, slot, link);
                }
                return;
            }
            let length = self.pool.header(id).length;
            slot.link.pass(length);
            let (to, tapped) = (slot.to, slot.tapped);
            match self.deliver(now, (link, to, tapped), id) {
                Step::Link(next) => link = next,
                Step::Host(host) => return self.arrivals.push_back(Arrival { host, length, id }),
                Step::Elsewhere => return,
            }
        }
    }
    /// Puts the next event of a link into the queue.
    #[inline(always)]
    fn arm(events: &mut EventQueue, slot: &mut LinkSlot, link: LinkId) {
        let due = slot.link.poll_timeout();
        if due < slot.armed {
            slot.armed = due;
            events.put(due, Target::new(LINK_EVENT, link.index()));
        }
    }
    /// Handles the event of a link; call [`Self::poll_arrival`] afterwards until it returns `None`.
    pub(crate) fn handle_link(&mut self, now: Instant, link: LinkId) {
        let slot = &mut self.links[link.index()];
        // A stale event: an earlier one has done its work.
        if slot.armed <= now {
            slot.armed = Instant::NEVER;
            slot.link.handle_timeout(now, &mut self.pool);
        }
    }
    /// Forwards deliveries of the link to the next link; returns packets that have arrived at a host.
    pub(crate) fn poll_arrival(&mut self, now: Instant, link: LinkId) -> Option<Arrival> {
        loop {
            let slot = &mut self.links[link.index()];
            let Some(id) = slot.link.poll_delivery(now) else {
                Self::arm(&mut self.events, slot, link);
                return None;
            };
            let (to, tapped) = (slot.to, slot.tapped);
            match self.deliver(now, (link, to, tapped), id) {
                Step::Link(next) => self.offer(now, next, id),
                Step::Host(host) => return Some(Arrival { host, length: self.pool.header(id).length, id }),
                Step::Elsewhere => {}
            }
        }
    }
    /// Packets that arrived at a host over transparent links.
    pub(crate) fn poll_immediate_arrival(&mut self) -> Option<Arrival> {
        self.arrivals.pop_front()
    }
    /// A packet is at the far end of a link: a router (RFC 1812, section 5.3.1: the hop limit is decremented before
    /// forwarding), a node, or the hosts of the link, of which the one with its destination address accepts it.
    #[inline(always)]
    fn deliver(&mut self, now: Instant, (link, to, tapped): (LinkId, End, bool), id: PacketId) -> Step {
        if tapped {
            show(self.tap.as_mut(), &self.pool, (now, link, id));
        }
        let header = self.pool.header_mut(id);
        self.hash.add(now.as_nanos(), link.0, header.digest, header.changing());
        let cause = match to {
            End::Router(router) => {
                let next = self.routers[router.0 as usize].next.get(header.destination.index());
                match next {
                    Some(Some(next)) if header.hop_limit > 1 => {
                        header.hop_limit -= 1;
                        return Step::Link(*next);
                    }
                    Some(Some(_)) => DropCause::HopLimit,
                    Some(None) | None => DropCause::NoRoute,
                }
            }
            End::Hosts => {
                let host = self.interfaces.get(header.destination.index()).map(|interface| interface.host);
                match host.filter(|host| self.links[link.index()].hosts.contains(host)) {
                    // Its checksum is wrong: the host's IP or TCP drops it, with or without `--wire`.
                    Some(_) if header.corrupt => DropCause::Corrupt,
                    Some(host) => return Step::Host(host),
                    None => DropCause::NoRoute,
                }
            }
            End::Node(node) => {
                self.handle_node_packet(now, node, id);
                return Step::Elsewhere;
            }
        };
        self.drop_at(to, id, cause);
        Step::Elsewhere
    }
    /// A packet is dropped at this end of a link.
    #[cold]
    fn drop_at(&mut self, end: End, id: PacketId, cause: DropCause) {
        match end {
            End::Router(router) => self.routers[router.0 as usize].drops.add(cause),
            End::Hosts | End::Node(_) => self.host_drops.add(cause),
        }
        self.pool.discard(id, cause);
    }
    /// Applies a change of a link; `change` is given its name too.
    pub(crate) fn change_link(&mut self, link: LinkId, change: impl FnOnce(&mut Link<PacketId>, &str, &mut Pool)) {
        let slot = &mut self.links[link.index()];
        (slot.transparent, slot.steady) = (false, false);
        change(&mut slot.link, &slot.name, &mut self.pool);
        Self::arm(&mut self.events, slot, link);
    }
    /// Brings all links up to date, so that their counters are those of `now`.
    pub(crate) fn settle(&mut self, now: Instant) {
        for slot in &mut self.links {
            slot.link.handle_timeout(now, &mut self.pool);
        }
    }
}

/// A packet that has arrived at a host.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arrival {
    pub(crate) host: HostId,
    /// Whole packet in bytes.
    pub(crate) length: u32,
    pub(crate) id: PacketId,
}

/// Passes a packet that a tapped link delivers to the tap.
#[cold]
fn show(tap: Option<&mut Tap>, pool: &Pool, (now, link, id): (Instant, LinkId, PacketId)) {
    let Some(tap) = tap else { return };
    let Header { source, destination, length, session, .. } = *pool.header(id);
    let tapped = match pool.packet(id) {
        Some(packet) => Tapped::Tcp(Box::new(packet)),
        None => {
            let session = (session > 0).then(|| (session, pool.payload(id)));
            Tapped::Udp { source, destination, length, session }
        }
    };
    tap(now, link, tapped);
}

/// The next step of a packet at the far end of a link.
#[derive(Clone, Copy, Debug)]
enum Step {
    Link(LinkId),
    /// It has arrived at this host.
    Host(HostId),
    /// Into the mesh, or dropped.
    Elsewhere,
}
