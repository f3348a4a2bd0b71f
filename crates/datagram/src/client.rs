//! A client in real time: a handle that accepts programs' datagrams, and the task that owns the sockets.

use crate::config::{ClientConfig, PathReport};
use crate::datagram::{Datagram, LARGEST_PAYLOAD, Unreachable};
use crate::session::{ClientSession, ClientState, Counts};
use crate::socket::{Sent, Socket};
use crate::uplinks::{Change, Uplinks};
use anabranch_host::{ServerAddresses, Watch};
use anabranch_policy::time::{Duration, Instant};
use anabranch_system::Clock;
use core::fmt;
use core::net::SocketAddr;
use core::pin::pin;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::Notify;
use tokio::task::{AbortHandle, JoinSet};

/// Least time between two looks at the interfaces.
const PAUSE: Duration = Duration::from_millis(50);
/// Delay before a retry after a failure.
const RETRY: Duration = Duration::from_secs(1);

/// A handle to a client; clones share the client.
#[derive(Clone)]
pub struct Client {
    shared: Arc<Shared>,
}

struct Shared {
    clock: Clock,
    inner: Mutex<Inner>,
    /// Something is to be sent, or a deadline has changed.
    wake: Notify,
    arrived: Notify,
    /// A datagram arrived over a path: the state may have changed.
    heard: Notify,
    /// A datagram was reported as unreachable.
    failed: Notify,
}

struct Inner {
    session: ClientSession,
    lanes: Vec<Lane>,
    /// Interfaces used only while no other works, and interfaces not used.
    reserve: Vec<String>,
    barred: Vec<String>,
    /// Other addresses of the server that the driver does not know yet.
    moved: Option<ServerAddresses>,
    too_large: u64,
}

/// The socket and tasks of a path.
#[derive(Default)]
struct Lane {
    name: String,
    /// Its socket, and where it sends.
    socket: Option<(Arc<Socket>, SocketAddr)>,
    reader: Option<AbortHandle>,
}

/// Counters of a client, without those of its paths.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ClientCounters {
    /// Datagrams of programs dropped without a session or path, or because a queue was full.
    pub unsent: u64,
    /// Datagrams of programs that exceeded the largest payload.
    pub too_large: u64,
    /// Duplicates removed on arrival.
    pub duplicates: u64,
    /// Datagrams for programs dropped because the program did not read them in time.
    pub untaken: u64,
    /// Datagrams for programs of which not all pieces arrived in time.
    pub unfinished: u64,
    /// Received datagrams that failed authentication, or were replayed.
    pub rejected: u64,
    /// Completed handshakes; each makes new keys.
    pub handshakes: u64,
}

impl fmt::Display for ClientCounters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { unsent, too_large, duplicates, untaken, unfinished, rejected, handshakes } = self;
        write!(
            f,
            "{handshakes} handshakes; datagrams: {unsent} not sent, {too_large} too large, {duplicates} copies removed, {untaken} \
             not taken, {unfinished} in part only, {rejected} rejected"
        )
    }
}

impl Client {
    /// Creates a client and its task. Spawn the task in a runtime; dropping it ends the client. The task does the
    /// handshakes, and repeats them when the server was restarted. Call this within a runtime with time enabled. The
    /// sockets belong to the network namespace of the thread that calls this and runs the task.
    ///
    /// # Errors
    /// If the operating system has no sockets or random numbers, or there is no such interface.
    pub fn start(config: ClientConfig) -> io::Result<(Self, impl Future<Output = io::Result<()>> + Send + 'static)> {
        let mut number = [0; 8];
        getrandom::fill(&mut number).map_err(io::Error::other)?;
        let ClientConfig { server, key, interfaces, policy } = config;
        let clock = Clock::new();
        let session = ClientSession::new(key, u64::from_ne_bytes(number), policy, clock.now());
        let (lanes, reserve, barred) = (Vec::new(), Vec::new(), Vec::new());
        let inner = Inner { session, lanes, reserve, barred, moved: None, too_large: 0 };
        let [wake, arrived, heard, failed] = [(); 4].map(|()| Notify::new());
        let shared = Arc::new(Shared { clock, inner: Mutex::new(inner), wake, arrived, heard, failed });
        let mut driver = Driver { shared: Arc::clone(&shared), readers: JoinSet::new(), uplinks: None };
        if server.first().ip().is_loopback() && interfaces.is_empty() {
            driver.open(0, None, server.first())?;
        } else {
            driver.uplinks = Some(Uplinks::new(server, interfaces)?);
            driver.adjust()?;
        }
        Ok((Self { shared }, driver.run()))
    }

    /// Sends a datagram, or drops and counts it: there is no session or usable path, or it is too large. Never waits.
    pub fn send(&self, datagram: Datagram) -> bool {
        let mut inner = self.shared.lock();
        if datagram.payload.len() > LARGEST_PAYLOAD {
            inner.too_large += 1;
            return false;
        }
        let sent = inner.session.send(self.shared.clock.now(), &datagram);
        drop(inner);
        self.shared.wake.notify_one();
        sent
    }

    /// The next datagram from the server. Unread datagrams are dropped when the queue is full.
    pub async fn receive(&self) -> Datagram {
        loop {
            if let Some(datagram) = self.shared.lock().session.poll_datagram() {
                return datagram;
            }
            self.shared.arrived.notified().await;
        }
    }

    /// Sets the uplinks used only while no other works, and the uplinks not used unless there is no other.
    pub fn set_uses(&self, reserve: &[String], barred: &[String]) {
        let mut inner = self.shared.lock();
        (inner.reserve, inner.barred) = (reserve.to_vec(), barred.to_vec());
        inner.reserve_paths(self.shared.clock.now());
        drop(inner);
        self.shared.wake.notify_one();
    }

    /// From now on the server is at these addresses. A path to an address that is still among them stays as it is.
    pub fn set_server(&self, server: ServerAddresses) {
        self.shared.lock().moved = Some(server);
        self.shared.wake.notify_one();
    }

    /// The next report that a datagram did not reach its target. The queue of unread reports is short.
    pub async fn unreachable(&self) -> Unreachable {
        loop {
            if let Some(unreachable) = self.shared.lock().session.poll_unreachable() {
                return unreachable;
            }
            self.shared.failed.notified().await;
        }
    }

    /// The state of the session with the server.
    pub fn state(&self) -> ClientState {
        self.shared.lock().session.state()
    }

    /// Completes when the session is established.
    pub async fn connected(&self) {
        loop {
            let mut heard = pin!(self.shared.heard.notified());
            // Registers for the notification before the state is read, so that none is missed.
            heard.as_mut().enable();
            if self.state() == ClientState::Connected {
                return;
            }
            heard.await;
        }
    }

    /// The paths, in order of their numbers. A path whose interface is gone stays in the list, unusable.
    pub fn report(&self) -> Vec<PathReport> {
        let inner = self.shared.lock();
        let path = |(number, lane): (u8, &Lane)| {
            let path = inner.session.path(number)?;
            let (datagrams_sent, bytes_sent) = path.sending.totals();
            let (datagrams_received, bytes_received) = path.receiving.totals();
            Some(PathReport {
                name: lane.name.clone(),
                usable: path.usable,
                round_trip: path.round_trip,
                loss: path.sending.loss(),
                jitter: path.sending.variation(),
                datagrams_sent,
                bytes_sent,
                datagrams_received,
                bytes_received,
            })
        };
        (0..).zip(&inner.lanes).filter_map(path).collect()
    }

    /// The counters.
    pub fn counters(&self) -> ClientCounters {
        let inner = self.shared.lock();
        let Counts { unsent, duplicates, untaken, unfinished } = inner.session.counts();
        let (rejected, handshakes) = (inner.session.rejected, inner.session.handshakes);
        ClientCounters { unsent, too_large: inner.too_large, duplicates, untaken, unfinished, rejected, handshakes }
    }

    /// The largest payload between these addresses that some path carries in one datagram. Larger ones are sent in
    /// pieces.
    pub fn largest_whole(&self, inside: SocketAddr, outside: SocketAddr) -> usize {
        self.shared.lock().session.largest_whole(inside, outside)
    }

    /// Tells the server that this client ends, so that the server removes its state at once.
    pub fn close(&self) {
        let mut inner = self.shared.lock();
        let now = self.shared.clock.now();
        inner.session.close(now);
        inner.flush(now);
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    fn reserve_paths(&mut self, now: Instant) {
        for (number, lane) in (0..).zip(&self.lanes) {
            self.session.set_reserve(number, self.reserve.contains(&lane.name), now);
        }
    }

    /// Passes the queued datagrams to the kernel.
    fn flush(&mut self, now: Instant) {
        let mut too_large = Vec::new();
        for (number, lane) in (0..).zip(&self.lanes) {
            let Some(outbox) = self.session.outbox(number).filter(|outbox| !outbox.is_empty()) else { continue };
            match &lane.socket {
                Some((socket, server)) => outbox.drain(socket.most(), |batch| {
                    if socket.send(&batch, *server, None) == Sent::TooLarge {
                        too_large.push((number, batch.size));
                    }
                }),
                None => outbox.drain(1, |_| ()),
            }
        }
        for (number, size) in too_large {
            self.session.too_large(number, size, now);
        }
    }
}

/// The task of a client.
struct Driver {
    shared: Arc<Shared>,
    readers: JoinSet<()>,
    uplinks: Option<(Uplinks, Watch)>,
}

impl Driver {
    async fn run(mut self) -> io::Result<()> {
        let (mut look, mut barred) = (Instant::NEVER, Vec::new());
        loop {
            let (now, next) = {
                let mut inner = self.shared.lock();
                let now = self.shared.clock.now();
                if inner.session.poll_timeout() <= now {
                    inner.session.handle_timeout(now);
                    self.shared.arrived.notify_one();
                }
                inner.flush(now);
                if inner.barred != barred {
                    barred.clone_from(&inner.barred);
                    look = now;
                }
                if let (Some(server), Some((uplinks, _))) = (inner.moved.take(), &mut self.uplinks) {
                    uplinks.set_server(server);
                    look = now;
                }
                (now, inner.session.poll_timeout())
            };
            if look <= now {
                look = match self.adjust() {
                    Ok(()) => Instant::NEVER,
                    Err(_) => now + RETRY,
                };
                continue;
            }
            let pause = next.min(look).since(now);
            tokio::select! {
                () = self.shared.wake.notified() => {}
                () = tokio::time::sleep(std::time::Duration::from_nanos(pause.as_nanos())) => {}
                heard = changed(self.uplinks.as_ref()) => {
                    heard?;
                    look = look.min(self.shared.clock.now() + PAUSE);
                }
            }
        }
    }

    /// Opens and closes paths to match the interfaces.
    fn adjust(&mut self) -> io::Result<()> {
        let Some((uplinks, _)) = &mut self.uplinks else { return Ok(()) };
        uplinks.bar(self.shared.lock().barred.clone());
        let mut outcome = Ok(());
        for change in uplinks.look()? {
            match change {
                Change::Close { path } => self.close(path),
                Change::Open { path, interface, server } => {
                    if let Err(error) = self.open(path, Some(interface), server)
                        && let Some((uplinks, _)) = &mut self.uplinks
                    {
                        uplinks.failed(path);
                        outcome = Err(error);
                    }
                }
            }
        }
        outcome
    }

    fn open(&mut self, number: u8, interface: Option<String>, server: SocketAddr) -> io::Result<()> {
        let socket = Arc::new(Socket::client(server, interface.as_deref())?);
        let reader = self.readers.spawn(read(Arc::clone(&self.shared), Arc::clone(&socket), number));
        let name = interface.unwrap_or_else(|| "udp".to_owned());
        let mut inner = self.shared.lock();
        let index = usize::from(number);
        if inner.lanes.len() <= index {
            inner.lanes.resize_with(index + 1, Lane::default);
        }
        if let Some(lane) = inner.lanes.get_mut(index) {
            *lane = Lane { name, socket: Some((socket, server)), reader: Some(reader) };
        }
        let now = self.shared.clock.now();
        inner.session.open_path(number, now);
        inner.reserve_paths(now);
        Ok(())
    }

    fn close(&mut self, number: u8) {
        let mut inner = self.shared.lock();
        inner.session.close_path(number, self.shared.clock.now());
        if let Some(lane) = inner.lanes.get_mut(usize::from(number)) {
            lane.socket = None;
            lane.reader.take().into_iter().for_each(|reader| reader.abort());
        }
    }
}

/// Completes when the interfaces or routes have changed.
async fn changed(uplinks: Option<&(Uplinks, Watch)>) -> io::Result<()> {
    match uplinks {
        Some((_, watch)) => watch.changed().await,
        None => std::future::pending().await,
    }
}

/// Handles the datagrams that arrive over a path.
async fn read(shared: Arc<Shared>, socket: Arc<Socket>, number: u8) {
    let mut inbox = socket.inbox();
    let hear = |_, _, datagram: &mut [u8]| {
        let now = shared.clock.now();
        shared.lock().session.handle_datagram(now, number, datagram);
    };
    while socket.receive(&mut inbox, hear).await.is_ok() {
        shared.arrived.notify_one();
        shared.failed.notify_one();
        shared.wake.notify_one();
        shared.heard.notify_waiters();
    }
}
