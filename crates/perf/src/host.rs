//! The measuring host: our stack, or the kernel's sockets.

use super::error::PerfError;
use super::kernel::{KernelListener, KernelSockets};
use super::link::Link;
use super::report::About;
use anabranch_mptcp::ConnectionConfig;
use anabranch_stack::{Listener, Stack};
use core::net::{IpAddr, SocketAddr};
use std::io;
use std::time::Duration;

/// Timeout for opening a connection.
const CONNECT: Duration = Duration::from_secs(10);

/// The origin of connections.
#[derive(Clone)]
pub enum Host {
    Ours(Box<Ours>),
    /// The kernel's sockets, in the namespace of the thread that runs the measurement.
    Kernel(KernelSockets),
}

/// Our stack, with the settings of connections.
#[derive(Clone)]
pub struct Ours {
    /// The stack; the caller runs its driver.
    pub stack: Stack,
    /// Settings of each connection.
    pub config: ConnectionConfig,
    /// The local address of connections; by default the first of the right family.
    pub local: Option<IpAddr>,
    /// The names of `config`'s policies, for the report.
    pub policies: String,
}

impl Host {
    /// A description of this end, for the report.
    pub fn about(&self) -> About {
        let (stack, policies) = match self {
            Self::Ours(ours) => ("anabranch".to_owned(), ours.policies.clone()),
            Self::Kernel(sockets) => {
                let congestion = sockets.congestion.as_ref().map(|name| format!("congestion={name}"));
                (sockets.name().to_owned(), congestion.unwrap_or_default())
            }
        };
        let system = nix::sys::utsname::uname().ok();
        let word = |word: &std::ffi::OsStr| word.to_string_lossy().into_owned();
        About {
            stack,
            policies,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            kernel: system
                .as_ref()
                .map_or_else(String::new, |system| format!("{} {}", word(system.sysname()), word(system.release()))),
            host: system.as_ref().map_or_else(String::new, |system| word(system.nodename())),
        }
    }

    pub(crate) async fn connect(&self, remote: SocketAddr) -> Result<Link, PerfError> {
        let connect = async {
            match self {
                Self::Ours(ours) => {
                    let stream = ours.stack.connect(ours.local, remote, ours.config.clone()).await;
                    stream.map(Link::Ours).map_err(io::Error::from)
                }
                Self::Kernel(sockets) => sockets.connect(remote).await.map(Link::Kernel),
            }
        };
        let outcome = tokio::time::timeout(CONNECT, connect).await;
        outcome
            .unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
            .map_err(|error| PerfError::Connect { remote, error })
    }

    /// Listens. Our stack listens at all its addresses and uses only the port of `address`.
    pub(crate) fn listen(&self, address: SocketAddr) -> Result<Door, PerfError> {
        let outcome = match self {
            Self::Ours(ours) => {
                ours.stack.listen(address.port(), ours.config.clone()).map(Door::Ours).map_err(io::Error::other)
            }
            Self::Kernel(sockets) => sockets.listen(address).map(Door::Kernel),
        };
        outcome.map_err(|error| PerfError::Listen { address, error })
    }
}

/// A listening port.
pub(crate) enum Door {
    Ours(Listener),
    Kernel(KernelListener),
}

impl Door {
    /// The next connection.
    pub(crate) async fn accept(&self) -> io::Result<Link> {
        match self {
            Self::Ours(listener) => {
                let stream = listener.accept().await.ok_or(io::ErrorKind::NotConnected)?;
                Ok(Link::Ours(stream))
            }
            Self::Kernel(listener) => Ok(Link::Kernel(listener.accept().await?)),
        }
    }

    pub(super) fn port(&self) -> u16 {
        match self {
            Self::Ours(listener) => listener.port(),
            Self::Kernel(listener) => listener.address().map_or(0, |address| address.port()),
        }
    }
}
