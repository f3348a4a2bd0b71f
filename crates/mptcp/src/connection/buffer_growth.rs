//! Lets the buffers grow beyond their initial sizes, as far as there is memory.

use super::state::Connection;
use crate::config::BufferSize;
use crate::record::Framing;
use crate::subflow::Subflow;
use anabranch_policy::time::Duration;

/// A change of what a connection holds that is small enough not to be reported, in bytes.
const UNREPORTED: u64 = 64 * 1024;
/// A send buffer that each connection has, whatever others hold, in bytes.
const SMALLEST: u64 = 64 * 1024;
/// Congestion windows of data in the send buffer: one is in flight, and one is sent while the acknowledgement at data
/// level waits for a retransmission (Linux: `tcp_sndbuf_expand`).
const WINDOWS: u128 = 2;

impl Connection {
    /// Data left the send buffer: it grows if the application wants to write more than it holds.
    #[inline]
    pub(super) fn grow_send_buffer(&mut self) {
        if self.config.send_buffer_max > 0 && self.life.write_was_short {
            self.fit_send_buffer();
        }
    }

    /// The send buffer holds what all subflows can carry within the longest round trip, as RFC 6182, section 5.3, asks,
    /// twice. It does not shrink with the windows, which are smaller for a time after each loss.
    #[inline(never)]
    fn fit_send_buffer(&mut self) {
        let wanted = self.bytes_per_longest_round_trip().saturating_mul(WINDOWS);
        let wanted = u64::try_from(wanted).unwrap_or(u64::MAX).min(self.largest_send_buffer());
        self.sender.buffer.raise_limit(wanted.min(self.send_buffer_allowed()));
    }

    /// A message must fit as a whole, whatever the windows are.
    pub(super) fn grow_for_message(&mut self, bytes: u64) {
        if bytes > self.sender.buffer.limit() {
            self.sender.buffer.raise_limit(bytes.min(self.largest_send_buffer()));
        }
    }

    /// The limit of growth for the present number of subflows, in bytes.
    fn largest_send_buffer(&self) -> u64 {
        self.config.send_buffer_max.saturating_mul(self.buffer_factor())
    }

    fn bytes_per_longest_round_trip(&self) -> u128 {
        let of = |subflow: &Subflow| subflow.rtt.smoothed().max(Duration::from_micros(1)).as_nanos();
        let carry = self.subflows.iter().filter(|subflow| subflow.is_usable());
        let longest = u128::from(carry.clone().map(of).max().unwrap_or_default());
        let each = carry.map(|subflow| {
            let window = u128::from(subflow.window(&*self.congestion, &self.config.tcp));
            window * longest / u128::from(of(subflow))
        });
        each.sum()
    }

    /// The largest send buffer for which there is memory, in bytes.
    fn send_buffer_allowed(&self) -> u64 {
        self.config.memory.as_ref().map_or(u64::MAX, |memory| memory.free().saturating_add(SMALLEST))
    }

    /// Before data is written: where memory is short, the buffer accepts less than it did.
    #[inline]
    pub(super) fn restrict_send_buffer(&mut self) {
        if self.config.memory.is_some() && self.config.send_buffer_max > 0 {
            let allowed = self.send_buffer_allowed();
            self.sender.buffer.lower_limit(allowed);
        }
    }

    /// The largest receive buffer for which there is memory, in bytes.
    #[inline]
    pub(super) fn receive_buffer_allowed(&self) -> u64 {
        match (&self.config.memory, self.config.receive_buffer) {
            (Some(memory), BufferSize::Auto { initial, .. }) => initial.saturating_add(memory.free()),
            _ => u64::MAX,
        }
    }

    /// Whether there is no memory for data up to this offset, although it may lie within the window, which was promised
    /// when there was. What follows the data being read is always taken, so that reading goes on; and so is a message,
    /// which is read as a whole.
    #[inline]
    pub(super) fn has_no_memory_for(&self, end: u64) -> bool {
        let Some(memory) = self.config.memory.as_ref().filter(|_| self.config.framing == Framing::Bytes) else {
            return false;
        };
        let BufferSize::Auto { initial, .. } = self.config.receive_buffer else { return false };
        end > self.receiver.buffer.read_offset().saturating_add(initial) && memory.free() == 0
    }

    /// Reports what the buffers hold to the memory that connections share. To be called when that changed.
    #[inline]
    pub(super) fn report_memory(&mut self) {
        if let Some(memory) = &self.config.memory {
            let held =
                self.sender.buffer.held() + self.receiver.buffer.readable() + self.receiver.buffer.out_of_order();
            let before = self.sender.reported_memory();
            if held.abs_diff(before) >= UNREPORTED || (held == 0 && before > 0) {
                let after = self.sender.report_memory(held);
                memory.exchange(before, after);
            }
        }
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        if let Some(memory) = &self.config.memory {
            memory.exchange(self.sender.reported_memory(), 0);
        }
    }
}
