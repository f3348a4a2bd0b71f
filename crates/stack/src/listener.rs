//! Listeners: incoming connections of a port.

use super::state::Handle;
use super::stream::Stream;
use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Context, Poll};

/// A listener on a port. Dropping it frees the port and aborts connections that have not been accepted.
pub struct Listener {
    shared: Handle,
    port: u16,
}

impl Listener {
    pub(super) fn new(shared: Handle, port: u16) -> Self {
        Self { shared, port }
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    /// The next connection; none when the stack has been shut down.
    pub async fn accept(&self) -> Option<Stream> {
        poll_fn(|context| self.poll_accept(context)).await
    }

    /// The same by polling.
    pub fn poll_accept(&self, context: &mut Context<'_>) -> Poll<Option<Stream>> {
        let accepted = self.shared.lock().poll_accept(self.port, context);
        accepted.map(|next| next.map(|(id, remote)| Stream::new(Arc::clone(&self.shared), id, remote)))
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.shared.lock().unlisten(self.port);
    }
}
