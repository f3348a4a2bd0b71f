//! One endpoint, and a peer that knows its numbers and means it no good: no panic, no packets without end, memory within the
//! limits, and when the peer falls silent all ends by itself.

#![no_main]

mod setting;

use anabranch_mptcp::keys::{Derived, Key, Keys};
use anabranch_mptcp::{Endpoint, Event};
use anabranch_policy::ids::{AddressId, ConnectionId};
use anabranch_policy::{Duration, Instant};
use anabranch_wire::mptcp::{CapableFlags, CapableKeys, DataAck, DataSequence, Dss, Mapping, dss_checksum};
use anabranch_wire::tcp::{SackBlock, TcpOptions, Timestamps};
use anabranch_wire::{Ecn, Flags, IpHeader, MptcpOption, Packet, Segment, SeqNumber};
use bytes::Bytes;
use core::net::SocketAddr;
use libfuzzer_sys::fuzz_target;
use setting::{BUFFER, PORT, address, config, endpoint};

/// What one input may make the endpoint say at once.
const BURST: usize = 400;

/// Flows that the peer remembers.
const FLOWS: usize = 24;

fuzz_target!(|data: &[u8]| {
    let Some((setting, mut rest)) = data.split_first_chunk::<4>() else { return };
    let mut scene = Scene::new(*setting);
    while let Some((step, after)) = rest.split_first_chunk::<8>() {
        rest = after;
        scene.step(*step);
        scene.check();
    }
    scene.end();
});

/// One TCP, as the peer knows it.
#[derive(Clone, Copy)]
struct Flow {
    peer: SocketAddr,
    host: SocketAddr,
    peer_initial: SeqNumber,
    /// What the peer sends next, and what it has seen of the host.
    next: SeqNumber,
    seen: SeqNumber,
    /// The host's last timestamp, and the peer's.
    stamp: u32,
    clock: u32,
    stamps: bool,
    /// The host's random number of a join.
    nonce: u32,
}

struct Scene {
    host: Endpoint,
    now: Instant,
    keys: Keys,
    remote: Derived,
    flows: Vec<Flow>,
    ids: Vec<ConnectionId>,
    /// Offset of the next byte of the peer's stream, and of what it has seen of the host's.
    offset: u64,
    seen_offset: u64,
    checksum: bool,
}

/// Distances worth trying, from small to half the sequence space.
fn near(which: u8) -> u32 {
    const STEPS: [u32; 16] = [
        0,
        0,
        0,
        1,
        2,
        500,
        1_000,
        1_460,
        5_000,
        30_000,
        65_535,
        131_072,
        1 << 24,
        (1 << 30) - 1,
        1 << 31,
        u32::MAX / 2,
    ];
    let step = STEPS[usize::from(which & 15)];
    let step = step.wrapping_add(u32::from(which >> 5));
    if which & 16 == 0 { step } else { step.wrapping_neg() }
}

/// The same for numbers of 64 bits.
fn far(which: u8) -> u64 {
    match which {
        0xff => u64::MAX / 2,
        0xfe => u64::MAX,
        0xfd => 1 << 32,
        _ => near(which) as i32 as i64 as u64,
    }
}

impl Scene {
    fn new([what, tcp, policy, role]: [u8; 4]) -> Self {
        let manager = ["full_mesh", "anabranch", "same_subnet", "lm3"][usize::from(role >> 1 & 3)];
        let mut host = endpoint(9, manager);
        for path in 0..3 {
            host.handle_address_up(Instant::ZERO, AddressId(1 + path), address(1, path));
        }
        let config = config([what, tcp, policy]);
        let mut ids = Vec::new();
        if role & 1 == 1 {
            let to = SocketAddr::new(address(0, 0), PORT);
            ids.extend(host.connect(Instant::ZERO, None, to, config.clone()));
        }
        host.listen(PORT, config).expect("nobody else listens");
        let keys = Keys { local: Key(0x0102_0304_0506_0708), remote: Key(0) };
        let mut scene = Self {
            host,
            now: Instant::ZERO,
            keys,
            remote: Key(0).derive(),
            flows: Vec::new(),
            ids,
            offset: 0,
            seen_offset: 0,
            checksum: false,
        };
        scene.drain();
        scene
    }

    fn step(&mut self, [what, which, a, b, c, d, e, f]: [u8; 8]) {
        let flow = usize::from(which) % self.flows.len().max(1);
        match what % 16 {
            0 => self.syn(which, a, b),
            1 | 2 => self.answer_syn(flow, a),
            3..=5 => self.segment(flow, [a, b, c, d, e, f]),
            6 | 7 => self.data(flow, u16::from_be_bytes([a, b]) % 1_400, c),
            8 => self.acknowledge(flow),
            9 => self.join_proof(flow, a),
            10 => self.pass(Duration::from_millis(u64::from(u16::from_be_bytes([a, b])))),
            11 => self.application(which, u16::from_be_bytes([a, b])),
            12 => self.addresses(which),
            _ => self.signal(flow, a, [b, c, d, e]),
        }
        self.drain();
    }

    /// A SYN from somewhere.
    fn syn(&mut self, which: u8, options: u8, place: u8) {
        if self.flows.len() >= FLOWS {
            self.flows.remove(0);
        }
        let path = place % 3;
        let peer = SocketAddr::new(address(0, path), 40_000 + u16::from(place));
        let peer_initial = SeqNumber(if which & 1 == 0 { 5_000 } else { u32::MAX - 100 });
        let flow = Flow {
            peer,
            host: SocketAddr::new(address(1, path), PORT),
            peer_initial,
            next: peer_initial + 1,
            seen: SeqNumber(0),
            stamp: 0,
            clock: 1_000,
            stamps: options & 8 != 0,
            nonce: 0,
        };
        self.flows.retain(|old| (old.peer, old.host) != (flow.peer, flow.host));
        self.flows.push(flow);
        let mut said = self.syn_options(options);
        if flow.stamps {
            said.timestamps = Some(Timestamps { value: flow.clock, echo: 0 });
        }
        self.send(self.flows.len() - 1, peer_initial, SeqNumber(0), Flags::SYN, said, 0);
    }

    fn syn_options(&self, options: u8) -> TcpOptions {
        let flags = CapableFlags {
            hmac_sha256: options & 64 == 0,
            checksum_required: options & 128 != 0,
            ..CapableFlags::default()
        };
        let mptcp = match options & 3 {
            0 | 1 => vec![MptcpOption::Capable { version: 1, flags, keys: CapableKeys::None }],
            2 => vec![MptcpOption::JoinSyn {
                backup: options & 4 != 0,
                address_id: options >> 5,
                token: self.remote.token,
                nonce: 77,
            }],
            _ => Vec::new(),
        };
        TcpOptions {
            mptcp,
            maximum_segment_size: (options & 4 == 0).then_some(u16::from(options) * 20),
            sack_permitted: options & 16 == 0,
            window_scale: (options & 32 == 0).then_some(options & 15),
            ..TcpOptions::default()
        }
    }

    /// A SYN/ACK for a SYN of the host's.
    fn answer_syn(&mut self, flow: usize, options: u8) {
        let Some(known) = self.flows.get_mut(flow) else { return };
        known.next = known.peer_initial + 1;
        let (known, keys) = (*known, self.keys);
        let flags =
            CapableFlags { hmac_sha256: true, checksum_required: options & 128 != 0, ..CapableFlags::default() };
        let mut said = self.syn_options(options | 3);
        match options & 3 {
            0 | 1 => {
                said.mptcp.push(MptcpOption::Capable { version: 1, flags, keys: CapableKeys::Receiver(keys.local.0) })
            }
            2 => said.mptcp.push(MptcpOption::JoinSynAck {
                backup: false,
                address_id: options >> 5,
                truncated_hmac: keys.sign_join_syn_ack(77, known.nonce),
                nonce: 77,
            }),
            _ => {}
        }
        if known.stamps {
            said.timestamps = Some(Timestamps { value: known.clock, echo: known.stamp });
        }
        self.send(flow, known.peer_initial, known.seen, Flags::SYN | Flags::ACK, said, 0);
    }

    /// A segment with numbers near those that would be right.
    fn segment(&mut self, flow: usize, [a, b, c, d, e, f]: [u8; 6]) {
        let Some(known) = self.flows.get(flow).copied() else { return };
        let (seq, ack) = (known.next + near(a), known.seen + near(b));
        let flags = match c & 7 {
            0..=4 => Flags::ACK,
            5 => Flags(f),
            6 => Flags::ACK | Flags::FIN,
            _ => Flags::RST,
        };
        let mut said = TcpOptions::default();
        if c & 8 != 0 {
            said.timestamps = Some(Timestamps { value: known.clock.wrapping_add(near(e)), echo: known.stamp });
        }
        if c & 16 != 0 {
            let start = known.seen + near(d);
            said.sack.push(SackBlock { start, end: start + near(e) });
            said.sack.push(SackBlock { start: start + near(f), end: start + near(a) });
        }
        let length = if c & 32 == 0 { 0 } else { usize::from(e) * 6 };
        if c & 64 != 0 {
            said.dss = Some(self.dss(&known, seq, length, [d, e, f]));
        }
        self.send(flow, seq, ack, flags, said, length);
    }

    /// A DSS with numbers near those that would be right.
    fn dss(&self, flow: &Flow, seq: SeqNumber, length: usize, [d, e, f]: [u8; 3]) -> Dss {
        let number = self.number(self.offset.wrapping_add(far(d)));
        let data_seq = if f & 1 == 0 { DataSequence::Long(number) } else { DataSequence::Short(number as u32) };
        let subflow_seq = if f & 2 == 0 { seq - flow.peer_initial } else { near(e) };
        let length = match f >> 2 & 3 {
            0 => length as u16,
            1 => (length as u16).wrapping_mul(3),
            2 => u16::from(e),
            _ => 65_535,
        };
        let acknowledged =
            self.remote.initial_data_seq.wrapping_add(1).wrapping_add(self.seen_offset).wrapping_add(far(e));
        let data_ack = if f & 64 == 0 { DataAck::Long(acknowledged) } else { DataAck::Short(acknowledged as u32) };
        let checksum = (self.checksum != (f & 128 != 0)).then_some(u16::from(f));
        Dss {
            data_ack: (f & 32 == 0).then_some(data_ack),
            mapping: (f & 16 == 0).then_some(Mapping { data_seq, subflow_seq, length, checksum }),
            data_fin: d == e,
        }
    }

    fn number(&self, offset: u64) -> u64 {
        self.keys.local.derive().initial_data_seq.wrapping_add(1).wrapping_add(offset)
    }

    /// Data as it should be: mapped, next on its flow, with the keys if nothing has been sent.
    fn data(&mut self, flow: usize, length: u16, how: u8) {
        let Some(known) = self.flows.get(flow).copied() else { return };
        let payload = vec![7; usize::from(length)];
        let number = self.number(self.offset);
        let subflow_seq = known.next - known.peer_initial;
        let data_fin = how & 7 == 7;
        let counted = length + u16::from(data_fin);
        let checksum = self.checksum.then(|| dss_checksum(number, subflow_seq, counted, [&payload[..]]));
        let mapping = Mapping { data_seq: DataSequence::Long(number), subflow_seq, length: counted, checksum };
        let acknowledged = self.remote.initial_data_seq.wrapping_add(1).wrapping_add(self.seen_offset);
        let mut said = TcpOptions::default();
        if self.offset == 0 && how & 16 == 0 {
            let keys = CapableKeys::BothWithData {
                sender: self.keys.local.0,
                receiver: self.keys.remote.0,
                length,
                checksum: self.checksum.then(|| dss_checksum(number, 1, length, [&payload[..]])),
            };
            said.mptcp.push(capable(keys));
        } else if how & 8 == 0 {
            said.dss = Some(Dss { data_ack: Some(DataAck::Long(acknowledged)), mapping: Some(mapping), data_fin });
        }
        said.timestamps = self.tick(flow);
        self.send(flow, known.next, known.seen, Flags::ACK, said, usize::from(length));
        self.flows[flow].next += u32::from(length);
        self.offset += u64::from(length);
    }

    fn tick(&mut self, flow: usize) -> Option<Timestamps> {
        let flow = self.flows.get_mut(flow).filter(|flow| flow.stamps)?;
        flow.clock = flow.clock.wrapping_add(1);
        Some(Timestamps { value: flow.clock, echo: flow.stamp })
    }

    /// A bare acknowledgement of all that was seen: with the keys while nothing has been sent.
    fn acknowledge(&mut self, flow: usize) {
        let Some(known) = self.flows.get(flow).copied() else { return };
        let mut said = TcpOptions { timestamps: self.tick(flow), ..TcpOptions::default() };
        if self.offset == 0 {
            let keys = CapableKeys::Both { sender: self.keys.local.0, receiver: self.keys.remote.0 };
            said.mptcp.push(capable(keys));
        } else {
            let acknowledged = self.remote.initial_data_seq.wrapping_add(1).wrapping_add(self.seen_offset);
            said.dss = Some(Dss { data_ack: Some(DataAck::Long(acknowledged)), ..Dss::default() });
        }
        self.send(flow, known.next, known.seen, Flags::ACK, said, 0);
    }

    fn join_proof(&mut self, flow: usize, wrong: u8) {
        let Some(known) = self.flows.get(flow).copied() else { return };
        let mut hmac = self.keys.sign_join_ack(77, known.nonce);
        hmac[0] ^= wrong & 1;
        let said = TcpOptions {
            mptcp: vec![MptcpOption::JoinAck { hmac }],
            timestamps: self.tick(flow),
            ..TcpOptions::default()
        };
        self.send(flow, known.next, known.seen, Flags::ACK, said, 0);
    }

    /// One of the options that manage.
    fn signal(&mut self, flow: usize, what: u8, [b, c, d, e]: [u8; 4]) {
        let Some(known) = self.flows.get(flow).copied() else { return };
        let theirs = address(0, c % 8);
        let port = (c & 64 != 0).then_some(u16::from(d) * 256);
        let right = self.keys.sign_add_address(b, theirs, port);
        let option = match what % 12 {
            0..=2 => MptcpOption::AddAddress {
                address_id: b,
                address: theirs,
                port,
                truncated_hmac: (c & 32 == 0).then_some(right ^ u64::from(c >> 7)),
            },
            3 | 4 => MptcpOption::RemoveAddress { address_ids: vec![b, c, d] },
            5 => MptcpOption::Priority { backup: b & 1 == 0 },
            6 => MptcpOption::Fail { data_seq: self.number(self.offset.wrapping_add(far(b))) },
            7 => MptcpOption::FastClose { key: self.keys.remote.0 ^ u64::from(b & 1) },
            8 => MptcpOption::TcpReset { transient: b & 1 == 0, flags: 0, reason: c },
            9 => MptcpOption::Experimental {
                flags: b & 15,
                experiment: u16::from(c) << 8 | 0x42,
                data: vec![b, c, d, e],
            },
            10 => capable(CapableKeys::Both { sender: u64::from(b), receiver: self.keys.remote.0 }),
            _ => MptcpOption::JoinSyn { backup: false, address_id: b, token: self.remote.token, nonce: 1 },
        };
        let flags = if what & 128 == 0 { Flags::ACK } else { Flags::RST };
        let said = TcpOptions { mptcp: vec![option], timestamps: self.tick(flow), ..TcpOptions::default() };
        self.send(flow, known.next, known.seen, flags, said, 0);
    }

    fn send(&mut self, flow: usize, seq: SeqNumber, ack: SeqNumber, flags: Flags, options: TcpOptions, length: usize) {
        let Some(flow) = self.flows.get(flow) else { return };
        let window = if length % 7 == 3 { 0 } else { 65_535 };
        let segment = Segment {
            source_port: flow.peer.port(),
            destination_port: flow.host.port(),
            seq,
            ack,
            flags,
            window,
            options,
            payload: Bytes::from(vec![7; length]),
            ..Segment::default()
        };
        let ip = IpHeader {
            source: flow.peer.ip(),
            destination: flow.host.ip(),
            ecn: if length % 5 == 1 { Ecn::Congestion } else { Ecn::NotCapable },
            dscp: 0,
            hop_limit: 64,
        };
        self.host.handle_packet(self.now, Packet { ip, segment });
        self.drain();
    }

    fn application(&mut self, which: u8, length: u16) {
        let Some(id) = self.ids.get(usize::from(which >> 4) % self.ids.len().max(1)).copied() else { return };
        match which % 8 {
            0..=2 => _ = self.host.write(self.now, id, Bytes::from(vec![1; usize::from(length)])),
            3 | 4 => while self.host.read(self.now, id, usize::MAX).is_some() {},
            5 => _ = self.host.close(self.now, id),
            6 => _ = self.host.discard(self.now, id),
            _ => _ = self.host.abort(self.now, id),
        }
    }

    fn addresses(&mut self, which: u8) {
        let path = which % 3;
        match which & 128 {
            0 => self.host.handle_address_up(self.now, AddressId(1 + path), address(1, path)),
            _ => self.host.handle_address_down(self.now, AddressId(1 + path)),
        }
    }

    fn pass(&mut self, span: Duration) {
        let end = self.now + span;
        let (mut since, mut fired) = (self.now, 0);
        loop {
            let due = self.host.poll_timeout();
            if due > end || (span > Duration::from_secs(60) && self.host.connection_count() == 0) {
                self.now = self.now.max(end);
                return;
            }
            if due > since + Duration::from_millis(1) {
                (since, fired) = (due, 0);
            }
            fired += 1;
            assert!(fired < 500, "timers without end");
            self.now = self.now.max(due);
            self.host.handle_timeout(self.now);
            self.drain();
        }
    }

    /// Fetches what the host says, and learns from it.
    fn drain(&mut self) {
        let mut said = 0;
        loop {
            while let Some(packet) = self.host.poll_transmit(self.now) {
                said += 1;
                assert!(said < BURST, "packets without end: {packet:?}");
                let mut wire = Vec::new();
                packet.emit(&mut wire).expect("what is sent fits the wire");
                assert_eq!(Packet::parse(&wire.into()).as_ref(), Ok(&packet));
                self.learn(&packet);
            }
            let Some(event) = self.host.poll_event() else { break };
            if let Event::Accepted { connection, .. } = event {
                self.ids.push(connection);
            }
        }
    }

    fn learn(&mut self, packet: &Packet) {
        let segment = &packet.segment;
        let peer = SocketAddr::new(packet.ip.destination, segment.destination_port);
        let host = SocketAddr::new(packet.ip.source, segment.source_port);
        let at = self.flows.iter().position(|flow| (flow.peer, flow.host) == (peer, host));
        let syn = segment.flags.contains(Flags::SYN);
        let at = match at {
            Some(at) => at,
            None if syn && self.flows.len() < FLOWS => {
                self.flows.push(Flow {
                    peer,
                    host,
                    peer_initial: SeqNumber(9_000),
                    next: SeqNumber(9_000),
                    seen: segment.seq,
                    stamp: 0,
                    clock: 1_000,
                    stamps: segment.options.timestamps.is_some(),
                    nonce: 0,
                });
                self.flows.len() - 1
            }
            None => return,
        };
        for option in &segment.options.mptcp {
            match option {
                MptcpOption::Capable { keys: CapableKeys::Receiver(key), flags, .. }
                | MptcpOption::Capable { keys: CapableKeys::Both { sender: key, .. }, flags, .. }
                | MptcpOption::Capable { keys: CapableKeys::BothWithData { sender: key, .. }, flags, .. } => {
                    self.keys.remote = Key(*key);
                    self.remote = Key(*key).derive();
                    self.checksum = flags.checksum_required;
                }
                MptcpOption::JoinSyn { nonce, .. } | MptcpOption::JoinSynAck { nonce, .. } => {
                    self.flows[at].nonce = *nonce;
                }
                _ => {}
            }
        }
        let base = self.remote.initial_data_seq.wrapping_add(1);
        if let Some(mapping) = segment.options.dss.as_ref().and_then(|dss| dss.mapping)
            && let DataSequence::Long(number) = mapping.data_seq
        {
            let end = number.wrapping_sub(base).wrapping_add(u64::from(mapping.length));
            self.seen_offset = if end < 1 << 40 { self.seen_offset.max(end) } else { self.seen_offset };
        }
        let flow = &mut self.flows[at];
        flow.stamp = segment.options.timestamps.map_or(flow.stamp, |stamps| stamps.value);
        if syn {
            flow.seen = segment.seq + 1;
        } else if !segment.flags.contains(Flags::RST) {
            flow.seen = flow.seen.max(segment.seq + segment.sequence_length());
        }
    }

    fn check(&self) {
        assert!(self.host.connection_count() <= 32);
        for id in &self.ids {
            if let Some(state) = self.host.receive_state(*id) {
                assert!(state.buffer <= BUFFER, "{state:?}");
                assert!(state.readable + state.out_of_order <= BUFFER + 3_000, "{state:?}");
            }
            assert!(self.host.subflow_views(self.now, *id).len() <= 4);
        }
    }

    /// The peer says nothing more and the applications give up: everything ends.
    fn end(&mut self) {
        for id in self.ids.clone() {
            let _ = self.host.discard(self.now, id);
        }
        self.drain();
        self.pass(Duration::from_secs(3600));
        assert_eq!(self.host.connection_count(), 0, "something goes on for ever");
    }
}

fn capable(keys: CapableKeys) -> MptcpOption {
    let flags = CapableFlags { hmac_sha256: true, ..CapableFlags::default() };
    MptcpOption::Capable { version: 1, flags, keys }
}
