//! The proxy: programs connect to it on this host, and each of their connections leaves as multipath TCP, to its target or
//! to a server of ours that forwards it.

use super::changing::Changing;
use super::control::Control;
use super::counters::{Outcome, ProxyCounters};
use super::credentials::Credentials;
use super::far::Far;
use super::inbound::Negotiation;
use super::outbound::{Choose, Outbound, Via};
use super::relay::{Relay, SocketIs};
use super::service::{Journal, Limits, Refused, Service, Tasks, negotiate, send_refusal};
use super::target::Target;
use anabranch_stack::Stack;
use anabranch_system::unmapped;
use bytes::Bytes;
use core::net::SocketAddr;
use std::future::{Future, poll_fn};
use std::io;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::runtime::{self, Handle};
use tokio::time::{sleep, timeout};

/// Connections that wait to be accepted; the kernel takes no more than this by default.
const BACKLOG: u32 = 4_096;
/// How long to wait before accepting again when the process has no file descriptor left.
const ACCEPT_RETRY: Duration = Duration::from_millis(50);

/// A listener, and where its clients are connected to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ListenerConfig {
    /// The address to listen on.
    pub listen: SocketAddr,
    /// Where its clients are connected to.
    pub forward: Forward,
}

/// Where the clients of a listener are connected to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Forward {
    /// To the target that they name in SOCKS5 or HTTP.
    Requested,
    /// To this target.
    To(Target),
    /// To the server's fixed target; only with [`Via::Server`].
    ServerDefault,
}

/// Settings that can change while a proxy runs. They apply to new clients.
#[derive(Clone)]
pub struct ProxyTerms {
    /// Where connections go.
    pub via: Via,
    /// What clients of [`Forward::Requested`] must send.
    pub credentials: Option<Arc<Credentials>>,
}

/// Settings of a proxy.
pub struct ProxyConfig {
    /// Settings that can change.
    pub terms: ProxyTerms,
    /// Called for each connection.
    pub choose: Choose,
    /// Limits on what clients use.
    pub limits: Limits,
    /// Called for each connection that has ended.
    pub journal: Option<Journal>,
}

/// An address cannot be listened on.
#[derive(Debug, thiserror::Error)]
#[error("cannot listen on {address}: {error}")]
pub struct BindError {
    /// The address.
    pub address: SocketAddr,
    /// The error of the kernel.
    pub error: io::Error,
}

/// State shared by all clients' tasks.
struct Shared {
    outbound: Outbound,
    terms: Changing<ProxyTerms>,
}

/// The proxy's listeners.
pub struct ProxyListeners {
    listeners: Vec<(TcpListener, Forward)>,
}

/// A proxy that listens.
pub struct Proxy {
    listeners: ProxyListeners,
    /// The task of each client holds its stack.
    stacks: Vec<Arc<Stack>>,
    shared: Arc<Shared>,
}

fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = if address.is_ipv6() { TcpSocket::new_v6()? } else { TcpSocket::new_v4()? };
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

impl ProxyListeners {
    /// Listens; no client is served before [`Proxy::run`]. To be called within a runtime.
    ///
    /// # Errors
    /// [`BindError`].
    pub fn bind(listeners: Vec<ListenerConfig>) -> Result<Self, BindError> {
        let listeners = listeners.into_iter().map(|ListenerConfig { listen: address, forward }| {
            let listener = listen(address).map_err(|error| BindError { address, error })?;
            Ok((listener, forward))
        });
        Ok(Self { listeners: listeners.collect::<Result<_, _>>()? })
    }

    /// The addresses that are listened on, in order.
    pub fn addresses(&self) -> Vec<SocketAddr> {
        self.listeners.iter().filter_map(|(listener, _)| listener.local_addr().ok()).collect()
    }

    /// The next client of any listener, in turn.
    fn poll_accept(
        &self,
        first: &mut usize,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<(TcpStream, SocketAddr, Forward)>> {
        *first += 1;
        let count = self.listeners.len();
        for (listener, forward) in self.listeners.iter().cycle().skip(*first % count.max(1)).take(count) {
            if let Poll::Ready(accepted) = listener.poll_accept(context) {
                return Poll::Ready(accepted.map(|(socket, peer)| (socket, peer, forward.clone())));
            }
        }
        Poll::Pending
    }
}

impl Proxy {
    /// A proxy behind these listeners; each connection leaves over one of `stacks`, of which there is at least one.
    pub fn new(listeners: ProxyListeners, stacks: &[Stack], config: ProxyConfig) -> Self {
        let stacks = stacks.iter().cloned().map(Arc::new).collect();
        let shared = Shared {
            outbound: Outbound {
                service: Arc::new(Service::new(config.limits, config.journal)),
                choose: config.choose,
            },
            terms: Changing::new(config.terms),
        };
        Self { listeners, stacks, shared: Arc::new(shared) }
    }

    /// A handle to query it while it runs.
    pub fn control(&self) -> Control {
        Control::new(&self.shared.outbound.service)
    }

    /// A handle to change terms and limits while it runs.
    pub fn changer(&self) -> impl Fn(ProxyTerms, Limits) + Send + Sync + 'static {
        let shared = Arc::clone(&self.shared);
        move |terms, limits| {
            shared.terms.set(terms);
            shared.outbound.service.set_limits(limits);
        }
    }

    /// The stack with the fewest clients.
    fn idlest(&self) -> Option<&Arc<Stack>> {
        self.stacks.iter().min_by_key(|stack| Arc::strong_count(stack))
    }

    /// Serves clients until `stop` completes, and then connected ones for a short time. Returns the totals.
    pub async fn run(self, stop: impl Future<Output = ()>) -> ProxyCounters {
        let mut tasks = Tasks::new(Arc::clone(&self.shared.outbound.service));
        let mut stop = Box::pin(stop);
        let (mut first, home) = (0, Handle::current().id());
        loop {
            let accepted = tokio::select! {
                biased;
                () = &mut stop => break,
                accepted = poll_fn(|context| self.listeners.poll_accept(&mut first, context)) => accepted,
                () = tasks.reap() => continue,
            };
            match accepted {
                Ok((socket, peer, forward)) => {
                    if let (Some(seat), Some(stack)) = (tasks.admit(), self.idlest()) {
                        let (shared, at) = (Arc::clone(&self.shared), Arc::clone(stack));
                        tasks.spawn(seat, stack.runtime(), async move {
                            if let Ok(socket) = at_home(socket, &home) {
                                serve(shared, at, socket, peer, forward).await;
                            }
                        });
                    }
                }
                Err(_no_descriptors) => {
                    self.shared.outbound.service.not_accepted();
                    sleep(ACCEPT_RETRY).await;
                }
            }
        }
        drop(self.listeners);
        tasks.drain().await
    }
}

/// A socket registered with the current runtime instead of the one with id `before`.
fn at_home(socket: TcpStream, before: &runtime::Id) -> io::Result<TcpStream> {
    if Handle::current().id() == *before { Ok(socket) } else { TcpStream::from_std(socket.into_std()?) }
}

/// Serves one client from its first byte to its last.
async fn serve(shared: Arc<Shared>, stack: Arc<Stack>, mut socket: TcpStream, peer: SocketAddr, forward: Forward) {
    // Short writes should be sent at once: no Nagle.
    let _ = socket.set_nodelay(true);
    let peer = unmapped(peer);
    // Memory for opening the connection is released once it is connected.
    let service = &shared.outbound.service;
    let opening = Box::pin(open(&shared, &stack, &mut socket, forward));
    let opened = service.unless_cut(async { Ok(opening.await) }).await;
    match opened.unwrap_or_else(|stopped| Err((stopped, None))) {
        Ok((far, early, first, target)) => {
            let slots = service.slots.clone();
            let mut relay = Relay::new(socket, SocketIs::Client, far, early, slots, service.limits().idle);
            relay.push_down(first);
            let (outcome, up, down) = service.carry(relay).await;
            service.ended(outcome, up, down, || format!("{peer} -> {}", describe(target.as_ref())));
        }
        Err((outcome, target)) => {
            service.ended(outcome, 0, 0, || format!("{peer} -> {}", describe(target.as_ref())));
        }
    }
}

fn describe(target: Option<&Target>) -> String {
    target.map_or_else(|| "?".to_owned(), Target::to_string)
}

/// What a client is connected to, data of either direction that has arrived already, and the target.
type Opened = (Far, Bytes, Bytes, Option<Target>);

/// Reads a client's request and connects it.
async fn open(
    shared: &Shared,
    stack: &Stack,
    socket: &mut TcpStream,
    forward: Forward,
) -> Result<Opened, (Outcome, Option<Target>)> {
    let Shared { outbound, terms } = shared;
    let terms = terms.now();
    let target = match forward {
        Forward::Requested => {
            let mut negotiation = Negotiation::new(terms.credentials.clone());
            let asked = timeout(outbound.service.limits().negotiation, negotiate(socket, &mut negotiation)).await;
            let target = asked.map_err(|_| (Outcome::TooSlow, None))?.map_err(|outcome| (outcome, None))?;
            return match outbound.connect(&terms.via, stack, Some(&target)).await {
                Ok((far, first)) => {
                    let first = [&negotiation.accepted()[..], &first].concat();
                    Ok((far, negotiation.into_early(), Bytes::from(first), Some(target)))
                }
                Err(Refused { failure, outcome }) => {
                    send_refusal(socket, &negotiation.refused(failure)).await;
                    Err((outcome, Some(target)))
                }
            };
        }
        Forward::To(target) => Some(target),
        Forward::ServerDefault => None,
    };
    match outbound.connect(&terms.via, stack, target.as_ref()).await {
        Ok((far, first)) => Ok((far, Bytes::new(), first, target)),
        Err(Refused { outcome, .. }) => {
            // As the target itself would have done.
            let _ = socket2::SockRef::from(&*socket).set_linger(Some(Duration::ZERO));
            Err((outcome, target))
        }
    }
}
