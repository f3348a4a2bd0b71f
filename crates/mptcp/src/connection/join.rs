//! Joins: subflows added to a connection (RFC 8684, section 3.2).

use super::association::Protocol;
use super::opening::{Join, Joining};
use super::state::Connection;
use super::subflows::Handle;
use crate::subflow::parts::HandshakeKind;
use crate::subflow::timers::SubflowTimer;
use crate::subflow::{Identity, State, Subflow};
use anabranch_policy::ids::SubflowId;
use anabranch_policy::path_manager::CloseReason;
use anabranch_policy::time::Instant;
use anabranch_wire::{MptcpOption, Packet, Segment};

impl Connection {
    /// Opens another subflow. Returns none if MPTCP is not established, or at the limit of subflows.
    pub fn join(&mut self, now: Instant, joining: Joining) -> Option<SubflowId> {
        if !self.may_join() {
            return None;
        }
        let handle = self.begin_join(now, joining, State::SynSent, 0);
        Some(self.subflows[handle].id())
    }

    /// Whether we may open another subflow: not before a DSS option has arrived (RFC 8684, section 3.1).
    pub fn may_join(&self) -> bool {
        self.association.confirmed && self.takes_subflows() && self.subflows.len() < self.config.max_subflows
    }

    /// Whether the peer may open another subflow. It knows itself whether a DSS option has arrived.
    pub fn may_accept_join(&self) -> bool {
        let room = self.subflows.len() < self.config.max_subflows || self.unproven_join().is_some();
        self.takes_subflows() && room
    }

    fn takes_subflows(&self) -> bool {
        let ends = self.life.closed.is_some() || self.life.verdict.is_some() || self.both_ended();
        self.association.protocol == Protocol::Multipath && !ends
    }

    /// The oldest join of the peer that has not been authenticated.
    fn unproven_join(&self) -> Option<Handle> {
        self.subflows.find(|s| s.state == State::SynReceived && s.id() != SubflowId(0))
    }

    /// Adds a subflow for a peer's SYN with our token. The endpoint has checked the token and
    /// [`Self::may_accept_join`].
    pub fn accept_join(&mut self, now: Instant, joining: Joining, remote_nonce: u32, syn: &Packet) {
        // An attacker that has seen a token can begin joins but not complete them: they must not block those of the
        // peer.
        if self.subflows.len() >= self.config.max_subflows
            && let Some(oldest) = self.unproven_join()
        {
            self.drop_subflow(now, oldest, CloseReason::TimedOut);
        }
        let handle = self.begin_join(now, joining, State::SynReceived, remote_nonce);
        let scale = self.receive_scale();
        let subflow = &mut self.subflows[handle];
        subflow.handle_syn(now, &syn.segment, &self.config.tcp, scale);
        subflow.priority.backup_remote = joining.backup;
        subflow.priority.backup_local = false;
        subflow.handshake.kind = HandshakeKind::PeersJoin;
        self.take_syn_window(handle, &syn.segment);
    }

    fn begin_join(&mut self, now: Instant, joining: Joining, state: State, remote_nonce: u32) -> Handle {
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
        subflow.handshake.confirmed = false;
        subflow.priority.backup_local = joining.backup;
        subflow.cursor = self.sender.una();
        let handle = self.subflows.push(subflow);
        self.joins.open.reserve_exact(1);
        self.joins.open.push(Join { subflow: id, local_nonce: joining.nonce, remote_nonce });
        self.output.pending = true;
        handle
    }

    pub(super) fn verify_join_syn_ack(&mut self, handle: Handle, segment: &Segment) -> bool {
        let id = self.subflows[handle].id();
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
        let subflow = &mut self.subflows[handle];
        subflow.priority.backup_remote = backup;
        genuine
    }

    /// The third segment of a join must prove that the peer has both keys; without MP_JOIN, or with a wrong HMAC, the
    /// subflow is reset (RFC 8684, section 3.2).
    pub(super) fn complete_join(&mut self, now: Instant, handle: Handle, segment: &Segment) -> bool {
        let id = self.subflows[handle].id();
        let proof = segment.options.mptcp.iter().find_map(|option| match option {
            MptcpOption::JoinAck { hmac } => Some(*hmac),
            _ => None,
        });
        let Some(join) = self.joins.open.iter().find(|join| join.subflow == id) else { return false };
        if !proof.is_some_and(|hmac| self.identity.keys.verify_join_ack(join.local_nonce, join.remote_nonce, &hmac)) {
            self.reset_subflow(now, handle, CloseReason::ProtocolError, super::packets::REASON_MPTCP);
            return false;
        }
        self.joins.open.retain(|join| join.subflow != id);
        true
    }

    /// The peer answered on a join that we opened: data may be sent.
    #[inline]
    pub(super) fn confirm_join(&mut self, now: Instant, handle: Handle) {
        if !self.subflows[handle].handshake.confirmed {
            self.confirm_open_join(now, handle);
        }
    }

    #[inline(never)]
    fn confirm_open_join(&mut self, now: Instant, handle: Handle) {
        let subflow = &mut self.subflows[handle];
        subflow.handshake.confirmed = true;
        subflow.handshake.due = false;
        subflow.timers.stop(SubflowTimer::Handshake);
        // Only the HMAC had been unanswered.
        subflow.liveness.timeouts_in_row = 0;
        subflow.rtt.end_back_off();
        let id = subflow.id();
        self.joins.open.retain(|join| join.subflow != id);
        self.announce_subflow(now, handle);
    }
}
