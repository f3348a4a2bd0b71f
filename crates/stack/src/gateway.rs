//! A device that brings connections to any address, as a router does; the application decides about each.

use super::error::ConnectError;
use super::state::Handle;
use super::stream::Stream;
use crate::device::Foreign;
use anabranch_mptcp::ConnectionConfig;
use anabranch_wire::Packet;
use core::net::SocketAddr;
use std::future::poll_fn;
use std::sync::Arc;

/// The application's side of the device: decides about connections, and gets packets other than TCP.
pub struct Gateway {
    shared: Handle,
}

/// A connection to be decided: its SYN waits, and retransmissions of it are ignored. If dropped, it is forgotten
/// without an answer.
pub struct Asked {
    shared: Handle,
    from: SocketAddr,
    to: SocketAddr,
    /// It has not been answered.
    waits: bool,
}

impl Gateway {
    pub(super) fn new(shared: Handle) -> Self {
        Self { shared }
    }

    /// The next connection to be decided; none when the device is gone or the stack has been shut down.
    pub async fn asked(&self) -> Option<Asked> {
        let (to, from) = poll_fn(|context| self.shared.lock().gate.poll_asked(context)).await?;
        Some(Asked { shared: Arc::clone(&self.shared), from, to, waits: true })
    }

    /// The next IP packet that is not the engine's; none when the device is gone or the stack has been shut down.
    pub async fn foreign(&self) -> Option<Foreign> {
        poll_fn(|context| self.shared.lock().gate.poll_foreign(context)).await
    }

    /// Sends an IP packet through the device; returns whether it was accepted.
    pub fn send(&self, packet: &[u8]) -> bool {
        self.shared.lock().send_foreign(packet)
    }

    /// Packets other than TCP that were dropped because they were not read in time.
    pub fn dropped_foreign(&self) -> u64 {
        self.shared.lock().gate.dropped_foreign
    }
}

impl Asked {
    /// The source.
    pub fn from(&self) -> SocketAddr {
        self.from
    }

    /// The destination.
    pub fn to(&self) -> SocketAddr {
        self.to
    }

    /// Accepts it, as if its destination listened with `config`. The stream can be used at once.
    ///
    /// # Errors
    /// [`ConnectError`], e.g. with too many connections.
    pub fn accept(mut self, config: ConnectionConfig) -> Result<Stream, ConnectError> {
        self.waits = false;
        let id = self.shared.lock().accept_held(self.to, self.from, config)?;
        Ok(Stream::new(Arc::clone(&self.shared), id, self.from))
    }

    /// Refuses it with a reset, as a destination without a listener does.
    pub fn refuse(mut self) {
        self.waits = false;
        let mut state = self.shared.lock();
        state.endpoint.refuse_held(self.to, self.from);
        state.wake_driver();
    }

    /// Forgets it without an answer, and returns its SYN, which an ICMP error would quote.
    pub fn forget(mut self) -> Option<Packet> {
        self.waits = false;
        self.shared.lock().endpoint.drop_held(self.to, self.from)
    }
}

impl Drop for Asked {
    fn drop(&mut self) {
        if self.waits {
            self.shared.lock().endpoint.drop_held(self.to, self.from);
        }
    }
}
