//! How connections and subflows begin: the three-way handshake with MP_CAPABLE or MP_JOIN (RFC 8684, sections 3.1, 3.2).

use super::opening::{Join, Joining, Opening};
use super::{Connection, Notice, Protocol};
use crate::config::{EcnMode, RtoRule};
use crate::event::{CloseCause, Event, FallbackCause};
use crate::keys::Key;
use crate::subflow::segment_arrives::ECN_SETUP;
use crate::subflow::{Identity, Setup, State, Subflow};
use anabranch_policy::ids::{AddressId, SubflowId};
use anabranch_policy::path_manager::{CloseReason, Role};
use anabranch_policy::time::{Duration, Instant};
use anabranch_wire::mptcp::{CapableFlags, CapableKeys, Dss, VERSION};
use anabranch_wire::tcp::Timestamps;
use anabranch_wire::{Flags, MptcpOption, Packet, Segment, SeqNumber};

/// Transmissions of a SYN with MP_CAPABLE before one without is tried (Linux does the same).
const CAPABLE_SYN_ATTEMPTS: u32 = 3;

impl Connection {
    /// A connection that we open: its SYN waits in [`Connection::poll_transmit`].
    pub fn connect(now: Instant, opening: Opening) -> Self {
        let protocol = if opening.config.multipath { Protocol::Negotiating } else { Protocol::Tcp };
        let (local, remote, initial, local_address) =
            (opening.local, opening.remote, opening.initial, opening.local_address);
        let mut connection = Self::new(opening, Role::Client, protocol);
        let identity = Identity { id: SubflowId(0), local, remote, local_address, remote_address: AddressId(0) };
        connection.subflows.push(Subflow::new(identity, State::SynSent, initial, now));
        connection.joins.next_subflow = 1;
        connection
    }

    /// A connection that a peer's SYN opens.
    pub fn accept(now: Instant, opening: Opening, syn: &Packet) -> Self {
        let offers = syn.segment.options.mptcp.iter().any(|option| usable_capable(option).is_some());
        let multipath = opening.config.multipath && offers;
        let protocol = if multipath { Protocol::Negotiating } else { Protocol::Tcp };
        let (local, remote, initial, local_address) =
            (opening.local, opening.remote, opening.initial, opening.local_address);
        let mut connection = Self::new(opening, Role::Server, protocol);
        if connection.config.multipath && !offers {
            // Whether the peer has none or a middlebox took it, the application learns why this is plain TCP.
            connection.note_fallback(FallbackCause::NotCapable);
        }
        if let Some((flags, _)) = syn.segment.options.mptcp.iter().find_map(usable_capable) {
            connection.association.checksum |= flags.checksum_required;
            connection.identity.remote_denies_joins = flags.deny_join_initial;
        }
        let identity = Identity { id: SubflowId(0), local, remote, local_address, remote_address: AddressId(0) };
        let mut subflow = Subflow::new(identity, State::SynReceived, initial, now);
        subflow.handle_syn(now, &syn.segment, &connection.config.tcp, connection.receive_scale());
        connection.subflows.push(subflow);
        connection.joins.next_subflow = 1;
        connection.take_syn_window(0, &syn.segment);
        connection
    }

    /// Opens another subflow. Gives none if MPTCP is not established or the limit is reached.
    pub fn join(&mut self, now: Instant, joining: Joining) -> Option<SubflowId> {
        if !self.may_join() {
            return None;
        }
        Some(self.begin_join(now, joining, State::SynSent, 0))
    }

    /// Whether we may begin another subflow: not before a DSS option came in (RFC 8684, section 3.1).
    pub fn may_join(&self) -> bool {
        self.association.confirmed && self.takes_subflows() && self.subflows.len() < self.config.max_subflows
    }

    /// Whether the peer may begin another subflow; it knows itself whether it has seen a DSS option.
    pub fn may_accept_join(&self) -> bool {
        let room = self.subflows.len() < self.config.max_subflows || self.unproven_join().is_some();
        self.takes_subflows() && room
    }

    fn takes_subflows(&self) -> bool {
        let ends = self.life.closed.is_some() || self.life.verdict.is_some() || self.both_ended();
        self.association.protocol == Protocol::Multipath && !ends
    }

    /// The oldest join of the peer's whose proof has not come.
    fn unproven_join(&self) -> Option<usize> {
        self.subflows.iter().position(|s| s.state == State::SynReceived && s.id() != SubflowId(0))
    }

    /// A peer's SYN with our token opens another subflow; the endpoint has checked the token and
    /// [`Self::may_accept_join`].
    pub fn accept_join(&mut self, now: Instant, joining: Joining, remote_nonce: u32, syn: &Packet) {
        // Who has but seen a token can begin joins and not finish them: they must not keep out those who can.
        if self.subflows.len() >= self.config.max_subflows
            && let Some(oldest) = self.unproven_join()
        {
            self.drop_subflow(now, oldest, CloseReason::TimedOut);
        }
        let id = self.begin_join(now, joining, State::SynReceived, remote_nonce);
        let (config, scale) = (self.config.clone(), self.receive_scale());
        if let Some(subflow) = self.subflow_mut(id) {
            subflow.handle_syn(now, &syn.segment, &config.tcp, scale);
            subflow.backup_remote = joining.backup;
            subflow.backup_local = false;
            subflow.came_in = true;
        }
        if let Some(index) = self.index_of(id) {
            self.take_syn_window(index, &syn.segment);
        }
    }

    fn begin_join(&mut self, now: Instant, joining: Joining, state: State, remote_nonce: u32) -> SubflowId {
        let id = SubflowId(self.joins.next_subflow);
        self.joins.next_subflow += 1;
        let identity = Identity {
            id,
            local: joining.local,
            remote: joining.remote,
            local_address: joining.local_address,
            remote_address: joining.remote_address,
        };
        let mut subflow = Subflow::new(identity, state, joining.initial, now);
        subflow.confirmed = false;
        subflow.backup_local = joining.backup;
        subflow.cursor = self.sender.una();
        self.subflows.push(subflow);
        self.joins.open.reserve_exact(1);
        self.joins.open.push(Join { subflow: id, local_nonce: joining.nonce, remote_nonce });
        self.output.pending = true;
        id
    }

    /// The SYN, SYN/ACK or join acknowledgement of a subflow, and its timer. None if it has been tried too often.
    pub(super) fn handshake_packet(&mut self, now: Instant, index: usize) -> Option<Segment> {
        let id = self.subflows.get(index)?.id();
        let state = self.subflows.get(index)?.state;
        if state.is_synchronised() {
            return self.join_acknowledgement(now, index);
        }
        let attempts = self.subflows.get(index)?.timeouts_in_row;
        if self.association.protocol == Protocol::Negotiating
            && self.role == Role::Client
            && attempts >= CAPABLE_SYN_ATTEMPTS
        {
            self.association.protocol = Protocol::Tcp;
            self.note_fallback(FallbackCause::SynLost);
        }
        let option = self.handshake_option(id, state);
        let (stamp, scale) = (self.stamp(now), self.receive_scale());
        let window = self.receiver.buffer.window();
        self.receiver.advertised_edge = self.receiver.buffer.right_edge();
        let config = self.config.clone();
        let subflow = self.subflows.get_mut(index)?;
        let mut segment = subflow.syn(&config.tcp, stamp, scale, window);
        segment.options.mptcp.extend(option);
        subflow.handshake_due = false;
        let timeout = subflow.rtt.rto(&config.tcp);
        subflow.timers.handshake = now + timeout;
        if attempts == 0 {
            subflow.note_handshake_sent(now);
        }
        Some(segment)
    }

    fn handshake_option(&self, id: SubflowId, state: State) -> Option<MptcpOption> {
        let flags = self.capable_flags();
        let join = self.joins.open.iter().find(|join| join.subflow == id);
        let subflow = self.subflows.iter().find(|subflow| subflow.id() == id)?;
        match (self.association.protocol, state, join) {
            (Protocol::Negotiating, State::SynSent, None) => {
                Some(MptcpOption::Capable { version: VERSION, flags, keys: CapableKeys::None })
            }
            (Protocol::Negotiating, State::SynReceived, None) => Some(MptcpOption::Capable {
                version: VERSION,
                flags,
                keys: CapableKeys::Receiver(self.identity.keys.local.0),
            }),
            (Protocol::Multipath, State::SynSent, Some(join)) => Some(MptcpOption::JoinSyn {
                backup: subflow.backup_local,
                address_id: self.wire_address(subflow.identity.local_address),
                token: self.identity.remote.token,
                nonce: join.local_nonce,
            }),
            (Protocol::Multipath, State::SynReceived, Some(join)) => Some(MptcpOption::JoinSynAck {
                backup: subflow.backup_local,
                address_id: self.wire_address(subflow.identity.local_address),
                truncated_hmac: self.identity.keys.sign_join_syn_ack(join.local_nonce, join.remote_nonce),
                nonce: join.local_nonce,
            }),
            _ => None,
        }
    }

    /// The identifier of a local address on the wire: 0 for that of the initial subflow (RFC 8684, section 3.4.1).
    pub(super) fn wire_address(&self, id: AddressId) -> u8 {
        if id == self.identity.initial_address { 0 } else { id.0 }
    }

    pub(super) fn capable_flags(&self) -> CapableFlags {
        CapableFlags {
            checksum_required: self.association.checksum,
            extensibility: false,
            deny_join_initial: self.config.deny_join_initial,
            hmac_sha256: true,
        }
    }

    /// The proof that every acknowledgement carries while a join that we opened is not confirmed.
    pub(super) fn join_proof(&self, index: usize) -> Option<MptcpOption> {
        let subflow = self.subflows.get(index).filter(|s| !s.confirmed && s.state.is_synchronised())?;
        let join = self.joins.open.iter().find(|join| join.subflow == subflow.id())?;
        Some(MptcpOption::JoinAck { hmac: self.identity.keys.sign_join_ack(join.local_nonce, join.remote_nonce) })
    }

    /// The third segment of a join, sent again until the peer answers, or the fourth, that answer (RFC 8684, section 3.2). It goes
    /// before all data: if what comes first at Linux is not the first byte, it resets the join.
    fn join_acknowledgement(&mut self, now: Instant, index: usize) -> Option<Segment> {
        let window = self.receiver.offer_window();
        let proof = self.join_proof(index);
        self.association.dss_sent |= proof.is_none();
        let data_ack = Dss { data_ack: Some(self.wire_data_ack()), mapping: None, data_fin: false };
        let Some((subflow, cx)) = self.subflow_in_context(now, index) else { return None };
        subflow.handshake_due = false;
        subflow.timers.handshake = if subflow.confirmed { Instant::NEVER } else { now + subflow.rtt.rto(cx.config) };
        let mut segment = subflow.acknowledgement(&cx, window, 24);
        segment.options.dss = proof.is_none().then_some(data_ack);
        segment.options.mptcp.extend(proof);
        Some(segment)
    }

    /// A segment in SYN-SENT (RFC 9293, section 3.10.7.3).
    pub(super) fn handle_in_syn_sent(&mut self, now: Instant, index: usize, segment: &Segment) {
        let Some(subflow) = self.subflows.get(index) else { return };
        let acknowledges = segment.flags.contains(Flags::ACK);
        if acknowledges && segment.ack != subflow.send.nxt {
            if !segment.flags.contains(Flags::RST) {
                self.refuse_acknowledgement(index, segment.ack);
            }
            return;
        }
        if segment.flags.contains(Flags::RST) {
            if acknowledges {
                self.subflow_refused(now, index);
            }
            return;
        }
        if !segment.flags.contains(Flags::SYN) {
            return;
        }
        if acknowledges {
            self.handle_syn_ack(now, index, segment);
        } else {
            self.handle_simultaneous_open(now, index, segment);
        }
    }

    fn subflow_refused(&mut self, now: Instant, index: usize) {
        if self.is_initial(index) {
            self.remove_subflow(index, CloseReason::Reset);
            self.conclude(CloseCause::Refused);
        } else {
            self.drop_subflow(now, index, CloseReason::ProtocolError);
        }
    }

    pub(super) fn is_initial(&self, index: usize) -> bool {
        self.subflows.get(index).is_some_and(|subflow| subflow.id() == SubflowId(0))
    }

    fn handle_syn_ack(&mut self, now: Instant, index: usize, segment: &Segment) {
        let initial = self.is_initial(index);
        if !initial && !self.verify_join_syn_ack(index, segment) {
            self.reset_subflow(now, index, CloseReason::ProtocolError, super::close::REASON_MPTCP);
            return;
        }
        let (config, scale) = (self.config.clone(), self.receive_scale());
        if let Some(subflow) = self.subflows.get_mut(index) {
            subflow.handle_syn(now, segment, &config.tcp, scale);
            subflow.handle_syn_acknowledged(now, segment.ack, config.tcp.rto);
            subflow.state = State::Established;
            subflow.receiver.acknowledge_now();
        }
        if initial {
            self.agree_on_protocol(segment);
        } else if let Some(subflow) = self.subflows.get_mut(index) {
            subflow.handshake_due = true;
        }
        self.take_syn_window(index, segment);
        self.establish(now, index);
        if initial {
            self.output.notify(Event::Connected(self.id));
            self.announce_subflow(now, index);
            self.resume_close(now);
        }
    }

    /// The SYN/ACK of the first subflow says whether the peer speaks MPTCP.
    fn agree_on_protocol(&mut self, segment: &Segment) {
        if self.association.protocol != Protocol::Negotiating {
            return;
        }
        let answer = segment.options.mptcp.iter().find_map(usable_capable);
        if let Some((flags, CapableKeys::Receiver(key))) = answer {
            self.association.checksum |= flags.checksum_required;
            self.identity.remote_denies_joins = flags.deny_join_initial;
            self.take_remote_key(key);
            self.association.protocol = Protocol::Multipath;
        } else {
            self.association.protocol = Protocol::Tcp;
            self.note_fallback(FallbackCause::NotCapable);
        }
    }

    fn take_remote_key(&mut self, key: u64) {
        self.identity.keys.remote = Key(key);
        self.identity.remote = Key(key).derive();
    }

    fn verify_join_syn_ack(&mut self, index: usize, segment: &Segment) -> bool {
        let Some(id) = self.subflows.get(index).map(Subflow::id) else { return false };
        let answer = segment.options.mptcp.iter().find_map(|option| match option {
            MptcpOption::JoinSynAck { backup, truncated_hmac, nonce, .. } => Some((*backup, *truncated_hmac, *nonce)),
            _ => None,
        });
        let keys = self.identity.keys;
        let (Some((backup, hmac, nonce)), Some(join)) =
            (answer, self.joins.open.iter_mut().find(|join| join.subflow == id))
        else {
            return false;
        };
        join.remote_nonce = nonce;
        let genuine = keys.verify_join_syn_ack(join.local_nonce, nonce, hmac);
        if let Some(subflow) = self.subflows.get_mut(index) {
            subflow.backup_remote = backup;
        }
        genuine
    }

    /// Both ends open at once (RFC 9293, section 3.5): plain TCP, since neither key has been acknowledged.
    fn handle_simultaneous_open(&mut self, now: Instant, index: usize, segment: &Segment) {
        if !self.is_initial(index) {
            self.reset_subflow(now, index, CloseReason::ProtocolError, super::close::REASON_MPTCP);
            return;
        }
        if self.association.protocol == Protocol::Negotiating {
            self.association.protocol = Protocol::Tcp;
            self.note_fallback(FallbackCause::NotCapable);
        }
        let (config, scale) = (self.config.clone(), self.receive_scale());
        if let Some(subflow) = self.subflows.get_mut(index) {
            subflow.handle_syn(now, segment, &config.tcp, scale);
            subflow.state = State::SynReceived;
            subflow.handshake_due = true;
        }
        self.take_syn_window(index, segment);
    }

    /// The window of a SYN is never scaled (RFC 7323, section 2.2).
    fn take_syn_window(&mut self, index: usize, segment: &Segment) {
        if self.is_initial(index) {
            self.sender.window_edge = self.sender.window_edge.max(u64::from(segment.window));
        }
        if let Some(subflow) = self.subflows.get_mut(index) {
            subflow.note_window(u32::from(segment.window));
            subflow.window_edge = subflow.send.initial + 1 + u32::from(segment.window);
        }
    }

    /// The acknowledgement of our SYN/ACK came in. Gives whether its segment is to be processed further.
    pub(super) fn handle_in_syn_received(&mut self, now: Instant, index: usize, segment: &Segment) -> bool {
        let initial = self.is_initial(index);
        let accepted =
            if initial { self.complete_capable(index, segment) } else { self.complete_join(now, index, segment) };
        if !accepted {
            return false;
        }
        let rule = self.config.tcp.rto;
        if let Some(subflow) = self.subflows.get_mut(index) {
            subflow.handle_syn_acknowledged(now, segment.ack, rule);
            subflow.state = State::Established;
            subflow.confirmed = true;
            subflow.handshake_due = !initial; // the fourth segment of a join
        }
        self.establish(now, index);
        if initial {
            let event = match self.role {
                Role::Client => Event::Connected(self.id),
                Role::Server => Event::Accepted {
                    connection: self.id,
                    port: self.subflows.get(index).map_or(0, |subflow| subflow.identity.local.port()),
                    remote: self.identity.initial_remote,
                },
            };
            self.life.introduce();
            self.output.notify(event);
            if let Some(cause) = self.life.untold_fallback.take() {
                self.note_fallback(cause);
            }
            if self.association.protocol == Protocol::Multipath {
                self.output.notices.push_back(Notice::Established);
            }
        }
        self.announce_subflow(now, index);
        self.resume_close(now);
        true
    }

    /// The third segment of the first subflow brings the peer's key (RFC 8684, section 3.1), or shows that MPTCP
    /// options are being stripped. What has a DSS but no key overtook what carries the key, if that can still come: drop it.
    fn complete_capable(&mut self, index: usize, segment: &Segment) -> bool {
        if self.association.protocol != Protocol::Negotiating {
            return true;
        }
        let overtook = segment.options.dss.is_some() && !self.withholds_key(index, segment);
        let keys = segment.options.mptcp.iter().find_map(usable_capable).map(|(_, keys)| keys);
        // On data it stands for a DSS; alone it does not show that those get through (RFC 8684, sections 3.1, 3.7).
        self.association.confirmed = matches!(keys, Some(CapableKeys::BothWithData { .. }));
        match keys {
            Some(CapableKeys::Both { sender, receiver } | CapableKeys::BothWithData { sender, receiver, .. })
                if receiver == self.identity.keys.local.0 =>
            {
                self.take_remote_key(sender);
                self.association.protocol = Protocol::Multipath;
                true
            }
            _ if overtook => false,
            _ => {
                self.association.protocol = Protocol::Tcp;
                self.tell_of_fallback(segment);
                self.note_fallback(FallbackCause::OptionsStripped);
                true
            }
        }
    }

    /// The third segment of a join must prove that the peer has both keys; without MP_JOIN it is reset like with a wrong
    /// one (RFC 8684, section 3.2).
    fn complete_join(&mut self, now: Instant, index: usize, segment: &Segment) -> bool {
        let Some(id) = self.subflows.get(index).map(Subflow::id) else { return false };
        let proof = segment.options.mptcp.iter().find_map(|option| match option {
            MptcpOption::JoinAck { hmac } => Some(*hmac),
            _ => None,
        });
        let Some(join) = self.joins.open.iter().find(|join| join.subflow == id) else { return false };
        if !proof.is_some_and(|hmac| self.identity.keys.verify_join_ack(join.local_nonce, join.remote_nonce, &hmac)) {
            self.reset_subflow(now, index, CloseReason::ProtocolError, super::close::REASON_MPTCP);
            return false;
        }
        self.joins.open.retain(|join| join.subflow != id);
        true
    }

    /// The peer answered on a join that we opened: data may be sent.
    pub(super) fn confirm_join(&mut self, now: Instant, index: usize) {
        let Some(subflow) = self.subflows.get_mut(index) else { return };
        if subflow.confirmed {
            return;
        }
        subflow.confirmed = true;
        subflow.handshake_due = false;
        subflow.timers.handshake = Instant::NEVER;
        // What went unanswered was the proof, and it is answered now.
        subflow.timeouts_in_row = 0;
        subflow.rtt.end_back_off();
        let id = subflow.id();
        self.joins.open.retain(|join| join.subflow != id);
        self.announce_subflow(now, index);
    }

    fn announce_subflow(&mut self, now: Instant, index: usize) {
        let Some(id) = self.subflows.get(index).map(Subflow::id) else { return };
        // It carries nothing any more but its own end.
        if self.life.closed.is_some() {
            return;
        }
        // The path manager of a client hears of nothing before joins may begin.
        if self.association.protocol == Protocol::Multipath && (self.association.confirmed || self.role == Role::Server)
        {
            self.output.notices.push_back(Notice::SubflowEstablished(id));
            self.fit_buffers();
        }
        self.output.notify(Event::SubflowEstablished(self.id, id));
        self.association.joined |= id != SubflowId(0);
        self.resume_signalling(now);
        self.timers.without_subflows = Instant::NEVER;
        self.output.pending = true;
    }

    /// Both SYNs are exchanged: the segment size is settled and congestion control begins.
    fn establish(&mut self, now: Instant, index: usize) {
        let space = self.mptcp_option_space();
        let Some((subflow, cx)) = self.subflow_in_context(now, index) else { return };
        let setup = Setup { config: cx.config, mptcp_option_space: space };
        subflow.establish(now, cx.congestion, &setup);
        subflow.timers.handshake = if subflow.confirmed { Instant::NEVER } else { subflow.timers.handshake };
        let (mss, round_trip) = (subflow.mss, subflow.rtt.smoothed());
        self.receiver.buffer.set_segment_size(mss);
        self.receiver.buffer.set_round_trip(round_trip);
        self.arm_measurement(now);
        self.output.pending = true;
    }
}

/// The flags and keys of an MP_CAPABLE that we can use: version 1, HMAC-SHA256, no extension.
pub(super) fn usable_capable(option: &MptcpOption) -> Option<(CapableFlags, CapableKeys)> {
    match option {
        MptcpOption::Capable { version, flags, keys }
            if *version >= VERSION && flags.hmac_sha256 && !flags.extensibility =>
        {
            Some((*flags, *keys))
        }
        _ => None,
    }
}

impl Subflow {
    /// The SYN, or SYN/ACK in SYN-RECEIVED.
    fn syn(&self, config: &crate::config::TcpConfig, stamp: u32, scale: u8, window: u64) -> Segment {
        let answers = self.state == State::SynReceived;
        let agreed = |offered: bool, negotiated: bool| if answers { negotiated } else { offered };
        let mut flags = if answers { Flags::SYN | Flags::ACK } else { Flags::SYN };
        if answers && self.negotiated.ecn.echoes() {
            flags |= Flags::ECE;
        } else if !answers && config.ecn == EcnMode::Request && self.timeouts_in_row == 0 {
            // Not again: some middleboxes drop SYNs with these bits (RFC 3168, section 6.1.1.1).
            flags |= ECN_SETUP;
        }
        let mut segment = Segment {
            source_port: self.identity.local.port(),
            destination_port: self.identity.remote.port(),
            seq: self.send.initial,
            ack: if answers { self.receiver.next } else { SeqNumber(0) },
            flags,
            window: window.min(0xffff) as u16,
            ..Segment::default()
        };
        let scaling = !answers || self.negotiated.receive_scale > 0 || self.negotiated.send_scale > 0;
        segment.options.maximum_segment_size = Some(config.mtu.saturating_sub(self.identity.header_length()));
        segment.options.sack_permitted = agreed(config.sack, self.negotiated.sack);
        segment.options.window_scale = (config.window_scaling && scaling).then_some(scale);
        if agreed(config.timestamps, self.negotiated.timestamps) {
            let echo = if answers { self.receiver.timestamp } else { 0 };
            segment.options.timestamps = Some(Timestamps { value: stamp, echo });
        }
        segment
    }

    fn note_handshake_sent(&mut self, now: Instant) {
        self.handshake_sent = now;
    }

    /// Our SYN is acknowledged: a round-trip time sample, unless it was sent more than once (RFC 6298, section 3).
    fn handle_syn_acknowledged(&mut self, now: Instant, ack: SeqNumber, rule: RtoRule) {
        self.send.una = ack;
        if self.timeouts_in_row == 0 {
            self.rtt.sample(now.since(self.handshake_sent).max(Duration::from_nanos(1)), rule);
        } else {
            self.rtt.note_lost_handshake();
        }
        self.rtt.end_back_off();
        self.timeouts_in_row = 0;
        self.handshake_due = false;
        self.timers.handshake = Instant::NEVER;
    }
}
