//! Common parts of proxy and server: limits, counters, the tasks of their clients, and shutdown.

use super::counters::{Outcome, ProxyCounters};
use super::failure::Failure;
use super::far::slots;
use super::inbound::{Negotiation, Refusal, Step};
use super::named::Named;
use super::near::Near;
use super::relay::Relay;
use super::resolve::Resolver;
use super::target::Target;
use anabranch_stack::Slots;
use bytes::Bytes;
use std::future::Future;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::runtime::Handle;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::task::JoinSet;
use tokio::time::timeout;

/// Clients that are told at a time that there is no room; others are reset.
const TURNED_AWAY: usize = 64;
/// How long a refused client may take to read the answer.
const REFUSAL_TIME: Duration = Duration::from_secs(1);

/// How long clients that are cut may take to be counted and told of.
const CUT_TIME: Duration = Duration::from_secs(1);

/// Limits on what one client, or all, may use.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Most connections at a time; further ones are closed at once.
    pub connections: usize,
    /// How long a client may take to prove its key and send its request.
    pub negotiation: Duration,
    /// How long connecting to the target may take.
    pub connect: Duration,
    /// A connection on which nothing moves for so long (and at most double that) is reset.
    pub idle: Duration,
    /// How long connections may go on after the end was asked for.
    pub drain: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 16_384,
            negotiation: Duration::from_secs(10),
            connect: Duration::from_secs(30),
            idle: Duration::from_secs(2 * 3_600),
            drain: Duration::from_secs(5),
        }
    }
}

/// What a line for the log is about.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum About {
    /// The connection of a client that may use the service.
    Client,
    /// The connection of a client that has not proven the key: whoever reaches the service can cause any number of these lines.
    Stranger,
    /// A connection for which there was no room.
    NoRoom,
}

/// Called for each connection that has ended, and for each that was not accepted: whose it was, how it ended, and a line for the log.
pub type Journal = Arc<dyn Fn(About, Outcome, &str) + Send + Sync>;

/// What all tasks of a service share.
pub(super) struct Service {
    limits: RwLock<Limits>,
    pub(super) resolver: Resolver,
    /// What all sockets are read into, one after the other.
    pub(super) slots: Slots,
    counters: Mutex<ProxyCounters>,
    /// By the names of clients that have keys of their own.
    pub(super) named: Arc<Named>,
    /// Clients that are served now, by all workers.
    clients: AtomicUsize,
    /// Room to tell clients that there is none for them.
    turned_away: Arc<Semaphore>,
    /// Whether clients are no longer let finish after the end was asked for.
    hurried: watch::Sender<bool>,
    /// Whether those that are left are cut.
    cut: watch::Sender<bool>,
    journal: Option<Journal>,
}

/// Why a client was not connected: the answer to it, and the counted outcome.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Refused {
    pub(super) failure: Failure,
    pub(super) outcome: Outcome,
}

impl From<Failure> for Refused {
    fn from(failure: Failure) -> Self {
        let outcome = match failure {
            Failure::NotAllowed => Outcome::NotAllowed,
            Failure::NoDescriptors => Outcome::NoDescriptors,
            Failure::ServerFull => Outcome::ServerFull,
            _ => Outcome::Failed,
        };
        Self { failure, outcome }
    }
}

impl Service {
    pub(super) fn new(limits: Limits, journal: Option<Journal>) -> Self {
        Self {
            limits: RwLock::new(limits),
            resolver: Resolver::new(),
            slots: slots(),
            counters: Mutex::default(),
            named: Arc::default(),
            clients: AtomicUsize::new(0),
            turned_away: Arc::new(Semaphore::new(TURNED_AWAY)),
            hurried: watch::Sender::new(false),
            cut: watch::Sender::new(false),
            journal,
        }
    }

    pub(super) fn with_counters<T>(&self, act: impl FnOnce(&mut ProxyCounters) -> T) -> T {
        act(&mut self.counters.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The limits now.
    pub(super) fn limits(&self) -> Limits {
        *self.limits.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Other limits from now on.
    pub(super) fn set_limits(&self, limits: Limits) {
        *self.limits.write().unwrap_or_else(PoisonError::into_inner) = limits;
    }

    /// From now on clients are not let finish.
    pub(super) fn hurry(&self) {
        self.hurried.send_replace(true);
    }

    /// The outcome of `work`, or that it was stopped.
    pub(super) async fn unless_cut<T>(&self, work: impl Future<Output = Result<T, Outcome>>) -> Result<T, Outcome> {
        let mut cut = self.cut.subscribe();
        tokio::select! {
            biased;
            done = work => done,
            // The sender lives as long as the service.
            _ = cut.wait_for(|cut| *cut) => Err(Outcome::Stopped),
        }
    }

    /// How a relay ended, and the bytes from and to its socket.
    pub(super) async fn carry<N: Near>(&self, mut relay: Relay<N>) -> (Outcome, u64, u64) {
        let mut cut = self.cut.subscribe();
        tokio::select! {
            biased;
            ended = &mut relay => ended,
            _ = cut.wait_for(|cut| *cut) => relay.stop(),
        }
    }

    /// Clients that are served now.
    pub(super) fn clients(&self) -> usize {
        self.clients.load(Ordering::Relaxed)
    }

    /// A client could not be accepted for lack of descriptors: counts it, and tells the journal.
    pub(super) fn not_accepted(&self) {
        self.with_counters(|counters| counters.accept_errors += 1);
        self.no_room(Outcome::NoDescriptors);
    }

    fn no_room(&self, outcome: Outcome) {
        if let Some(journal) = &self.journal {
            journal(About::NoRoom, outcome, &format!("a client is not accepted: {outcome}"));
        }
    }

    /// The connection of a client that may use the service has ended: counts it, and tells the journal.
    pub(super) fn ended(&self, outcome: Outcome, up: u64, down: u64, who: impl FnOnce() -> String) {
        self.ended_as(About::Client, outcome, (up, down), who);
    }

    /// A connection has ended after so many bytes from the client and to it: counts it, and tells the journal.
    pub(super) fn ended_as(
        &self,
        about: About,
        outcome: Outcome,
        (up, down): (u64, u64),
        who: impl FnOnce() -> String,
    ) {
        self.with_counters(|counters| {
            counters.count(outcome);
            counters.bytes_up += up;
            counters.bytes_down += down;
        });
        if let Some(journal) = &self.journal {
            journal(about, outcome, &format!("{}: {outcome}; {up} bytes from the client, {down} to it", who()));
        }
    }
}

/// Counts a client while it is connected.
pub(super) struct Seat(Arc<Service>);

impl Drop for Seat {
    fn drop(&mut self) {
        self.0.clients.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The tasks of a worker's clients, or of all.
pub(super) struct Tasks {
    service: Arc<Service>,
    tasks: JoinSet<()>,
}

impl Tasks {
    pub(super) fn new(service: Arc<Service>) -> Self {
        Self { service, tasks: JoinSet::new() }
    }

    /// Admits a new client, if the limit allows it.
    pub(super) fn admit(&mut self) -> Option<Seat> {
        let service = &self.service;
        let before = service.clients.fetch_add(1, Ordering::Relaxed);
        let seat = Seat(Arc::clone(service));
        let room = before < service.limits().connections;
        if !room {
            service.with_counters(|counters| counters.count(Outcome::OverLimit));
            service.no_room(Outcome::OverLimit);
            return None;
        }
        service.with_counters(|counters| {
            counters.accepted += 1;
            counters.most = counters.most.max(before as u64 + 1);
        });
        Some(seat)
    }

    /// Room to tell a client that was not admitted why, if there is any.
    pub(super) fn room_to_refuse(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.service.turned_away).try_acquire_owned().ok()
    }

    /// Tells a client that it is not admitted.
    pub(super) fn refuse(
        &mut self,
        room: OwnedSemaphorePermit,
        runtime: &Handle,
        word: impl Future<Output = ()> + Send + 'static,
    ) {
        let word = async move {
            // A client that does not take it in time misses it.
            let _ = timeout(REFUSAL_TIME, word).await;
            drop(room);
        };
        self.tasks.spawn_on(word, runtime);
    }

    /// Reaps the tasks of clients that have gone; never completes without one.
    pub(super) async fn reap(&mut self) {
        if self.tasks.join_next().await.is_none() {
            std::future::pending::<()>().await;
        }
    }

    pub(super) fn spawn(&mut self, seat: Seat, runtime: &Handle, client: impl Future<Output = ()> + Send + 'static) {
        let client = async move {
            client.await;
            drop(seat);
        };
        self.tasks.spawn_on(client, runtime);
    }

    /// Lets clients finish for a moment, unless there is a hurry, then ends them. Returns the totals.
    pub(super) async fn drain(mut self) -> ProxyCounters {
        let all = async { while self.tasks.join_next().await.is_some() {} };
        let mut hurried = self.service.hurried.subscribe();
        let finished = tokio::select! {
            finished = timeout(self.service.limits().drain, all) => finished.is_ok(),
            // The sender lives as long as the service.
            _ = hurried.wait_for(|hurried| *hurried) => false,
        };
        if !finished {
            self.service.cut.send_replace(true);
            let told = async { while self.tasks.join_next().await.is_some() {} };
            if timeout(CUT_TIME, told).await.is_err() {
                let left = self.tasks.len() as u64;
                self.tasks.shutdown().await;
                self.service.with_counters(|counters| counters.stopped += left);
            }
        }
        self.service.with_counters(|counters| *counters)
    }
}

/// Negotiates with a client until it has named its target.
///
/// # Errors Why it did not; the client has been answered.
pub(super) async fn negotiate<C>(client: &mut C, negotiation: &mut Negotiation) -> Result<Target, Outcome>
where
    C: AsyncRead + AsyncWrite + Unpin,
{
    loop {
        match negotiation.poll() {
            Step::Read => match client.read_buf(negotiation.input()).await {
                Ok(0) | Err(_) => return Err(Outcome::LeftEarly),
                Ok(_) => {}
            },
            Step::Write(bytes) => client.write_all(&bytes).await.map_err(|_gone| Outcome::LeftEarly)?,
            Step::Connect(target) => return Ok(target),
            Step::Refuse(bytes, refusal) => {
                send_refusal(client, &bytes).await;
                return Err(match refusal {
                    Refusal::Malformed => Outcome::Malformed,
                    Refusal::Unauthorized => Outcome::Unauthorized,
                    Refusal::Unsupported => Outcome::Unsupported,
                });
            }
        }
    }
}

/// Sends a client the reason why it is not connected, and lets it read that: closed with unread input, the connection would be
/// reset and the answer lost.
pub(super) async fn send_refusal<C: AsyncRead + AsyncWrite + Unpin>(client: &mut C, bytes: &Bytes) {
    let word = async {
        client.write_all(bytes).await?;
        client.shutdown().await?;
        let mut ignored = [0; 1_024];
        while client.read(&mut ignored).await? > 0 {}
        std::io::Result::Ok(())
    };
    // A client that does not read it in time misses it.
    let _ = timeout(REFUSAL_TIME, word).await;
}
