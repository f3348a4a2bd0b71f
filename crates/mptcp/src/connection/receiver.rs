//! The data level's receiving side: the reassembly buffer, mappings that wait for their checksum, and the window advertised.

use super::checksum::PendingMappings;
use super::subflow_order::SubflowOrder;
use crate::config::ConnectionConfig;
use crate::receive_buffer::ReceiveBuffer;

/// The receiving side of a connection.
#[derive(Debug)]
pub(super) struct DataReceiver {
    /// What came in and was not read.
    pub buffer: ReceiveBuffer,
    /// Right edge of the window that the peer was told last.
    pub advertised_edge: u64,
    /// Mappings whose checksum cannot be verified yet.
    pub pending_mappings: PendingMappings,
    /// What waits behind holes of subflows, if it has to.
    pub subflow_order: Option<Box<SubflowOrder>>,
}

impl DataReceiver {
    /// Nothing came in.
    pub fn new(config: &ConnectionConfig) -> Self {
        Self {
            buffer: ReceiveBuffer::new(config.receive_buffer)
                .charging_out_of_order(config.receiver.charge_out_of_order),
            advertised_edge: 0,
            pending_mappings: PendingMappings::default(),
            subflow_order: config.receiver.data_in_subflow_order.then(Box::default),
        }
    }

    /// The window to advertise, bytes, which the peer then knows.
    pub fn offer_window(&mut self) -> u64 {
        self.advertised_edge = self.buffer.right_edge();
        self.buffer.window()
    }
}
