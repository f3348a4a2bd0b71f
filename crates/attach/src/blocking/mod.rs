//! The stack with a blocking interface: streams and listeners with `std`'s traits and timeouts.
//!
//! The event loop runs on its own thread; reading, writing, connecting and accepting block the calling thread. No
//! asynchronous runtime is needed.

mod background;
mod park;
mod stream;

pub use stream::{Listener, Stream};

use crate::{Attached, Attachment, HostError, attach};
use anabranch_mptcp::ConnectionConfig;
use anabranch_stack::{ConnectError, ListenError, StackConfig};
use background::Background;
use core::net::{IpAddr, SocketAddr};
use std::io;
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;
use tokio::runtime::Runtime;
use tokio::sync::oneshot;

/// Why a stack could not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The host could not be set up.
    #[error(transparent)]
    Host(#[from] HostError),
    /// No thread or runtime, or the error of the caller's `prepare`.
    #[error(transparent)]
    System(#[from] io::Error),
}

/// A handle to a stack in the background. Clones share the stack. It ends with the last handle, stream and listener:
/// connections are aborted, and changes to the host are undone.
#[derive(Clone)]
pub struct Stack {
    background: Arc<Background>,
}

/// Keeps the host set up, if it is.
type Keeper = Option<Attached>;

impl Stack {
    /// Attaches a stack to this host, in the network namespace of the calling thread.
    ///
    /// # Errors
    /// [`StartError`]; all changes are then undone.
    pub fn attach(attachment: &Attachment, config: StackConfig) -> Result<Self, StartError> {
        let attachment = attachment.clone();
        Self::start(move |runtime| {
            let attached = runtime.block_on(attach(&attachment, config))?;
            Ok((attached.stack().clone(), Some(attached)))
        })
    }

    /// A stack to which `prepare` adds devices and addresses. `prepare` runs on the stack's thread, as the creation of
    /// devices requires.
    ///
    /// # Errors
    /// [`StartError::System`], also for an error of `prepare`.
    pub fn new(
        config: StackConfig,
        prepare: impl FnOnce(&anabranch_stack::Stack) -> io::Result<()> + Send + 'static,
    ) -> Result<Self, StartError> {
        Self::start(move |runtime| {
            let _within = runtime.enter();
            let (stack, driver) = anabranch_stack::Stack::new(config)?;
            prepare(&stack)?;
            // The driver ends with the runtime at the latest.
            drop(runtime.spawn(driver));
            Ok((stack, None))
        })
    }

    fn start(
        begin: impl FnOnce(&Runtime) -> Result<(anabranch_stack::Stack, Keeper), StartError> + Send + 'static,
    ) -> Result<Self, StartError> {
        let (begun, outcome) = mpsc::channel();
        let (end, ended) = oneshot::channel::<()>();
        let work = move || {
            let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
                Ok(runtime) => runtime,
                Err(error) => return drop(begun.send(Err(error.into()))),
            };
            match begin(&runtime) {
                Err(error) => drop(begun.send(Err(error))),
                Ok((stack, keeper)) => {
                    drop(begun.send(Ok(stack.clone())));
                    runtime.block_on(finish(stack, keeper, ended));
                }
            }
        };
        let thread = thread::Builder::new().name("anabranch".to_owned()).spawn(work)?;
        match outcome.recv() {
            Ok(Ok(stack)) => {
                let background = Background { stack, end: Some(end), thread: Some(thread) };
                Ok(Self { background: Arc::new(background) })
            }
            Ok(Err(error)) => Err(error),
            Err(_) => Err(io::Error::other("the stack's thread ended before it began").into()),
        }
    }

    /// Opens a connection, from `local` or from the first address of the right family. Waits at most `timeout`, or
    /// until the engine abandons the attempt after four minutes.
    ///
    /// # Errors
    /// [`io::ErrorKind::TimedOut`], [`io::ErrorKind::ConnectionRefused`], and the other causes in [`ConnectError`].
    pub fn connect(
        &self,
        local: Option<IpAddr>,
        remote: SocketAddr,
        config: ConnectionConfig,
        timeout: Option<Duration>,
    ) -> io::Result<Stream> {
        let connecting = self.background.stack.connect(local, remote, config);
        let stream = park::run(timeout, connecting).ok_or(io::ErrorKind::TimedOut)?;
        let stream = stream.map_err(|error: ConnectError| io::Error::from(error))?;
        Ok(Stream::new(stream, Arc::clone(&self.background)))
    }

    /// Accepts connections on a port of every local address.
    ///
    /// # Errors
    /// [`ListenError`].
    pub fn listen(&self, port: u16, config: ConnectionConfig) -> Result<Listener, ListenError> {
        Ok(Listener::new(self.background.stack.listen(port, config)?, Arc::clone(&self.background)))
    }

    /// The asynchronous stack, for its counters and reports, and to attach and detach devices.
    pub fn stack(&self) -> &anabranch_stack::Stack {
        &self.background.stack
    }
}

/// Runs the event loop until the end is requested, and a moment longer so that the peers are reset.
async fn finish(stack: anabranch_stack::Stack, keeper: Keeper, ended: oneshot::Receiver<()>) {
    // An error means that all handles are dropped.
    let _ = ended.await;
    stack.shutdown();
    match keeper {
        // There is no caller to report to.
        Some(attached) => drop(attached.detach().await),
        None => tokio::task::yield_now().await,
    }
}
