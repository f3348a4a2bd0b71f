//! The interface of a machine that carries datagrams of programs: sans-IO, like an endpoint.

use anabranch_policy::time::Instant;
use bytes::Bytes;

/// One end. Paths are numbered from 0 in the order of the session.
pub trait Carrier {
    /// A program of this end sends `payload` in flow `flow`; returns false if it is refused.
    fn send(&mut self, now: Instant, flow: u16, payload: Bytes) -> bool;
    /// A packet arrived over a path: the payload of its UDP datagram.
    fn handle_packet(&mut self, now: Instant, path: usize, packet: &[u8]);
    /// Handles timers that are due.
    fn handle_timeout(&mut self, now: Instant);
    /// The next packet to send, and its path: the payload of a UDP datagram.
    fn poll_transmit(&mut self) -> Option<(usize, Bytes)>;
    /// The next datagram for a program of this end, and its flow.
    fn poll_datagram(&mut self) -> Option<(u16, Bytes)>;
    /// When to call [`Self::handle_timeout`].
    fn poll_timeout(&self) -> Instant;
}
