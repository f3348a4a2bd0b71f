//! Owns the receiving side of the data level: the reassembly buffer, mappings that wait for their checksum, and the
//! advertised window.

use super::checksum::PendingMappings;
use super::subflow_order::SubflowOrder;
use crate::config::ConnectionConfig;
use crate::receive_buffer::ReceiveBuffer;

/// The receiving side of a connection.
#[derive(Debug)]
pub(super) struct DataReceiver {
    /// Data received and not read.
    pub buffer: ReceiveBuffer,
    /// Right edge of the window last advertised.
    pub advertised_edge: u64,
    /// Mappings that are incomplete, so that their checksum cannot be verified.
    pub pending_mappings: PendingMappings,
    /// Data that waits behind holes of subflows, if the receiver is restricted to that.
    pub subflow_order: Option<Box<SubflowOrder>>,
}

impl DataReceiver {
    pub fn new(config: &ConnectionConfig) -> Self {
        Self {
            buffer: ReceiveBuffer::new(config.receive_buffer)
                .beginning_with(config.bytes_at_first())
                .charging_out_of_order(config.receiver.charge_out_of_order),
            advertised_edge: 0,
            pending_mappings: PendingMappings::default(),
            subflow_order: config.receiver.data_in_subflow_order.then(Box::default),
        }
    }

    /// The window to advertise, in bytes; counts as advertised from now on.
    pub fn offer_window(&mut self) -> u64 {
        self.advertised_edge = self.buffer.right_edge();
        self.buffer.window()
    }
}
