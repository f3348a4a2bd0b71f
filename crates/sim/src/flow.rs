//! A connection with the applications at its two ends, and what became of it.

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

/// A flow; counts up from 0 in the world.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct FlowId(pub u32);

/// What can be chosen about a flow.
#[derive(Clone, Debug)]
pub struct FlowConfig {
    /// Its name; the luck of its applications depends on it.
    pub name: String,
    /// The host that connects.
    pub client: HostId,
    /// The interface that it connects from; none: the endpoint chooses.
    pub from: Option<InterfaceId>,
    /// The interface that it connects to; the flow has a port of its own there.
    pub to: InterfaceId,
    /// When it connects.
    pub start: Instant,
    /// When its applications stop writing and close; [`Instant::NEVER`]: when they have written all.
    pub stop: Instant,
    /// What runs at its ends.
    pub application: Application,
    /// The connection at the client.
    pub client_config: ConnectionConfig,
    /// The connection at the server.
    pub server_config: ConnectionConfig,
    /// Measure it, in intervals of this length; none: only totals.
    pub record: Option<Duration>,
}

/// Which end of a flow.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Side {
    /// The end that connects.
    Client,
    /// The end that is connected to.
    Server,
}

impl Side {
    pub(crate) const BOTH: [Self; 2] = [Self::Client, Self::Server];
}

/// What happened to a subflow.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SubflowChange {
    /// It carries data from now on.
    Established,
    /// It ended.
    Closed(CloseReason),
}

/// One end of a flow when the run ended.
#[derive(Clone, PartialEq, Debug)]
pub struct EndResult {
    /// When its connection was established.
    pub established: Option<Instant>,
    /// When and why it ended.
    pub closed: Option<(Instant, CloseCause)>,
    /// When the last byte of the other direction, and its end, were there.
    pub end_of_stream: Option<Instant>,
    /// Bytes that the application wrote.
    pub written: u64,
    /// Bytes that the application read.
    pub read: u64,
    /// What it found in them.
    pub checked: Checked,
    /// Whether and why it became plain TCP.
    pub fallback: Option<FallbackCause>,
    /// The endpoint's counters, as they were last seen.
    pub stats: ConnectionStats,
    /// Subflows that came and went; the first thousand changes, of a flow that is measured.
    pub subflow_changes: Vec<(Instant, SubflowId, SubflowChange)>,
    /// Round trips of requests.
    pub latencies: Vec<Duration>,
    /// When there was each of its messages to be written.
    pub messages_written: Vec<Instant>,
    /// When each message of the other end had been read.
    pub messages_read: Vec<Instant>,
    /// What became of the frames of the other end's video.
    pub video: Option<Box<VideoReceived>>,
}

/// A flow when the run ended.
#[derive(Clone, PartialEq, Debug)]
pub struct FlowResult {
    /// Its name.
    pub name: String,
    /// When it was to start.
    pub start: Instant,
    /// It could not be opened.
    pub failed: Option<OperationError>,
    /// The end that connects.
    pub client: EndResult,
    /// The end that is connected to.
    pub server: EndResult,
    /// Which end's data was measured.
    pub sender: Side,
    /// What was measured, if it was.
    pub measurements: Option<Box<Measurements>>,
}

impl FlowResult {
    /// The end at which the measured data arrives.
    pub fn receiver(&self) -> &EndResult {
        match self.sender {
            Side::Client => &self.server,
            Side::Server => &self.client,
        }
    }
    /// Messages of the sending end: when there was each, and when it had been read, if it has.
    pub fn messages(&self) -> impl Iterator<Item = (Instant, Option<Instant>)> + '_ {
        let (from, to) = match self.sender {
            Side::Client => (&self.client, &self.server),
            Side::Server => (&self.server, &self.client),
        };
        let read = to.messages_read.iter().copied().map(Some).chain(core::iter::repeat(None));
        from.messages_written.iter().copied().zip(read)
    }
    /// Bytes that the receiving application read, per second of `span`, in bits.
    pub fn goodput(&self, span: Duration) -> f64 {
        self.receiver().read as f64 * 8.0 / span.as_secs_f64()
    }
    /// When the whole of a finite transfer had been read, counted from the start of the flow.
    pub fn completion(&self) -> Option<Duration> {
        self.receiver().end_of_stream.map(|end| end - self.start)
    }
}

/// One end of a flow at work.
pub(crate) struct FlowEnd {
    pub(crate) host: HostId,
    pub(crate) connection: Option<ConnectionId>,
    pub(crate) writer: Writer,
    pub(crate) reader: Reader,
    /// The earliest event of this end that is in the queue.
    pub(crate) armed: Instant,
    established: Option<Instant>,
    closed: Option<(Instant, CloseCause)>,
    end_of_stream: Option<Instant>,
    fallback: Option<FallbackCause>,
    stats: ConnectionStats,
    subflow_changes: Vec<(Instant, SubflowId, SubflowChange)>,
}

/// Most changes of subflows that are kept.
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
    /// When an application wants to be called again.
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
    /// Whether it has heard of an end, of the other direction or of all.
    #[inline]
    fn has_ended(&self) -> bool {
        self.closed.is_some() || self.end_of_stream.is_some()
    }
    /// Whether all that it will ever write has been written and the other direction has ended.
    pub(crate) fn is_finished(&self) -> bool {
        self.is_closed() || (self.writer.is_finished() && self.end_of_stream.is_some())
    }
}

/// A flow at work.
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
    /// Whether [`Self::is_over`] may have become true: a cheap question before it.
    #[inline]
    pub(crate) fn may_be_over(&self) -> bool {
        let [client, server] = &self.ends;
        !self.finished && (client.has_ended() || server.has_ended() || self.failed.is_some())
    }
    pub(crate) fn is_over(&self) -> bool {
        let [client, server] = &self.ends;
        // A client that was abandoned may never have had a peer.
        let alone = client.is_closed() && server.connection.is_none();
        self.failed.is_some() || alone || (client.is_finished() && server.is_finished())
    }
    pub(crate) fn result(&self) -> FlowResult {
        FlowResult {
            name: self.config.name.clone(),
            start: self.config.start,
            failed: self.failed,
            client: self.ends[0].result(),
            server: self.ends[1].result(),
            sender: self.sender,
            measurements: self.recorder.as_ref().map(|recorder| Box::new(recorder.results().clone())),
        }
    }
}
