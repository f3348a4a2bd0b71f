//! A SYN flood (RFC 4987): its memory, and its effect on clients that complete the handshake.

use anabranch_mptcp::{ConnectionConfig, Endpoint, EndpointConfig, Event, Policies};
use anabranch_policy::ids::{AddressId, ConnectionId};
use anabranch_policy::table::{self, Settings};
use anabranch_policy::time::{Duration, Instant};
use anabranch_policy::{congestion, path_manager, scheduler};
use anabranch_wire::mptcp::{CapableFlags, CapableKeys};
use anabranch_wire::tcp::Timestamps;
use anabranch_wire::{Ecn, Flags, IpHeader, MptcpOption, Packet, Segment, SeqNumber};
use bytes::Bytes;
use stats_alloc::{INSTRUMENTED_SYSTEM, StatsAlloc};
use std::alloc::System;
use std::collections::VecDeque;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// Allocated heap bytes.
fn in_use() -> usize {
    let stats = ALLOCATOR.stats();
    stats.bytes_allocated - stats.bytes_deallocated
}

const PORT: u16 = 443;
const SERVER: [u8; 4] = [10, 0, 0, 1];
const CLIENT: [u8; 4] = [192, 168, 0, 1];

/// Half of the honest client's round trip.
const DELAY: Duration = Duration::from_millis(50);

fn config() -> ConnectionConfig {
    ConnectionConfig::new(Policies {
        congestion: Arc::new(|| table::build(congestion::TABLE, "lia", &Settings::new()).unwrap()),
        scheduler: Arc::new(|| table::build(scheduler::TABLE, "lowest_rtt", &Settings::new()).unwrap()),
        reliability: anabranch_mptcp::config::fully_reliable(),
    })
}

fn host(seed: u8, address: [u8; 4]) -> Endpoint {
    let manager = table::build(path_manager::TABLE, "full_mesh", &Settings::new()).unwrap();
    let mut host = Endpoint::new(EndpointConfig { seed: [seed; 32], ..EndpointConfig::default() }, manager);
    host.handle_address_up(Instant::ZERO, AddressId(1), IpAddr::from(address));
    host
}

/// The nth SYN of the flood, as from an MPTCP client.
fn syn(nth: u32) -> Packet {
    let [_, a, b, c] = nth.to_be_bytes();
    let flags = CapableFlags { hmac_sha256: true, ..CapableFlags::default() };
    let mut segment = Segment {
        source_port: 40_000,
        destination_port: PORT,
        seq: SeqNumber(nth.wrapping_mul(77_777)),
        flags: Flags::SYN,
        window: 65_535,
        ..Segment::default()
    };
    segment.options.maximum_segment_size = Some(1460);
    segment.options.window_scale = Some(7);
    segment.options.sack_permitted = true;
    segment.options.timestamps = Some(Timestamps { value: nth, echo: 0 });
    segment.options.mptcp.push(MptcpOption::Capable { version: 1, flags, keys: CapableKeys::None });
    let (source, destination) = (IpAddr::from([11, a, b, c]), IpAddr::from(SERVER));
    Packet { ip: IpHeader { source, destination, ecn: Ecn::NotCapable, dscp: 0, hop_limit: 64 }, segment }
}

/// A server, a flood, and an honest client with a round trip of 100 ms.
struct Siege {
    hosts: [Endpoint; 2],
    now: Instant,
    under_way: VecDeque<(Instant, usize, Packet)>,
    sent: u32,
    read: Vec<u8>,
    closed: bool,
}

impl Siege {
    fn new() -> Self {
        let mut hosts = [host(1, SERVER), host(2, CLIENT)];
        hosts[0].listen(PORT, config()).unwrap();
        Self { hosts, now: Instant::ZERO, under_way: VecDeque::new(), sent: 0, read: Vec::new(), closed: false }
    }

    fn drain(&mut self) {
        for host in [0, 1] {
            loop {
                while let Some(packet) = self.hosts[host].poll_transmit(self.now) {
                    // Packets to the flood's addresses are dropped.
                    let honest = [IpAddr::from(CLIENT), IpAddr::from(SERVER)].contains(&packet.ip.destination);
                    if honest {
                        self.under_way.push_back((self.now + DELAY, 1 - host, packet));
                    }
                }
                let Some(event) = self.hosts[host].poll_event() else { break };
                match event {
                    Event::Readable(id) if host == 0 => {
                        while let Some(bytes) = self.hosts[0].read(self.now, id, usize::MAX) {
                            self.read.extend_from_slice(&bytes);
                        }
                    }
                    Event::Closed(..) if host == 1 => self.closed = true,
                    _ => {}
                }
            }
        }
    }

    fn run(&mut self, end: Instant) {
        loop {
            self.drain();
            let arrival = self.under_way.front().map_or(Instant::NEVER, |(due, ..)| *due);
            let next = arrival.min(self.hosts[0].poll_timeout()).min(self.hosts[1].poll_timeout());
            if next > end {
                break;
            }
            self.now = self.now.max(next);
            while self.under_way.front().is_some_and(|(due, ..)| *due <= self.now) {
                let (_, host, packet) = self.under_way.pop_front().unwrap();
                self.hosts[host].handle_packet(self.now, packet);
            }
            self.hosts.iter_mut().for_each(|host| host.handle_timeout(self.now));
        }
        self.now = end;
    }

    /// Sends `count` SYNs, evenly spread over `span`.
    fn flood(&mut self, count: u32, span: Duration) {
        let step = Duration::from_nanos(span.as_nanos() / u64::from(count));
        for _ in 0..count {
            self.hosts[0].handle_packet(self.now, syn(self.sent));
            self.sent += 1;
            self.run(self.now + step);
        }
    }

    fn connect(&mut self) -> ConnectionId {
        let id = self.hosts[1].connect(self.now, None, SocketAddr::from((SERVER, PORT)), config()).unwrap();
        self.hosts[1].write(self.now, id, Bytes::from_static(b"hello")).unwrap();
        id
    }
}

/// Whether a client that connects in the middle of a one-second flood succeeds; otherwise it is reset.
fn gets_through(syns_per_second: u32) -> bool {
    let mut siege = Siege::new();
    siege.flood(syns_per_second / 2, Duration::from_millis(500));
    siege.connect();
    siege.flood(syns_per_second / 2, Duration::from_millis(500));
    let through = siege.read == b"hello";
    assert_ne!(through, siege.closed, "{syns_per_second}");
    through
}

/// A single test, so that no other allocates meanwhile.
#[test]
fn a_flood_of_100_000_syns_takes_bounded_memory_and_keeps_nobody_out_for_long() {
    let mut siege = Siege::new();
    let before = in_use();
    let mut most = (0, 0);
    for _ in 0..1_000 {
        siege.flood(100, Duration::from_millis(5));
        most = (most.0.max(in_use() - before), most.1.max(siege.hosts[0].connection_count()));
    }
    let each = most.0 / most.1;
    eprintln!("{} bytes for {} handshakes: {each} each", most.0, most.1);
    assert_eq!(most.1, 4_096);
    // The tables grow by doubling, which is included.
    assert!(each < 4_096, "{each}");
    let counters = siege.hosts[0].counters();
    let left = siege.hosts[0].connection_count() as u64;
    assert_eq!(counters.evicted_handshakes + left, 100_000);
    // A client that connects now succeeds.
    siege.connect();
    siege.run(siege.now + Duration::from_secs(1));
    assert_eq!(siege.read, b"hello");
    // The SYN/ACK is sent six times, after 1, 2, 4, 8 and 16 s; the handshake is dropped 32 s after the last.
    siege.run(siege.now + Duration::from_secs(63));
    assert_eq!(siege.hosts[0].connection_count(), 1);
    let after = in_use() - before;
    eprintln!("{after} bytes afterwards");
    assert!(after < most.0 / 4, "{after}");

    // When all places are taken a quarter is evicted: at least 3,072 and at most 4,096 SYNs arrive before a handshake
    // is dropped. With a round trip of 100 ms this is 30,720 and 40,960 per second.
    for (rate, through) in [(1_000, true), (10_000, true), (30_000, true), (42_000, false), (100_000, false)] {
        assert_eq!(gets_through(rate), through, "{rate} SYNs a second");
    }
}
