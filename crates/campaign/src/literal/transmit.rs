//! Sending: data and its mappings, acknowledgements, retransmissions by a simple timer.

use super::choices::Choice;
use super::tcp::{Kind, Signal, State};
use super::{NEVER, Peer, Protocol};
use anabranch_wire::mptcp::{
    CapableFlags, CapableKeys, DataAck, DataSequence, Dss, Mapping, MptcpOption, dss_checksum,
};
use anabranch_wire::tcp::{TcpOptions, Timestamps};
use anabranch_wire::{Ecn, Flags, IpHeader, Packet, Segment, SeqNumber};
use bytes::Bytes;
use std::net::SocketAddr;

/// Consecutive timeouts before a subflow is closed.
const MOST_TRIES: u32 = 14;

fn packet(local: SocketAddr, remote: SocketAddr, segment: Segment) -> Packet {
    let ip = IpHeader { source: local.ip(), destination: remote.ip(), ecn: Ecn::NotCapable, dscp: 0, hop_limit: 64 };
    Packet { ip, segment }
}

impl Peer {
    /// The timestamp clock in milliseconds.
    pub(super) fn stamp(&self) -> u32 {
        (self.now / super::MILLI) as u32
    }

    /// Sends a segment of a subflow with a relative number.
    pub(super) fn send(&mut self, index: usize, number: u32, flags: Flags, options: TcpOptions, payload: Bytes) {
        let window = self.window_to_offer(index, flags);
        let flow = &mut self.flows[index];
        let acknowledges = flags.contains(Flags::ACK);
        if acknowledges {
            (flow.due.ack_now, flow.due.ack_at, flow.due.unacknowledged) = (false, NEVER, 0);
        }
        let segment = Segment {
            source_port: flow.local.port(),
            destination_port: flow.remote.port(),
            seq: flow.iss + number,
            ack: if acknowledges { flow.irs + flow.rcv_nxt } else { SeqNumber(0) },
            flags,
            window,
            options,
            payload,
            ..Segment::default()
        };
        let packet = packet(flow.local, flow.remote, segment);
        self.out.push_back(packet);
    }

    /// Sends a segment without a connection: a reset.
    pub(super) fn send_bare(
        &mut self,
        index: usize,
        seq: SeqNumber,
        ack: SeqNumber,
        flags: Flags,
        option: Option<MptcpOption>,
    ) {
        let flow = &self.flows[index];
        let options = TcpOptions { mptcp: option.into_iter().collect(), ..TcpOptions::default() };
        let (source_port, destination_port) = (flow.local.port(), flow.remote.port());
        let segment = Segment { source_port, destination_port, seq, ack, flags, options, ..Segment::default() };
        let packet = packet(flow.local, flow.remote, segment);
        self.out.push_back(packet);
    }

    /// RFC 9293, section 3.10.7.1: a reset to the sender of this segment.
    pub(super) fn refuse(&mut self, refused: &Packet, reason: Option<u8>) {
        let segment = &refused.segment;
        let acknowledges = segment.flags.contains(Flags::ACK);
        let reason = reason.map(|reason| MptcpOption::TcpReset { transient: false, flags: 0, reason });
        let answer = Segment {
            source_port: segment.destination_port,
            destination_port: segment.source_port,
            seq: if acknowledges { segment.ack } else { SeqNumber(0) },
            ack: if acknowledges { SeqNumber(0) } else { segment.seq + segment.sequence_length() },
            flags: if acknowledges { Flags::RST } else { Flags::RST | Flags::ACK },
            options: TcpOptions { mptcp: reason.into_iter().collect(), ..TcpOptions::default() },
            ..Segment::default()
        };
        let local = SocketAddr::new(refused.ip.destination, segment.destination_port);
        let remote = SocketAddr::new(refused.ip.source, segment.source_port);
        self.out.push_back(packet(local, remote, answer));
    }

    /// Options of plain TCP.
    pub(super) fn tcp_options(&self, index: usize) -> TcpOptions {
        let flow = &self.flows[index];
        let timestamps = flow.options.stamps.then(|| Timestamps { value: self.stamp(), echo: flow.options.recent });
        TcpOptions { timestamps, ..TcpOptions::default() }
    }

    fn short(&mut self, choice: Choice) -> bool {
        match self.choice(choice) {
            0 => false,
            1 => true,
            _ => self.luck.one_in(2),
        }
    }

    /// The DATA_ACK of a segment.
    pub(super) fn data_ack(&mut self) -> DataAck {
        let number = self.secrets.peer_first.wrapping_add(self.data.acknowledgement());
        if self.short(Choice::ShortAcks) { DataAck::Short(number as u32) } else { DataAck::Long(number) }
    }

    /// Sends an acknowledgement, with another option if any.
    pub(super) fn acknowledge(&mut self, index: usize, signal: Option<Signal>) {
        let mut options = self.tcp_options(index);
        let mut number = self.flows[index].nxt;
        let multipath = self.protocol == Protocol::Multipath;
        let unconfirmed = self.client && !self.secrets.confirmed && self.flows[index].kind == Kind::Initial;
        let mut dss =
            Some(Dss { data_ack: multipath.then(|| self.data_ack()), ..Dss::default() }).filter(|_| multipath);
        match signal {
            Some(Signal::Alone(option)) => {
                dss = None;
                options.mptcp.push(option);
            }
            Some(Signal::Beside(option)) => options.mptcp.push(option),
            Some(Signal::DataFin) if multipath => {
                let mapping = self.mapping(self.data.length(), 0, 1, &[]);
                dss = Some(Dss { data_ack: Some(self.data_ack()), mapping: Some(mapping), data_fin: true });
            }
            Some(Signal::Probe) => number = self.flows[index].una.wrapping_sub(1),
            Some(Signal::DataFin) | None if multipath && unconfirmed => {
                dss = None;
                options.mptcp.push(self.keys_option());
            }
            Some(Signal::DataFin) | None => {}
        }
        options.dss = dss;
        if self.flows[index].options.sack {
            let most = options.sack_room();
            options.sack = self.flows[index].blocks(most);
        }
        self.send(index, number, Flags::ACK, options, Bytes::new());
    }

    fn mapping(&mut self, offset: u64, start: u32, length: u16, payload: &[u8]) -> Mapping {
        let number = self.secrets.first.wrapping_add(offset);
        let checksum = self.checksum.then(|| dss_checksum(number, start, length, [payload]));
        let short = self.short(Choice::ShortNumbers);
        let data_seq = if short { DataSequence::Short(number as u32) } else { DataSequence::Long(number) };
        Mapping { data_seq, subflow_seq: start, length, checksum }
    }

    /// The MPTCP options of data from `from` on.
    fn map_options(&mut self, index: usize, from: u32, again: bool, options: &mut TcpOptions) {
        // It acts retroactively, and is sent with everything until data after it has been acknowledged.
        let infinite = self.infinite.filter(|(_, until)| self.flows[index].una < *until);
        if let Some((start, _)) = infinite.filter(|_| self.protocol == Protocol::Plain) {
            let number = self.secrets.first.wrapping_add(u64::from(start - 1));
            let checksum = self.checksum.then_some(0);
            let mapping = Mapping { data_seq: DataSequence::Long(number), subflow_seq: start, length: 0, checksum };
            options.dss = Some(Dss { data_ack: None, mapping: Some(mapping), data_fin: false });
        }
        if self.protocol != Protocol::Multipath {
            return;
        }
        let place = self.flows[index].map_at(from);
        let tell = place.is_some_and(|place| {
            let map = &self.flows[index].maps[place];
            // Until a DATA_ACK shows that options pass, each segment has its mapping (RFC 8684, section 3.7).
            !map.told
                || self.data.una == 0
                || from == map.start
                || self.choice(Choice::Mapping) == 2
                || (again && self.flows[index].due.tries > 1)
        });
        let Some(map) = place.filter(|_| tell).map(|place| self.flows[index].maps[place]) else {
            options.dss = Some(Dss { data_ack: Some(self.data_ack()), ..Dss::default() });
            return;
        };
        self.flows[index].maps[place.unwrap_or(0)].told = true;
        let payload = self.flows[index].slice(map.start, map.end());
        let length = map.length as u16 + u16::from(map.fin);
        let mapping = self.mapping(map.offset, map.start, length, &payload);
        if map.with_keys && !self.secrets.confirmed && from == map.start {
            let (sender, receiver) = (self.secrets.key, self.secrets.peer_key);
            let keys = CapableKeys::BothWithData { sender, receiver, length, checksum: mapping.checksum };
            let flags = CapableFlags { checksum_required: self.checksum, hmac_sha256: true, ..CapableFlags::default() };
            options.mptcp.push(MptcpOption::Capable { version: 1, flags, keys });
            return;
        }
        options.dss = Some(Dss { data_ack: Some(self.data_ack()), mapping: Some(mapping), data_fin: map.fin });
    }

    /// Sends data from `from` on, up to `limit`; returns its end.
    fn send_text(&mut self, index: usize, from: u32, limit: u32, again: bool) -> u32 {
        let mut options = self.tcp_options(index);
        self.map_options(index, from, again, &mut options);
        let flow = &self.flows[index];
        let most = match self.choice(Choice::Segment) {
            1 => self.luck.between(1, 1_400) as usize,
            most => most as usize,
        };
        let room = flow.mss.saturating_sub(options.encoded_len()).min(most).max(1) as u32;
        let mut to = limit.min(from + room);
        if let Some(place) = flow.map_at(from).filter(|_| self.protocol == Protocol::Multipath) {
            let next = flow.maps.get(place + 1).map_or(0, |map| map.length.saturating_sub(1));
            let across = if self.choice(Choice::Across) == 1 && !self.checksum && self.data.una > 0 { next } else { 0 };
            to = to.min(flow.maps[place].end() + across);
        }
        let payload = flow.slice(from, to);
        let fin = flow.fin == Some(to) && to == flow.end();
        let flags = if fin { Flags::ACK | Flags::PSH | Flags::FIN } else { Flags::ACK | Flags::PSH };
        self.send(index, from, flags, options, payload);
        let flow = &mut self.flows[index];
        if fin {
            flow.sent_fin();
            return to + 1;
        }
        to
    }

    /// Sends what is pending on a subflow.
    pub(super) fn transmit(&mut self, index: usize) {
        if matches!(self.flows[index].state, State::SynSent | State::SynReceived | State::Closed) {
            return;
        }
        while let Some(signal) = self.flows[index].due.signals.pop_front() {
            self.acknowledge(index, Some(signal));
        }
        if std::mem::take(&mut self.flows[index].due.resend_now) {
            self.retransmit(index);
        }
        loop {
            let flow = &self.flows[index];
            let forced = u64::from(flow.force && !flow.outstanding());
            let limit = flow.end().min((u64::from(flow.una) + flow.window.max(forced)).min(1 << 30) as u32);
            if !flow.is_open() || !flow.usable || flow.nxt >= limit {
                break;
            }
            let from = flow.nxt;
            self.flows[index].nxt = self.send_text(index, from, limit, false);
            self.arm(index);
        }
        let flow = &self.flows[index];
        if flow.fin == Some(flow.nxt) && flow.nxt == flow.end() && flow.is_open() {
            self.send_fin(index);
            self.flows[index].nxt += 1;
            self.flows[index].sent_fin();
            self.arm(index);
        }
        if self.flows[index].due.ack_now {
            self.acknowledge(index, None);
        }
        self.arm(index);
    }

    fn send_fin(&mut self, index: usize) {
        let mut options = self.tcp_options(index);
        if self.protocol == Protocol::Multipath {
            // FIN is retransmitted until it is acknowledged, together with an unacknowledged DATA_FIN.
            let last = self.data.fin_sent && self.data.una <= self.data.length();
            let mapping = last.then(|| self.mapping(self.data.length(), 0, 1, &[]));
            options.dss = Some(Dss { data_ack: Some(self.data_ack()), mapping, data_fin: last });
        }
        let number = self.flows[index].end();
        self.send(index, number, Flags::ACK | Flags::FIN, options, Bytes::new());
    }

    fn arm(&mut self, index: usize) {
        let due = self.now + self.timeout(self.flows[index].due.tries);
        let flow = &mut self.flows[index];
        if flow.outstanding() {
            flow.due.resend_at = flow.due.resend_at.min(due);
        } else if flow.usable {
            flow.due.resend_at = NEVER;
        }
    }

    /// Retransmits the first unacknowledged segment.
    fn retransmit(&mut self, index: usize) {
        let flow = &self.flows[index];
        if !flow.outstanding() {
            return;
        }
        let from = flow.una;
        if from == flow.end() {
            return self.send_fin(index);
        }
        let window = flow.window.clamp(1, 1 << 20) as u32;
        let mut limit = flow.nxt.min(flow.end()).min(from + window);
        if self.choice(Choice::Recut) == 1 {
            limit = limit.min(from + self.luck.between(1, 2_000) as u32);
        }
        self.send_text(index, from, limit, true);
    }

    /// Handles the timers of a subflow.
    pub(super) fn flow_timers(&mut self, index: usize) {
        let now = self.now;
        let flow = &mut self.flows[index];
        if flow.due.linger_at <= now {
            (flow.state, flow.due.linger_at, flow.due.resend_at, flow.due.ack_at) =
                (State::Closed, NEVER, NEVER, NEVER);
            return;
        }
        if flow.due.ack_at <= now {
            (flow.due.ack_now, flow.due.ack_at) = (true, NEVER);
        }
        if flow.due.resend_at > now {
            return;
        }
        flow.due.resend_at = NEVER;
        flow.due.tries += 1;
        flow.due.silent += 1;
        if flow.due.silent > MOST_TRIES {
            return self.lose(index, false);
        }
        match flow.state {
            State::SynSent | State::SynReceived => self.send_syn(index),
            _ if !flow.usable => self.send_third(index),
            _ => {
                flow.due.recover = flow.nxt;
                flow.due.resend_now = true;
            }
        }
    }
}
