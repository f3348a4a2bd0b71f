//! Whether a server answers and has the key: a handshake, and nothing after it.

use super::failure::{Failure, SERVER_FULL};
use super::far::initiate;
use super::key::Key;
use super::noise::Initiator;
use super::resolve::Resolver;
use super::target::Target;
use anabranch_mptcp::{CloseCause, ConnectionConfig, InitialPath};
use anabranch_stack::{ConnectError, Stack};
use bytes::Bytes;
use core::net::{IpAddr, SocketAddr};
use std::io::ErrorKind;
use std::time::Duration;
use tokio::time::{Instant, timeout_at};

/// How long an answer may take: a lost SYN is retransmitted after 1 and 3 s.
const PATIENCE: Duration = Duration::from_secs(5);

/// The result of asking a server.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Answer {
    /// It has proved the key.
    Proven,
    /// It has proved it, and has no room for connections.
    Full,
    /// It answers and does not prove it: a server with another key, or another program.
    Unproven,
    /// It was not reached: why no connection was attempted, or was not answered.
    Unreached(Failure),
    /// A router does not reach it.
    Unroutable,
}

fn unconnected(error: ConnectError) -> Answer {
    match error {
        ConnectError::Ended(CloseCause::NetworkUnreachable | CloseCause::HostUnreachable) => Answer::Unroutable,
        other => Answer::Unreached(other.into()),
    }
}

/// Asks a server, which has perhaps an `other` address too, from this address of the stack alone, and lets the stack know
/// whether it was the server that answered there.
pub async fn ask(
    stack: &Stack,
    local: IpAddr,
    (server, other): (&Target, Option<SocketAddr>),
    key: &Key,
    config: &ConnectionConfig,
) -> Answer {
    let until = Instant::now() + PATIENCE;
    let connect = async {
        let addresses = Resolver::new().resolve(server).await.map_err(Answer::Unreached)?;
        let reachable: Vec<SocketAddr> =
            addresses.into_iter().chain(other).filter(|a| a.is_ipv4() == local.is_ipv4()).collect();
        if reachable.is_empty() {
            return Err(Answer::Unreached(Failure::NetworkUnreachable));
        }
        let config = ConnectionConfig { initial_path: InitialPath::First, ..config.clone() };
        let (initiator, message) =
            Initiator::new(key).map_err(|_no_random_numbers| Answer::Unreached(Failure::General))?;
        let first = Bytes::copy_from_slice(&message);
        let (stream, sent) = stack.connect_to_any(Some(local), &reachable, config, first).await.map_err(unconnected)?;
        Ok((stream, initiator, message, sent))
    };
    let (stream, initiator, message, sent) = match timeout_at(until, connect).await {
        Ok(Ok(connected)) => connected,
        Ok(Err(answer)) => return answer,
        Err(_elapsed) => return Answer::Unreached(Failure::TimedOut),
    };
    match timeout_at(until, initiate(stream, initiator, &message, sent)).await {
        Ok(Ok(mut far)) => {
            stack.trust(local);
            // This shows the server that the client has the key. Whether it arrives, and what comes back, does not change that.
            let word = async {
                far.finish(&[]).await?;
                far.read_bytes().await
            };
            match timeout_at(until, word).await {
                Ok(Ok(word)) if word.first() == Some(&SERVER_FULL) => Answer::Full,
                _ => Answer::Proven,
            }
        }
        Ok(Err(error)) if error.kind() == ErrorKind::PermissionDenied => {
            stack.distrust(local);
            Answer::Unproven
        }
        Ok(Err(error)) => Answer::Unreached(Failure::from(error)),
        // Whoever accepted the connection: a server proves its key within a round trip.
        Err(_elapsed) => {
            stack.distrust(local);
            Answer::Unreached(Failure::TimedOut)
        }
    }
}
