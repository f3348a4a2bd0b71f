//! FINs of subflows.

use super::association::Protocol;
use super::state::Connection;
use super::subflows::Handle;
use crate::event::CloseCause;
use crate::subflow::State;
use crate::subflow::timers::SubflowTimer;
use anabranch_policy::time::Instant;
use anabranch_wire::SeqNumber;
use bytes::Bytes;

impl Connection {
    /// Handles the peer's FIN once everything before it has arrived.
    #[inline]
    pub(super) fn handle_fin(&mut self, now: Instant, handle: Handle, fin: Option<SeqNumber>) {
        if fin.is_some() || self.subflows[handle].peer.fin.is_some() {
            self.handle_known_fin(now, handle, fin);
        }
    }

    #[inline(never)]
    fn handle_known_fin(&mut self, now: Instant, handle: Handle, fin: Option<SeqNumber>) {
        if let Some(first) = fin.filter(|_| self.subflows[handle].peer.fin.is_none()) {
            self.forget_behind_fin(handle, first);
        }
        let subflow = &mut self.subflows[handle];
        subflow.peer.fin = subflow.peer.fin.or(fin);
        if fin.is_some_and(|fin| fin.after(subflow.receiver.next)) {
            subflow.receiver.acknowledge_now(); // out of order (RFC 5681, section 4.2)
        }
        if subflow.peer.fin != Some(subflow.receiver.next) || !subflow.state.can_receive() {
            return;
        }
        subflow.handle_fin(now, &self.config.tcp);
        if self.association.protocol == Protocol::Tcp {
            // In plain TCP it is the end of the stream, unless the peer does not know of our fallback yet.
            let end = self.receiver.buffer.next();
            let cut = self.association.fallback.unheard().is_some() && !self.receiver.buffer.at_end();
            if cut || self.receiver.buffer.set_end(end).is_err() {
                self.reset_all(now, CloseCause::ProtocolError);
            }
            self.take_in_records(now);
        } else {
            self.remove_if_closed(now, handle);
        }
    }

    /// In plain TCP nothing follows a FIN. What came ahead of it from behind it is dropped, as by Linux: it must not
    /// keep what comes before the FIN from the application. Where the peer may still send mappings its place is not
    /// known.
    fn forget_behind_fin(&mut self, handle: Handle, fin: SeqNumber) {
        let subflow = &mut self.subflows[handle];
        let plain = self.association.protocol == Protocol::Tcp && !self.association.fallback.heeds_mappings();
        if plain && subflow.receiver.has_gap() && fin.at_or_after(subflow.receiver.next) {
            subflow.receiver.forget_from(fin);
            let end = self.receiver.buffer.next() + u64::from(fin - subflow.receiver.next);
            self.receiver.buffer.forget_from(end);
            self.report_memory();
        }
    }

    /// Removes the part of a payload in plain TCP that lies behind a FIN of the peer's: it is ignored (RFC 9293,
    /// section 3.10.7.4).
    pub(super) fn cut_at_fin(&mut self, handle: Handle, seq: SeqNumber, payload: &mut Bytes) {
        let subflow = &mut self.subflows[handle];
        let Some(fin) = subflow.peer.fin else { return };
        let room = usize::try_from(fin.distance(seq)).unwrap_or(0);
        if payload.len() > room {
            payload.truncate(room);
            subflow.receiver.acknowledge_now();
        }
    }

    pub(super) fn handle_fin_acknowledged(&mut self, now: Instant, handle: Handle) {
        let subflow = &mut self.subflows[handle];
        subflow.handle_fin_acknowledged(now, &self.config.tcp);
        let plain = self.association.protocol == Protocol::Tcp;
        if plain {
            self.life.acknowledge_end();
        }
        let goes_on = plain && !self.life.discarded() && !self.receiver.buffer.at_end();
        if subflow.state == State::FinWait2 && !goes_on {
            // The peer has only a FIN to send. In plain TCP its application may continue to write as long as ours
            // reads, unless the peer announced the end of its stream before a fallback.
            subflow.timers.set(SubflowTimer::Linger, now + self.config.tcp.fin_wait_2);
        }
        self.remove_if_closed(now, handle);
    }
}
