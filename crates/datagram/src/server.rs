//! The server in real time: one socket for all clients, and the sockets of their mappings.

use crate::config::{Journal, ServerConfig};
use crate::mappings::{Back, MappingCounters, Mappings, Remark};
use crate::session::{ServerCounters, ServerSessions, Whereabouts};
use crate::share::{ClientKey, Crowd};
use crate::socket::{Sent, Socket};
use anabranch_policy::time::{Duration, Instant};
use anabranch_system::{Clock, unmapped};
use core::fmt;
use core::net::SocketAddr;
use core::pin::pin;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::Notify;

/// Interval between searches for idle mappings.
const SWEEP: Duration = Duration::from_secs(5);
/// Least time between two messages about senders that do not prove the key.
const UNPROVEN: Duration = Duration::from_secs(10);

/// Least time between two messages about who has most of what is taken.
const CROWD: Duration = Duration::from_secs(10);

/// The server: the sessions of clients, and a socket for each of their inside addresses.
pub struct Server {
    socket: Socket,
    shared: Arc<Shared>,
    mappings: Mappings,
    journal: Option<Journal>,
}

/// The state shared by the sockets of all mappings.
struct Shared {
    clock: Clock,
    sessions: Mutex<ServerSessions>,
    /// The counters of mappings, as they were a moment ago.
    mappings: Mutex<MappingCounters>,
    wake: Notify,
}

/// Counters of a server.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Done {
    /// Of sessions with clients.
    pub sessions: ServerCounters,
    /// Of mappings to targets.
    pub mappings: MappingCounters,
}

impl fmt::Display for Done {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}; {}", self.sessions, self.mappings)
    }
}

impl Shared {
    fn sessions(&self) -> MutexGuard<'_, ServerSessions> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn mappings(&self) -> MutexGuard<'_, MappingCounters> {
        self.mappings.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Server {
    /// Opens the socket. Call this within a runtime with time enabled.
    ///
    /// # Errors
    /// If the socket cannot be opened.
    pub fn bind(config: ServerConfig) -> io::Result<Self> {
        let ServerConfig { bind, keys, allow, policy, nameservers, limits, journal } = config;
        let socket = Socket::server(bind)?;
        // The numbers of clients start at random, so that they differ between runs.
        let mut drawn = [0; 8];
        getrandom::fill(&mut drawn).map_err(io::Error::other)?;
        let mut drawn = u64::from_ne_bytes(drawn);
        let draw = move || {
            drawn = drawn.wrapping_add(1);
            drawn
        };
        let sessions = Mutex::new(ServerSessions::new(keys, policy, limits.clients, draw));
        let shared =
            Arc::new(Shared { clock: Clock::new(), sessions, mappings: Mutex::default(), wake: Notify::new() });
        let back = Arc::clone(&shared);
        let deliver = move |client, what: Back| {
            let now = back.clock.now();
            match what {
                Back::Datagram(datagram) => _ = back.sessions().send(now, client, &datagram),
                Back::Unreachable(unreachable) => back.sessions().send_unreachable(now, client, unreachable),
            }
            back.wake.notify_one();
        };
        let mappings = Mappings::new(allow, nameservers, limits, Arc::new(deliver));
        Ok(Self { socket, shared, mappings, journal })
    }

    /// The address that it listens on.
    ///
    /// # Errors
    /// An error of the kernel.
    pub fn local_address(&self) -> io::Result<SocketAddr> {
        self.socket.local_address()
    }

    /// Returns a function that replaces the accepted keys while the server runs. A session under a removed key ends
    /// when its own keys expire, within five minutes.
    pub fn key_changer(&self) -> impl Fn(Vec<ClientKey>) + Send + Sync + 'static {
        let shared = Arc::clone(&self.shared);
        move |keys| shared.sessions().set_keys(keys)
    }

    /// Returns a function that tells the counters while the server runs.
    pub fn observer(&self) -> impl Fn() -> Done + Send + Sync + 'static {
        let shared = Arc::clone(&self.shared);
        move || Done { sessions: shared.sessions().counters(), mappings: *shared.mappings() }
    }

    /// Serves until `stop` completes, then sends a goodbye to the clients.
    pub async fn run(mut self, stop: impl Future<Output = ()>) -> Done {
        let mut stop = pin!(stop);
        let mut inbox = self.socket.inbox();
        let (mut sweep, mut told) = (Instant::ZERO, Told::default());
        loop {
            let now = self.shared.clock.now();
            let due = self.shared.sessions().poll_timeout().min(sweep);
            let pause = std::time::Duration::from_nanos(due.since(now).as_nanos());
            let shared = Arc::clone(&self.shared);
            let mut last = None;
            let hear = |client, ours, datagram: &mut [u8]| {
                last = Some(client);
                let from = Whereabouts { client, ours };
                shared.sessions().handle_datagram(shared.clock.now(), from, datagram);
            };
            tokio::select! {
                () = &mut stop => break,
                received = self.socket.receive(&mut inbox, hear) => if received.is_err() { break },
                () = self.shared.wake.notified() => {}
                () = tokio::time::sleep(pause), if due > now => {}
                () = core::future::ready(()), if due <= now => {}
            }
            let now = self.shared.clock.now();
            self.work(now);
            if sweep <= now {
                self.mappings.sweep(now);
                sweep = now + SWEEP;
            }
            self.tell(now, last, &mut told);
            self.tell_of_crowds(now, &mut told);
            self.flush();
        }
        self.shared.sessions().close(self.shared.clock.now());
        self.flush();
        let sessions = self.shared.sessions().counters();
        Done { sessions, mappings: self.mappings.counters }
    }

    /// Forwards arrivals, and handles expired timers.
    fn work(&mut self, now: Instant) {
        let mut sessions = self.shared.sessions();
        if sessions.poll_timeout() <= now {
            sessions.handle_timeout(now);
        }
        while let Some((client, owner)) = sessions.poll_come() {
            self.mappings.introduce(client, owner);
        }
        while let Some((client, datagram)) = sessions.poll_datagram() {
            let remark = self.mappings.forward(now, client, &datagram);
            if let (Some(remark), Some(journal)) = (remark, &self.journal) {
                journal(match remark {
                    Remark::NoEcho => {
                        "echo requests are refused: this host does not allow ping sockets (net.ipv4.ping_group_range)"
                    }
                    Remark::NoRoom => {
                        "datagrams of new flows are dropped while there are as many as may be: those idle for ten seconds make room"
                    }
                });
            }
        }
        while let Some((client, unreachable)) = self.mappings.poll_refused() {
            sessions.send_unreachable(now, client, unreachable);
        }
        while let Some(client) = sessions.poll_gone() {
            self.mappings.forget(client);
        }
        *self.shared.mappings() = self.mappings.counters;
    }

    /// Reports a sender that does not prove the key.
    fn tell(&self, now: Instant, from: Option<SocketAddr>, told: &mut Told) {
        let unproven = self.shared.sessions().counters().unproven;
        if unproven == told.unproven || now < told.next {
            return;
        }
        (told.unproven, told.next) = (unproven, now + UNPROVEN);
        if let (Some(from), Some(journal)) = (from, &self.journal) {
            journal(&format!("a datagram client at {} does not prove the key", unmapped(from)));
        }
    }

    /// Reports who has most of what is taken, and that clients were refused.
    fn tell_of_crowds(&mut self, now: Instant, told: &mut Told) {
        if now < told.next_crowd {
            return;
        }
        let (sessions, refused) = {
            let mut sessions = self.shared.sessions();
            (sessions.poll_crowd(), sessions.counters().refused)
        };
        let lines = [
            self.mappings.poll_crowd().map(|crowd| gave_way(&crowd, "flows of datagrams")),
            sessions.map(|crowd| gave_way(&crowd, "sessions of datagrams")),
            (refused != told.refused).then(|| {
                format!("{} datagram clients were refused: there are as many as may be", refused - told.refused)
            }),
        ];
        told.refused = refused;
        for line in lines.into_iter().flatten() {
            told.next_crowd = now + CROWD;
            self.journal.iter().for_each(|journal| journal(&line));
        }
    }

    /// Passes the queued datagrams to the kernel.
    fn flush(&self) {
        let (socket, most) = (&self.socket, self.socket.most());
        let mut sessions = self.shared.sessions();
        let mut too_large = Vec::new();
        sessions.outbox().drain(most, |batch| {
            if socket.send(&batch, batch.to.client, batch.to.ours) == Sent::TooLarge {
                too_large.push((batch.to, batch.size));
            }
        });
        for (to, size) in too_large {
            sessions.too_large(to, size, self.shared.clock.now());
        }
    }
}

/// That the one who has most gave way to another.
fn gave_way(crowd: &Crowd, what: &str) -> String {
    let who = crowd.owner.as_ref().map_or("one client".to_owned(), |name| format!("the client {name}"));
    format!(
        "{who} has {} of the {what}, and there are no more: those idle longest make room for other clients",
        crowd.count
    )
}

/// The last reports of senders that do not prove the key, and of who has most of what is taken.
#[derive(Default)]
struct Told {
    unproven: u64,
    next: Instant,
    refused: u64,
    next_crowd: Instant,
}
