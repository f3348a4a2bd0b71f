//! Writes the segments of handshakes: SYN, SYN/ACK, and the third segment of a join (RFC 8684, sections 3.1, 3.2).

use super::association::Protocol;
use super::state::Connection;
use super::subflows::Handle;
use crate::subflow::State;
use crate::subflow::timers::SubflowTimer;
use anabranch_policy::path_manager::Role;
use anabranch_policy::time::Instant;
use anabranch_wire::mptcp::{CapableFlags, CapableKeys, Dss, VERSION};
use anabranch_wire::{MptcpOption, Segment};

/// Transmissions of a SYN with MP_CAPABLE before one without (as in Linux).
const CAPABLE_SYN_ATTEMPTS: u32 = 3;

impl Connection {
    /// The SYN, SYN/ACK or join acknowledgement of a subflow; arms its timer. None after too many attempts.
    pub(super) fn handshake_packet(&mut self, now: Instant, handle: Handle) -> Option<Segment> {
        let state = self.subflows[handle].state;
        if state.is_synchronised() {
            return self.join_acknowledgement(now, handle);
        }
        let attempts = self.subflows[handle].liveness.timeouts_in_row;
        let option = self.handshake_option(handle, state);
        let (stamp, scale) = (self.stamp(now), self.receive_scale());
        let window = self.receiver.buffer.window();
        self.receiver.advertised_edge = self.receiver.buffer.right_edge();
        let config = self.config.clone();
        let subflow = &mut self.subflows[handle];
        let mut segment = subflow.syn(&config.tcp, stamp, scale, window);
        segment.options.mptcp.extend(option);
        subflow.handshake.due = false;
        // A SYN/ACK that is a challenge does not postpone the timeout, or unacceptable segments could keep the subflow
        // alive for ever.
        if !subflow.timers.runs(SubflowTimer::Handshake) {
            let timeout = subflow.rtt.rto(&config.tcp);
            subflow.timers.set(SubflowTimer::Handshake, now + timeout);
        }
        if attempts == 0 {
            subflow.record_handshake_sent(now);
        }
        Some(segment)
    }

    /// Whether a SYN without MP_CAPABLE was sent on this path because those with it were lost.
    pub(super) fn went_without_capable(&self, handle: Handle) -> bool {
        self.identity.role == Role::Client && self.subflows[handle].liveness.timeouts_in_row >= CAPABLE_SYN_ATTEMPTS
    }

    fn handshake_option(&self, handle: Handle, state: State) -> Option<MptcpOption> {
        let flags = self.capable_flags();
        let subflow = &self.subflows[handle];
        let plain = self.went_without_capable(handle);
        let join = self.joins.open.iter().find(|join| join.subflow == subflow.id());
        match (self.association.protocol, state, join) {
            (Protocol::Negotiating, State::SynSent, None) if !plain => {
                Some(MptcpOption::Capable { version: VERSION, flags, keys: CapableKeys::None })
            }
            (Protocol::Negotiating, State::SynReceived, None) => Some(MptcpOption::Capable {
                version: VERSION,
                flags,
                keys: CapableKeys::Receiver(self.identity.keys.local.0),
            }),
            (Protocol::Multipath, State::SynSent, Some(join)) => Some(MptcpOption::JoinSyn {
                backup: subflow.priority.backup_local,
                address_id: self.identity.wire_address(subflow.identity.local_address),
                token: self.identity.remote.token,
                nonce: join.local_nonce,
            }),
            (Protocol::Multipath, State::SynReceived, Some(join)) => Some(MptcpOption::JoinSynAck {
                backup: subflow.priority.backup_local,
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

    /// The HMAC on every acknowledgement while a join that we opened is not confirmed.
    pub(super) fn join_proof(&self, handle: Handle) -> Option<MptcpOption> {
        let subflow = &self.subflows[handle];
        if subflow.handshake.confirmed || !subflow.state.is_synchronised() {
            return None;
        }
        let join = self.joins.open.iter().find(|join| join.subflow == subflow.id())?;
        Some(MptcpOption::JoinAck { hmac: self.identity.keys.sign_join_ack(join.local_nonce, join.remote_nonce) })
    }

    /// The third segment of a join, repeated until the peer answers, or the fourth, which is the answer (RFC 8684,
    /// section 3.2). It precedes all data: Linux resets a join if anything other than the first byte arrives first.
    fn join_acknowledgement(&mut self, now: Instant, handle: Handle) -> Option<Segment> {
        let window = self.receiver.offer_window();
        let proof = self.join_proof(handle);
        self.association.dss_sent |= proof.is_none();
        let data_ack = Dss { data_ack: Some(self.wire_data_ack()), mapping: None, data_fin: false };
        let (subflow, cx) = self.subflow_in_context(now, handle);
        subflow.handshake.due = false;
        let due = if subflow.handshake.confirmed { Instant::NEVER } else { now + subflow.rtt.rto(cx.config) };
        subflow.timers.set(SubflowTimer::Handshake, due);
        let mut segment = Segment::default();
        subflow.acknowledgement(&cx, window, 24, &mut segment);
        segment.options.dss = proof.is_none().then_some(data_ack);
        segment.options.mptcp.extend(proof);
        Some(segment)
    }
}

#[cfg(test)]
mod tests {
    use crate::connection::opening::Join;
    use crate::connection::tests::{config, connected};
    use crate::subflow::State;
    use anabranch_policy::ids::SubflowId;
    use anabranch_wire::MptcpOption;

    #[test]
    fn the_hmac_goes_with_what_leaves_behind_the_handshake_until_the_join_is_confirmed() {
        // RFC 8684, section 3.2: the third segment, and no other of the handshake.
        let proof = |state: State, confirmed: bool, open: &[u32]| {
            let mut connection = connected(config(), 3);
            let handle = connection.subflows.handle_of(SubflowId(2)).unwrap();
            (connection.subflows[handle].state, connection.subflows[handle].handshake.confirmed) = (state, confirmed);
            let join = |id: &u32| Join { subflow: SubflowId(*id), local_nonce: 10 * id, remote_nonce: 10 * id + 1 };
            connection.joins.open = open.iter().map(join).collect();
            let own = MptcpOption::JoinAck { hmac: connection.identity.keys.sign_join_ack(20, 21) };
            connection.join_proof(handle).map(|proof| proof == own)
        };
        assert_eq!(proof(State::Established, false, &[1, 2]), Some(true));
        assert_eq!(proof(State::CloseWait, false, &[2]), Some(true));
        assert_eq!(proof(State::Established, true, &[1, 2]), None, "the peer has it");
        assert_eq!(proof(State::SynSent, false, &[1, 2]), None, "there is no nonce of the peer");
        assert_eq!(proof(State::SynReceived, false, &[1, 2]), None, "the SYN/ACK has a shorter one");
        assert_eq!(proof(State::Established, false, &[1]), None, "another's");
    }
}
