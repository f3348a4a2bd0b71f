//! The way out: straight to a target, or through a server of ours that goes on from there.

use super::counters::Outcome;
use super::failure::Failure;
use super::far::{CONNECTED, Far, NAMED, SERVERS_OWN, initiate};
use super::key::Key;
use super::noise::Initiator;
use super::service::{Refused, Service};
use super::target::Target;
use anabranch_mptcp::ConnectionConfig;
use anabranch_stack::{Stack, Stream};
use bytes::Bytes;
use std::io;
use std::sync::Arc;
use tokio::time::timeout;

/// How often a server is connected to, for one connection of a program's, if paths are lost before it has answered.
const ATTEMPTS: u32 = 3;

/// Where connections go.
#[derive(Clone)]
pub enum Via {
    /// Straight to the target. Names are resolved here.
    Direct,
    /// To a server of ours ([`super::Server`]), which goes on to the target. Names of targets are resolved there.
    Server {
        /// The server.
        server: Target,
        /// The key that both have.
        key: Key,
    },
}

/// How the connection to a target, or to the server for its sake, is to be made: policies, priority, buffers.
pub type Choose = Box<dyn Fn(&Target) -> ConnectionConfig + Send + Sync>;

/// What makes connections.
pub(super) struct Outbound {
    pub(super) service: Arc<Service>,
    pub(super) choose: Choose,
}

impl Outbound {
    /// Connects to the target, or through the server; returns also what has come from there already.
    pub(super) async fn connect(
        &self,
        via: &Via,
        stack: &Stack,
        target: Option<&Target>,
    ) -> Result<(Far, Bytes), Refused> {
        let attempt = async {
            match (via, target) {
                (Via::Direct, Some(target)) => {
                    let (stream, _) = self.dial(stack, target, (self.choose)(target), Bytes::new()).await?;
                    Ok((Far::Plain(stream), Bytes::new()))
                }
                (Via::Direct, None) => Err(Failure::General.into()),
                (Via::Server { server, key }, target) => self.connect_through(stack, server, key, target).await,
            }
        };
        timeout(self.service.limits().connect, attempt).await.unwrap_or(Err(Failure::TimedOut.into()))
    }

    /// Connects through the server. A connection has one subflow until the server has acknowledged data, and ends if that path is lost
    /// before: then there is another, over what is left. Nothing of the program's has been sent yet.
    async fn connect_through(
        &self,
        stack: &Stack,
        server: &Target,
        key: &Key,
        target: Option<&Target>,
    ) -> Result<(Far, Bytes), Refused> {
        let (mut further, mut closed) = (ATTEMPTS, false);
        loop {
            let (initiator, message) = Initiator::new(key).map_err(|_no_random_numbers| Failure::General)?;
            let (config, first) = ((self.choose)(target.unwrap_or(server)), Bytes::copy_from_slice(&message));
            // Half of the time, so that it is known that it was the server that did not answer.
            let patience = self.service.limits().connect / 2;
            let dialled = timeout(patience, self.dial(stack, server, config, first)).await;
            let (stream, sent) = dialled.unwrap_or(Err(Failure::TimedOut)).map_err(on_the_way)?;
            let asked = async { ask(initiate(stream, initiator, &message, sent).await?, target).await };
            further = further.saturating_sub(1);
            match asked.await {
                Ok((far, first)) => return answered(far, first),
                Err(error) if further > 0 && is_of_the_path(&error) => {}
                // A portal on the way resets as a server does that has another key: once is not believed.
                Err(error) if error.kind() == io::ErrorKind::PermissionDenied && !closed => closed = true,
                Err(error) => return Err(lost(error)),
            }
        }
    }

    /// A stream to the address of `target` that answers first, and how much of `first` has been written to it.
    async fn dial(
        &self,
        stack: &Stack,
        target: &Target,
        config: ConnectionConfig,
        first: Bytes,
    ) -> Result<(Stream, usize), Failure> {
        let addresses = self.service.resolver.resolve(target).await?;
        let (stream, sent) = stack.connect_to_any(None, &addresses, config, first).await?;
        // It may have ended already; that will be seen.
        let _ = stream.set_nodelay(true);
        Ok((stream, sent))
    }
}

/// The failure that is reported when a server does not answer as it should.
fn lost(error: io::Error) -> Refused {
    match error.kind() {
        io::ErrorKind::PermissionDenied | io::ErrorKind::InvalidData => {
            Refused { failure: Failure::NotAllowed, outcome: Outcome::Unproven }
        }
        _ => on_the_way(Failure::from(error)).into(),
    }
}

/// What a server that cannot be reached means for the target: it neither refused nor kept silent, and no more is known.
fn on_the_way(failure: Failure) -> Failure {
    match failure {
        Failure::Refused | Failure::General | Failure::TimedOut => Failure::HostUnreachable,
        other => other,
    }
}

/// Whether a path was lost, and not that the server does not answer as it should.
fn is_of_the_path(error: &io::Error) -> bool {
    !matches!(error.kind(), io::ErrorKind::InvalidData | io::ErrorKind::PermissionDenied)
}

/// Asks a server that has proved the key for the target; returns its answer.
async fn ask(mut far: Far, target: Option<&Target>) -> io::Result<(Far, Bytes)> {
    let mut request = vec![if target.is_some() { NAMED } else { SERVERS_OWN }];
    target.into_iter().for_each(|target| target.encode(&mut request));
    far.write(&request).await?;
    let answer = far.read_bytes().await?;
    Ok((far, answer))
}

/// What a server's answer means; what follows it is the target's.
fn answered(far: Far, answer: Bytes) -> Result<(Far, Bytes), Refused> {
    match answer.first() {
        Some(&CONNECTED) => Ok((far, answer.slice(1..))),
        Some(&reply) => Err(Failure::from_socks_reply(reply).into()),
        None => Err(Failure::General.into()),
    }
}
