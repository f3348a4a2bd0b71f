//! The size of a connection's receive buffer.

use super::quantity::Size;

/// The receive buffer of the connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ReceiveBuffer {
    /// Always this.
    Fixed(Size),
    /// Grows with the rate at which the application reads.
    Auto {
        /// At the start.
        initial: Size,
        /// At most.
        max: Size,
    },
}
