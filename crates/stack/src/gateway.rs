//! A device that brings connections to any address, as a router's does: each is asked for before it begins.

use super::error::ConnectError;
use super::state::Handle;
use super::stream::Stream;
use crate::device::Foreign;
use anabranch_mptcp::ConnectionConfig;
use anabranch_wire::Packet;
use core::net::SocketAddr;
use std::future::poll_fn;
use std::sync::Arc;

/// The device's other side: whoever has it decides which connections begin, and gets what is not TCP.
pub struct Gateway {
    shared: Handle,
}

/// A connection that is asked for: its SYN waits, and those that follow are ignored. Dropped, it is forgotten without an answer.
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

    /// The next connection that is asked for; none when the device is gone or the stack has been shut down.
    pub async fn asked(&self) -> Option<Asked> {
        let (to, from) = poll_fn(|context| self.shared.lock().gate.poll_asked(context)).await?;
        Some(Asked { shared: Arc::clone(&self.shared), from, to, waits: true })
    }

    /// The next IP packet that is not the engine's; none when the device is gone or the stack has been shut down.
    pub async fn foreign(&self) -> Option<Foreign> {
        poll_fn(|context| self.shared.lock().gate.poll_foreign(context)).await
    }

    /// Sends an IP packet by the device; returns whether it was taken.
    pub fn send(&self, packet: &[u8]) -> bool {
        self.shared.lock().send_foreign(packet)
    }

    /// Packets that were not the engine's and that nobody took in time.
    pub fn dropped_foreign(&self) -> u64 {
        self.shared.lock().gate.dropped_foreign
    }
}

impl Asked {
    /// Who asks.
    pub fn from(&self) -> SocketAddr {
        self.from
    }

    /// For whom.
    pub fn to(&self) -> SocketAddr {
        self.to
    }

    /// Lets it begin, as if its target listened with `config`. The stream can be used at once.
    ///
    /// # Errors
    /// [`ConnectError`], e.g. with too many connections.
    pub fn accept(mut self, config: ConnectionConfig) -> Result<Stream, ConnectError> {
        self.waits = false;
        let id = self.shared.lock().accept_held(self.to, self.from, config)?;
        Ok(Stream::new(Arc::clone(&self.shared), id, self.from))
    }

    /// Answers with a reset, as a target where nobody listens.
    pub fn refuse(mut self) {
        self.waits = false;
        let mut state = self.shared.lock();
        state.endpoint.refuse_held(self.to, self.from);
        state.wake_driver();
    }

    /// Forgets it without an answer, and gives back its SYN, which a router's message would quote.
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
