//! How both ends of a stream establish their connection.

use super::channel::{Channel, Refusal, Role};
use super::options::{EndOptions, address};
use super::policy;
use crate::attachment::{Reach, diagnostic};
use crate::console::{event, print, remark};
use crate::ending::{self, asked_to_end};
use crate::perf::Kernel;
use anabranch_attach::Attached;
use anabranch_mptcp::{ConnectionConfig, Framing};
use anabranch_perf::messages::{MessagePort, Messages, MessagesError};
use anabranch_perf::{Host, KernelProtocol, KernelSockets, Ours};
use anabranch_policy::time::Duration;
use anabranch_proxy::Keys;
use anabranch_settings::diagnostic::Diagnostic;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::task::JoinSet;

/// Most connections that prove the key at the same time; further ones wait.
const PROOFS: usize = 16;

/// An end that is ready to connect or to accept.
pub struct Opened {
    host: Host,
    attached: Option<Attached>,
    /// The peer's address: as requested, and for the stack, which differs with `--udp`.
    remote: Option<(SocketAddr, SocketAddr)>,
    framing: Framing,
    keys: Option<Arc<Keys>>,
}

/// Attaches a stack, or uses the kernel's sockets. With `--dry-run` prints the configuration and returns none.
pub async fn open(options: &EndOptions, remote: Option<&str>) -> Result<Option<Opened>, Diagnostic> {
    if remote.is_none() && options.listen.is_none() {
        let message = "say where the other end is: HOST:PORT to connect to it, or --listen PORT to wait for it";
        return Err(Diagnostic::plain(message));
    }
    let remote = remote.map(address).transpose()?;
    let stack = options.stack()?;
    let framing = if options.raw { Framing::Bytes } else { Framing::Messages };
    let ports: Vec<u16> = options.listen.into_iter().collect();
    let reach = remote.map_or(Reach::On(&ports), |remote| Reach::Server(remote.into()));
    if stack.dry_run {
        print(&stack.plan(reach)?);
        return Ok(None);
    }
    let keys = options.keys()?.map(Arc::new);
    if let Some(kernel) = options.kernel {
        // A signal ends the stream, and the program ends after its report.
        ending::listen()?;
        let bytes = |size: Option<u64>| size.and_then(|size| usize::try_from(size).ok());
        let sockets = KernelSockets {
            protocol: if kernel == Kernel::Mptcp { KernelProtocol::Mptcp } else { KernelProtocol::Tcp },
            congestion: None,
            send_buffer: bytes(stack.send_buffer),
            receive_buffer: bytes(stack.receive_buffer),
        };
        let remote = remote.map(|remote| (remote, remote));
        return Ok(Some(Opened { host: Host::Kernel(sockets), attached: None, remote, framing, keys }));
    }
    let open = stack.open(reach).await?;
    let mut config = open.connection;
    config.framing = framing;
    notice_silence(&mut config);
    if policy::abandons(&stack.policy) {
        // A mapping with a gap has no valid checksum.
        config.checksum = false;
    }
    let ours = Ours { stack: open.attached.stack().clone(), config, local: None, policies: stack.policy.clone() };
    let remote = remote.map(|remote| (remote, stack.inside(remote)));
    Ok(Some(Opened { host: Host::Ours(Box::new(ours)), attached: Some(open.attached), remote, framing, keys }))
}

/// Detects a dead peer within half a minute: there is no reason to wait in a live stream.
fn notice_silence(config: &mut ConnectionConfig) {
    config.tcp.keepalive = Some(Duration::from_secs(5));
    config.tcp.keepalive_interval = Duration::from_secs(2);
    config.tcp.keepalive_probes = 5;
    // Time after the loss of the last path; before that, a lost path is retried.
    config.survive_without_subflows = Duration::from_secs(10);
}

impl Opened {
    /// Connects or accepts, and performs the key proof; none if the program was told to end meanwhile.
    pub async fn meet(&self, options: &EndOptions, sends: bool) -> Result<Option<Channel>, Diagnostic> {
        tokio::select! {
            () = asked_to_end() => Ok(None),
            channel = self.meet_the_other_end(options, sends) => channel.map(Some),
        }
    }

    async fn meet_the_other_end(&self, options: &EndOptions, sends: bool) -> Result<Channel, Diagnostic> {
        let other = if sends { "anabranch stream receive" } else { "anabranch stream send" };
        let wrong = |error: MessagesError| Diagnostic::plain(explain(&error, other));
        let told = |peer: SocketAddr, refusal: Refusal| format!("`{other}` at {peer}: {refusal}");
        let role = Role { connects: self.remote.is_some(), sends };
        if let Some((remote, inside)) = self.remote {
            let messages = Messages::connect(&self.host, inside, self.framing).await.map_err(|error| match error {
                MessagesError::Connect { error, .. } => wrong(MessagesError::Connect { remote, error }),
                listening @ MessagesError::Listen { .. } => wrong(listening),
            })?;
            let channel = Channel::open(messages, self.keys.as_deref(), role).await;
            return channel.map_err(|refusal| Diagnostic::plain(told(remote, refusal)));
        }
        let port = options.listen.unwrap_or_default();
        let door = MessagePort::open(&self.host, options.stack.listening(port), self.framing).map_err(wrong)?;
        if !options.json {
            remark(&format!("listening on {}", options.stack.place(self.attached.as_ref(), port)));
        }
        // Whoever connects and says nothing must not keep the other end waiting.
        let mut proofs = JoinSet::new();
        loop {
            tokio::select! {
                accepted = door.accept(), if proofs.len() < PROOFS => {
                    let messages = accepted.map_err(|error| wrong(MessagesError::Listen { port, error }))?;
                    let (peer, keys) = (messages.peer(), self.keys.clone());
                    proofs.spawn(async move { (peer, Channel::open(messages, keys.as_deref(), role).await) });
                }
                Some(proof) = proofs.join_next() => match proof {
                    // One stream only; further connections are refused.
                    Ok((_, Ok(mut channel))) => {
                        channel.turn_others_away(door);
                        return Ok(channel);
                    }
                    Ok((peer, Err(refusal))) => event(&told(peer, refusal)),
                    // Not before the end of the program.
                    Err(_) => {}
                }
            }
        }
    }

    /// The address of the other end; inside UDP a connection that is opened has another one for it.
    pub fn peer(&self, messages: &Messages) -> SocketAddr {
        self.remote.map_or_else(|| messages.peer(), |(remote, _)| remote)
    }

    /// Restores the host's configuration.
    pub async fn detach(self) -> Result<(), Diagnostic> {
        match self.attached {
            Some(attached) => attached.detach().await.map_err(|error| diagnostic(&error)),
            None => Ok(()),
        }
    }
}

fn explain(error: &MessagesError, other: &str) -> String {
    use io::ErrorKind::{AddrInUse, PermissionDenied};
    match error {
        MessagesError::Connect { .. } => format!("{error}; is `{other}` waiting there?"),
        MessagesError::Listen { port, error } if error.kind() == AddrInUse => {
            format!("another program listens on port {port}: choose another one")
        }
        MessagesError::Listen { port, error } if error.kind() == PermissionDenied => {
            format!("cannot listen on port {port}: ports below 1024 need root or CAP_NET_BIND_SERVICE")
        }
        MessagesError::Listen { .. } => error.to_string(),
    }
}
