//! The data level's sending side: the stream that is not acknowledged, what of it was assigned to subflows, and the peer's window.

use super::reinjections::Reinjections;
use crate::config::ConnectionConfig;
use crate::record::Framing;
use crate::send_buffer::SendBuffer;
use anabranch_policy::time::Instant;

/// The sending side of a connection.
#[derive(Debug)]
pub(super) struct DataSender {
    /// What is not acknowledged.
    pub buffer: SendBuffer,
    /// Next byte to be assigned to a subflow for the first time.
    pub data_nxt: u64,
    /// End of what was sent on any subflow.
    pub sent_end: u64,
    /// Nothing at or beyond this may be sent: the largest DATA_ACK plus window (RFC 8684, section 3.3.5).
    pub window_edge: u64,
    /// Highest data known to have arrived, in order or not.
    pub delivered_end: u64,
    /// What is to be sent again.
    pub reinjections: Reinjections,
    /// Hold small segments back while data is in flight.
    pub nagle: bool,
    /// A window smaller than is worth while has been open long enough to be used.
    pub override_due: bool,
    /// When the peer's player will have played what it has; [`Instant::NEVER`] if the application does not say.
    pub play_out_ends: Instant,
}

impl DataSender {
    /// Nothing written.
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
            play_out_ends: Instant::NEVER,
        }
    }

    /// First byte that is not acknowledged at data level (DATA.UNA).
    pub fn una(&self) -> u64 {
        self.buffer.start()
    }

    /// Whether everything written was assigned to a subflow.
    pub fn all_assigned(&self) -> bool {
        self.data_nxt == self.buffer.end()
    }

    /// Bytes written and not assigned to any subflow.
    pub fn unsent(&self) -> u64 {
        self.buffer.end() - self.data_nxt
    }

    /// Bytes of the peer's window that new data may use.
    pub fn window_left(&self) -> u64 {
        self.window_edge.saturating_sub(self.data_nxt)
    }
}
