//! The server of a measurement: many clients at once, each in its own task.

use super::error::{EARLY, PerfError};
use super::host::{Door, Host};
use super::link::Link;
use super::message::{self, Message, MessageError, SHORT};
use super::meter::Meter;
use super::plan::Plan;
use super::report::{About, Interval, Side, Stopper};
use super::transfer::{End, Line, Transfers};
use core::future::Future;
use core::net::SocketAddr;
use core::pin::pin;
use std::collections::HashMap;
use std::fmt::Write;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::{Notify, Semaphore, mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::timeout;

/// Timeout for a connection's first message.
const FIRST_WORD: Duration = Duration::from_secs(5);
/// Most connections without a first message; further ones are dropped and counted.
const MAX_STRANGERS: usize = 256;
/// Timeout for each step of a client's preparation.
const STEP: Duration = Duration::from_secs(20);
/// Timeout for a client to close after the results.
const CLOSING: Duration = Duration::from_secs(5);
/// Timeout for the end of the present tests when the server is told to stop.
const STOPPING: Duration = Duration::from_secs(2);
/// Pause before the next accept after the process ran out of file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Settings of a server.
#[derive(Clone, Debug)]
pub struct ServerConfig {
    /// The address. Our stack uses only its port and listens at all its addresses.
    pub address: SocketAddr,
    /// Whether to end after one test, completed or failed.
    pub one_off: bool,
    /// Most concurrent tests; further ones are refused.
    pub max_tests: usize,
}

impl ServerConfig {
    /// A server of unlimited duration, with up to 16 concurrent tests.
    pub fn new(address: SocketAddr) -> Self {
        Self { address, one_off: false, max_tests: 16 }
    }
}

/// An event at a server.
#[derive(Clone, Debug)]
pub enum ServerEvent {
    /// Listening on this port.
    Listening(u16),
    /// A test starts.
    Began {
        /// The client.
        client: SocketAddr,
        /// The requested plan.
        plan: Plan,
        /// The client's description of itself.
        about: About,
    },
    /// An interval has ended.
    Interval {
        /// The client.
        client: SocketAddr,
        /// From client to server, or else from server to client.
        up: bool,
        /// The measurement at the server.
        interval: Interval,
    },
    /// A test has ended.
    Ended {
        /// The client.
        client: SocketAddr,
        /// The direction from the client.
        up: Option<Side>,
        /// The direction to the client.
        down: Option<Side>,
        /// The end that stopped the test before its time; the results are those until then.
        interrupted: Option<Stopper>,
    },
    /// A test failed.
    Failed {
        /// The client.
        client: SocketAddr,
        reason: String,
    },
    /// A test was refused.
    Refused {
        /// The client.
        client: SocketAddr,
        reason: String,
    },
    /// A connection is not from a perf client.
    Stranger {
        /// The peer's address.
        peer: SocketAddr,
        reason: String,
    },
}

/// Counters of a server.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ServerCounters {
    /// Completed tests.
    pub tests: u64,
    /// Failed and interrupted tests.
    pub failed: u64,
    /// Refused tests.
    pub refused: u64,
    /// Connections not from perf clients, or without a first message.
    pub strangers: u64,
}

/// The state shared by all tasks of a server.
struct Shared {
    host: Host,
    max_tests: usize,
    sessions: Mutex<HashMap<String, mpsc::Sender<(u32, Link)>>>,
    /// Completed, failed and refused tests, and connections not from clients.
    counters: [AtomicU64; 4],
    ended: Notify,
    /// Whether the server is told to stop.
    stopping: watch::Sender<bool>,
    tell: Box<dyn Fn(ServerEvent) + Send + Sync>,
}

impl Shared {
    fn sessions(&self) -> MutexGuard<'_, HashMap<String, mpsc::Sender<(u32, Link)>>> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn tell(&self, event: ServerEvent) {
        let counted = match event {
            ServerEvent::Ended { interrupted: None, .. } => Some(0),
            ServerEvent::Ended { .. } | ServerEvent::Failed { .. } => Some(1),
            ServerEvent::Refused { .. } => Some(2),
            ServerEvent::Stranger { .. } => Some(3),
            ServerEvent::Listening(_) | ServerEvent::Began { .. } | ServerEvent::Interval { .. } => None,
        };
        if let Some(counter) = counted.and_then(|index| self.counters.get(index)) {
            counter.fetch_add(1, Ordering::Relaxed);
        }
        let over = matches!(event, ServerEvent::Ended { .. } | ServerEvent::Failed { .. });
        (self.tell)(event);
        if over {
            self.ended.notify_one();
        }
    }

    /// Completes when the server is told to stop.
    async fn told_to_stop(&self) {
        // The sender is our own, and so it is there.
        let _ = self.stopping.subscribe().wait_for(|stopping| *stopping).await;
    }

    fn counters(&self) -> ServerCounters {
        let [tests, failed, refused, strangers] =
            [0, 1, 2, 3].map(|index| self.counters.get(index).map_or(0, |counter| counter.load(Ordering::Relaxed)));
        ServerCounters { tests, failed, refused, strangers }
    }
}

/// Serves until the host is shut down, until the end of the first accepted test if the settings say so, or until `stop`
/// completes: then present tests end with their results until then. `tell` is called with events.
///
/// # Errors
/// [`PerfError::Listen`].
pub async fn serve(
    host: &Host,
    config: &ServerConfig,
    stop: impl Future<Output = ()> + Send,
    tell: impl Fn(ServerEvent) + Send + Sync + 'static,
) -> Result<ServerCounters, PerfError> {
    let door = host.listen(config.address)?;
    let shared = Arc::new(Shared {
        host: host.clone(),
        max_tests: config.max_tests,
        sessions: Mutex::new(HashMap::new()),
        counters: [const { AtomicU64::new(0) }; 4],
        ended: Notify::new(),
        stopping: watch::Sender::new(false),
        tell: Box::new(tell),
    });
    shared.tell(ServerEvent::Listening(door.port()));
    let strangers = Arc::new(Semaphore::new(MAX_STRANGERS));
    let mut tasks = JoinSet::new();
    let mut stop = pin!(stop);
    loop {
        let link = tokio::select! {
            link = next(&door) => link,
            () = shared.ended.notified(), if config.one_off => break,
            () = &mut stop => {
                shared.stopping.send_replace(true);
                let rest = async { while !shared.sessions().is_empty() && tasks.join_next().await.is_some() {} };
                // A client that does not answer any more is left.
                let _ = timeout(STOPPING, rest).await;
                break;
            }
        };
        let Some(link) = link else { break };
        while tasks.try_join_next().is_some() {}
        let Ok(place) = Arc::clone(&strangers).try_acquire_owned() else {
            link.abort();
            shared.tell(ServerEvent::Stranger { peer: link.peer(), reason: "too many at once".to_owned() });
            continue;
        };
        let shared = Arc::clone(&shared);
        tasks.spawn(async move {
            let peer = link.peer();
            let first = timeout(FIRST_WORD, message::read(&link, SHORT)).await;
            drop(place);
            let stranger = |reason: String| ServerEvent::Stranger { peer, reason };
            match first {
                Ok(Ok(message)) => greet(&shared, link, message).await,
                Ok(Err(error)) => {
                    if matches!(error, MessageError::Version(_)) {
                        // The frame has our version; clients that understand it print the text.
                        let refusal = Message::Refused { reason: "another version".to_owned() };
                        let _ = timeout(CLOSING, message::write(&link, &refusal)).await;
                        link.shutdown();
                    } else {
                        link.abort();
                    }
                    shared.tell(stranger(error.to_string()));
                }
                Err(_) => {
                    link.abort();
                    shared.tell(stranger("silence".to_owned()));
                }
            }
        });
    }
    Ok(shared.counters())
}

/// The next connection; `None` once the host is shut down.
async fn next(door: &Door) -> Option<Link> {
    loop {
        match door.accept().await {
            Ok(link) => return Some(link),
            Err(error) if error.kind() == io::ErrorKind::NotConnected => return None,
            // A connection that failed before it was accepted, or no descriptor left for it.
            Err(_) => tokio::time::sleep(ACCEPT_PAUSE).await,
        }
    }
}

/// Handles a connection's first message.
async fn greet(shared: &Shared, link: Link, message: Message) {
    let peer = link.peer();
    match message {
        Message::Test { plan, about } => {
            let about = about.tamed();
            if let Err(reason) = admit(shared, &link, &plan, about).await {
                shared.tell(ServerEvent::Failed { client: peer, reason: reason.to_string() });
            }
        }
        Message::Stream { session, stream } => {
            let session = shared.sessions().get(&session).cloned();
            let refused = match session {
                Some(session) => session.try_send((stream, link)).err().map(|error| error.into_inner().1),
                None => Some(link),
            };
            if let Some(link) = refused {
                link.abort();
                shared.tell(ServerEvent::Stranger { peer, reason: "a stream of no test".to_owned() });
            }
        }
        _ => {
            link.abort();
            shared.tell(ServerEvent::Stranger { peer, reason: "a message out of turn".to_owned() });
        }
    }
}

/// Admits and runs a test, or refuses it.
async fn admit(shared: &Shared, control: &Link, plan: &Plan, about: About) -> Result<(), PerfError> {
    let session = fresh_name()?;
    let (sender, streams) = mpsc::channel(plan.streams.clamp(1, super::plan::MAX_STREAMS) as usize);
    let refusal = match plan.check() {
        Err(reason) => Some(reason.to_owned()),
        Ok(()) => {
            let mut sessions = shared.sessions();
            let full = sessions.len() >= shared.max_tests;
            if !full {
                sessions.insert(session.clone(), sender);
            }
            full.then(|| format!("{} tests are under way", shared.max_tests))
        }
    };
    if let Some(reason) = refusal {
        let _ = timeout(STEP, message::write(control, &Message::Refused { reason: reason.clone() })).await;
        control.shutdown();
        shared.tell(ServerEvent::Refused { client: control.peer(), reason });
        return Ok(());
    }
    let _place = Place { shared, session: &session };
    control.set_nodelay();
    let lines = tokio::select! {
        lines = timeout(STEP, gather(shared, control, &session, plan, streams)) => lines,
        () = shared.told_to_stop() => return Err(PerfError::Stopped),
    };
    let lines = lines.map_err(|_| PerfError::Confused("the client's streams did not come"))??;
    shared.tell(ServerEvent::Began { client: control.peer(), plan: plan.clone(), about });
    let mut transfers = Transfers::new(lines);
    transfers.receive(plan.direction.is_down());
    if plan.direction.is_down() {
        transfers.send(plan);
    }
    let Measured { up, down, early, interrupted } = carry_out(shared, control, plan, &transfers).await?;
    if interrupted.is_none() {
        transfers.abort();
    }
    let results = Message::Results { up: up.clone(), down: down.clone() };
    timeout(STEP, message::write(control, &results)).await.map_err(|_| PerfError::Silent)??;
    control.shutdown();
    // The streams of a stopped test end after the results, or its client takes them for lost.
    let mut scratch = control.scratch();
    // The result no longer matters.
    let _ = timeout(CLOSING, control.swallow(&mut scratch)).await;
    if early {
        return Err(PerfError::Confused(EARLY));
    }
    shared.tell(ServerEvent::Ended { client: control.peer(), up, down, interrupted });
    Ok(())
}

/// A slot among the concurrent tests.
struct Place<'a> {
    shared: &'a Shared,
    session: &'a str,
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.shared.sessions().remove(self.session);
    }
}

/// An unguessable name.
fn fresh_name() -> Result<String, PerfError> {
    let mut bytes = [0_u8; 16];
    getrandom::fill(&mut bytes).map_err(io::Error::other)?;
    let mut name = String::new();
    bytes.iter().try_for_each(|byte| write!(name, "{byte:02x}")).map_err(io::Error::other)?;
    Ok(name)
}

/// Waits for a test's streams and for the start message.
async fn gather(
    shared: &Shared,
    control: &Link,
    session: &str,
    plan: &Plan,
    mut streams: mpsc::Receiver<(u32, Link)>,
) -> Result<Vec<Arc<Line>>, PerfError> {
    let accepted = Message::Accepted { session: session.to_owned(), about: shared.host.about() };
    message::write(control, &accepted).await?;
    let mut lines: Vec<Arc<Line>> = Vec::new();
    while lines.len() < plan.streams as usize {
        let (stream, link) = streams.recv().await.ok_or(PerfError::Silent)?;
        if stream >= plan.streams || lines.iter().any(|line| line.stream == stream) {
            return Err(PerfError::Confused("the client's streams are numbered wrongly"));
        }
        lines.push(Line::new(Arc::new(link), stream));
    }
    message::write(control, &Message::Ready).await?;
    match message::read(control, SHORT).await {
        Ok(Message::Start) => Ok(lines),
        _ => Err(PerfError::Confused("the client did not start")),
    }
}

/// The measurements at the server.
struct Measured {
    up: Option<Side>,
    down: Option<Side>,
    /// Whether a stream ended early.
    early: bool,
    interrupted: Option<Stopper>,
}

/// Measures until the end of the test, or until one of the ends stops it.
async fn carry_out(shared: &Shared, control: &Link, plan: &Plan, transfers: &Transfers) -> Result<Measured, PerfError> {
    let (client, sends) = (control.peer(), plan.direction.is_down());
    // Interim results for the client; some are skipped if it is slow.
    let (intervals, mut waiting) = mpsc::channel::<Interval>(4);
    let up = async {
        let meter = Meter::new(End::Receiver, &transfers.lines, plan);
        let tell = |interval: &Interval| {
            shared.tell(ServerEvent::Interval { client, up: true, interval: interval.clone() });
        };
        if plan.direction.is_up() { Some(meter.run(transfers, tell).await) } else { None }
    };
    let down = async {
        let meter = Meter::new(End::Sender, &transfers.lines, plan);
        let tell = |interval: &Interval| {
            shared.tell(ServerEvent::Interval { client, up: false, interval: interval.clone() });
            // Full: see above.
            let _ = intervals.try_send(interval.clone());
        };
        let side = if sends { Some(meter.run(transfers, tell).await) } else { None };
        drop(intervals);
        side
    };
    let pass_on = async {
        while let Some(interval) = waiting.recv().await {
            message::write(control, &Message::Interval { interval }).await?;
        }
        Ok::<(), PerfError>(())
    };
    let finished = async {
        let said = tokio::select! {
            said = message::read(control, SHORT) => said,
            () = shared.told_to_stop() => {
                transfers.stop();
                return Ok(Some(Stopper::Server));
            }
        };
        match said {
            Ok(Message::Finished) => Ok(None),
            Ok(Message::Stop) => {
                transfers.stop();
                Ok(Some(Stopper::Client))
            }
            Ok(_) => Err(PerfError::Confused("the client said something out of turn")),
            Err(error) => Err(PerfError::of_message(error, client)),
        }
    };
    let measured = async {
        let (up, down) = tokio::join!(up, down);
        let early = |side: &Option<Side>, end| side.is_some() && transfers.ended_early(end, plan);
        let early = early(&up, End::Receiver) || early(&down, End::Sender);
        Ok::<_, PerfError>((up, down, early))
    };
    let ((up, down, early), (), interrupted) = tokio::try_join!(measured, pass_on, finished)?;
    Ok(Measured { up, down, early, interrupted })
}
