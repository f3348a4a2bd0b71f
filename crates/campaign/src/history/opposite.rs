//! The side of a history: the engine, the literal peer, or another TCP.

use super::network::path_of;
use crate::literal::{Action, End, Nanos, Peer, Protocol};
use anabranch_wire::Packet;
use bytes::Bytes;
use std::net::{IpAddr, SocketAddr};

/// How a side's connection ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Ending {
    /// Both streams are complete.
    Finished,
    /// Failed or aborted.
    Failed(String),
}

/// A sans-IO side, driven by time and packets.
pub trait Side {
    /// Opens the connection. Not called for a server.
    fn connect(&mut self, now: Nanos, remote: SocketAddr);
    /// A packet has arrived.
    fn handle(&mut self, now: Nanos, packet: Packet);
    /// A timer is due.
    fn handle_timeout(&mut self, now: Nanos);
    /// The next packet to send.
    fn poll_transmit(&mut self, now: Nanos) -> Option<Packet>;
    /// The earliest timer.
    fn poll_timeout(&mut self) -> Nanos;
    /// The application writes; returns the number of octets accepted.
    fn write(&mut self, now: Nanos, bytes: &Bytes) -> usize;
    /// The application closes its direction.
    fn close(&mut self, now: Nanos);
    /// The application aborts.
    fn abort(&mut self, now: Nanos);
    /// The application reads.
    fn read(&mut self, now: Nanos, most: u64) -> Option<Bytes>;
    /// An action that only some sides support.
    fn act(&mut self, now: Nanos, action: Action);
    /// Its address on a path went down.
    fn address_down(&mut self, now: Nanos, path: u8);
    /// Its address on a path came up.
    fn address_up(&mut self, now: Nanos, path: u8, address: IpAddr);
    /// Whether a subflow in use is neither from its address on `ours`, nor to the peer's on `theirs`.
    fn lives_beside(&self, ours: Option<u8>, theirs: Option<u8>) -> bool;
    /// Whether it uses plain TCP.
    fn is_plain(&self) -> bool;
    /// Whether it has or had a connection.
    fn is_open(&self) -> bool;
    /// Whether the peer's stream has been read to its end.
    fn at_end(&self) -> bool;
    /// How it ended, if it has.
    fn ending(&self) -> Option<Ending>;
    /// Whether no state is left.
    fn is_gone(&self) -> bool;
    /// Checks limits, after the application has read `read` octets.
    ///
    /// # Errors
    /// Names the limit that is exceeded.
    fn check(&self, read: u64) -> Result<(), String>;
    /// Its state as text for users.
    fn describe(&self, now: Nanos) -> String;
}

impl Side for Peer {
    fn connect(&mut self, now: Nanos, remote: SocketAddr) {
        Self::connect(self, now, remote);
    }
    fn handle(&mut self, now: Nanos, packet: Packet) {
        Self::handle(self, now, &packet);
    }
    fn handle_timeout(&mut self, now: Nanos) {
        Self::handle_timeout(self, now);
    }
    fn poll_transmit(&mut self, _now: Nanos) -> Option<Packet> {
        Self::poll_transmit(self)
    }
    fn poll_timeout(&mut self) -> Nanos {
        Self::poll_timeout(self)
    }
    fn write(&mut self, now: Nanos, bytes: &Bytes) -> usize {
        Self::write(self, now, bytes);
        bytes.len()
    }
    fn close(&mut self, now: Nanos) {
        Self::close(self, now);
    }
    fn abort(&mut self, now: Nanos) {
        Self::abort(self, now);
    }
    fn read(&mut self, now: Nanos, most: u64) -> Option<Bytes> {
        Self::read(self, now, most)
    }
    fn act(&mut self, now: Nanos, action: Action) {
        Self::act(self, now, action);
    }
    fn address_down(&mut self, now: Nanos, path: u8) {
        Self::leave(self, now, usize::from(path));
    }
    fn address_up(&mut self, now: Nanos, path: u8, _address: IpAddr) {
        Self::come_back(self, now, usize::from(path));
    }
    fn lives_beside(&self, ours: Option<u8>, theirs: Option<u8>) -> bool {
        let on = |end: IpAddr, path: Option<u8>| path.is_some_and(|path| path_of(end) == usize::from(path));
        self.in_use().any(|(local, remote)| !on(local.ip(), ours) && !on(remote.ip(), theirs))
    }
    fn is_plain(&self) -> bool {
        self.protocol() == Protocol::Plain
    }
    fn is_open(&self) -> bool {
        self.has_begun()
    }
    fn at_end(&self) -> bool {
        Self::at_end(self)
    }
    fn ending(&self) -> Option<Ending> {
        self.ended().map(|end| match end {
            End::Finished => Ending::Finished,
            other => Ending::Failed(format!("{other:?}")),
        })
    }
    fn is_gone(&self) -> bool {
        Self::is_gone(self)
    }
    fn check(&self, _read: u64) -> Result<(), String> {
        Ok(())
    }
    fn describe(&self, _now: Nanos) -> String {
        Self::describe(self)
    }
}
