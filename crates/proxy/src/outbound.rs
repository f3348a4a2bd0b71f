//! Outgoing connections: directly to a target, or through our server.

use super::counters::Outcome;
use super::failure::Failure;
use super::far::{CONNECTED, Far, NAMED, SERVERS_OWN};
use super::key::Key;
use super::noise::Initiator;
use super::proof::{Opened, Unproved, Work, is_of_the_path, prove};
use super::service::{Refused, Service};
use super::target::Target;
use anabranch_mptcp::ConnectionConfig;
use anabranch_stack::{Stack, Stream};
use bytes::Bytes;
use core::net::SocketAddr;
use std::io;
use std::sync::Arc;
use tokio::time::timeout;

/// Limit of connections to a server for one connection of a program, if paths are lost before it answers, or others
/// answer in its place.
const ATTEMPTS: u32 = 4;

/// Where connections go.
#[derive(Clone)]
pub enum Via {
    /// Directly to the target. Names are resolved here.
    Direct,
    /// To our server ([`super::Server`]), which connects to the target. Names of targets are resolved there.
    Server {
        /// The server.
        server: Target,
        /// Its address of the other family, for uplinks without one of the first's.
        other: Option<SocketAddr>,
        /// The shared key.
        key: Key,
    },
}

impl Via {
    /// The key of the server, if there is one.
    pub fn key(&self) -> Option<&Key> {
        match self {
            Self::Direct => None,
            Self::Server { key, .. } => Some(key),
        }
    }
}

/// Settings of the connection to a target, or to the server for it: policies, priority, buffers.
pub type Choose = Box<dyn Fn(&Target) -> ConnectionConfig + Send + Sync>;

/// Opens connections.
pub(super) struct Outbound {
    pub(super) service: Arc<Service>,
    pub(super) choose: Choose,
}

impl Outbound {
    /// Connects to the target, or through the server; returns also data that has arrived already.
    pub(super) async fn connect(
        &self,
        via: &Via,
        stack: &Stack,
        target: Option<&Target>,
    ) -> Result<(Far, Bytes), Refused> {
        let attempt = async {
            match (via, target) {
                (Via::Direct, Some(target)) => {
                    let addresses = self.service.resolver.resolve(target).await?;
                    let (stream, _) = dial(stack, &addresses, (self.choose)(target), Bytes::new()).await?;
                    Ok((Far::Plain(stream), Bytes::new()))
                }
                (Via::Direct, None) => Err(Failure::General.into()),
                (Via::Server { server, other, key }, target) => {
                    self.connect_through(stack, (server, *other), key, target).await
                }
            }
        };
        timeout(self.service.limits().connect, attempt).await.unwrap_or(Err(Failure::TimedOut.into()))
    }

    /// Connects through the server. A connection has one subflow until the server has acknowledged data, and ends if
    /// that path is lost before: then another one is opened over the remaining paths. No data of the program has been
    /// sent by then.
    async fn connect_through(
        &self,
        stack: &Stack,
        server: (&Target, Option<SocketAddr>),
        key: &Key,
        target: Option<&Target>,
    ) -> Result<(Far, Bytes), Refused> {
        let open = || -> Work<'_, _> { Box::pin(self.open(stack, server, key, target)) };
        let (mut further, mut closed) = (ATTEMPTS, false);
        loop {
            let opened = open().await.map_err(on_the_way)?;
            further = further.saturating_sub(1);
            let asked = async { Ok(ask(prove(stack, opened, &open, further).await?, target).await?) };
            match asked.await {
                Ok((far, first)) => return answered(far, first),
                Err(Unproved { error, others }) if further > 0 && (others || is_of_the_path(&error)) => {}
                // A captive portal resets connections, as a server with another key does: a single reset is not
                // believed.
                Err(Unproved { error, .. }) if error.kind() == io::ErrorKind::PermissionDenied && !closed => {
                    closed = true;
                }
                Err(Unproved { error, .. }) => return Err(lost(error)),
            }
        }
    }

    /// Opens a connection to the server, with the request for a proof.
    async fn open(
        &self,
        stack: &Stack,
        server: (&Target, Option<SocketAddr>),
        key: &Key,
        target: Option<&Target>,
    ) -> Result<Opened, Failure> {
        let (initiator, message) = Initiator::new(key).map_err(|_no_random_numbers| Failure::General)?;
        let (config, first) = ((self.choose)(target.unwrap_or(server.0)), Bytes::copy_from_slice(&message));
        // Half of the time, so that a missing answer can be attributed to the server.
        let patience = self.service.limits().connect / 2;
        let dialling = async {
            let mut addresses = self.service.resolver.resolve(server.0).await?;
            addresses.extend(server.1);
            dial(stack, &addresses, config, first).await
        };
        let dialled = timeout(patience, dialling).await;
        let (stream, sent) = dialled.unwrap_or(Err(Failure::TimedOut))?;
        Ok(Opened { stream, initiator, message, sent })
    }
}

/// A stream to the one of `addresses` that answers first, and the number of bytes of `first` written to it.
async fn dial(
    stack: &Stack,
    addresses: &[SocketAddr],
    config: ConnectionConfig,
    first: Bytes,
) -> Result<(Stream, usize), Failure> {
    let (stream, sent) = stack.connect_to_any(None, addresses, config, first).await?;
    // It may have ended by now, which is detected later.
    let _ = stream.set_nodelay(true);
    Ok((stream, sent))
}

/// The failure reported if a server does not answer correctly.
fn lost(error: io::Error) -> Refused {
    match error.kind() {
        io::ErrorKind::PermissionDenied | io::ErrorKind::InvalidData => {
            Refused { failure: Failure::NotAllowed, outcome: Outcome::Unproven }
        }
        _ => on_the_way(Failure::from(error)).into(),
    }
}

/// The failure for the target if the server cannot be reached: unspecific, since the target neither refused nor timed
/// out.
fn on_the_way(failure: Failure) -> Failure {
    match failure {
        Failure::Refused | Failure::General | Failure::TimedOut => Failure::HostUnreachable,
        other => other,
    }
}

/// Sends the target to an authenticated server; returns its answer.
async fn ask(mut far: Far, target: Option<&Target>) -> io::Result<(Far, Bytes)> {
    let mut request = vec![if target.is_some() { NAMED } else { SERVERS_OWN }];
    target.into_iter().for_each(|target| target.encode(&mut request));
    far.write(&request).await?;
    let answer = far.read_bytes().await?;
    Ok((far, answer))
}

/// Interprets a server's answer; data of the target follows it.
fn answered(far: Far, answer: Bytes) -> Result<(Far, Bytes), Refused> {
    match answer.first() {
        Some(&CONNECTED) => Ok((far, answer.slice(1..))),
        Some(&reply) => Err(Failure::from_socks_reply(reply).into()),
        None => Err(Failure::General.into()),
    }
}
