//! The server: terminates multipath connections and forwards them to targets over plain TCP, for clients that prove the key.

use super::allow::AllowList;
use super::changing::Changing;
use super::control::Control;
use super::counters::{Outcome, ProxyCounters};
use super::failure::{Failure, SERVER_FULL};
use super::far::{CONNECTED, Far, NAMED, SERVERS_OWN, respond};
use super::inbound::Negotiation;
use super::keys::{Keys, Name};
use super::named::Present;
use super::priorities::Priorities;
use super::relay::{Relay, SocketIs};
use super::resolve::connect_to_first;
use super::service::{About, Journal, Limits, Refused, Service, Tasks, negotiate, send_refusal};
use super::target::Target;
use anabranch_mptcp::ConnectionConfig;
use anabranch_stack::{ListenError, Listener, Stack, Stream};
use bytes::Bytes;
use core::fmt;
use core::net::SocketAddr;
use std::future::Future;
use std::io;
use std::sync::Arc;
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;
use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::timeout;

/// The receive buffer of a client that has not proven the key, in KiB: more than its first message (48) and the longest request.
const UNPROVEN_BUFFER: u8 = 4;

/// Where clients are connected to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Destination {
    /// To this target and no other.
    Fixed(Target),
    /// To the target that they ask for, if it is allowed.
    Named(AllowList),
}

/// Settings that can change while a server runs. They apply to new clients.
#[derive(Clone)]
pub struct ServerTerms {
    /// Keys that clients must prove. Without keys, every client that reaches the stack is served, unencrypted: SOCKS5
    /// or HTTP CONNECT with [`Destination::Named`], no protocol at all with [`Destination::Fixed`]. That is for a stack
    /// that only its own host can reach; anywhere else it would be an open relay.
    pub keys: Option<Keys>,
    /// Where clients are connected to.
    pub destination: Destination,
    /// The priority of a client's connection, by its target.
    pub priorities: Priorities,
}

/// Settings of a server.
pub struct ServerConfig {
    /// The port of the stack to listen on.
    pub port: u16,
    /// Settings that can change.
    pub terms: ServerTerms,
    /// Settings of the clients' connections.
    pub connection: ConnectionConfig,
    /// Limits on what clients use.
    pub limits: Limits,
    /// Called for each connection that has ended.
    pub journal: Option<Journal>,
}

/// State shared by all clients' tasks.
struct Shared {
    service: Arc<Service>,
    terms: Changing<ServerTerms>,
}

/// A server that listens.
pub struct Server {
    /// One for each stack, with its runtime.
    listeners: Vec<(Listener, Handle)>,
    shared: Arc<Shared>,
}

impl Server {
    /// Listens on stacks of one host; no client is served before [`Self::run`].
    ///
    /// # Errors
    /// [`ListenError`], e.g. if the port is taken.
    pub fn bind(stacks: &[Stack], config: ServerConfig) -> Result<Self, ListenError> {
        let mut connection = config.connection;
        // Whoever has no key gets no room to fill.
        connection.receive_buffer_at_first = if config.terms.keys.is_some() { UNPROVEN_BUFFER } else { 0 };
        let listen = |stack: &Stack| {
            let listener = stack.listen(config.port, connection.clone())?;
            Ok((listener, stack.runtime().clone()))
        };
        let listeners = stacks.iter().map(listen).collect::<Result<_, ListenError>>()?;
        let service = Arc::new(Service::new(config.limits, config.journal));
        let shared = Shared { service, terms: Changing::new(config.terms) };
        Ok(Self { listeners, shared: Arc::new(shared) })
    }

    /// A handle to query it while it runs.
    pub fn control(&self) -> Control {
        Control::new(&self.shared.service)
    }

    /// A handle to change terms and limits while it runs.
    pub fn changer(&self) -> impl Fn(ServerTerms, Limits) + Send + Sync + 'static {
        let shared = Arc::clone(&self.shared);
        move |terms, limits| {
            let keys = terms.keys.clone();
            shared.terms.set(terms);
            let is_key = |name: &str| keys.iter().flat_map(Keys::iter).any(|(known, _)| known.as_deref() == Some(name));
            shared.service.named.keep(is_key);
            shared.service.set_limits(limits);
        }
    }

    /// Serves clients until `stop` completes, and then connected ones for a short time; each in the runtime of its
    /// stack. Returns the totals.
    pub async fn run(self, stop: impl Future<Output = ()>) -> ProxyCounters {
        let (over, is_over) = watch::channel(false);
        let mut workers = JoinSet::new();
        for (listener, runtime) in self.listeners {
            workers.spawn_on(accept(listener, runtime.clone(), Arc::clone(&self.shared), is_over.clone()), &runtime);
        }
        let all = async { while workers.join_next().await.is_some() {} };
        tokio::select! {
            () = stop => {}
            () = all => {}
        }
        over.send_replace(true);
        while workers.join_next().await.is_some() {}
        self.shared.service.with_counters(|counters| *counters)
    }
}

/// Serves the clients of one stack.
async fn accept(listener: Listener, runtime: Handle, shared: Arc<Shared>, mut is_over: watch::Receiver<bool>) {
    let mut tasks = Tasks::new(Arc::clone(&shared.service));
    loop {
        let accepted = tokio::select! {
            biased;
            _ = is_over.wait_for(|over| *over) => break,
            accepted = listener.accept() => accepted,
            () = tasks.reap() => continue,
        };
        let Some(stream) = accepted else { break };
        match tasks.admit() {
            Some(seat) => tasks.spawn(seat, &runtime, serve(Arc::clone(&shared), stream)),
            None => match tasks.room_to_refuse() {
                Some(room) => tasks.refuse(room, &runtime, turn_away(Arc::clone(&shared), stream)),
                None => stream.abort(),
            },
        }
    }
    drop(listener);
    tasks.drain().await;
}

/// Serves one client from its first byte to its last.
async fn serve(shared: Arc<Shared>, stream: Stream) {
    // It may have ended by now, which is detected later.
    let _ = stream.set_nodelay(true);
    let peer = stream.peer_source();
    // Memory for opening the connection is released once it is connected.
    let terms = shared.terms.now();
    // Without keys nobody need prove anything.
    let about = if terms.keys.is_some() { About::Stranger } else { About::Client };
    let mut client = Client { about, peer, name: None, present: None, target: None };
    let service = &shared.service;
    let opened = service.unless_cut(Box::pin(open(service, &terms, stream, &mut client))).await;
    match opened {
        Ok((far, early, socket)) => {
            // It may have ended by now, which is detected later.
            let priority = client.target.as_ref().map(|target| terms.priorities.of(target));
            priority.into_iter().for_each(|priority| _ = far.stream().set_priority(priority));
            drop(terms);
            let slots = service.slots.clone();
            let mut relay = Relay::new(socket, SocketIs::Target, far, Bytes::new(), slots, service.limits().idle);
            relay.push_down(early);
            // The socket is the target's: what comes from it goes to the client.
            let (outcome, down, up) = service.carry(relay).await;
            client.present.iter().for_each(|present| present.count(up, down));
            service.ended(outcome, up, down, || client.to_string());
        }
        Err(outcome) => service.ended_as(client.about, outcome, (0, 0), || client.to_string()),
    }
}

/// Tells a client that proves the key that there is no room for it. To others a full server says no more than one that they do not
/// have the key of.
async fn turn_away(shared: Arc<Shared>, stream: Stream) {
    let terms = shared.terms.now();
    let Some(keys) = &terms.keys else { return stream.abort() };
    if let Ok((mut far, _, _)) = prove(stream, keys).await {
        // A client that has closed need not get it.
        let _ = far.finish(&[SERVER_FULL]).await;
    }
}

/// Who a client is and where it wants to go, as far as it has been shown.
struct Client {
    about: About,
    peer: SocketAddr,
    name: Name,
    /// Counts it for its name, once it has asked for something.
    present: Option<Present>,
    target: Option<Target>,
}

impl fmt::Display for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { peer, name, target, .. } = self;
        write!(f, "{peer}")?;
        name.as_ref().map_or(Ok(()), |name| write!(f, " ({name})"))?;
        target.as_ref().map_or(Ok(()), |target| write!(f, " -> {target}"))
    }
}

/// A client's connection, data that it has sent already, and the connection to the target.
type Opened = (Far, Bytes, TcpStream);

/// Authenticates a client, reads its request, and connects it.
async fn open(service: &Service, terms: &ServerTerms, stream: Stream, client: &mut Client) -> Result<Opened, Outcome> {
    match &terms.keys {
        Some(keys) => open_proven(service, terms, stream, keys, client).await,
        None => open_plain(service, terms, stream, client).await,
    }
}

/// As [`open`], with a key.
async fn open_proven(
    service: &Service,
    terms: &ServerTerms,
    stream: Stream,
    keys: &Keys,
    client: &mut Client,
) -> Result<Opened, Outcome> {
    let asked = timeout(service.limits().negotiation, prove_and_ask(service, stream, keys, client)).await;
    let (mut far, early) = asked.map_err(|_elapsed| Outcome::TooSlow)??;
    match connect(service, terms, client).await {
        Ok(socket) => {
            far.write(&[CONNECTED]).await.map_err(|_gone| Outcome::LeftEarly)?;
            Ok((far, early, socket))
        }
        Err(Refused { failure, outcome }) => {
            // A client that has closed need not get it.
            let _ = far.finish(&[failure.server_reply()]).await;
            Err(outcome)
        }
    }
}

/// The handshake, and the client's first record, before which it has not shown that it has the key.
async fn prove(mut stream: Stream, keys: &Keys) -> Result<(Far, Name, Bytes), Outcome> {
    // Whoever has not proven the key when this is dropped does not get the time of an orderly end.
    stream.set_abort_on_drop(true);
    let (mut far, name) = respond(stream, keys).await.map_err(|error| match error.kind() {
        io::ErrorKind::PermissionDenied => Outcome::Unproven,
        _ => Outcome::LeftEarly,
    })?;
    // Only now has the client shown that its first message was no replay.
    match far.read_bytes().await {
        Ok(request) => {
            // It may have ended by now, which is detected later.
            let _ = far.stream().open_receive_buffer();
            far.stream_mut().set_abort_on_drop(false);
            Ok((far, name, request))
        }
        Err(error) => {
            far.stream().abort();
            // A client that is gone, be it by an end that it could not seal, has proved nothing, but need not be an attacker.
            let lied = error.kind() == io::ErrorKind::InvalidData;
            Err(if lied { Outcome::Unproven } else { Outcome::LeftEarly })
        }
    }
}

/// The handshake, and the client's request: no target, or one. Returns data that it has sent already.
async fn prove_and_ask(
    service: &Service,
    stream: Stream,
    keys: &Keys,
    client: &mut Client,
) -> Result<(Far, Bytes), Outcome> {
    let (far, name, mut request) = prove(stream, keys).await?;
    (client.about, client.name) = (About::Client, name);
    if request.is_empty() {
        return Err(Outcome::Asked);
    }
    client.present = client.name.as_ref().map(|name| service.named.begin(name));
    client.target = match request.split_to(1).first() {
        Some(&SERVERS_OWN) => None,
        Some(&NAMED) => match Target::decode(&request) {
            Ok(Some((target, length))) => {
                request = request.split_off(length);
                Some(target)
            }
            // A request is a single record.
            Ok(None) | Err(_) => return Err(Outcome::Malformed),
        },
        _ => return Err(Outcome::Malformed),
    };
    Ok((far, request))
}

/// As [`open`], without a key.
async fn open_plain(
    service: &Service,
    terms: &ServerTerms,
    mut stream: Stream,
    client: &mut Client,
) -> Result<Opened, Outcome> {
    if let Destination::Fixed(_) = terms.destination {
        return match connect(service, terms, client).await {
            Ok(socket) => Ok((Far::Plain(stream), Bytes::new(), socket)),
            Err(Refused { outcome, .. }) => {
                // As the target itself would have done.
                stream.abort();
                Err(outcome)
            }
        };
    }
    let mut negotiation = Negotiation::new(None);
    let asked = timeout(service.limits().negotiation, negotiate(&mut stream, &mut negotiation)).await;
    client.target = Some(asked.map_err(|_elapsed| Outcome::TooSlow)??);
    match connect(service, terms, client).await {
        Ok(socket) => {
            stream.write_all(&negotiation.accepted()).await.map_err(|_gone| Outcome::LeftEarly)?;
            Ok((Far::Plain(stream), negotiation.into_early(), socket))
        }
        Err(Refused { failure, outcome }) => {
            send_refusal(&mut stream, &negotiation.refused(failure)).await;
            Err(outcome)
        }
    }
}

/// Connects to the requested target, if that is the server's destination.
async fn connect(service: &Service, terms: &ServerTerms, client: &mut Client) -> Result<TcpStream, Refused> {
    if let (Destination::Fixed(own), None) = (&terms.destination, &client.target) {
        client.target = Some(own.clone());
    }
    let (target, rules) = match (&terms.destination, &client.target) {
        (Destination::Fixed(target), Some(asked)) if target == asked => (target, None),
        (Destination::Named(rules), Some(asked)) => (asked, Some(rules)),
        (Destination::Fixed(_), _) | (Destination::Named(_), None) => return Err(Failure::NotAllowed.into()),
    };
    let attempt = async {
        let mut addresses = service.resolver.resolve(target).await?;
        if let Some(rules) = rules {
            addresses = rules.admit(target, addresses);
        }
        if addresses.is_empty() {
            return Err(Failure::NotAllowed);
        }
        let connect = async |address| TcpStream::connect(address).await.map_err(Failure::from);
        connect_to_first(addresses, connect).await
    };
    let socket = timeout(service.limits().connect, attempt).await.unwrap_or(Err(Failure::TimedOut))?;
    // Short writes should be sent at once.
    let _ = socket.set_nodelay(true);
    Ok(socket)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_is_told_by_its_name_and_its_target_as_far_as_they_are_known() {
        let peer = "192.0.2.1:4433".parse().unwrap();
        let target = "example.org:80".parse().ok();
        let said = |name: Option<&str>, target: &Option<Target>| {
            let name = name.map(Arc::from);
            Client { about: About::Client, peer, name, present: None, target: target.clone() }.to_string()
        };
        assert_eq!(said(None, &None), "192.0.2.1:4433");
        assert_eq!(said(Some("anna"), &None), "192.0.2.1:4433 (anna)");
        assert_eq!(said(Some("anna"), &target), "192.0.2.1:4433 (anna) -> example.org:80");
        assert_eq!(said(None, &target), "192.0.2.1:4433 -> example.org:80");
    }
}
