//! What a segment costs the engine at both ends: one transfer over paths of 1 Gbit/s without loss, without the lab around it.
//!
//! `segment_cost POLICIES [PATHS [WINDOW [SEGMENTS]]]`: `default` (what the network commands run), `plain` or a list as
//! `congestion=cubic,scheduler=redundant`; a window of so many segments on each path, which the delay makes. What is counted
//! begins when the window has been filled, in the function `counted`: under callgrind with `--toggle-collect='*counted*'` the
//! instructions are those of so many segments.
#![allow(clippy::print_stdout)]

use anabranch_mptcp::{BufferSize, ConnectionConfig, Endpoint, EndpointConfig, Event, Policies, TcpConfig};
use anabranch_policy::combination::Combination;
use anabranch_policy::ids::{AddressId, ConnectionId};
use anabranch_policy::time::{Duration, Instant};
use anabranch_wire::Packet;
use bytes::Bytes;
use std::cmp::Reverse;
use std::collections::VecDeque;
use std::collections::binary_heap::{BinaryHeap, PeekMut};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

/// Time of a packet of 1,500 bytes on a path of 1 Gbit/s.
const SERIALIZATION: Duration = Duration::from_micros(12);
const SERVER: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
const PORT: u16 = 443;
/// Bytes that the application writes at a time.
const PIECE: usize = 64 * 1024;

/// One direction of a path.
#[derive(Default)]
struct Pipe {
    free_at: Instant,
    packets: VecDeque<(Instant, Packet)>,
}

impl Pipe {
    fn put(&mut self, now: Instant, delay: Duration, packet: Packet) {
        let full = !packet.segment.payload.is_empty();
        self.free_at = self.free_at.max(now) + if full { SERIALIZATION } else { Duration::ZERO };
        self.packets.push_back((self.free_at + delay, packet));
    }

    fn next(&self) -> Instant {
        self.packets.front().map_or(Instant::NEVER, |(at, _)| *at)
    }
}

/// Client and server, and the paths between them: their index is the last octet but one of the client's address.
struct Lab {
    hosts: [Endpoint; 2],
    pipes: Vec<[Pipe; 2]>,
    /// When the first packet of each pipe that has one arrives: path, and who sent it.
    arrivals: BinaryHeap<Reverse<(Instant, usize, usize)>>,
    delay: Duration,
    now: Instant,
    connection: ConnectionId,
    piece: Bytes,
    read: u64,
}

fn client_address(path: usize) -> Ipv4Addr {
    Ipv4Addr::new(10, 1, path as u8, 1)
}

fn path_of(packet: &Packet) -> usize {
    let of = |address: IpAddr| match address {
        IpAddr::V4(address) if address != SERVER => Some(usize::from(address.octets()[2])),
        _ => None,
    };
    of(packet.ip.source).or_else(|| of(packet.ip.destination)).unwrap_or(0)
}

impl Lab {
    fn new(policies: &Combination, paths: usize, window: u64) -> Self {
        let host = |seed: u8| {
            let manager = policies.build_path_manager().expect("there is such a path manager");
            Endpoint::new(EndpointConfig { seed: [seed; 32], ..EndpointConfig::default() }, manager)
        };
        let mut hosts = [host(1), host(2)];
        let buffer = 4 * 1_500 * window * paths as u64 + (1 << 20);
        let config = ConnectionConfig {
            receive_buffer: BufferSize::Fixed(buffer),
            send_buffer: buffer,
            tcp: TcpConfig { mtu: 1_500, ..TcpConfig::default() },
            ..ConnectionConfig::new(Policies::of(policies).expect("there are such policies"))
        };
        let now = Instant::ZERO;
        hosts[1].handle_address_up(now, AddressId(1), SERVER.into());
        for path in 0..paths {
            hosts[0].handle_address_up(now, AddressId(path as u8 + 1), client_address(path).into());
        }
        hosts[1].listen(PORT, config.clone()).expect("the port is free");
        let connection = hosts[0].connect(now, None, SocketAddr::from((SERVER, PORT)), config).expect("it can");
        let pipes = (0..paths).map(|_| <[Pipe; 2]>::default()).collect();
        let delay = SERIALIZATION * window / 2;
        Self {
            hosts,
            pipes,
            arrivals: BinaryHeap::new(),
            delay,
            now,
            connection,
            piece: Bytes::from(vec![7; PIECE]),
            read: 0,
        }
    }

    /// What the applications do.
    fn apply(&mut self) {
        while let Some(event) = self.hosts[1].poll_event() {
            if let Event::Readable(id) = event {
                while let Some(bytes) = self.hosts[1].read(self.now, id, usize::MAX) {
                    self.read += bytes.len() as u64;
                }
            }
        }
        while self.hosts[0].poll_event().is_some() {}
        while self.hosts[0].write(self.now, self.connection, self.piece.clone()).is_ok_and(|taken| taken > 0) {}
    }

    fn drain(&mut self) {
        loop {
            self.apply();
            let mut sent = false;
            for host in 0..2 {
                while let Some(packet) = self.hosts[host].poll_transmit(self.now) {
                    let path = path_of(&packet);
                    let pipe = &mut self.pipes[path][host];
                    let first = pipe.packets.is_empty();
                    pipe.put(self.now, self.delay, packet);
                    if first {
                        self.arrivals.push(Reverse((pipe.next(), path, host)));
                    }
                    sent = true;
                }
            }
            if !sent {
                return;
            }
        }
    }

    fn step(&mut self) {
        self.drain();
        let arrival = self.arrivals.peek().map_or(Instant::NEVER, |Reverse((at, ..))| *at);
        let next = arrival.min(self.hosts[0].poll_timeout()).min(self.hosts[1].poll_timeout());
        self.now = self.now.max(next);
        while let Some(mut arrival) = self.arrivals.peek_mut().filter(|arrival| arrival.0.0 <= self.now) {
            let Reverse((_, path, from)) = *arrival;
            let pipe = &mut self.pipes[path][from];
            let Some((_, packet)) = pipe.packets.pop_front() else { unreachable!("its arrival is known") };
            match pipe.next() {
                Instant::NEVER => drop(PeekMut::pop(arrival)),
                next => arrival.0.0 = next,
            }
            self.hosts[1 - from].handle_packet(self.now, packet);
        }
        self.hosts.iter_mut().for_each(|host| host.handle_timeout(self.now));
    }

    fn run(&mut self, bytes: u64) {
        let until = self.read + bytes;
        while self.read < until {
            self.step();
        }
    }

    fn segments(&self) -> u64 {
        self.hosts[0].stats(self.connection).map_or(0, |stats| stats.segments_sent)
    }
}

#[inline(never)]
fn counted(lab: &mut Lab, bytes: u64) {
    lab.run(bytes);
}

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let number = |at: usize, default: u64| words.get(at).map_or(default, |word| word.parse().expect("a whole number"));
    let policies = match words.first().map_or("default", String::as_str) {
        "default" => Combination {
            congestion: anabranch_policy::combination::Choice::new("bounded_cubic"),
            ..Combination::anabranch()
        },
        "plain" => Combination::default(),
        list => list.parse().expect("a combination of policies"),
    };
    let (paths, window) = (number(1, 1), number(2, 100));
    let segments = number(3, 10_000);
    let mut lab = Lab::new(&policies, paths as usize, window);
    lab.run(1_400 * paths * (4 * window + 5_000));
    let (began, sent, at) = (std::time::Instant::now(), lab.segments(), lab.now);
    counted(&mut lab, 1_400 * segments);
    let (sent, took) = (lab.segments() - sent, began.elapsed());
    println!(
        "{sent} segments in {:.4} s of the network's time, {:.0} ns each of ours",
        (lab.now - at).as_secs_f64(),
        took.as_nanos() as f64 / sent.max(1) as f64
    );
}
