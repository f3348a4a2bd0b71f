//! The side of a history: the engine, the literal peer, or any other TCP.

use super::network::path_of;
use crate::literal::{Action, End, Nanos, Peer, Protocol};
use anabranch_wire::Packet;
use bytes::Bytes;
use std::net::{IpAddr, SocketAddr};

/// How a side's connection ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Ending {
    /// Both streams are whole.
    Finished,
    /// It failed, or was aborted.
    Failed(String),
}

/// A side without input and output, driven by time and packets.
pub trait Side {
    /// Opens the connection. A server is asked nothing.
    fn connect(&mut self, now: Nanos, remote: SocketAddr);
    /// A packet has come.
    fn handle(&mut self, now: Nanos, packet: Packet);
    /// Something is due.
    fn handle_timeout(&mut self, now: Nanos);
    /// The next packet to send.
    fn poll_transmit(&mut self, now: Nanos) -> Option<Packet>;
    /// When something is due.
    fn poll_timeout(&mut self) -> Nanos;
    /// The application writes; returns how much was taken.
    fn write(&mut self, now: Nanos, bytes: &Bytes) -> usize;
    /// It writes no more.
    fn close(&mut self, now: Nanos);
    /// It aborts.
    fn abort(&mut self, now: Nanos);
    /// It reads.
    fn read(&mut self, now: Nanos, most: u64) -> Option<Bytes>;
    /// It does something that only some sides can.
    fn act(&mut self, now: Nanos, action: Action);
    /// Its address on a path is gone.
    fn address_down(&mut self, now: Nanos, path: u8);
    /// Its address on a path is back.
    fn address_up(&mut self, now: Nanos, path: u8, address: IpAddr);
    /// Whether a subflow in use is not from its address on `ours`, nor to the peer's on `theirs`.
    fn lives_beside(&self, ours: Option<u8>, theirs: Option<u8>) -> bool;
    /// Whether it speaks plain TCP.
    fn is_plain(&self) -> bool;
    /// Whether there is a connection, or was one.
    fn is_open(&self) -> bool;
    /// Whether the peer's stream has ended and been read.
    fn at_end(&self) -> bool;
    /// How it ended, if it has.
    fn ending(&self) -> Option<Ending>;
    /// Whether nothing is left.
    fn is_gone(&self) -> bool;
    /// Looks at limits, after the application has read so many octets.
    ///
    /// # Errors
    /// Says which one is passed.
    fn check(&self, read: u64) -> Result<(), String>;
    /// For people.
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
