//! FINs of subflows.

use super::association::Protocol;
use super::state::Connection;
use super::subflows::Handle;
use crate::event::CloseCause;
use crate::subflow::State;
use crate::subflow::timers::SubflowTimer;
use anabranch_policy::time::Instant;
use anabranch_wire::SeqNumber;

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
