//! Connections of the kernel that leave through chosen interfaces, for hosts on which raw packets cannot be sent.

use super::failure::Failure;
use super::resolve::connect_to_first;
use core::net::SocketAddr;
use socket2::{Domain, Protocol, SockRef, Socket, TcpKeepalive, Type};
use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::net::{TcpSocket, TcpStream};

/// For how long an interface comes last after another was faster.
const MEMORY: Duration = Duration::from_secs(60);

/// A peer that does not answer is detected as on our own connections: probed after this idle time,
const KEEPALIVE: Duration = Duration::from_secs(15);
/// again after this,
const KEEPALIVE_AGAIN: Duration = Duration::from_secs(5);
/// and closed when nothing was acknowledged for this time.
const GIVE_UP: Duration = Duration::from_secs(55);

/// The available interfaces, preferred ones first.
pub type Interfaces = Arc<dyn Fn() -> Vec<String> + Send + Sync>;

/// Sockets bound to one interface each, and the state of the interfaces. Clones share it.
#[derive(Clone)]
pub struct BoundSockets {
    interfaces: Interfaces,
    outdone: Arc<Mutex<HashMap<String, Instant>>>,
}

impl BoundSockets {
    /// `interfaces` is called for each connection.
    pub fn new(interfaces: Interfaces) -> Self {
        Self { interfaces, outdone: Arc::default() }
    }

    fn outdone(&self) -> MutexGuard<'_, HashMap<String, Instant>> {
        self.outdone.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The interfaces in the order of attempts: those that others were faster than lately come last.
    fn order(&self) -> Vec<String> {
        let mut outdone = self.outdone();
        outdone.retain(|_, since| since.elapsed() < MEMORY);
        let (last, first): (Vec<_>, Vec<_>) =
            (self.interfaces)().into_iter().partition(|name| outdone.contains_key(name));
        first.into_iter().chain(last).collect()
    }

    /// Connects to `target` over whichever interface answers first; the next is tried when one has failed, or after a moment.
    ///
    /// # Errors
    /// When all have failed, the most specific reason.
    pub(super) async fn connect(&self, target: SocketAddr) -> Result<TcpStream, Failure> {
        let order = self.order();
        if order.is_empty() {
            return Err(Failure::NetworkUnreachable);
        }
        let began: Mutex<Vec<String>> = Mutex::default();
        let attempt = |name: String| {
            began.lock().unwrap_or_else(PoisonError::into_inner).push(name.clone());
            async move {
                let stream = open(&name, target).await.map_err(Failure::from)?;
                Ok((name, stream))
            }
        };
        let (winner, stream) = connect_to_first(order, attempt).await?;
        let began = began.into_inner().unwrap_or_else(PoisonError::into_inner);
        let mut outdone = self.outdone();
        outdone.remove(&winner);
        // Those that began earlier have not answered, or have failed.
        for name in began.into_iter().take_while(|name| *name != winner) {
            outdone.insert(name, Instant::now());
        }
        Ok(stream)
    }
}

/// A connection over one interface.
async fn open(interface: &str, target: SocketAddr) -> io::Result<TcpStream> {
    let socket = Socket::new(Domain::for_address(target), Type::STREAM, Some(Protocol::TCP))?;
    socket.bind_device(Some(interface.as_bytes()))?;
    socket.set_nonblocking(true)?;
    let stream = TcpSocket::from_std_stream(socket.into()).connect(target).await?;
    let _ = stream.set_nodelay(true);
    let socket = SockRef::from(&stream);
    // Without these a dead peer is only detected later.
    let _ = socket.set_tcp_keepalive(&TcpKeepalive::new().with_time(KEEPALIVE).with_interval(KEEPALIVE_AGAIN));
    let _ = socket.set_tcp_user_timeout(Some(GIVE_UP));
    Ok(stream)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn an_interface_that_was_outdone_is_asked_last_until_it_answers_again() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port is free");
        let target = listener.local_addr().expect("it is bound");
        let sockets = BoundSockets::new(Arc::new(|| vec!["nowhere".to_owned(), "lo".to_owned()]));
        if sockets.connect(target).await.is_err() {
            // Some kernels allow only privileged processes to bind to an interface.
            return eprintln!("skipped: a socket cannot be bound to an interface here");
        }
        assert_eq!(sockets.order(), ["lo", "nowhere"]);
        sockets.outdone().clear();
        assert_eq!(sockets.order(), ["nowhere", "lo"]);
    }

    #[tokio::test]
    async fn without_an_interface_there_is_no_connection() {
        let sockets = BoundSockets::new(Arc::new(Vec::new));
        let target = "127.0.0.1:9".parse().expect("an address");
        assert_eq!(sockets.connect(target).await.err(), Some(Failure::NetworkUnreachable));
    }
}
