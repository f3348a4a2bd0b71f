//! ICMP errors about packets that we sent (RFC 9293, section 3.9.2.2).

use super::state::Connection;
use super::subflows::Handle;
use crate::subflow::{State, Subflow};
use anabranch_policy::path_manager::CloseReason;
use anabranch_policy::time::Instant;
use anabranch_wire::{IcmpError, SeqNumber, Trouble, Unreachable};

/// What an ICMP error has led to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Heed {
    /// It ended a subflow, or shortened its segments.
    Acted,
    /// It is about a subflow that the peer has answered, and changes nothing.
    Counted,
    /// It is implausible or changes nothing.
    Refused,
}

impl Connection {
    /// A packet of ours was too big for a link, or did not reach the peer.
    pub fn handle_icmp_error(&mut self, now: Instant, error: &IcmpError) -> Heed {
        let of_it = |s: &Subflow| s.identity.local == error.source && s.identity.remote == error.destination;
        let Some(handle) = self.subflows.find(of_it) else { return Heed::Refused };
        match error.trouble {
            Trouble::TooBig { mtu } => {
                let (subflow, mut cx) = self.subflow_in_context(now, handle);
                let believed = subflow.handle_packet_too_big(&mut cx, error.seq, mtu);
                self.output.pending = true;
                if believed { Heed::Acted } else { Heed::Refused }
            }
            Trouble::Unreachable(what) => self.handle_unreachable(now, handle, error.seq, what),
        }
    }

    /// In SYN-SENT this ends the attempt or the join at once, as in Linux (RFC 5461, section 4.1). A peer that has
    /// answered was reached: then it changes nothing, so that nobody who guesses a sequence number ends a connection (RFC
    /// 5927, section 5.2), and the timers judge the path.
    fn handle_unreachable(&mut self, now: Instant, handle: Handle, seq: SeqNumber, what: Unreachable) -> Heed {
        let subflow = &self.subflows[handle];
        if !subflow.is_outstanding(seq) {
            return Heed::Refused;
        }
        if subflow.state != State::SynSent {
            return Heed::Counted;
        }
        if self.is_initial(handle) {
            self.fail_attempt(now, handle, what, CloseReason::Unreachable);
        } else {
            self.drop_subflow(now, handle, CloseReason::Unreachable);
        }
        Heed::Acted
    }
}
