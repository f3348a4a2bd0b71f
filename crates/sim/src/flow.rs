//! A connection with the applications at its two ends, and its results.

use crate::address::InterfaceId;
use crate::application::{Application, Checked, Reader, Sending, VideoReceived, Writer};
use crate::identifiers::HostId;
use crate::recorder::{Measurements, Recorder};
use anabranch_mptcp::OperationError;
use anabranch_mptcp::stats::ConnectionStats;
use anabranch_mptcp::{CloseCause, ConnectionConfig, Endpoint, FallbackCause};
use anabranch_policy::ids::{ConnectionId, SubflowId};
use anabranch_policy::path_manager::CloseReason;
use anabranch_policy::time::{Duration, Instant};

/// A flow, numbered from 0 in the world.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct FlowId(pub u32);

/// Settings of a flow.
#[derive(Clone, Debug)]
pub struct FlowConfig {
    /// Its name, from which the random streams of its applications are derived.
    pub name: String,
    pub client: HostId,
    /// The client's interface; `None`: the endpoint chooses.
    pub from: Option<InterfaceId>,
    /// The server's interface; the flow has its own port there.
    pub to: InterfaceId,
    /// When it connects.
    pub start: Instant,
    /// When its applications stop writing and close; [`Instant::NEVER`]: after everything has been written.
    pub stop: Instant,
    pub application: Application,
    /// Settings of the client's connection.
    pub client_config: ConnectionConfig,
    /// Settings of the server's connection.
    pub server_config: ConnectionConfig,
    /// Interval of measurements; `None`: only totals.
    pub record: Option<Duration>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Side {
    Client,
    Server,
}

impl Side {
    pub(crate) const BOTH: [Self; 2] = [Self::Client, Self::Server];
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SubflowChange {
    /// It can carry data from now on.
    Established,
    Closed(CloseReason),
}

/// One end of a flow at the end of the run.
#[derive(Clone, PartialEq, Debug)]
pub struct EndResult {
    /// When its connection was established.
    pub established: Option<Instant>,
    /// When and why it ended.
    pub closed: Option<(Instant, CloseCause)>,
    /// When the last byte and the end of the other direction had arrived.
    pub end_of_stream: Option<Instant>,
    pub written: u64,
    pub read: u64,
    /// Result of the reader's check.
    pub checked: Checked,
    /// Whether and why it fell back to plain TCP.
    pub fallback: Option<FallbackCause>,
    /// The endpoint's counters when last polled.
    pub stats: ConnectionStats,
    /// Establishments and closes of subflows of a measured flow: the first thousand.
    pub subflow_changes: Vec<(Instant, SubflowId, SubflowChange)>,
    /// Durations of requests.
    pub latencies: Vec<Duration>,
    /// When each of its messages was ready to be written.
    pub messages_written: Vec<Instant>,
    /// When each message of the other end had been read.
    pub messages_read: Vec<Instant>,
    /// The messages received of the other end's video.
    pub video: Option<Box<VideoReceived>>,
}

/// A flow at the end of the run.
#[derive(Clone, PartialEq, Debug)]
pub struct FlowResult {
    pub name: String,
    /// When it was scheduled to start.
    pub start: Instant,
    /// Why it could not be opened.
    pub failed: Option<OperationError>,
    pub client: EndResult,
    pub server: EndResult,
    /// The end whose data was measured.
    pub sender: Side,
    pub measurements: Option<Box<Measurements>>,
}

impl FlowResult {
    /// The end that receives the measured data.
    pub fn receiver(&self) -> &EndResult {
        match self.sender {
            Side::Client => &self.server,
            Side::Server => &self.client,
        }
    }
    /// Messages of the sending end: when each was ready, and when it had been read, if it was.
    pub fn messages(&self) -> impl Iterator<Item = (Instant, Option<Instant>)> + '_ {
        let (from, to) = match self.sender {
            Side::Client => (&self.client, &self.server),
            Side::Server => (&self.server, &self.client),
        };
        let read = to.messages_read.iter().copied().map(Some).chain(core::iter::repeat(None));
        from.messages_written.iter().copied().zip(read)
    }
    /// Bytes that the receiving application read during `span`, as a bit rate.
    pub fn goodput(&self, span: Duration) -> f64 {
        self.receiver().read as f64 * 8.0 / span.as_secs_f64()
    }
    /// When a finite transfer had been read completely, from the start of the flow.
    pub fn completion(&self) -> Option<Duration> {
        self.receiver().end_of_stream.map(|end| end - self.start)
    }
}

/// State of one end of a flow.
pub(crate) struct FlowEnd {
    pub(crate) host: HostId,
    pub(crate) connection: Option<ConnectionId>,
    pub(crate) writer: Writer,
    pub(crate) reader: Reader,
    /// The earliest event of this end in the queue.
    pub(crate) armed: Instant,
    established: Option<Instant>,
    closed: Option<(Instant, CloseCause)>,
    end_of_stream: Option<Instant>,
    fallback: Option<FallbackCause>,
    stats: ConnectionStats,
    subflow_changes: Vec<(Instant, SubflowId, SubflowChange)>,
}

/// Limit of recorded changes of subflows.
const MOST_CHANGES: usize = 1000;

impl FlowEnd {
    fn result(&self) -> EndResult {
        EndResult {
            established: self.established,
            closed: self.closed,
            end_of_stream: self.end_of_stream,
            written: self.writer.written(),
            read: self.reader.total(),
            checked: self.reader.checked(),
            fallback: self.fallback,
            stats: self.stats,
            subflow_changes: self.subflow_changes.clone(),
            latencies: self.writer.latencies.clone(),
            messages_written: self.writer.messages.clone(),
            messages_read: self.reader.messages.clone(),
            video: self.reader.video().cloned().map(Box::new),
        }
    }
    pub(crate) fn update_stats(&mut self, endpoint: &Endpoint) {
        if let Some(stats) = self.connection.and_then(|id| endpoint.stats(id)) {
            self.stats = stats;
        }
    }
    /// The earliest timer of the applications.
    pub(crate) fn timer(&self) -> Instant {
        self.writer.timer().min(self.reader.timer())
    }
    pub(crate) fn on_timer(&mut self, now: Instant, endpoint: &mut Endpoint) {
        let Some(id) = self.connection.filter(|_| self.closed.is_none()) else { return };
        if self.reader.timer() <= now {
            self.on_readable(now, endpoint, id);
        }
        self.writer.tick(now, endpoint, id);
    }
    pub(crate) fn on_established(&mut self, now: Instant, endpoint: &mut Endpoint, id: ConnectionId) {
        self.established = Some(now);
        self.connection = Some(id);
        self.writer.open(now, endpoint, id);
    }
    #[inline]
    pub(crate) fn on_readable(&mut self, now: Instant, endpoint: &mut Endpoint, id: ConnectionId) {
        self.reader.read(now, endpoint, id);
        self.writer.on_read(now, self.reader.total(), endpoint, id);
    }
    pub(crate) fn on_end_of_stream(&mut self, now: Instant, endpoint: &mut Endpoint, id: ConnectionId) {
        self.on_readable(now, endpoint, id);
        self.end_of_stream = Some(now);
        self.writer.on_end(now, endpoint, id);
        self.update_stats(endpoint);
    }
    pub(crate) fn on_closed(&mut self, now: Instant, cause: CloseCause, endpoint: &Endpoint) {
        self.update_stats(endpoint);
        self.closed = Some((now, cause));
    }
    pub(crate) fn on_fallback(&mut self, cause: FallbackCause) {
        self.fallback.get_or_insert(cause);
    }
    pub(crate) fn on_subflow(&mut self, now: Instant, subflow: SubflowId, change: SubflowChange) {
        if self.subflow_changes.len() < MOST_CHANGES {
            self.subflow_changes.push((now, subflow, change));
        }
    }
    pub(crate) fn is_closed(&self) -> bool {
        self.closed.is_some()
    }
    /// Whether the other direction, or the connection, has ended.
    #[inline]
    fn has_ended(&self) -> bool {
        self.closed.is_some() || self.end_of_stream.is_some()
    }
    /// Whether it will write no more and the other direction has ended.
    pub(crate) fn is_finished(&self) -> bool {
        self.is_closed() || (self.writer.is_finished() && self.end_of_stream.is_some())
    }
}

/// State of a flow.
pub(crate) struct Flow {
    pub(crate) config: FlowConfig,
    pub(crate) port: u16,
    pub(crate) ends: [FlowEnd; 2],
    pub(crate) sender: Side,
    pub(crate) recorder: Option<Box<Recorder>>,
    pub(crate) failed: Option<OperationError>,
    /// Counted as finished.
    pub(crate) finished: bool,
}

impl Flow {
    pub(crate) fn new(config: FlowConfig, server: HostId, port: u16, seed: u64) -> Self {
        let application = &config.application;
        let end = |host, sending, reading, side: &str| FlowEnd {
            host,
            connection: None,
            writer: Writer::new(sending, seed, &format!("flow/{}/{side}", config.name)),
            reader: Reader::new(reading),
            armed: Instant::NEVER,
            established: None,
            closed: None,
            end_of_stream: None,
            fallback: None,
            stats: ConnectionStats::default(),
            subflow_changes: Vec::new(),
        };
        let ends = [
            end(config.client, &application.client_sends, &application.client_reads, "client"),
            end(server, &application.server_sends, &application.server_reads, "server"),
        ];
        let sender = match (&application.client_sends, &application.server_sends) {
            (Sending::Nothing | Sending::Requests { .. }, _) => Side::Server,
            _ => Side::Client,
        };
        let recorder = config.record.map(|_| Box::new(Recorder::from(config.start)));
        Self { port, ends, sender, recorder, failed: None, finished: false, config }
    }
    /// Whether it ends by itself.
    pub(crate) fn is_finite(&self) -> bool {
        let endless =
            |sending: &Sending| matches!(sending, Sending::Endless | Sending::Paced(_) | Sending::Messages { .. });
        let application = &self.config.application;
        self.config.stop != Instant::NEVER
            || !(endless(&application.client_sends) || endless(&application.server_sends))
    }
    /// A cheap test before [`Self::is_over`]: false if that cannot have become true.
    #[inline]
    pub(crate) fn may_be_over(&self) -> bool {
        let [client, server] = &self.ends;
        !self.finished && (client.has_ended() || server.has_ended() || self.failed.is_some())
    }
    pub(crate) fn is_over(&self) -> bool {
        let [client, server] = &self.ends;
        // A client whose connection attempt failed may never have had a peer.
        let alone = client.is_closed() && server.connection.is_none();
        self.failed.is_some() || alone || (client.is_finished() && server.is_finished())
    }
    pub(crate) fn result(&self, now: Instant) -> FlowResult {
        FlowResult {
            name: self.config.name.clone(),
            start: self.config.start,
            failed: self.failed,
            client: self.ends[0].result(),
            server: self.ends[1].result(),
            sender: self.sender,
            measurements: self.recorder.as_ref().map(|recorder| Box::new(recorder.results_at(now))),
        }
    }
}
