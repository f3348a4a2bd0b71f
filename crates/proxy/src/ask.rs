//! Whether a server answers and has the key: a handshake, and nothing after it.

use super::failure::Failure;
use super::far::initiate;
use super::key::Key;
use super::noise::Initiator;
use super::resolve::Resolver;
use super::target::Target;
use anabranch_mptcp::{ConnectionConfig, InitialPath};
use anabranch_stack::Stack;
use bytes::Bytes;
use core::net::{IpAddr, SocketAddr};
use std::io::ErrorKind;
use std::time::Duration;
use tokio::time::timeout;

/// How long an answer may take: a lost SYN is retransmitted after 1 and 3 s.
const PATIENCE: Duration = Duration::from_secs(5);

/// The result of asking a server.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Answer {
    /// It has proved the key.
    Proven,
    /// It answers and does not prove it: a server with another key, or another program.
    Unproven,
    /// It was not reached.
    Unreached(Failure),
}

/// Asks a server from this address of the stack alone.
pub async fn ask(stack: &Stack, local: IpAddr, server: &Target, key: &Key, config: &ConnectionConfig) -> Answer {
    let question = async {
        let addresses = Resolver::new().resolve(server).await.map_err(Answer::Unreached)?;
        let reachable: Vec<SocketAddr> = addresses.into_iter().filter(|a| a.is_ipv4() == local.is_ipv4()).collect();
        if reachable.is_empty() {
            return Err(Answer::Unreached(Failure::NetworkUnreachable));
        }
        let config = ConnectionConfig { initial_path: InitialPath::First, ..config.clone() };
        let (initiator, message) =
            Initiator::new(key).map_err(|_no_random_numbers| Answer::Unreached(Failure::General))?;
        let connected = stack.connect_to_any(Some(local), &reachable, config, Bytes::copy_from_slice(&message)).await;
        let (stream, sent) = connected.map_err(|error| Answer::Unreached(Failure::from(error)))?;
        let far = initiate(stream, initiator, &message, sent).await;
        let mut far = far.map_err(|error| match error.kind() {
            ErrorKind::PermissionDenied => Answer::Unproven,
            _ => Answer::Unreached(Failure::from(error)),
        })?;
        // This shows the server that the client has the key. Whether it arrives does not change the result.
        let _ = far.finish(&[]).await;
        Ok(())
    };
    match timeout(PATIENCE, question).await {
        Ok(Ok(())) => Answer::Proven,
        Ok(Err(answer)) => answer,
        Err(_elapsed) => Answer::Unreached(Failure::TimedOut),
    }
}
