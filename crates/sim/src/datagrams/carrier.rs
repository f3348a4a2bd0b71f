//! What carries the datagrams of programs to the other end: a machine without input and output, driven as an endpoint is.

use anabranch_policy::time::Instant;
use bytes::Bytes;

/// One end. Paths are counted from 0 in the order in which the session has them.
pub trait Carrier {
    /// A program of this end sends `payload` in the flow of this number; whether it is on its way.
    fn send(&mut self, now: Instant, flow: u16, payload: Bytes) -> bool;
    /// A packet of the other end came over a path: the payload of its UDP datagram.
    fn handle_packet(&mut self, now: Instant, path: usize, packet: &[u8]);
    /// Something may be due.
    fn handle_timeout(&mut self, now: Instant);
    /// What is to be sent over which path: the payload of a UDP datagram.
    fn poll_transmit(&mut self) -> Option<(usize, Bytes)>;
    /// What a program of this end gets, and in which flow.
    fn poll_datagram(&mut self) -> Option<(u16, Bytes)>;
    /// When [`Self::handle_timeout`] is to be called.
    fn poll_timeout(&self) -> Instant;
}
