//! Opening: MP_CAPABLE (RFC 8684, section 3.1), MP_JOIN (section 3.2), and the fall back to TCP where they fail (3.7).

use super::addresses::id_of;
use super::choices::Choice;
use super::tcp::{Flow, Heard, Kind, Signal, State};
use super::{Peer, Protocol, Secrets, keys};
use anabranch_wire::mptcp::{CapableFlags, CapableKeys, MptcpOption};
use anabranch_wire::tcp::{TcpOptions, Timestamps};
use anabranch_wire::{Flags, Packet, Segment, SeqNumber};
use bytes::Bytes;
use std::net::SocketAddr;

const REASON_PROHIBITED: u8 = 3;
const REASON_MPTCP: u8 = 1;

impl Peer {
    fn initial_number(&mut self) -> SeqNumber {
        let number = self.luck.number() as u32;
        SeqNumber(if self.choice(Choice::Initial) == 1 { u32::MAX - number % 5_000 } else { number })
    }

    /// Opens the connection.
    pub fn connect(&mut self, now: u64, remote: SocketAddr) {
        self.now = now;
        self.initial_remote = Some(remote);
        let local = SocketAddr::new(self.addresses[0], 40_000);
        let iss = self.initial_number();
        self.flows.push(Flow::new(local, remote, 0, Kind::Initial, iss));
        self.send_syn(0);
    }

    /// Opens a subflow from one of our paths; `token` is the peer's unless it is to be refused.
    pub fn join(&mut self, path: usize, remote: SocketAddr, token: u32) {
        let Some(address) = self.addresses.get(path).copied().filter(|_| self.has(path)) else { return };
        self.next_port += 1;
        let local = SocketAddr::new(address, self.next_port);
        let iss = self.initial_number();
        let mut flow = Flow::new(local, remote, id_of(path), Kind::JoinedByUs, iss);
        flow.options.nonce = self.luck.number() as u32;
        flow.options.peer_nonce = token;
        flow.backup = self.luck.one_in(6);
        self.flows.push(flow);
        self.send_syn(self.flows.len() - 1);
    }

    /// Whether an option is offered on a subflow: on all, on none, not on joined ones, on joined ones only.
    fn offers(&self, choice: Choice, kind: Kind) -> bool {
        match self.choice(choice) {
            0 => true,
            1 => false,
            2 => kind == Kind::Initial,
            _ => kind != Kind::Initial,
        }
    }

    fn scale(&self) -> Option<u8> {
        let scale = self.choice(Choice::Scale);
        // With a buffer of a few units of the scale, the window would hardly ever open.
        let fits = |scale: &u32| (self.choice(Choice::Buffer) >> scale) >= 8;
        (scale != 99).then(|| (0..=scale).rev().find(fits).unwrap_or(0) as u8)
    }

    /// Sends SYN or SYN/ACK, for the first time or again.
    pub(super) fn send_syn(&mut self, index: usize) {
        let flow = &self.flows[index];
        let (kind, answer) = (flow.kind, flow.state == State::SynReceived);
        let mss = self.choice(Choice::Mss);
        let stamps = if answer { flow.options.stamps } else { self.offers(Choice::Timestamps, kind) };
        let sack = if answer { flow.options.sack } else { self.offers(Choice::Sack, kind) };
        let scale = if answer {
            Some(flow.options.recv_shift).filter(|_| flow.options.send_shift != 255)
        } else {
            self.scale()
        };
        let mut options = TcpOptions {
            maximum_segment_size: (mss > 0).then_some(mss as u16),
            window_scale: scale,
            sack_permitted: sack,
            timestamps: stamps.then(|| Timestamps { value: self.stamp(), echo: flow.options.recent }),
            ..TcpOptions::default()
        };
        options.mptcp.extend(self.syn_option(index, answer));
        let flags = if answer { Flags::SYN | Flags::ACK } else { Flags::SYN };
        self.flows[index].nxt = 1;
        self.flows[index].due.resend_at = self.now + self.timeout(self.flows[index].due.tries);
        self.send(index, 0, flags, options, Bytes::new());
    }

    fn syn_option(&self, index: usize, answer: bool) -> Option<MptcpOption> {
        let flow = &self.flows[index];
        let flags = self.flags();
        match flow.kind {
            Kind::Initial if answer && self.protocol == Protocol::Plain => None,
            Kind::Initial if answer => {
                Some(MptcpOption::Capable { version: 1, flags, keys: CapableKeys::Receiver(self.secrets.key) })
            }
            // RFC 8684, section 3.7: after a number of SYNs without an answer, one without MP_CAPABLE.
            Kind::Initial if self.choice(Choice::Multipath) == 1 && flow.due.tries < 4 => {
                Some(MptcpOption::Capable { version: 1, flags, keys: CapableKeys::None })
            }
            Kind::Initial => None,
            Kind::JoinedByUs => Some(MptcpOption::JoinSyn {
                backup: flow.backup,
                address_id: flow.local_id,
                token: flow.options.peer_nonce,
                nonce: flow.options.nonce,
            }),
            Kind::JoinedByPeer => Some(MptcpOption::JoinSynAck {
                backup: flow.backup,
                address_id: flow.local_id,
                truncated_hmac: keys::left_64(&self.proof(index)),
                nonce: flow.options.nonce,
            }),
        }
    }

    fn flags(&self) -> CapableFlags {
        let checksum = self.checksum || self.choice(Choice::Checksum) == 1;
        let deny = self.choice(Choice::DenyJoin) == 1;
        CapableFlags { checksum_required: checksum, extensibility: false, deny_join_initial: deny, hmac_sha256: true }
    }

    fn proof(&self, index: usize) -> [u8; 32] {
        let flow = &self.flows[index];
        keys::join(self.secrets.key, self.secrets.peer_key, flow.options.nonce, flow.options.peer_nonce)
    }

    fn peers_proof(&self, index: usize) -> [u8; 32] {
        let flow = &self.flows[index];
        keys::join(self.secrets.peer_key, self.secrets.key, flow.options.peer_nonce, flow.options.nonce)
    }

    fn learn_key(&mut self, key: u64) {
        self.secrets.peer_key = key;
        self.secrets.peer_first = keys::initial_data_sequence(key).wrapping_add(1);
        self.secrets.peer_token = keys::token(key);
    }

    /// A segment without a connection: LISTEN and CLOSED of RFC 9293, sections 3.10.7.1 and 3.10.7.2.
    pub(super) fn stranger(&mut self, packet: &Packet) {
        let segment = &packet.segment;
        if segment.flags.contains(Flags::RST) {
            return;
        }
        let local = SocketAddr::new(packet.ip.destination, segment.destination_port);
        let remote = SocketAddr::new(packet.ip.source, segment.source_port);
        let opens = segment.flags.contains(Flags::SYN) && !segment.flags.contains(Flags::ACK);
        let join = segment.options.mptcp.iter().find(|option| matches!(option, MptcpOption::JoinSyn { .. }));
        match join {
            Some(MptcpOption::JoinSyn { backup, token, nonce, .. }) if opens => {
                let alive = self.protocol == Protocol::Multipath && self.end.is_none();
                if !alive || *token != self.secrets.token {
                    self.refuse(packet, Some(REASON_MPTCP));
                } else if self.choice(Choice::Refuses) == 1 || self.flows.len() > 40 {
                    self.refuse(packet, Some(REASON_PROHIBITED));
                } else {
                    self.accept(local, remote, segment, Kind::JoinedByPeer, *nonce, *backup);
                }
            }
            _ if opens && !self.client && self.flows.is_empty() && local.port() == self.port => {
                self.initial_remote = Some(remote);
                self.accept_first(local, remote, segment);
            }
            _ => self.refuse(packet, None),
        }
    }

    fn accept_first(&mut self, local: SocketAddr, remote: SocketAddr, segment: &Segment) {
        self.protocol = Protocol::Plain;
        for option in &segment.options.mptcp {
            if let MptcpOption::Capable { version, flags, .. } = option
                && self.choice(Choice::Multipath) == 1
                && *version >= 1
                && flags.hmac_sha256
                && !flags.extensibility
            {
                self.protocol = Protocol::Opening;
                self.checksum = flags.checksum_required || self.choice(Choice::Checksum) == 1;
                self.peer_denies = flags.deny_join_initial;
            }
        }
        self.accept(local, remote, segment, Kind::Initial, 0, false);
    }

    fn accept(
        &mut self,
        local: SocketAddr,
        remote: SocketAddr,
        segment: &Segment,
        kind: Kind,
        nonce: u32,
        backup: bool,
    ) {
        let path = self.addresses.iter().position(|address| *address == local.ip()).unwrap_or(0);
        let iss = self.initial_number();
        let mut flow = Flow::new(local, remote, id_of(path), kind, iss);
        flow.state = State::SynReceived;
        flow.backup = backup;
        flow.options.peer_nonce = nonce;
        flow.options.nonce = self.luck.number() as u32;
        let scale = self.scale();
        flow.agree(segment, self.offers(Choice::Timestamps, kind), self.offers(Choice::Sack, kind), scale);
        if scale.is_none() || segment.options.window_scale.is_none() {
            (flow.options.send_shift, flow.options.recv_shift) = (255, 0);
        }
        self.flows.push(flow);
        self.send_syn(self.flows.len() - 1);
    }

    /// SYN-SENT: RFC 9293, section 3.10.7.3. This peer does not support simultaneous opens.
    pub(super) fn syn_sent_arrives(&mut self, index: usize, segment: &Segment) {
        let flow = &self.flows[index];
        let acknowledges = segment.flags.contains(Flags::ACK) && segment.ack == flow.iss + 1;
        if segment.flags.contains(Flags::ACK) && !acknowledges {
            if !segment.flags.contains(Flags::RST) {
                self.send_bare(index, segment.ack, SeqNumber(0), Flags::RST, None);
            }
            return;
        }
        if !acknowledges {
            return;
        }
        if segment.flags.contains(Flags::RST) {
            return self.lose(index, false);
        }
        if !segment.flags.contains(Flags::SYN) {
            return;
        }
        let kind = flow.kind;
        let (stamps, sack, scale) =
            (self.offers(Choice::Timestamps, kind), self.offers(Choice::Sack, kind), self.scale());
        let flow = &mut self.flows[index];
        flow.agree(segment, stamps, sack, scale);
        (flow.una, flow.due.tries, flow.due.silent, flow.due.resend_at) = (1, 0, 0, super::NEVER);
        flow.state = State::Established;
        flow.due.ack_now = true;
        let offered = flow.window;
        if kind == Kind::JoinedByUs {
            return self.answer_to_join(index, segment);
        }
        self.flows[index].usable = true;
        self.protocol = Protocol::Plain;
        for option in &segment.options.mptcp {
            if let MptcpOption::Capable { version: 1, flags, keys: CapableKeys::Receiver(key) } = option
                && self.choice(Choice::Multipath) == 1
            {
                self.protocol = Protocol::Multipath;
                self.checksum = flags.checksum_required || self.choice(Choice::Checksum) == 1;
                self.peer_denies = flags.deny_join_initial;
                if self.choice(Choice::SameKey) == 1 {
                    self.secrets = Secrets::of(*key);
                }
                self.learn_key(*key);
            }
        }
        self.data.edge = offered;
        if self.protocol == Protocol::Multipath {
            // The third segment carries both keys, even if data is waiting (RFC 8684, section 3.1).
            let keys = self.keys_option();
            self.flows[index].due.signals.push_back(Signal::Alone(keys));
        }
    }

    fn answer_to_join(&mut self, index: usize, segment: &Segment) {
        let answer = segment.options.mptcp.iter().find_map(|option| match option {
            MptcpOption::JoinSynAck { backup, truncated_hmac, nonce, .. } => Some((*backup, *truncated_hmac, *nonce)),
            _ => None,
        });
        let Some((backup, proof, nonce)) = answer else { return self.reset(index, REASON_MPTCP) };
        self.flows[index].options.peer_nonce = nonce;
        self.flows[index].backup |= backup;
        if keys::left_64(&self.peers_proof(index)) != proof {
            return self.reset(index, REASON_MPTCP);
        }
        self.flows[index].due.ack_now = false;
        self.send_third(index);
    }

    /// The third segment of a join, which is retransmitted until the fourth arrives.
    pub(super) fn send_third(&mut self, index: usize) {
        let hmac = keys::left_160(&self.proof(index));
        self.flows[index].due.signals.push_back(Signal::Alone(MptcpOption::JoinAck { hmac }));
        self.flows[index].due.resend_at = self.now + self.timeout(self.flows[index].due.tries);
    }

    /// The option of the third segment of the initial subflow, or its equivalent.
    pub(super) fn keys_option(&self) -> MptcpOption {
        let keys = CapableKeys::Both { sender: self.secrets.key, receiver: self.secrets.peer_key };
        let mut flags = self.flags();
        flags.checksum_required = self.checksum;
        MptcpOption::Capable { version: 1, flags, keys }
    }

    /// The third segment has arrived at a SYN-RECEIVED subflow; returns whether it is established.
    pub(super) fn third_arrives(&mut self, index: usize, segment: &Segment) -> bool {
        let established = match self.flows[index].kind {
            Kind::JoinedByPeer => {
                let expected = keys::left_160(&self.peers_proof(index));
                let proof = segment.options.mptcp.iter().find_map(|option| match option {
                    MptcpOption::JoinAck { hmac } => Some(*hmac == expected),
                    _ => None,
                });
                if proof != Some(true) {
                    if proof == Some(false) || segment.options.dss.is_none() {
                        self.reset(index, REASON_MPTCP);
                    }
                    return false;
                }
                self.flows[index].due.ack_now = true;
                true
            }
            _ if self.protocol == Protocol::Plain => true,
            _ => self.keys_arrive(segment),
        };
        if established {
            let flow = &mut self.flows[index];
            flow.state = State::Established;
            flow.usable = true;
            (flow.una, flow.due.tries, flow.due.silent, flow.due.resend_at) = (1, 0, 0, super::NEVER);
            flow.wl1 = 0;
            if flow.options.send_shift == 255 {
                flow.options.send_shift = 0;
            }
        }
        established
    }

    fn keys_arrive(&mut self, segment: &Segment) -> bool {
        for option in &segment.options.mptcp {
            let MptcpOption::Capable { keys, .. } = option else { continue };
            let (sender, receiver, data) = match *keys {
                CapableKeys::Both { sender, receiver } => (sender, receiver, None),
                CapableKeys::BothWithData { sender, receiver, length, checksum } => {
                    (sender, receiver, Some((length, checksum)))
                }
                _ => continue,
            };
            if receiver == self.secrets.key {
                self.protocol = Protocol::Multipath;
                self.secrets.confirmed = true;
                self.learn_key(sender);
                if let Some((length, checksum)) = data {
                    self.hear_first(length, checksum);
                }
                return true;
            }
        }
        if segment.options.dss.is_some() || !segment.options.mptcp.is_empty() {
            return false; // it overtook the keys
        }
        self.protocol = Protocol::Plain;
        true
    }

    /// The mapping of the data sent with the keys: the first number of the stream.
    pub(super) fn hear_first(&mut self, length: u16, checksum: Option<u16>) {
        let heard = Heard { start: 1, length: u32::from(length), offset: 0, length_field: length, checksum };
        self.flows[0].hear(heard);
        self.heard_dss = true;
    }
}
