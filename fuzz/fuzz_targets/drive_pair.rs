//! Two endpoints, and somebody between them who loses, repeats, delays, splits, rewrites and strips: no panic, no packets
//! without end, what is read is what was written, and in the end all ends.

#![no_main]

mod setting;

use anabranch_mptcp::{Endpoint, Event};
use anabranch_policy::ids::{AddressId, ConnectionId};
use anabranch_policy::{Duration, Instant};
use anabranch_wire::mptcp::{DataAck, DataSequence};
use anabranch_wire::tcp::{SackBlock, SackBlocks};
use anabranch_wire::{Ecn, Flags, MptcpOption, Packet};
use bytes::Bytes;
use core::net::SocketAddr;
use libfuzzer_sys::fuzz_target;
use setting::{BUFFER, PORT, address, byte, config, endpoint};
use std::collections::VecDeque;

/// What a host may say at one moment without being given anything.
const BURST: usize = 600;

fuzz_target!(|data: &[u8]| {
    let Some((setting, mut rest)) = data.split_first_chunk::<7>() else { return };
    let mut scene = Scene::new(*setting);
    while let Some((step, after)) = rest.split_first_chunk::<6>() {
        rest = after;
        scene.step(*step);
        scene.check();
    }
    scene.end();
});

struct Scene {
    hosts: [Endpoint; 2],
    now: Instant,
    /// On the way, from the client and from the server.
    under_way: [VecDeque<Packet>; 2],
    ids: [Option<ConnectionId>; 2],
    written: [u64; 2],
    read: [u64; 2],
    /// Somebody has said something that can change what is read: data under other numbers, or other data.
    lied: bool,
}

impl Scene {
    fn new([a, b, c, d, e, f, who]: [u8; 7]) -> Self {
        let manager = ["full_mesh", "anabranch", "same_subnet", "lm3"][usize::from(who & 3)];
        let mut hosts = [endpoint(1, manager), endpoint(2, manager)];
        for path in 0..2 {
            for host in 0..2 {
                hosts[usize::from(host)].handle_address_up(Instant::ZERO, AddressId(1 + path), address(host, path));
            }
        }
        hosts[1].listen(PORT, config([d, e, f])).expect("nobody else listens");
        let to = SocketAddr::new(address(1, 0), PORT);
        let client = hosts[0].connect(Instant::ZERO, None, to, config([a, b, c])).expect("it can connect");
        let under_way = [VecDeque::new(), VecDeque::new()];
        let ids = [Some(client), None];
        let mut scene = Self { hosts, now: Instant::ZERO, under_way, ids, written: [0; 2], read: [0; 2], lied: false };
        scene.drain();
        // Much happens after a beginning in peace.
        if who & 4 != 0 {
            scene.write(0, 500);
            for _ in 0..4 {
                scene.everything_arrives();
                scene.pass(Duration::from_millis(50));
            }
        }
        scene
    }

    fn step(&mut self, [what, which, a, b, c, d]: [u8; 6]) {
        let side = usize::from(which & 1);
        let number = u32::from_be_bytes([a, b, c, d]);
        match what % 20 {
            0 | 1 => self.write(side, u16::from_be_bytes([a, b]) % 20_000),
            2 | 3 => self.deliver(side, None),
            4 => self.everything_arrives(),
            5 => drop(self.under_way[side].pop_front()),
            6 => {
                let back = self.under_way[side].pop_front();
                self.under_way[side].extend(back);
            }
            7 => {
                let way = &mut self.under_way[side];
                let chosen = way.get(usize::from(a) % way.len().max(1)).cloned();
                way.extend(chosen);
            }
            8 | 9 => self.deliver(side, Some((which >> 1, number))),
            10 => self.pass(Duration::from_millis(u64::from(number % 4_000))),
            11 | 12 => self.read(side, usize::from(u16::from_be_bytes([a, b]))),
            13 => self.split(side, a),
            14 => self.addresses(which, side),
            15 if which & 0xf0 == 0 => self.act(which, side),
            16 => self.strip(side, a),
            17 => self.pass(Duration::from_millis(20)),
            _ => {
                self.everything_arrives();
                self.read(side, usize::MAX);
            }
        }
        self.drain();
    }

    fn write(&mut self, side: usize, length: u16) {
        let Some(id) = self.ids[side] else { return };
        let payload = setting::bytes(self.written[side], usize::from(length), side as u8);
        if let Ok(taken) = self.hosts[side].write(self.now, id, payload) {
            self.written[side] += taken as u64;
        }
    }

    fn deliver(&mut self, from: usize, forged: Option<(u8, u32)>) {
        let Some(mut packet) = self.under_way[from].pop_front() else { return };
        if let Some((what, number)) = forged {
            self.lied |= forge(&mut packet, what, number);
        }
        self.hosts[1 - from].handle_packet(self.now, packet);
        self.drain();
    }

    fn everything_arrives(&mut self) {
        for from in [0, 1] {
            for _ in 0..self.under_way[from].len() {
                self.deliver(from, None);
            }
        }
    }

    /// A middlebox cuts a segment in two and repeats its options on both, as offloading hardware does.
    fn split(&mut self, from: usize, at: u8) {
        let Some(packet) = self.under_way[from].pop_front() else { return };
        let (mut first, mut second) = (packet.clone(), packet);
        let length = first.segment.payload.len();
        if length < 2 || first.segment.flags.intersects(Flags::SYN | Flags::RST) {
            self.under_way[from].push_front(first);
            return;
        }
        let at = 1 + usize::from(at) % (length - 1);
        second.segment.payload = first.segment.payload.split_off(at);
        second.segment.seq += at as u32;
        first.segment.flags = Flags(first.segment.flags.0 & !Flags::FIN.0);
        self.under_way[from].push_front(second);
        self.under_way[from].push_front(first);
    }

    /// A middlebox takes options away.
    fn strip(&mut self, from: usize, which: u8) {
        let Some(packet) = self.under_way[from].front_mut() else { return };
        let options = &mut packet.segment.options;
        match which % 5 {
            0 => (options.mptcp, options.dss) = (Vec::new(), None),
            1 => options.timestamps = None,
            2 => options.sack = SackBlocks::new(),
            3 => options.sack_permitted = false,
            _ => options.window_scale = options.window_scale.filter(|_| which & 32 == 0),
        }
    }

    fn addresses(&mut self, which: u8, side: usize) {
        let path = which >> 1 & 1;
        match which & 128 {
            0 => self.hosts[side].handle_address_up(self.now, AddressId(1 + path), address(side as u8, path)),
            _ => self.hosts[side].handle_address_down(self.now, AddressId(1 + path)),
        }
    }

    fn act(&mut self, which: u8, side: usize) {
        let Some(id) = self.ids[side] else { return };
        match which >> 1 & 7 {
            0..=3 => _ = self.hosts[side].close(self.now, id),
            4 => _ = self.hosts[side].discard(self.now, id),
            5 => _ = self.hosts[side].set_nagle(self.now, id, false),
            6 => self.hosts[1].unlisten(PORT),
            _ => _ = self.hosts[side].abort(self.now, id),
        }
    }

    fn read(&mut self, side: usize, most: usize) {
        let Some(id) = self.ids[side] else { return };
        while let Some(bytes) = self.hosts[side].read(self.now, id, most) {
            if bytes.is_empty() {
                break;
            }
            if !self.lied {
                for (at, got) in bytes.iter().enumerate() {
                    let expected = byte(self.read[side] + at as u64, 1 - side as u8);
                    assert_eq!(*got, expected, "byte {} of the stream", self.read[side] + at as u64);
                }
                assert!(self.read[side] + bytes.len() as u64 <= self.written[1 - side]);
            }
            self.read[side] += bytes.len() as u64;
        }
    }

    fn pass(&mut self, span: Duration) {
        let end = self.now + span;
        let (mut since, mut fired) = (self.now, 0);
        loop {
            let due = self.hosts.iter_mut().map(Endpoint::poll_timeout).min().expect("there are two");
            if due > end || (span > Duration::from_secs(60) && self.is_over()) {
                self.now = self.now.max(end);
                return;
            }
            if due > since + Duration::from_millis(1) {
                (since, fired) = (due, 0);
            }
            fired += 1;
            assert!(fired < 500, "timers without end");
            self.now = self.now.max(due);
            self.hosts.iter_mut().for_each(|host| host.handle_timeout(self.now));
            self.drain();
        }
    }

    fn drain(&mut self) {
        for host in [0, 1] {
            let mut said = 0;
            loop {
                while let Some(packet) = self.hosts[host].poll_transmit(self.now) {
                    said += 1;
                    assert!(said < BURST, "packets without end: {packet:?}");
                    let mut wire = Vec::new();
                    packet.emit(&mut wire).expect("what is sent fits the wire");
                    assert_eq!(Packet::parse(&wire.into()).as_ref(), Ok(&packet));
                    if self.under_way[host].len() < 500 {
                        self.under_way[host].push_back(packet);
                    }
                }
                let Some(event) = self.hosts[host].poll_event() else { break };
                if let (1, Event::Accepted { connection, .. }) = (host, event) {
                    // A SYN that comes again late opens another.
                    self.ids[1].get_or_insert(connection);
                }
            }
        }
    }

    fn check(&self) {
        for (host, id) in self.hosts.iter().zip(self.ids) {
            let Some(id) = id else { continue };
            if let Some(state) = host.receive_state(id) {
                assert!(state.buffer <= BUFFER, "{state:?}");
                assert!(state.readable + state.out_of_order <= BUFFER + 3_000, "{state:?}");
            }
            assert!(host.subflow_views(self.now, id).len() <= 4);
        }
    }

    /// Whether both connections are forgotten.
    fn is_over(&self) -> bool {
        let is_left = |(host, id): (&Endpoint, Option<ConnectionId>)| id.is_some_and(|id| host.stats(id).is_some());
        !self.hosts.iter().zip(self.ids).any(is_left)
    }

    /// Nothing arrives any more and the applications give up: everything ends.
    fn end(&mut self) {
        for (side, id) in self.ids.into_iter().enumerate() {
            self.read(side, usize::MAX);
            let _ = id.map(|id| self.hosts[side].discard(self.now, id));
        }
        self.drain();
        self.pass(Duration::from_secs(3600));
        assert!(self.is_over(), "it goes on for ever");
    }
}

/// Something else than what was sent. Returns whether it may change what the other side reads, and not only whether or when it
/// reads it.
fn forge(packet: &mut Packet, what: u8, number: u32) -> bool {
    let segment = &mut packet.segment;
    let (small, tiny) = (number % 70_000, number as u8);
    let signed = small.wrapping_sub(35_000);
    match what % 16 {
        0 => segment.seq += if tiny & 1 == 0 { signed } else { number },
        1 => segment.ack += if tiny & 1 == 0 { signed } else { number },
        2 => segment.window = number as u16,
        3 => segment.flags = Flags(segment.flags.0 ^ 1 << (number % 8)),
        4 => segment.options.timestamps.iter_mut().for_each(|stamps| stamps.value = stamps.value.wrapping_add(signed)),
        5 => segment.options.timestamps.iter_mut().for_each(|stamps| stamps.echo = stamps.echo.wrapping_add(signed)),
        6 => {
            let start = segment.ack + signed;
            segment.options.sack.push(SackBlock { start, end: start + (number >> 16) });
        }
        7 => {
            if let Some(Some(DataAck::Long(ack))) = segment.options.dss.as_mut().map(|dss| dss.data_ack) {
                let moved = DataAck::Long(ack.wrapping_add(signed as i32 as i64 as u64));
                segment.options.dss.iter_mut().for_each(|dss| dss.data_ack = Some(moved));
            }
        }
        8 => {
            if let Some(mapping) = segment.options.dss.as_mut().and_then(|dss| dss.mapping.as_mut()) {
                match tiny & 3 {
                    0 => mapping.length = (number >> 16) as u16,
                    1 => mapping.subflow_seq = mapping.subflow_seq.wrapping_add(signed),
                    _ => {
                        if let DataSequence::Long(data_seq) = mapping.data_seq {
                            let moved = data_seq.wrapping_add(signed as i32 as i64 as u64);
                            mapping.data_seq = DataSequence::Long(moved);
                        }
                    }
                }
            }
        }
        9 => segment.options.dss.iter_mut().for_each(|dss| dss.data_fin = !dss.data_fin),
        10 => segment.options.mptcp = vec![MptcpOption::Fail { data_seq: u64::from(number) }],
        11 => segment.options.mptcp = vec![MptcpOption::Priority { backup: number & 1 == 0 }],
        12 => segment.options.mptcp = vec![MptcpOption::RemoveAddress { address_ids: vec![tiny & 3] }],
        13 => packet.ip.ecn = Ecn::Congestion,
        14 if !segment.payload.is_empty() => {
            let mut payload = segment.payload.to_vec();
            let at = number as usize % payload.len();
            payload[at] ^= 1;
            segment.payload = Bytes::from(payload);
        }
        _ => segment.options.maximum_segment_size = segment.options.maximum_segment_size.map(|_| number as u16),
    }
    !matches!(what % 16, 2 | 4..=6 | 11..=13 | 15)
}
