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

    /// Whether the receive buffer is no larger than it may be at first. Once opened it stays larger.
    #[inline]
    pub(super) fn receives_little(&self) -> bool {
        self.receiver.buffer.size() <= self.config.bytes_at_first()
    }

    /// The largest receive buffer for which there is memory, in bytes.
    #[inline]
    pub(super) fn receive_buffer_allowed(&self) -> u64 {
        if self.receives_little() {
            return self.receiver.buffer.size();
        }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::buffer_memory::BufferMemory;
    use crate::config::{ConnectionConfig, TcpConfig};
    use crate::connection::tests::{config, connected};
    use anabranch_policy::ids::SubflowId;
    use std::sync::Arc;

    /// A send buffer of 10,000 bytes that may become `most`; windows of 20,000 bytes and these round trips in
    /// milliseconds.
    fn growing(most: u64, memory: Option<u64>, round_trips: &[u64]) -> Connection {
        let tcp = TcpConfig { max_window: Some(20_000), initial_window: 100, ..TcpConfig::default() };
        let memory = memory.map(|limit| Arc::new(BufferMemory::new(limit)));
        let config = ConnectionConfig { send_buffer: 10_000, send_buffer_max: most, memory, tcp, ..config() };
        let mut connection = connected(config, round_trips.len() as u32);
        for (id, millis) in (0..).zip(round_trips) {
            let subflow = connection.subflow_mut(SubflowId(id)).unwrap();
            subflow.rtt.sample(Duration::from_millis(*millis), crate::config::RtoRule::Rfc6298);
            assert!(subflow.is_usable());
        }
        connection
    }

    #[test]
    fn the_send_buffer_grows_to_twice_what_all_paths_carry_in_the_longest_round_trip_if_a_write_was_short() {
        let limit = |most: u64, was_short: bool, round_trips: &[u64]| {
            let mut connection = growing(most, None, round_trips);
            let windows: u64 = (0..round_trips.len() as u32)
                .map(|id| {
                    let tcp = connection.config.tcp.clone();
                    let congestion = &*connection.congestion;
                    connection.subflows.iter().find(|s| s.id() == SubflowId(id)).unwrap().window(congestion, &tcp)
                })
                .sum();
            connection.life.write_was_short = was_short;
            connection.grow_send_buffer();
            (connection.sender.buffer.limit(), windows)
        };
        let (grown, window) = limit(1 << 30, true, &[50]);
        assert_eq!(grown, (2 * window).max(10_000));
        let (grown, windows) = limit(1 << 30, true, &[50, 50]);
        assert_eq!(grown, (2 * windows).max(10_000));
        // The window of the quicker path is sent four times in the round trip of the other.
        let (grown, windows) = limit(1 << 30, true, &[50, 200]);
        assert_eq!(grown, windows / 2 * 10);
        assert_eq!(limit(1 << 30, false, &[50, 200]).0, 10_000);
        assert_eq!(limit(0, true, &[50, 200]).0, 10_000, "it does not grow");
        assert_eq!(limit(10_500, true, &[50]).0, 10_500);
    }

    #[test]
    fn a_message_makes_room_for_itself_within_the_limit() {
        let limit = |bytes: u64, most: u64| {
            let mut connection = growing(most, None, &[50]);
            connection.grow_for_message(bytes);
            connection.sender.buffer.limit()
        };
        assert_eq!((limit(15_000, 20_000), limit(25_000, 20_000), limit(9_000, 20_000)), (15_000, 20_000, 10_000));
    }

    #[test]
    fn where_memory_is_short_the_buffer_accepts_less() {
        let limit = |most: u64, memory: Option<u64>, used: u64| {
            let mut connection = growing(most, memory, &[50]);
            connection.sender.buffer.raise_limit(1 << 20);
            if let Some(memory) = &connection.config.memory {
                memory.exchange(0, used);
            }
            connection.restrict_send_buffer();
            connection.sender.buffer.limit()
        };
        assert_eq!(limit(1 << 20, Some(1 << 18), 1 << 17), (1 << 17) + SMALLEST);
        assert_eq!(limit(1 << 20, Some(1 << 18), 1 << 18), SMALLEST);
        assert_eq!(limit(1 << 20, None, 0), 1 << 20);
        assert_eq!(limit(0, Some(1 << 18), 1 << 18), 1 << 20, "it never grew by this");
    }
}
