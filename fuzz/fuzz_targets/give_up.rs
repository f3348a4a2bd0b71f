//! Two ends that abandon late data, and a middlebox that loses, repeats, delays and rewrites their packets: no
//! panic, records that are the stream, nothing acknowledged that was not seen, and bounded memory.

#![no_main]

use anabranch_mptcp::{
    BufferSize, ConnectionConfig, Endpoint, EndpointConfig, Event, Framing, MessageOptions, Policies,
};
use anabranch_policy::ids::{AddressId, ConnectionId};
use anabranch_policy::table::{self, Settings};
use anabranch_policy::{Duration, Instant, congestion, path_manager, reliability, scheduler};
use anabranch_wire::mptcp::notice::Notice;
use anabranch_wire::mptcp::{DataAck, DataSequence};
use anabranch_wire::{Flags, MessageHeader, MptcpOption, Packet};
use bytes::Bytes;
use core::net::{IpAddr, SocketAddr};
use libfuzzer_sys::fuzz_target;
use std::collections::VecDeque;
use std::sync::Arc;

const BUFFER: u64 = 64 * 1024;
const PORT: u16 = 4433;

fuzz_target!(|data: &[u8]| {
    let Some((setting, mut rest)) = data.split_first_chunk::<2>() else { return };
    let mut scene = Scene::new(*setting);
    while let Some((step, after)) = rest.split_first_chunk::<6>() {
        rest = after;
        scene.step(*step);
        if scene.again {
            return;
        }
        scene.check();
    }
});

struct Scene {
    hosts: [Endpoint; 2],
    now: Instant,
    /// On the way, from the client and from the server.
    under_way: [VecDeque<Packet>; 2],
    client: ConnectionId,
    server: Option<ConnectionId>,
    framing: Framing,
    read: u64,
    /// Nobody is between them yet.
    honest: bool,
    /// What the server had acknowledged when that ended, as it was on the wire.
    base: Option<u64>,
    /// How far beyond the highest byte is that has reached the server.
    seen: u64,
    /// A SYN that came again opened another connection, after the end of the first.
    again: bool,
}

impl Scene {
    fn new([what, who]: [u8; 2]) -> Self {
        let framing = if what & 1 == 0 { Framing::Messages } else { Framing::Bytes };
        let policy =
            |number: u8| ["spe", "both_ends", "too_late", "pr_mptcp", "mo_pr", "full"][usize::from(number % 6)];
        let level = if what & 2 == 0 { "data" } else { "subflow" };
        let config = |policy| config(policy, framing, level);
        let mut hosts = [endpoint(1), endpoint(2)];
        for path in [0, 1] {
            for (host, endpoint) in hosts.iter_mut().enumerate() {
                endpoint.handle_address_up(Instant::ZERO, AddressId(1 + path), address(host as u8, path));
            }
        }
        hosts[1].listen(PORT, config(policy(who))).expect("nobody else listens");
        let to = SocketAddr::new(address(1, 0), PORT);
        let from = Some(address(0, 0));
        let client = hosts[0].connect(Instant::ZERO, from, to, config(policy(who / 6))).expect("it can connect");
        let under_way = [VecDeque::new(), VecDeque::new()];
        let mut scene = Self {
            hosts,
            now: Instant::ZERO,
            under_way,
            client,
            server: None,
            framing,
            read: 0,
            honest: true,
            base: None,
            seen: 0,
            again: false,
        };
        scene.drain();
        scene.settle();
        scene.write(10, 0, 0);
        scene.settle();
        scene.honest = false;
        scene
    }

    /// Everything arrives.
    fn settle(&mut self) {
        for _ in 0..6 {
            self.pass(Duration::from_millis(50));
            while !self.under_way.iter().all(VecDeque::is_empty) {
                self.deliver(0, None);
                self.deliver(1, None);
            }
        }
    }

    fn step(&mut self, [what, which, a, b, c, d]: [u8; 6]) {
        let number = u32::from_be_bytes([a, b, c, d]);
        match what % 12 {
            0 | 1 => self.write(u16::from_be_bytes([a, b]) % 6_000, c, d),
            2 | 3 => self.deliver(usize::from(which & 1), None),
            4 => drop(self.under_way[usize::from(which & 1)].pop_front()),
            5 => {
                let way = &mut self.under_way[usize::from(which & 1)];
                let back = way.pop_front();
                way.extend(back);
            }
            6 => {
                let way = &mut self.under_way[usize::from(which & 1)];
                let first = way.front().cloned();
                way.extend(first);
            }
            7 | 8 => self.deliver(usize::from(which & 1), Some((which >> 1, number))),
            9 => self.pass(Duration::from_millis(u64::from(number % 3_000))),
            10 => self.read(),
            _ => self.act(which),
        }
        self.drain();
    }

    fn write(&mut self, length: u16, importance: u8, millis: u8) {
        let payload = vec![importance; usize::from(length)];
        if self.framing == Framing::Bytes {
            let _ = self.hosts[0].write(self.now, self.client, payload.into());
            return;
        }
        // What looks like a header is payload too.
        let inner =
            MessageHeader { length: u32::from(length), play_out: u64::from(millis) << 40, ..MessageHeader::default() };
        let payload = if importance & 1 == 0 { payload } else { inner.encode().expect("it fits").to_vec() };
        let play_out = Duration::from_millis(u64::from(millis) * if importance & 2 == 0 { 1 } else { 1_000_000 });
        let lifetime = (importance & 4 == 0).then(|| Duration::from_millis(u64::from(millis)));
        let options = MessageOptions { importance, play_out, lifetime };
        let _ = self.hosts[0].write_message(self.now, self.client, payload.into(), &options);
    }

    /// The next packet arrives, perhaps rewritten.
    fn deliver(&mut self, from: usize, forged: Option<(u8, u32)>) {
        let Some(mut packet) = self.under_way[from].pop_front() else { return };
        if let Some((what, number)) = forged {
            forge(&mut packet, what, number);
        }
        if from == 0 {
            self.record_seen(&packet);
        }
        self.hosts[1 - from].handle_packet(self.now, packet);
        self.drain();
    }

    fn record_seen(&mut self, packet: &Packet) {
        let mapping = packet.segment.options.dss.as_ref().and_then(|dss| dss.mapping);
        if let (Some(mapping), Some(base)) = (mapping, self.base)
            && let DataSequence::Long(number) = mapping.data_seq
        {
            let end = number.wrapping_sub(base).wrapping_add(u64::from(mapping.length));
            self.seen = if end < 1 << 62 { self.seen.max(end) } else { self.seen };
        }
    }

    fn act(&mut self, which: u8) {
        match which % 8 {
            0..=3 => _ = self.hosts[0].close(self.now, self.client),
            4 | 5 => _ = self.server.map(|id| self.hosts[1].close(self.now, id)),
            6 => _ = self.server.map(|id| self.hosts[1].discard(self.now, id)),
            _ => _ = self.hosts[0].abort(self.now, self.client),
        }
    }

    fn read(&mut self) {
        let Some(id) = self.server else { return };
        while let Some(record) = self.hosts[1].read_record(self.now, id) {
            assert_eq!(record.offset(), self.read, "{record:?}");
            assert!(record.length() > 0 || matches!(record, anabranch_mptcp::Record::Bytes { .. }), "{record:?}");
            self.read = record.end();
        }
    }

    fn pass(&mut self, span: Duration) {
        let end = self.now + span;
        for _ in 0..200 {
            let due = self.hosts.iter_mut().map(Endpoint::poll_timeout).min();
            let Some(due) = due.filter(|due| *due <= end) else {
                break;
            };
            self.now = self.now.max(due);
            self.hosts.iter_mut().for_each(|host| host.handle_timeout(self.now));
            self.drain();
        }
        self.now = end;
    }

    fn drain(&mut self) {
        for host in [0, 1] {
            for _ in 0..2_000 {
                let Some(packet) = self.hosts[host].poll_transmit(self.now) else { break };
                if host == 1 {
                    self.check_acknowledgement(&packet);
                }
                if self.under_way[host].len() < 2_000 {
                    self.under_way[host].push_back(packet);
                }
            }
            while let Some(event) = self.hosts[host].poll_event() {
                if let Event::Accepted { connection, .. } = event {
                    self.again = self.server.is_some();
                    self.server.get_or_insert(connection);
                }
            }
        }
    }

    fn check_acknowledgement(&mut self, packet: &Packet) {
        let ack = packet.segment.options.dss.as_ref().and_then(|dss| dss.data_ack);
        if let Some(DataAck::Long(number)) = ack {
            if self.honest {
                (self.base, self.seen) = (Some(number), 0);
            }
            let acknowledged = number.wrapping_sub(self.base.unwrap_or(number));
            // An old one comes again.
            let is_old = acknowledged > 1 << 62;
            assert!(is_old || acknowledged <= self.seen, "{acknowledged} acknowledged of {}", self.seen);
        }
    }

    fn check(&self) {
        let Some(id) = self.server else { return };
        if let Some(state) = self.hosts[1].receive_state(id) {
            assert!(state.readable + state.out_of_order <= state.buffer + 3_000, "{state:?}");
            assert!(state.buffer <= BUFFER);
        }
        if let Some(stats) = self.hosts[0].stats(self.client) {
            assert!(stats.bytes_abandoned_by_peer <= stats.bytes_acked);
        }
    }
}

/// A number, a length, a notice or a header that is not what was sent.
fn forge(packet: &mut Packet, what: u8, number: u32) {
    let segment = &mut packet.segment;
    let notice = |notice: Notice| notice.option();
    let small = number >> 16;
    match what % 8 {
        0 => segment.options.mptcp = vec![notice(Notice::Hello { heard: number & 1 == 1, repairs: number & 2 == 2 })],
        1 => {
            let near = segment.options.dss.as_ref().and_then(|dss| dss.mapping).map(|mapping| mapping.data_seq);
            let near = if let Some(DataSequence::Long(near)) = near { near as u32 } else { 0 };
            let data_seq = near.wrapping_add(number & 0xffff).wrapping_sub(0x8000);
            let length = if small & 1 == 1 { u32::MAX } else { small };
            segment.payload = Bytes::new();
            segment.options.dss = None;
            segment.options.mptcp = vec![notice(Notice::Withdrawn { data_seq, length })];
        }
        2 => {
            let abandoned = Notice::Abandoned {
                data_seq: number,
                length: number,
                total: number,
                reason: number as u8,
                worst: None,
            };
            segment.payload = Bytes::new();
            segment.options.mptcp = vec![notice(abandoned)];
        }
        3 => {
            if let Some(mapping) = segment.options.dss.as_mut().and_then(|dss| dss.mapping.as_mut())
                && let DataSequence::Long(data_seq) = mapping.data_seq
            {
                let moved = if number & 1 == 1 { u64::from(number) << 32 } else { u64::from(number % 8_192) };
                mapping.data_seq = DataSequence::Long(data_seq.wrapping_sub(4_096).wrapping_add(moved));
            }
        }
        4 => {
            if let Some(dss) = segment.options.dss.as_mut()
                && let Some(DataAck::Long(ack)) = dss.data_ack
            {
                dss.data_ack = Some(DataAck::Long(ack.wrapping_sub(2_048).wrapping_add(u64::from(number % 8_192))));
            }
        }
        5 => segment.options.dss.as_mut().into_iter().for_each(|dss| dss.data_fin = true),
        6 => segment.options.mptcp.push(MptcpOption::Fail { data_seq: u64::from(number) }),
        _ => {
            let header =
                MessageHeader { number, length: number, play_out: u64::from(number) << 15, importance: number as u8 };
            let length = segment.payload.len();
            let forged = header.encode().expect("less than 2^48");
            if length >= forged.len() && !segment.flags.contains(Flags::SYN) {
                segment.payload = [&forged[..], &segment.payload[forged.len()..]].concat().into();
            }
        }
    }
}

fn address(host: u8, path: u8) -> IpAddr {
    IpAddr::from([10, 0, path, 1 + host])
}

fn endpoint(seed: u8) -> Endpoint {
    let manager = table::build(path_manager::TABLE, "same_subnet", &Settings::new()).expect("it is in the table");
    Endpoint::new(EndpointConfig { seed: [seed; 32], ..EndpointConfig::default() }, manager)
}

fn config(policy: &'static str, framing: Framing, level: &'static str) -> ConnectionConfig {
    let settings = match policy {
        "spe" | "both_ends" => Settings::new().with("latency", 100).with("level", level).with("most_skipped", 0.5),
        _ => Settings::new(),
    };
    let policies = Policies {
        congestion: Arc::new(|| table::build(congestion::TABLE, "new_reno", &Settings::new()).expect("in the table")),
        scheduler: Arc::new(|| table::build(scheduler::TABLE, "lowest_rtt", &Settings::new()).expect("in the table")),
        reliability: Arc::new(move || table::build(reliability::TABLE, policy, &settings).expect("in the table")),
    };
    let mut config = ConnectionConfig::new(policies);
    config.framing = framing;
    config.receive_buffer = BufferSize::Fixed(BUFFER);
    config.buffers_per_subflow = false;
    config
}
