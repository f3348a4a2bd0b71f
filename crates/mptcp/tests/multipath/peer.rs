//! A peer that builds its packets by hand, so that it can misbehave, and sees exactly the endpoint's segments.

use super::orders::{Obedient, Orders};
use crate::pair::{PORT, address, assert_fits_the_wire};
use anabranch_mptcp::Protocol;
use anabranch_mptcp::keys::{Derived, Key, Keys};
use anabranch_mptcp::{ConnectionConfig, Endpoint, EndpointConfig, Event};
use anabranch_policy::ids::{AddressId, ConnectionId};
use anabranch_policy::time::{Duration, Instant};
use anabranch_wire::mptcp::{CapableFlags, CapableKeys, DataAck, DataSequence, Dss, Mapping, dss_checksum};
use anabranch_wire::tcp::TcpOptions;
use anabranch_wire::{Ecn, Flags, IpHeader, MptcpOption, Packet, Segment, SeqNumber};
use bytes::Bytes;
use std::net::SocketAddr;

pub const SYN_ACK: Flags = Flags(Flags::SYN.0 | Flags::ACK.0);

/// The peer's key.
pub const KEY: Key = Key(0x0102_0304_0506_0708);

/// One TCP flow of the peer.
#[derive(Clone, Copy)]
pub struct Flow {
    pub peer: SocketAddr,
    pub host: SocketAddr,
    pub peer_initial: SeqNumber,
    pub host_initial: SeqNumber,
    /// The peer's next sequence number, relative to its initial one.
    pub nxt: u32,
    /// The peer's acknowledgement number, relative to the host's initial one.
    pub ack: u32,
    /// Its receive window.
    pub window: u16,
}

/// The peer, and its endpoint: host 1 of [`crate::pair`], with an address on each of four paths.
pub struct Peer {
    pub host: Endpoint,
    pub now: Instant,
    pub orders: Orders,
    pub keys: Keys,
    pub remote: Derived,
    pub flows: Vec<Flow>,
    pub events: Vec<Event>,
    pub received: Vec<u8>,
    /// Segments of the endpoint that the test has not read.
    pub said: Vec<Packet>,
    /// The receive window of new flows.
    pub window: u16,
    /// TCP options of new flows, including timestamps; `None`: no options.
    pub stamps: Option<TcpOptions>,
    /// DSS checksums were negotiated.
    pub checksum: bool,
    /// The endpoint's application reads at once.
    pub reading: bool,
}

pub fn capable(keys: CapableKeys) -> MptcpOption {
    let flags = CapableFlags { hmac_sha256: true, ..CapableFlags::default() };
    MptcpOption::Capable { version: 1, flags, keys }
}

pub fn options(mptcp: Vec<MptcpOption>) -> TcpOptions {
    TcpOptions { mptcp, ..TcpOptions::default() }
}

impl Peer {
    /// The endpoint listens, and acknowledges each segment.
    pub fn new(mut config: ConnectionConfig) -> Self {
        config.tcp.delayed_ack = Duration::ZERO;
        let orders = Orders::default();
        let endpoint = EndpointConfig { seed: [9; 32], ..EndpointConfig::default() };
        let mut host = Endpoint::new(endpoint, Box::new(Obedient(orders.clone())));
        for path in 0..4 {
            host.handle_address_up(Instant::ZERO, AddressId(1 + path as u8), address(1, path));
        }
        host.listen(PORT, config).unwrap();
        let keys = Keys { local: KEY, remote: Key(0) };
        Self {
            host,
            now: Instant::ZERO,
            orders,
            keys,
            remote: Key(0).derive(),
            flows: Vec::new(),
            events: Vec::new(),
            received: Vec::new(),
            said: Vec::new(),
            window: 65_535,
            stamps: None,
            checksum: false,
            reading: true,
        }
    }

    /// The endpoint listens, and the peer has an MPTCP connection to it without data so far.
    pub fn connected(config: ConnectionConfig) -> Self {
        let mut peer = Self::new(config);
        peer.open(vec![capable(CapableKeys::None)]);
        peer.acknowledge_keys();
        peer
    }

    /// The endpoint opens a connection to the peer, which answers with its key.
    pub fn connecting(config: ConnectionConfig) -> (Self, ConnectionId) {
        let mut peer = Self::new(config.clone());
        let remote = SocketAddr::new(address(0, 0), 40_000);
        let connection = peer.host.connect(peer.now, None, remote, config).unwrap();
        peer.settle();
        let syn = peer.said.pop().expect("a SYN");
        peer.meet(&syn);
        peer.send(0, SYN_ACK, options(vec![capable(CapableKeys::Receiver(KEY.0))]), &[]);
        let third = peer.said.last().expect("a third segment");
        let keys = third.segment.options.mptcp.iter().find_map(|option| match option {
            MptcpOption::Capable { keys: CapableKeys::Both { sender, .. }, .. } => Some(*sender),
            _ => None,
        });
        peer.keys.remote = Key(keys.expect("keys"));
        peer.remote = peer.keys.remote.derive();
        (peer, connection)
    }

    /// A new flow, begun by this SYN of the endpoint.
    pub fn meet(&mut self, syn: &Packet) {
        self.flows.push(Flow {
            peer: SocketAddr::new(syn.ip.destination, syn.segment.destination_port),
            host: SocketAddr::new(syn.ip.source, syn.segment.source_port),
            peer_initial: SeqNumber(5_000 * (1 + self.flows.len() as u32)),
            host_initial: syn.segment.seq,
            nxt: 0,
            ack: 1,
            window: self.window,
        });
    }

    /// Sends a SYN on a new flow on path 0; returns the answer.
    pub fn open(&mut self, mptcp: Vec<MptcpOption>) -> Packet {
        self.syn(0, 40_000, mptcp);
        let answer = self.said.pop().expect("a SYN is answered");
        let flow = self.flows.last_mut().unwrap();
        flow.host_initial = answer.segment.seq;
        flow.ack = 1;
        for option in &answer.segment.options.mptcp {
            if let MptcpOption::Capable { keys: CapableKeys::Receiver(key), flags, .. } = option {
                self.keys.remote = Key(*key);
                self.remote = Key(*key).derive();
                self.checksum = flags.checksum_required;
            }
        }
        answer
    }

    /// Sends a SYN on a new flow on a path.
    pub fn syn(&mut self, path: usize, port: u16, mptcp: Vec<MptcpOption>) {
        let flow = Flow {
            peer: SocketAddr::new(address(0, path), port),
            host: SocketAddr::new(address(1, path), PORT),
            peer_initial: SeqNumber(5_000 * (1 + self.flows.len() as u32)),
            host_initial: SeqNumber(0),
            nxt: 0,
            ack: 0,
            window: self.window,
        };
        self.flows.push(flow);
        self.send(self.flows.len() - 1, Flags::SYN, options(mptcp), &[]);
    }

    /// The third segment of the first flow, with both keys.
    pub fn acknowledge_keys(&mut self) {
        let keys = CapableKeys::Both { sender: self.keys.local.0, receiver: self.keys.remote.0 };
        self.send(0, Flags::ACK, options(vec![capable(keys)]), &[]);
    }

    /// Joins on a path: SYN, SYN/ACK and the proof. Returns the number of the flow.
    pub fn join(&mut self, path: usize) -> usize {
        let (flow, host_nonce) = self.begin_join(path, false);
        let hmac = self.keys.sign_join_ack(77, host_nonce);
        self.send(flow, Flags::ACK, options(vec![MptcpOption::JoinAck { hmac }]), &[]);
        flow
    }

    /// The first two segments of a join; returns the flow and the endpoint's random number.
    pub fn begin_join(&mut self, path: usize, backup: bool) -> (usize, u32) {
        let token = self.remote.token;
        let join = MptcpOption::JoinSyn { backup, address_id: path as u8, token, nonce: 77 };
        self.syn(path, 41_000 + path as u16, vec![join]);
        let answer = self.said.pop().expect("a join is answered");
        let Some(MptcpOption::JoinSynAck { truncated_hmac, nonce, .. }) = answer.segment.options.mptcp.first() else {
            panic!("{answer:?}")
        };
        assert!(self.keys.verify_join_syn_ack(77, *nonce, *truncated_hmac));
        let flow = self.flows.last_mut().unwrap();
        flow.host_initial = answer.segment.seq;
        flow.ack = 1;
        (self.flows.len() - 1, *nonce)
    }

    /// Sends a segment at the flow's next sequence number, and advances that.
    pub fn send(&mut self, flow: usize, flags: Flags, options: TcpOptions, payload: &[u8]) {
        let seq = self.flows[flow].nxt;
        self.send_at(flow, seq, flags, options, payload);
        let control = u32::from(flags.contains(Flags::SYN)) + u32::from(flags.contains(Flags::FIN));
        self.flows[flow].nxt += payload.len() as u32 + control;
    }

    /// Sends a segment at a sequence number relative to the flow's initial one.
    pub fn send_at(&mut self, flow: usize, seq: u32, flags: Flags, mut options: TcpOptions, payload: &[u8]) {
        let flow = self.flows[flow];
        if let Some(offered) = &self.stamps {
            let syn = flags.contains(Flags::SYN);
            options.timestamps = offered.timestamps;
            options.sack_permitted = syn && offered.sack_permitted;
            options.window_scale = offered.window_scale.filter(|_| syn);
        }
        let acknowledges = flags.contains(Flags::ACK);
        let segment = Segment {
            source_port: flow.peer.port(),
            destination_port: flow.host.port(),
            seq: flow.peer_initial + seq,
            ack: if acknowledges { flow.host_initial + flow.ack } else { SeqNumber(0) },
            flags,
            window: flow.window,
            options,
            payload: Bytes::copy_from_slice(payload),
            ..Segment::default()
        };
        let (source, destination) = (flow.peer.ip(), flow.host.ip());
        let ip = IpHeader { source, destination, ecn: Ecn::NotCapable, dscp: 0, hop_limit: 64 };
        let packet = Packet { ip, segment };
        assert_fits_the_wire(&packet);
        self.host.handle_packet(self.now, packet);
        self.settle();
    }

    /// The data sequence number of an offset in the peer's stream.
    pub fn number(&self, offset: u64) -> u64 {
        self.keys.local.derive().initial_data_seq.wrapping_add(1).wrapping_add(offset)
    }

    /// The offset in the peer's stream of the endpoint's DATA_ACK; 32 bits suffice here.
    pub fn offset_of(&self, ack: DataAck) -> u32 {
        let low = match ack {
            DataAck::Short(number) => number,
            DataAck::Long(number) => number as u32,
        };
        low.wrapping_sub(self.number(0) as u32)
    }

    /// A DATA_ACK of an offset in the endpoint's stream.
    pub fn data_ack(&self, offset: u64) -> DataAck {
        DataAck::Long(self.remote.initial_data_seq.wrapping_add(1).wrapping_add(offset))
    }

    /// A mapping of `payload` at `subflow_seq` to `offset`, with a checksum if negotiated.
    pub fn map(&self, offset: u64, subflow_seq: u32, payload: &[u8], data_fin: bool) -> Dss {
        let number = self.number(offset);
        let length = payload.len() as u16 + u16::from(data_fin);
        let checksum = self.checksum.then(|| dss_checksum(number, subflow_seq, length, [payload]));
        let mapping = Mapping { data_seq: DataSequence::Long(number), subflow_seq, length, checksum };
        Dss { data_ack: Some(self.data_ack(0)), mapping: Some(mapping), data_fin }
    }

    /// A DATA_FIN without data: the stream ends at `offset`.
    pub fn data_fin(&self, offset: u64) -> Dss {
        self.map(offset, 0, &[], true)
    }

    /// Sends the bytes of the stream at `offset`, mapped.
    pub fn send_data(&mut self, flow: usize, offset: u64, payload: &[u8]) {
        let dss = self.map(offset, self.flows[flow].nxt, payload, false);
        self.send(flow, Flags::ACK, TcpOptions { dss: Some(dss), ..TcpOptions::default() }, payload);
    }

    /// A bare acknowledgement with this DSS.
    pub fn signal(&mut self, flow: usize, dss: Dss) {
        self.send(flow, Flags::ACK, TcpOptions { dss: Some(dss), ..TcpOptions::default() }, &[]);
    }

    /// A bare acknowledgement of everything received on the flow, and of `offset` bytes of the stream.
    pub fn acknowledge(&mut self, flow: usize, offset: u64) {
        let data_ack = Some(self.data_ack(offset));
        self.signal(flow, Dss { data_ack, ..Dss::default() });
    }

    /// Drains the endpoint. In-order segments on a flow count as received.
    pub fn settle(&mut self) {
        loop {
            while let Some(packet) = self.host.poll_transmit(self.now) {
                assert_fits_the_wire(&packet);
                let (source, destination) = (packet.ip.source, packet.ip.destination);
                let ports = (packet.segment.source_port, packet.segment.destination_port);
                let of_packet = |flow: &&mut Flow| {
                    (flow.host.ip(), flow.peer.ip()) == (source, destination)
                        && (flow.host.port(), flow.peer.port()) == ports
                };
                if let Some(flow) = self.flows.iter_mut().find(of_packet)
                    && packet.segment.seq == flow.host_initial + flow.ack
                    && flow.ack > 0
                {
                    flow.ack += packet.segment.sequence_length();
                }
                self.said.push(packet);
            }
            let Some(event) = self.host.poll_event() else { break };
            self.events.push(event);
            if let (Event::Readable(id), true) = (event, self.reading) {
                while let Some(bytes) = self.host.read(self.now, id, usize::MAX) {
                    self.received.extend_from_slice(&bytes);
                }
            }
        }
    }

    /// Advances time.
    pub fn run(&mut self, span: Duration) {
        let end = self.now + span;
        while self.host.poll_timeout() <= end {
            self.now = self.now.max(self.host.poll_timeout());
            self.host.handle_timeout(self.now);
            self.settle();
        }
        self.now = end;
    }

    /// The endpoint's segments since the last call.
    pub fn take(&mut self) -> Vec<Packet> {
        std::mem::take(&mut self.said)
    }

    /// The endpoint's connection.
    pub fn id(&self) -> ConnectionId {
        let accepted = |event: &Event| match event {
            Event::Accepted { connection, .. } => Some(*connection),
            _ => None,
        };
        self.events.iter().find_map(accepted).expect("accepted")
    }

    /// The endpoint's protocol.
    pub fn protocol(&self) -> Protocol {
        self.host.protocol(self.id()).expect("it exists")
    }

    /// The offset in the endpoint's last DATA_ACK since the last call.
    pub fn acknowledged(&self) -> Option<u32> {
        let acks = self.said.iter().filter_map(|packet| packet.segment.options.dss?.data_ack);
        acks.last().map(|ack| self.offset_of(ack))
    }

    /// The endpoint writes.
    pub fn write(&mut self, data: &[u8]) {
        let id = self.id();
        assert_eq!(self.host.write(self.now, id, Bytes::copy_from_slice(data)).unwrap(), data.len());
        self.settle();
    }

    /// The endpoint's application closes its direction.
    pub fn close(&mut self) {
        let id = self.id();
        self.host.close(self.now, id).unwrap();
        self.settle();
    }
}

/// The reason in a reset, if any.
pub fn reset_reason(packet: &Packet) -> Option<u8> {
    let reason = |option: &MptcpOption| match option {
        MptcpOption::TcpReset { reason, .. } => Some(*reason),
        _ => None,
    };
    packet.segment.flags.contains(Flags::RST).then(|| packet.segment.options.mptcp.iter().find_map(reason))?
}

/// The data of a segment and where its mapping puts it: subflow sequence, length.
pub fn mapping(packet: &Packet) -> Option<Mapping> {
    packet.segment.options.dss?.mapping
}
