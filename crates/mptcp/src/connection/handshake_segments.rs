//! The segments of handshakes: SYN, SYN/ACK, and the third segment of a join (RFC 8684, sections 3.1, 3.2).

use super::association::Protocol;
use super::state::Connection;
use crate::config::{EcnMode, RtoRule};
use crate::event::FallbackCause;
use crate::subflow::segment_arrives::ECN_SETUP;
use crate::subflow::{State, Subflow};
use anabranch_policy::ids::SubflowId;
use anabranch_policy::path_manager::Role;
use anabranch_policy::time::{Duration, Instant};
use anabranch_wire::mptcp::{CapableFlags, CapableKeys, Dss, VERSION};
use anabranch_wire::tcp::Timestamps;
use anabranch_wire::{Flags, MptcpOption, Segment, SeqNumber};

/// Transmissions of a SYN with MP_CAPABLE before one without is tried (Linux does the same).
pub(super) const CAPABLE_SYN_ATTEMPTS: u32 = 3;

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
    pub(super) fn handle_syn_acknowledged(&mut self, now: Instant, ack: SeqNumber, rule: RtoRule) {
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

impl Connection {
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
                address_id: self.identity.wire_address(subflow.identity.local_address),
                token: self.identity.remote.token,
                nonce: join.local_nonce,
            }),
            (Protocol::Multipath, State::SynReceived, Some(join)) => Some(MptcpOption::JoinSynAck {
                backup: subflow.backup_local,
                address_id: self.identity.wire_address(subflow.identity.local_address),
                truncated_hmac: self.identity.keys.sign_join_syn_ack(join.local_nonce, join.remote_nonce),
                nonce: join.local_nonce,
            }),
            _ => None,
        }
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
        let (subflow, cx) = self.subflow_in_context(now, index)?;
        subflow.handshake_due = false;
        subflow.timers.handshake = if subflow.confirmed { Instant::NEVER } else { now + subflow.rtt.rto(cx.config) };
        let mut segment = subflow.acknowledgement(&cx, window, 24);
        segment.options.dss = proof.is_none().then_some(data_ack);
        segment.options.mptcp.extend(proof);
        Some(segment)
    }
}
