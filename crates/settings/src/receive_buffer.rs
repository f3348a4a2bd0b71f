//! The size of a connection's receive buffer.

use crate::quantity::Size;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ReceiveBuffer {
    Fixed(Size),
    /// Grows with the rate at which the application reads.
    Auto {
        /// Bytes at the start.
        initial: Size,
        /// Maximum.
        max: Size,
    },
}
