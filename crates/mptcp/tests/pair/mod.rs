//! Two endpoints in virtual time, joined by simple paths: the harness of the engine's tests.

#![allow(dead_code)]

pub mod luck;

use anabranch_mptcp::{BufferSize, ConnectionConfig, Endpoint, EndpointConfig, Event, Policies};
use anabranch_policy::ids::{AddressId, ConnectionId};
use anabranch_policy::table::{self, Settings};
use anabranch_policy::time::{Duration, Instant};
use anabranch_policy::{congestion, path_manager, scheduler};
use anabranch_wire::{Packet, Segment};
use bytes::Bytes;
use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

/// The port that servers listen on.
pub const PORT: u16 = 4433;

/// The fate of a packet on a path.
#[derive(Clone, Debug)]
pub enum Fate {
    /// It arrives after the path's delay.
    Deliver,
    /// It is lost.
    Drop,
    /// It is delayed further by this.
    Late(Duration),
    /// It is duplicated.
    Twice,
    /// It is replaced.
    Instead(Box<Packet>),
    /// It is replaced by two packets in sequence.
    Both(Box<[Packet; 2]>),
}

/// Draws the fate of each packet from a host; `0` is the client.
pub type Judge = Box<dyn FnMut(usize, Instant, &Packet) -> Fate>;

/// A client (0) and a server (1).
pub struct Pair {
    /// The hosts.
    pub hosts: [Endpoint; 2],
    pub now: Instant,
    /// One-way delay between the addresses ending in `.n`.
    pub delay: Vec<Duration>,
    /// Decides on each packet's fate.
    pub judge: Judge,
    /// Events so far, by host.
    pub events: [Vec<Event>; 2],
    /// Bytes read so far, by host.
    pub received: [Vec<u8>; 2],
    /// Packets sent so far, by host.
    pub sent: [Vec<(Instant, Packet)>; 2],
    /// Whether hosts read arrivals at once.
    pub reading: [bool; 2],
    in_flight: BTreeMap<(Instant, u64), (usize, Packet)>,
    count: u64,
    /// Whether `sent` is recorded.
    pub keep: bool,
    /// Most packets that a host may send at one instant without input: more is an endless loop.
    pub burst_limit: usize,
}

/// Policies by name.
pub fn policies(congestion: &'static str, scheduler: &'static str) -> Policies {
    Policies {
        congestion: Arc::new(move || table::build(congestion::TABLE, congestion, &Settings::new()).unwrap()),
        scheduler: Arc::new(move || table::build(scheduler::TABLE, scheduler, &Settings::new()).unwrap()),
        reliability: anabranch_mptcp::config::fully_reliable(),
    }
}

/// A configuration for tests.
pub fn config() -> ConnectionConfig {
    let mut config = ConnectionConfig::new(policies("new_reno", "lowest_rtt"));
    config.receive_buffer = BufferSize::Fixed(256 * 1024);
    config
}

/// The address of a host on a path.
pub fn address(host: usize, path: usize) -> IpAddr {
    IpAddr::from([10, 0, path as u8, 1 + host as u8])
}

/// The IPv6 address of a host on a path.
pub fn address_v6(host: usize, path: usize) -> IpAddr {
    IpAddr::from([0xfd00, path as u16, 0, 0, 0, 0, 0, 1 + host as u16])
}

impl Pair {
    /// Hosts with an address on each of `paths` paths of 10 ms, path manager full_mesh at both ends.
    pub fn new(paths: usize) -> Self {
        Self::with_path_managers(paths, ["full_mesh", "full_mesh"])
    }

    /// The same with other path managers.
    pub fn with_path_managers(paths: usize, managers: [&'static str; 2]) -> Self {
        let build = |name| table::build(path_manager::TABLE, name, &Settings::new()).unwrap();
        Self::with_managers(paths, managers.map(build))
    }

    /// The same with custom path managers.
    pub fn with_managers(paths: usize, managers: [Box<dyn path_manager::PathManager>; 2]) -> Self {
        let host = |seed: u8, manager| {
            Endpoint::new(EndpointConfig { seed: [seed; 32], ..EndpointConfig::default() }, manager)
        };
        let [client, server] = managers;
        let mut pair = Self {
            hosts: [host(1, client), host(2, server)],
            now: Instant::ZERO,
            delay: vec![Duration::from_millis(10); paths],
            judge: Box::new(|_, _, _| Fate::Deliver),
            events: [Vec::new(), Vec::new()],
            received: [Vec::new(), Vec::new()],
            sent: [Vec::new(), Vec::new()],
            reading: [true, true],
            in_flight: BTreeMap::new(),
            count: 0,
            keep: true,
            burst_limit: usize::MAX,
        };
        for path in 0..paths {
            for host in 0..2 {
                pair.hosts[host].handle_address_up(Instant::ZERO, AddressId(1 + path as u8), address(host, path));
            }
        }
        pair
    }

    /// The server listens and the client connects over path 0.
    pub fn connect(&mut self, client: ConnectionConfig, server: ConnectionConfig) -> ConnectionId {
        self.hosts[1].listen(PORT, server).unwrap();
        let remote = SocketAddr::new(address(1, 0), PORT);
        let id = self.hosts[0].connect(self.now, Some(address(0, 0)), remote, client).unwrap();
        self.settle();
        id
    }

    /// The server's connection, once accepted.
    pub fn accepted(&self) -> Option<ConnectionId> {
        self.events[1].iter().find_map(|event| match event {
            Event::Accepted { connection, .. } => Some(*connection),
            _ => None,
        })
    }

    /// Drains the outputs of both hosts until nothing changes at this instant.
    pub fn settle(&mut self) {
        for host in [0, 1] {
            let mut burst = 0;
            loop {
                while let Some(packet) = self.hosts[host].poll_transmit(self.now) {
                    burst += 1;
                    assert!(burst <= self.burst_limit, "host {host} sends without end: {packet:?}");
                    self.dispatch(host, packet);
                }
                let Some(event) = self.hosts[host].poll_event() else { break };
                self.events[host].push(event);
                if let (Event::Readable(id), true) = (event, self.reading[host]) {
                    self.read(host, id);
                }
            }
            while self.hosts[host].poll_trace().is_some() {}
        }
    }

    /// Reads everything available.
    pub fn read(&mut self, host: usize, id: ConnectionId) {
        while let Some(bytes) = self.hosts[host].read(self.now, id, usize::MAX) {
            self.received[host].extend_from_slice(&bytes);
        }
    }

    fn dispatch(&mut self, from: usize, packet: Packet) {
        assert_fits_the_wire(&packet);
        if self.keep {
            self.sent[from].push((self.now, packet.clone()));
        }
        let path = match packet.ip.destination {
            IpAddr::V4(address) => usize::from(address.octets()[2]),
            IpAddr::V6(address) => usize::from(address.segments()[1]),
        };
        let due = self.now + self.delay[path];
        match (self.judge)(from, self.now, &packet) {
            Fate::Deliver => self.put(due, 1 - from, packet),
            Fate::Drop => {}
            Fate::Late(more) => self.put(due + more, 1 - from, packet),
            Fate::Twice => {
                self.put(due, 1 - from, packet.clone());
                self.put(due, 1 - from, packet);
            }
            Fate::Instead(other) => self.put(due, 1 - from, *other),
            Fate::Both(others) => others.into_iter().for_each(|other| self.put(due, 1 - from, other)),
        }
    }

    fn put(&mut self, due: Instant, to: usize, packet: Packet) {
        self.count += 1;
        self.in_flight.insert((due, self.count), (to, packet));
    }

    /// Injects a packet towards a host.
    pub fn inject(&mut self, to: usize, packet: Packet) {
        self.put(self.now, to, packet);
    }

    /// Processes the next event, if there is one before `end`.
    pub fn step(&mut self, end: Instant) -> bool {
        let arrival = self.in_flight.first_key_value().map_or(Instant::NEVER, |((due, _), _)| *due);
        let timers = [self.hosts[0].poll_timeout(), self.hosts[1].poll_timeout()];
        let next = arrival.min(timers[0]).min(timers[1]);
        if next > end || next == Instant::NEVER {
            self.now = self.now.max(end);
            return false;
        }
        self.now = self.now.max(next);
        if arrival <= self.now {
            let (_, (to, packet)) = self.in_flight.pop_first().unwrap();
            self.hosts[to].handle_packet(self.now, packet);
        } else {
            for (host, due) in timers.into_iter().enumerate() {
                if due <= self.now {
                    self.hosts[host].handle_timeout(self.now);
                }
            }
        }
        self.settle();
        true
    }

    /// Advances time by `span`.
    pub fn run(&mut self, span: Duration) {
        let end = self.now + span;
        while self.step(end) {}
    }

    /// Writes `data` as the buffer accepts it, for at most `limit`; returns the bytes left.
    pub fn write_all(&mut self, host: usize, id: ConnectionId, data: &[u8], limit: Duration) -> usize {
        let end = self.now + limit;
        let mut rest = Bytes::copy_from_slice(data);
        loop {
            let Ok(taken) = self.hosts[host].write(self.now, id, rest.clone()) else { return rest.len() };
            let _ = rest.split_to(taken);
            self.settle();
            if rest.is_empty() || !self.step(end) {
                return rest.len();
            }
        }
    }
}

/// Asserts that a packet can be encoded, with options in 40 bytes, and decodes to the same.
pub fn assert_fits_the_wire(packet: &Packet) {
    let Segment { source_port, destination_port, .. } = packet.segment;
    assert!(source_port > 0 && destination_port > 0, "from or to nowhere: {packet:?}");
    let mut bytes = Vec::new();
    packet.emit(&mut bytes).unwrap_or_else(|error| panic!("{error}: {packet:?}"));
    assert_eq!(&Packet::parse(&Bytes::from(bytes)).unwrap(), packet);
}

/// Bytes that vary with their position.
pub fn pattern(length: usize) -> Vec<u8> {
    (0..length as u64).map(|at| (at.wrapping_mul(2_654_435_761) >> 13) as u8).collect()
}
