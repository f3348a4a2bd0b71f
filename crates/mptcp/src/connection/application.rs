//! Operations of the application: write, read, close.

use super::association::Protocol;
use super::state::Connection;
use crate::config::BufferSize;
use crate::subflow::{State, Subflow};
use anabranch_policy::ids::SubflowId;
use anabranch_policy::time::{Duration, Instant};
use bytes::Bytes;
use std::sync::Arc;

impl Connection {
    /// The application closes the sending direction.
    pub fn close(&mut self, now: Instant) {
        if !self.life.close_writing() {
            return;
        }
        self.output.pending = true;
        match self.association.protocol {
            Protocol::Tcp | Protocol::Negotiating => {
                self.close_plain();
                self.arm_data_retransmit(now);
            }
            Protocol::Multipath if self.sender.all_assigned() => self.announce_data_fin(now),
            Protocol::Multipath => {} // DATA_FIN is on the last segment
        }
    }

    /// The application closes both directions.
    pub fn discard(&mut self, now: Instant) {
        // RFC 9293, section 3.10.4: CLOSE in SYN-SENT deletes the TCB.
        let initial = |subflow: &Subflow| subflow.state == State::SynSent && subflow.id() == SubflowId(0);
        let unanswered = self.subflows.first().is_some_and(initial) && self.sender.buffer.end() == 0;
        if self.receiver.buffer.readable() > 0 || unanswered {
            return self.abort(now);
        }
        self.life.discard();
        self.close(now);
        self.limit_wait_for_fin(now);
        self.limit_wait_for_end(now);
    }

    /// The application will not query the ended connection again.
    pub fn leave(&mut self) {
        self.life.discard();
    }

    /// Writes as much of `data` as fits into the send buffer; returns the number of bytes.
    pub fn write(&mut self, data: Bytes) -> usize {
        let offered = data.len();
        self.restrict_send_buffer();
        let taken = self.sender.buffer.write(data);
        self.life.write_was_short = taken < offered;
        self.report_memory();
        self.output.pending = true;
        taken
    }

    /// Bytes that [`Self::write`] would accept.
    pub fn room(&self) -> u64 {
        self.sender.buffer.space()
    }

    /// Switches Nagle's algorithm on or off.
    pub fn set_nagle(&mut self, on: bool) {
        self.sender.nagle = on;
        self.output.pending = true;
    }

    /// The receive buffer is what the settings say from now on, and no longer what it was at first.
    pub fn open_receive_buffer(&mut self) {
        if !self.receives_little() {
            return;
        }
        let at_first = self.config.bytes_at_first();
        let (BufferSize::Fixed(size) | BufferSize::Auto { initial: size, .. }) = self.config.receive_buffer;
        self.receiver.buffer.enlarge(size.max(at_first.saturating_add(1)));
        self.update_window();
    }

    /// Changes the application's priority for the policies. The settings are shared, so a connection that does so gets
    /// its own copy.
    pub fn set_priority(&mut self, priority: u8) {
        Arc::make_mut(&mut self.config).priority = priority.clamp(1, 6);
    }

    /// Sets for how long the peer's player can continue with its buffered data; none if unknown.
    pub fn set_play_out_left(&mut self, now: Instant, left: Option<Duration>) {
        self.sender.play_out_ends = left.map_or(Instant::NEVER, |left| now + left);
        self.output.pending = true;
    }

    /// The next bytes in order.
    #[inline(always)]
    pub fn read(&mut self, now: Instant, max: usize) -> Option<Bytes> {
        let max = if self.partial.is_some() { self.readable_until_gap(max) } else { max };
        let bytes = self.receiver.buffer.read_within(now, max, self.receive_buffer_allowed());
        self.after_read(now);
        bytes
    }

    /// Whether [`Self::read`] may return data. Where data may be abandoned, only a read can tell.
    pub fn is_readable(&self) -> bool {
        self.partial.is_some() || self.receiver.buffer.readable() > 0
    }

    #[inline]
    pub(super) fn after_read(&mut self, now: Instant) {
        if !self.has_something_to_read() {
            self.life.readable_announced = false;
        }
        self.report_memory();
        self.update_window();
        self.announce_end();
        self.finish_if_done(now);
        if let Some(cause) = self.life.verdict {
            self.conclude(cause);
        }
    }

    /// Sends a window update if the window has grown much.
    pub(super) fn update_window(&mut self) {
        let offered = self.receiver.advertised_edge.saturating_sub(self.receiver.buffer.next());
        let possible = self.receiver.buffer.window();
        if offered * 2 <= self.receiver.buffer.size() && possible >= offered * 2 && possible > 0 {
            self.tell_window();
        }
    }

    #[inline(never)]
    fn tell_window(&mut self) {
        self.subflows.iter_mut().filter(|s| s.state.can_receive()).for_each(|s| s.receiver.acknowledge_now());
        self.output.pending = true;
    }
}
