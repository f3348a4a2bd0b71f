//! Three-way handshakes with MP_CAPABLE or MP_JOIN (RFC 8684, sections 3.1, 3.2).

use super::association::Protocol;
use super::opening::{Opening, usable_capable};
use super::output::Notice;
use super::packets::REASON_MPTCP;
use super::state::Connection;
use super::subflows::Handle;
use super::timer_table::Timer;
use crate::event::{CloseCause, Event, FallbackCause};
use crate::subflow::parts::{HandshakeKind, SynSent};
use crate::subflow::{Identity, State, Subflow};
use anabranch_policy::ids::{AddressId, SubflowId};
use anabranch_policy::path_manager::{CloseReason, Role};
use anabranch_policy::time::Instant;
use anabranch_wire::mptcp::CapableKeys;
use anabranch_wire::{Flags, MptcpOption, Packet, Segment, Unreachable};

/// Whether a peer that refuses a join does not know the token (RFC 8684, section 3.2): it has restarted, and all other
/// paths lead to the same peer. An attacker cannot forge this without having seen the SYN, which it acknowledges.
fn says_unknown(option: &MptcpOption) -> bool {
    matches!(option, MptcpOption::TcpReset { reason: REASON_MPTCP, .. })
}

/// The reason for the path manager: a join is refused for good unless the peer says that the condition is transient (RFC
/// 8684, section 3.6, flag T).
fn refusal(reset: &Segment) -> CloseReason {
    let transient = |option: &MptcpOption| matches!(option, MptcpOption::TcpReset { transient: true, .. });
    if reset.options.mptcp.iter().any(transient) { CloseReason::Reset } else { CloseReason::ProtocolError }
}

impl Connection {
    /// Opens a connection: its SYN waits in [`Connection::poll_transmit`].
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

    /// Creates a connection from the SYN of a peer.
    pub fn accept(now: Instant, opening: Opening, syn: &Packet) -> Self {
        let offers = syn.segment.options.mptcp.iter().any(|option| usable_capable(option).is_some());
        let multipath = opening.config.multipath && offers;
        let protocol = if multipath { Protocol::Negotiating } else { Protocol::Tcp };
        let (local, remote, initial, local_address) =
            (opening.local, opening.remote, opening.initial, opening.local_address);
        let mut connection = Self::new(opening, Role::Server, protocol);
        if connection.config.multipath && !offers {
            // The application learns why this is plain TCP: the peer has no MPTCP, or a middlebox removed the option.
            connection.report_fallback(FallbackCause::NotCapable);
        }
        if let Some((flags, _)) = syn.segment.options.mptcp.iter().find_map(usable_capable) {
            connection.association.checksum |= flags.checksum_required;
            connection.identity.remote_denies_joins = flags.deny_join_initial;
        }
        let identity = Identity { id: SubflowId(0), local, remote, local_address, remote_address: AddressId(0) };
        let mut subflow = Subflow::new(identity, State::SynReceived, initial, now);
        subflow.handle_syn(now, &syn.segment, &connection.config.tcp, connection.receive_scale());
        let handle = connection.subflows.push(subflow);
        connection.joins.next_subflow = 1;
        connection.take_syn_window(handle, &syn.segment);
        connection
    }

    /// A segment in SYN-SENT (RFC 9293, section 3.10.7.3).
    pub(super) fn handle_in_syn_sent(&mut self, now: Instant, handle: Handle, segment: &Segment) {
        let subflow = &self.subflows[handle];
        let acknowledges = segment.flags.contains(Flags::ACK);
        if acknowledges && segment.ack != subflow.send.nxt {
            if !segment.flags.contains(Flags::RST) {
                self.refuse_acknowledgement(handle, segment.ack);
                self.repeat_syn(handle);
            }
            return;
        }
        if segment.flags.contains(Flags::RST) {
            if acknowledges {
                self.subflow_refused(now, handle, segment);
            }
            return;
        }
        if !segment.flags.contains(Flags::SYN) {
            return;
        }
        if acknowledges {
            self.handle_syn_ack(now, handle, segment);
        } else {
            self.handle_simultaneous_open(now, handle, segment);
        }
    }

    /// The peer has a connection of before with these ports, as a rule in TIME-WAIT, and our reset removes it (RFC 9293,
    /// section 3.10.7.4). The SYN follows at once, as from Linux, and not after a second; but once, whoever sends such
    /// segments.
    fn repeat_syn(&mut self, handle: Handle) {
        let subflow = &mut self.subflows[handle];
        let handshake = &mut subflow.handshake;
        if handshake.kind == HandshakeKind::Usual {
            (handshake.kind, handshake.due) = (HandshakeKind::Repeated, true);
            // Whatever answers this one cannot be for the first, which the other connection has answered.
            subflow.liveness.syn_sent = SynSent::Never;
            self.output.pending = true;
        }
    }

    fn subflow_refused(&mut self, now: Instant, handle: Handle, reset: &Segment) {
        if !self.is_initial(handle) {
            self.drop_subflow(now, handle, refusal(reset));
            if self.timers.runs(Timer::WithoutSubflows) && reset.options.mptcp.iter().any(says_unknown) {
                // A peer that has all and has said its end forgets the connection as well.
                let finished = self.lacks_only_a_word();
                self.reset_all(now, if finished { CloseCause::Finished } else { CloseCause::AbortedByPeer });
            }
            return;
        }
        self.fail_attempt(now, handle, Unreachable::Port, CloseReason::Reset);
    }

    fn handle_syn_ack(&mut self, now: Instant, handle: Handle, segment: &Segment) {
        let initial = self.is_initial(handle);
        if !initial && !self.verify_join_syn_ack(handle, segment) {
            return self.refuse_answer(now, handle, segment);
        }
        if initial {
            self.decide_race(now, handle);
            self.agree_on_protocol(handle, segment);
        }
        let (config, scale) = (self.config.clone(), self.receive_scale());
        let subflow = &mut self.subflows[handle];
        subflow.handle_syn(now, segment, &config.tcp, scale);
        subflow.handle_syn_acknowledged(now, segment.ack, config.tcp.rto);
        subflow.state = State::Established;
        subflow.receiver.acknowledge_now();
        self.report_answer(handle);
        if !initial {
            self.subflows[handle].handshake.due = true;
        }
        self.take_syn_window(handle, segment);
        self.establish(now, handle);
        if initial {
            self.output.notify(Event::Connected(self.id));
            self.announce_subflow(now, handle);
            self.resume_close(now);
        }
    }

    /// Resets a join that was not answered by a proof. The peer heeds only a reset that acknowledges its SYN (RFC 9293,
    /// section 3.10.7.3; Linux in SYN-RECEIVED, too).
    fn refuse_answer(&mut self, now: Instant, handle: Handle, segment: &Segment) {
        let subflow = &mut self.subflows[handle];
        (subflow.state, subflow.receiver.next) = (State::SynReceived, segment.seq + 1);
        self.reset_subflow(now, handle, CloseReason::ProtocolError, REASON_MPTCP);
    }

    /// The SYN/ACK of the first subflow tells whether the peer supports MPTCP.
    fn agree_on_protocol(&mut self, handle: Handle, segment: &Segment) {
        if self.association.protocol != Protocol::Negotiating {
            return;
        }
        if self.went_without_capable(handle) {
            self.association.protocol = Protocol::Tcp;
            return self.report_fallback(FallbackCause::SynLost);
        }
        let answer = segment.options.mptcp.iter().find_map(usable_capable);
        if let Some((flags, CapableKeys::Receiver(key))) = answer {
            self.association.checksum |= flags.checksum_required;
            self.identity.remote_denies_joins = flags.deny_join_initial;
            self.identity.set_remote_key(key);
            self.association.protocol = Protocol::Multipath;
        } else {
            self.association.protocol = Protocol::Tcp;
            self.report_fallback(FallbackCause::NotCapable);
        }
    }

    /// A simultaneous open (RFC 9293, section 3.5): plain TCP, since neither key has been acknowledged.
    fn handle_simultaneous_open(&mut self, now: Instant, handle: Handle, segment: &Segment) {
        if !self.is_initial(handle) {
            return self.refuse_answer(now, handle, segment);
        }
        self.decide_race(now, handle);
        if self.association.protocol == Protocol::Negotiating {
            self.association.protocol = Protocol::Tcp;
            self.report_fallback(FallbackCause::NotCapable);
        }
        let (config, scale) = (self.config.clone(), self.receive_scale());
        let subflow = &mut self.subflows[handle];
        subflow.handle_syn(now, segment, &config.tcp, scale);
        subflow.state = State::SynReceived;
        subflow.send_handshake_again();
        self.take_syn_window(handle, segment);
    }

    /// Our SYN/ACK was acknowledged. Returns whether the segment is to be processed further.
    pub(super) fn handle_in_syn_received(&mut self, now: Instant, handle: Handle, segment: &Segment) -> bool {
        let initial = self.is_initial(handle);
        let accepted =
            if initial { self.complete_capable(handle, segment) } else { self.complete_join(now, handle, segment) };
        if !accepted {
            return false;
        }
        let rule = self.config.tcp.rto;
        let subflow = &mut self.subflows[handle];
        subflow.handle_syn_acknowledged(now, segment.ack, rule);
        subflow.state = State::Established;
        subflow.handshake.confirmed = true;
        subflow.handshake.due = !initial; // the fourth segment of a join
        self.establish(now, handle);
        if initial {
            let event = match self.identity.role {
                Role::Client => Event::Connected(self.id),
                Role::Server => Event::Accepted {
                    connection: self.id,
                    port: self.subflows[handle].identity.local.port(),
                    remote: self.identity.initial_remote,
                },
            };
            self.life.introduce();
            self.output.notify(event);
            if let Some(cause) = self.life.untold_fallback.take() {
                self.report_fallback(cause);
            }
            if self.association.protocol == Protocol::Multipath {
                self.output.tell(Notice::Established);
            }
        }
        self.announce_subflow(now, handle);
        self.resume_close(now);
        true
    }

    /// The third segment of the first subflow has the peer's key (RFC 8684, section 3.1), or shows that MPTCP options
    /// are stripped. A segment with a DSS or another option but without a key overtook the one with the key, if that
    /// may still arrive: it is dropped.
    fn complete_capable(&mut self, handle: Handle, segment: &Segment) -> bool {
        if self.association.protocol != Protocol::Negotiating {
            return true;
        }
        let others = segment.options.mptcp.iter().any(|option| !matches!(option, MptcpOption::Capable { .. }));
        let overtook = match &segment.options.dss {
            Some(_) => !self.withholds_key(handle, segment),
            // Who will not send the key answers with a DSS (see `withholds_key`), or in plain TCP.
            None => others,
        };
        let keys = segment.options.mptcp.iter().find_map(usable_capable).map(|(_, keys)| keys);
        // On data it implies a DSS; alone it does not show that DSS options arrive (RFC 8684, sections 3.1, 3.7).
        self.association.confirmed = matches!(keys, Some(CapableKeys::BothWithData { .. }));
        match keys {
            Some(CapableKeys::Both { sender, receiver } | CapableKeys::BothWithData { sender, receiver, .. })
                if receiver == self.identity.keys.local.0 =>
            {
                self.identity.set_remote_key(sender);
                self.association.protocol = Protocol::Multipath;
                true
            }
            _ if overtook => false,
            _ => {
                self.association.protocol = Protocol::Tcp;
                self.report_fallback_to_peer(segment);
                self.report_fallback(FallbackCause::OptionsStripped);
                true
            }
        }
    }
}
