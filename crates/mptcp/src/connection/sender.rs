//! Owns the sending side of the data level: the unacknowledged stream, what of it is assigned to subflows, and the
//! peer's window.

use super::reinjections::Reinjections;
use crate::config::ConnectionConfig;
use crate::record::Framing;
use crate::send_buffer::SendBuffer;
use anabranch_policy::time::Instant;

/// Unit of reports of memory, bytes, so that 32 bits are enough for them.
const REPORTED_UNIT: u64 = 4_096;

/// The sending side of a connection.
#[derive(Debug)]
pub(super) struct DataSender {
    /// Unacknowledged data.
    pub buffer: SendBuffer,
    /// Next byte to be assigned for the first time.
    pub data_nxt: u64,
    /// End of the data sent on any subflow.
    pub sent_end: u64,
    /// Right edge of the peer's window: the largest DATA_ACK plus window (RFC 8684, section 3.3.5).
    pub window_edge: u64,
    /// Highest data known to have arrived, in order or not.
    pub delivered_end: u64,
    /// Ranges to be reinjected.
    pub reinjections: Reinjections,
    /// Nagle's algorithm is on.
    pub nagle: bool,
    /// The override timeout of silly window avoidance has expired: a small window is used.
    pub override_due: bool,
    /// Memory reported as used by both buffers ([`crate::BufferMemory`]), in units of [`REPORTED_UNIT`].
    reported: u32,
    /// When the peer's player runs out of data; [`Instant::NEVER`] if the application does not tell.
    pub play_out_ends: Instant,
}

impl DataSender {
    pub fn new(config: &ConnectionConfig) -> Self {
        Self {
            buffer: SendBuffer::new(config.send_buffer),
            data_nxt: 0,
            sent_end: 0,
            window_edge: 0,
            delivered_end: 0,
            reinjections: Reinjections::default(),
            nagle: config.tcp.nagle && config.framing == Framing::Bytes,
            override_due: false,
            reported: 0,
            play_out_ends: Instant::NEVER,
        }
    }

    /// Memory reported as used, in bytes.
    pub fn reported_memory(&self) -> u64 {
        u64::from(self.reported) * REPORTED_UNIT
    }

    /// The connection holds so many bytes. Returns the bytes to report, rounded up.
    pub fn report_memory(&mut self, held: u64) -> u64 {
        self.reported = u32::try_from(held.div_ceil(REPORTED_UNIT)).unwrap_or(u32::MAX);
        self.reported_memory()
    }

    /// First byte unacknowledged at data level (DATA.UNA).
    pub fn una(&self) -> u64 {
        self.buffer.start()
    }

    /// Whether all written data is assigned.
    pub fn all_assigned(&self) -> bool {
        self.data_nxt == self.buffer.end()
    }

    /// Bytes written and not assigned.
    pub fn unsent(&self) -> u64 {
        self.buffer.end() - self.data_nxt
    }

    /// Bytes of new data that the peer's window allows.
    pub fn window_left(&self) -> u64 {
        self.window_edge.saturating_sub(self.data_nxt)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::buffer_memory::BufferMemory;
    use crate::connection::tests::{config, connected};
    use bytes::Bytes;
    use std::sync::Arc;

    #[test]
    fn what_a_connection_holds_is_reported_in_units_when_it_changed_by_much_and_when_it_is_gone() {
        let memory = Arc::new(BufferMemory::new(1 << 30));
        let mut connection = connected(ConnectionConfig { memory: Some(memory.clone()), ..config() }, 1);
        let mut hold = |sent: u64, acknowledged: u64, received: u64| {
            assert_eq!(connection.write(Bytes::from(vec![0; sent as usize])), sent as usize);
            connection.sender.buffer.acknowledge(acknowledged);
            // Behind a hole.
            connection.receiver.buffer.insert(Instant::ZERO, 1_000, Bytes::from(vec![0; received as usize]));
            connection.report_memory();
            (memory.used(), connection.sender.reported_memory())
        };
        assert_eq!(hold(65_535, 0, 0), (0, 0));
        assert_eq!(hold(1, 0, 0), (65_536, 65_536));
        assert_eq!(hold(0, 0, 100_000), (167_936, 167_936), "165,536 bytes are 40.4 units");
        assert_eq!(hold(0, 65_536, 0), (102_400, 102_400));
        drop(connection);
        assert_eq!(memory.used(), 0);
    }
}
