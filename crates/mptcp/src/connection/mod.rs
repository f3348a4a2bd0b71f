//! The data level of a connection: one stream each way over any number of subflows (RFC 8684).
//!
//! A connection owns its subflows, the send and receive buffers they share, congestion control and scheduler. It
//! is split by what happens: `handshake`, `segment_arrives`, `mapping`, `options`, `schedule`, `rescue`, `trains`,
//! `transmit`, `close`, `fallback`, `timers`, `paths`, `subflow_order`.

mod checksum;
mod close;
mod fallback;
mod handshake;
mod info;
mod mapping;
mod options;
mod partial;
mod paths;
mod receiver_watch;
mod rescue;
mod resolved;
mod schedule;
mod segment_arrives;
mod stamp_clock;
mod subflow_order;
mod timers;
mod trains;
mod transmit;

pub(crate) use close::{REASON_MPTCP, REASON_PROHIBITED, packet};
pub use handshake::{Joining, Opening};
pub use partial::MessageError;
pub use transmit::JoinedSegments;

use crate::config::{BufferSize, ConnectionConfig};
use crate::event::{CloseCause, Event, FallbackCause, TraceRecord};
use crate::keys::{Derived, Keys};
use crate::receive_buffer::ReceiveBuffer;
use crate::record::Framing;
use crate::send_buffer::SendBuffer;
use crate::stats::{ConnectionStats, ReceiveState, SubflowReport, Totals};
use crate::subflow::{Identity, MAPPING_SPACE, Subflow};
use anabranch_policy::congestion::CongestionControl;
use anabranch_policy::ids::{AddressId, ConnectionId, SubflowId};
use anabranch_policy::path_manager::{CloseReason, Measurements, Role};
use anabranch_policy::scheduler::Scheduler;
use anabranch_policy::time::{Duration, Instant};
use anabranch_policy::view::{ConnectionView, SubflowView};
use anabranch_wire::Packet;
use bytes::Bytes;
use checksum::PendingMappings;
use core::net::{IpAddr, SocketAddr};
use partial::Partial;
use paths::{Announcement, RemoteAddress};
use receiver_watch::ReceiverWatch;
use schedule::{Blocked, Reinjections};
use stamp_clock::StampClock;
use std::collections::VecDeque;
use std::sync::Arc;
use subflow_order::SubflowOrder;
use timers::ConnectionTimers;

/// Most trace records that wait to be drained; more are dropped.
const MAX_TRACE: usize = 65_536;

/// What is spoken on the subflows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Protocol {
    /// MPTCP was offered; the peer's answer or its third acknowledgement is still to come.
    Negotiating,
    /// MPTCP.
    Multipath,
    /// TCP without any MPTCP option, from the start or since a fallback (RFC 8684, section 3.7).
    Tcp,
}

/// Something that the endpoint passes on, to the application or to the path manager.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Notice {
    /// For the application.
    Application(Event),
    /// MPTCP is agreed on.
    Established,
    /// A subflow can carry data.
    SubflowEstablished(SubflowId),
    /// A subflow ended; it is gone from the connection.
    SubflowClosed(Identity, CloseReason),
    /// The peer changed a subflow's priority.
    Priority(SubflowId, bool),
    /// The peer announced an address.
    AddressAnnounced(AddressId, SocketAddr),
    /// The peer withdrew an address.
    AddressRemoved(AddressId),
    /// The receive buffer is blocked at this data sequence.
    Blocked(u64),
    /// The receive buffer is blocked as the receiving end sees it; the first missing byte.
    ReceiverBlocked(u64),
    /// A subflow's retransmission timer ran out.
    SubflowTimeout(SubflowId),
    /// The path manager's measurement is due.
    Measure,
}

/// What is shared by all connections of an endpoint, so that none has to own it.
#[derive(Debug, Default)]
pub struct Workspace {
    /// Views of the subflows at hand.
    pub views: Vec<SubflowView>,
    /// Subflows whose data the scheduler has no other subflow for now.
    pub refused: Vec<SubflowId>,
    /// The packet given last must leave by itself: it is data that had been sent before, or a probe of the path.
    pub resends: bool,
}

/// A connection.
pub struct Connection {
    id: ConnectionId,
    role: Role,
    config: Arc<ConnectionConfig>,
    protocol: Protocol,
    /// The peer has shown that MPTCP options reach us (client) or that it has our key (server).
    confirmed: bool,
    checksum: bool,
    /// The peer's data sequence numbers were seen with 64 bits: our DATA_ACKs are too (RFC 8684, section 3.3.2).
    long_data_ack: bool,
    /// A DSS option of ours has gone out: the peer may hold MPTCP for confirmed.
    dss_sent: bool,
    remote_denies_joins: bool,
    /// A subflow has been added to the first: what is in flight need not be contiguous any more.
    joined: bool,
    /// Identifier of our address of the initial subflow: 0 on the wire.
    initial_address: AddressId,
    keys: Keys,
    local: Derived,
    remote: Derived,
    stamp_offset: u32,
    initial_local: IpAddr,
    initial_remote: SocketAddr,
    subflows: Vec<Subflow>,
    next_subflow: u32,
    joins: Vec<handshake::Join>,
    congestion: Box<dyn CongestionControl>,
    scheduler: Box<dyn Scheduler>,
    send: SendBuffer,
    receive: ReceiveBuffer,
    /// Next byte to be given to a subflow for the first time.
    data_nxt: u64,
    /// End of what has left on any subflow.
    sent_end: u64,
    /// Nothing at or beyond this may be sent: the largest DATA_ACK plus window (RFC 8684, section 3.3.5).
    window_edge: u64,
    /// Highest data known to have arrived, in order or not.
    delivered_end: u64,
    /// Right edge of the window that the peer was told last.
    advertised_edge: u64,
    reinjections: Reinjections,
    blocked: Option<Blocked>,
    /// Hold small segments back while data is in flight.
    nagle: bool,
    /// When the peer's player will have played what it has; [`Instant::NEVER`] if the application does not say.
    play_out_ends: Instant,
    /// A window smaller than is worth while has been open long enough to be used.
    override_due: bool,
    /// The application will neither write nor read.
    discarded: bool,
    /// The application knows of it: it opened it, or was told that it was accepted.
    introduced: bool,
    /// Why it fell back before the application knew of it: said as soon as it does.
    untold_fallback: Option<FallbackCause>,
    /// The application will write no more.
    write_closed: bool,
    /// The end of our stream is acknowledged: DATA_FIN, or FIN in plain TCP.
    end_acknowledged: bool,
    end_announced: bool,
    write_was_short: bool,
    readable_announced: bool,
    /// Whether `poll_transmit` may find something.
    output_pending: bool,
    /// A DSS with an infinite mapping goes with the next data (RFC 8684, section 3.7).
    infinite_mapping: fallback::InfiniteMapping,
    /// We fell back for a wrong checksum and the peer has not shown that it knows: the data sequence number that our
    /// MP_FAIL names.
    unheard_fallback: Option<Box<u64>>,
    pending_mappings: PendingMappings,
    /// What waits behind holes of subflows, if it has to.
    subflow_order: Option<Box<SubflowOrder>>,
    announcements: Vec<Announcement>,
    /// Identifiers on the wire of addresses that were withdrawn when there was no subflow to say so.
    removals: Vec<u8>,
    remote_addresses: Vec<RemoteAddress>,
    /// How often the path manager wants measurements: zero never, [`Duration::MAX`] once per round trip.
    measure_every: Duration,
    /// Segments sent and received when it was last measured, modulo 2^32; 0 before.
    measured: u32,
    /// What the scheduler says of silent subflows ([`Scheduler::silence`]); 0 if nothing.
    silence: f32,
    /// What the path manager wants measured of forward delays, if anything.
    watch: Option<Box<ReceiverWatch>>,
    /// Messages, and what is given up, if there is either.
    partial: Option<Box<Partial>>,
    timers: ConnectionTimers,
    closed: Option<CloseCause>,
    /// How it will have ended, once the application has read all.
    verdict: Option<CloseCause>,
    stats: Totals,
    notices: VecDeque<Notice>,
    outbox: VecDeque<Packet>,
    #[allow(clippy::box_collection, reason = "hardly any connection has one, and each pays for its place")]
    trace: Option<Box<VecDeque<TraceRecord>>>,
    /// The earliest deadline that the endpoint knows of.
    pub(crate) armed: Instant,
    /// Whether the endpoint has it in its list of those with output.
    pub(crate) listed: bool,
}

impl std::fmt::Debug for Connection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Connection")
            .field("id", &self.id)
            .field("protocol", &self.protocol)
            .field("data_nxt", &self.data_nxt)
            .field("subflows", &self.subflows)
            .finish_non_exhaustive()
    }
}

/// Splits a connection into one of its subflows and what that subflow's input and output needs.
macro_rules! subflow_and_context {
    ($connection:expr, $now:expr, $index:expr) => {{
        let stamp = $connection.stamp($now);
        let connection = &mut *$connection;
        let context =
            Context { now: $now, config: &connection.config.tcp, congestion: &mut *connection.congestion, stamp };
        (connection.subflows.get_mut($index), context)
    }};
}
pub(crate) use subflow_and_context;

impl Connection {
    fn new(opening: Opening, role: Role, protocol: Protocol) -> Self {
        let config = opening.config;
        let policies = &config.policies;
        let scheduler = (policies.scheduler)();
        let partial = Partial::of(config.framing, (policies.reliability)());
        Self {
            id: opening.id,
            role,
            protocol,
            confirmed: false,
            // Where a mapping may have a hole, its checksum says nothing.
            checksum: config.checksum && !partial.as_ref().is_some_and(|partial| partial.gives_up()),
            long_data_ack: false,
            dss_sent: false,
            remote_denies_joins: false,
            joined: false,
            initial_address: opening.local_address,
            keys: Keys { local: opening.key, remote: crate::keys::Key(0) },
            local: opening.derived,
            remote: Derived { token: 0, initial_data_seq: 0 },
            stamp_offset: opening.stamp_offset,
            initial_local: opening.local.ip(),
            initial_remote: opening.remote,
            // As many as there mostly are: room that is never used is most of what an idle connection costs.
            subflows: Vec::with_capacity(if config.multipath { 2 } else { 1 }),
            next_subflow: 0,
            joins: Vec::new(),
            congestion: (policies.congestion)(),
            silence: scheduler.silence().unwrap_or(0.0),
            scheduler,
            send: SendBuffer::new(config.send_buffer),
            receive: ReceiveBuffer::new(config.receive_buffer).charging_out_of_order(config.charge_out_of_order),
            data_nxt: 0,
            sent_end: 0,
            window_edge: 0,
            delivered_end: 0,
            advertised_edge: 0,
            reinjections: Reinjections::default(),
            blocked: None,
            nagle: config.tcp.nagle && config.framing == Framing::Bytes,
            play_out_ends: Instant::NEVER,
            override_due: false,
            discarded: false,
            introduced: role == Role::Client,
            untold_fallback: None,
            write_closed: false,
            end_acknowledged: false,
            end_announced: false,
            write_was_short: false,
            readable_announced: false,
            output_pending: true,
            infinite_mapping: fallback::InfiniteMapping::None,
            unheard_fallback: None,
            pending_mappings: PendingMappings::default(),
            subflow_order: config.data_in_subflow_order.then(Box::default),
            announcements: Vec::new(),
            removals: Vec::new(),
            remote_addresses: Vec::new(),
            measure_every: match opening.measurements {
                Measurements::Never => Duration::ZERO,
                Measurements::EveryRoundTrip => Duration::MAX,
                Measurements::Every(interval) => interval.max(Duration::from_millis(1)),
            },
            measured: 0,
            watch: ReceiverWatch::of(opening.forward_delays),
            partial,
            timers: ConnectionTimers::new(),
            closed: None,
            verdict: None,
            stats: Totals::default(),
            notices: VecDeque::with_capacity(1),
            outbox: VecDeque::new(),
            trace: config.trace.then(Box::default),
            armed: Instant::NEVER,
            listed: false,
            config,
        }
    }

    /// Its id.
    pub fn id(&self) -> ConnectionId {
        self.id
    }
    /// Which end we are.
    pub fn role(&self) -> Role {
        self.role
    }
    /// What is spoken.
    pub fn protocol(&self) -> Protocol {
        self.protocol
    }
    /// Our token, if MPTCP was offered.
    pub fn token(&self) -> Option<u32> {
        self.config.multipath.then_some(self.local.token)
    }
    /// Its settings.
    pub fn config(&self) -> &ConnectionConfig {
        &self.config
    }
    /// Why it ended, if it did.
    pub fn closed(&self) -> Option<CloseCause> {
        self.closed
    }
    /// Whether nothing is left to do: it may be forgotten.
    pub fn is_over(&self) -> bool {
        self.closed.is_some() && self.subflows.is_empty() && self.outbox.is_empty() && self.notices.is_empty()
    }
    /// Whether the handshake of its first subflow is not over.
    pub fn is_half_open(&self) -> bool {
        self.closed.is_none() && self.subflows.first().is_some_and(|subflow| subflow.state.is_opening())
    }
    /// The peer's address and port of the initial subflow.
    pub fn initial_remote(&self) -> SocketAddr {
        self.initial_remote
    }
    /// Our address of the initial subflow.
    pub fn initial_local(&self) -> IpAddr {
        self.initial_local
    }
    /// Whether the peer asked not to be joined at its initial address.
    pub fn remote_denies_joins(&self) -> bool {
        self.remote_denies_joins
    }
    /// Its subflows' identities, in order of id.
    pub fn identities(&self) -> impl Iterator<Item = &Identity> {
        self.subflows.iter().map(|subflow| &subflow.identity)
    }
    /// What the endpoint must pass on.
    pub fn poll_notice(&mut self) -> Option<Notice> {
        let notice = self.notices.pop_front();
        if self.notices.is_empty() && self.notices.capacity() > 1 {
            // One place stays for what comes with nearly every packet; handshakes fill more, once.
            self.notices.shrink_to(1);
        }
        notice
    }
    /// Whether trace records wait.
    pub fn has_trace(&self) -> bool {
        self.trace.as_ref().is_some_and(|trace| !trace.is_empty())
    }
    /// Whether either side calls a subflow a backup.
    pub fn is_backup(&self, id: SubflowId) -> bool {
        self.subflows.iter().any(|subflow| subflow.id() == id && subflow.is_backup())
    }
    /// The next trace record.
    pub fn poll_trace(&mut self) -> Option<TraceRecord> {
        self.trace.as_mut()?.pop_front()
    }

    /// Takes as much of `data` as the send buffer holds; gives the bytes taken.
    pub fn write(&mut self, data: Bytes) -> usize {
        let offered = data.len();
        let taken = self.send.write(data);
        self.write_was_short = taken < offered;
        self.output_pending = true;
        taken
    }

    /// How many bytes [`Self::write`] would take.
    pub fn room(&self) -> u64 {
        self.send.space()
    }

    /// Holds small segments back while data is in flight, or not.
    pub fn set_nagle(&mut self, on: bool) {
        self.nagle = on;
        self.output_pending = true;
    }

    /// Changes the application's priority; policies see it from now on. The few that do get settings of their own.
    pub fn set_priority(&mut self, priority: u8) {
        Arc::make_mut(&mut self.config).priority = priority.clamp(1, 6);
    }

    /// Tells policies for how long the peer's player can go on with what it has; none: it is not known.
    pub fn set_play_out_left(&mut self, now: Instant, left: Option<Duration>) {
        self.play_out_ends = left.map_or(Instant::NEVER, |left| now + left);
        self.output_pending = true;
    }

    /// The next bytes in order.
    pub fn read(&mut self, now: Instant, max: usize) -> Option<Bytes> {
        let max = if self.partial.is_some() { self.readable_until_gap(max) } else { max };
        let bytes = self.receive.read(now, max);
        self.after_read(now);
        bytes
    }

    fn after_read(&mut self, now: Instant) {
        if !self.has_something_to_read() {
            self.readable_announced = false;
        }
        self.update_window();
        self.announce_end();
        self.finish_if_done(now);
        if let Some(cause) = self.verdict {
            self.conclude(cause);
        }
    }

    /// Tells the peer of a window that has grown much since it was last told.
    fn update_window(&mut self) {
        let offered = self.advertised_edge.saturating_sub(self.receive.next());
        let possible = self.receive.window();
        if offered * 2 <= self.receive.size() && possible >= offered * 2 && possible > 0 {
            self.subflows.iter_mut().filter(|s| s.state.can_receive()).for_each(|s| s.receiver.acknowledge_now());
            self.output_pending = true;
        }
    }

    /// How the connection will have ended, once the application has read what is there; none if it is not over.
    pub fn verdict(&self) -> Option<CloseCause> {
        self.verdict
    }

    /// Whether our direction is closed.
    pub fn write_closed(&self) -> bool {
        self.write_closed
    }

    fn notify(&mut self, event: Event) {
        self.notices.push_back(Notice::Application(event));
    }

    fn record(&mut self, record: TraceRecord) {
        if let Some(trace) = self.trace.as_mut().filter(|trace| trace.len() < MAX_TRACE) {
            trace.push_back(record);
        }
    }

    /// The connection's timestamp clock, milliseconds: one for all subflows.
    fn stamp(&self, now: Instant) -> u32 {
        self.stamp_clock().stamp(now)
    }

    fn stamp_clock(&self) -> StampClock {
        StampClock { offset: self.stamp_offset, drift: self.config.tcp.timestamp_drift }
    }

    fn index_of(&self, id: SubflowId) -> Option<usize> {
        self.subflows.iter().position(|subflow| subflow.id() == id)
    }

    fn subflow_mut(&mut self, id: SubflowId) -> Option<&mut Subflow> {
        self.subflows.iter_mut().find(|subflow| subflow.id() == id)
    }

    /// First byte that is not acknowledged at data level.
    fn data_una(&self) -> u64 {
        self.send.start()
    }

    /// Window scale that lets the largest buffer be advertised (RFC 7323, section 2.3).
    fn receive_scale(&self) -> u8 {
        let largest = match self.config.receive_buffer {
            BufferSize::Fixed(size) => size,
            BufferSize::Auto { initial, max } => max.max(initial),
        };
        (0..14).find(|shift| largest >> shift <= 0xffff).unwrap_or(14)
    }

    /// Option space that MPTCP takes on data segments.
    fn mptcp_option_space(&self) -> u32 {
        if self.protocol == Protocol::Tcp { 0 } else { MAPPING_SPACE }
    }

    /// The sending side as policies see it.
    pub fn view(&self, now: Instant) -> ConnectionView {
        let una = self.data_una();
        ConnectionView {
            id: self.id,
            now,
            data_una: una,
            data_nxt: self.data_nxt,
            unsent: self.send.end() - self.data_nxt,
            window_left: self.window_edge.saturating_sub(self.data_nxt),
            window: self.window_edge.saturating_sub(una),
            at_end: self.write_closed,
            backlogged: self.is_backlogged(),
            priority: self.config.priority,
            play_out_left: (self.play_out_ends != Instant::NEVER).then(|| self.play_out_ends.since(now)),
        }
    }

    /// Whether the application waits for space: it was refused some, or has not had time to use what it got.
    fn is_backlogged(&self) -> bool {
        let unsent = self.send.end() - self.data_nxt;
        !self.write_closed && (self.write_was_short || unsent > self.send.limit() / 2)
    }

    /// Its subflows as policies see them.
    pub fn subflow_views(&self, views: &mut Vec<SubflowView>) {
        views.clear();
        views.extend(self.subflows.iter().map(|subflow| subflow.view(&*self.congestion, &self.config.tcp)));
    }

    /// Its subflows with addresses and counters.
    pub fn subflow_reports(&self) -> Vec<SubflowReport> {
        let report = |subflow: &Subflow| SubflowReport {
            local: subflow.identity.local,
            remote: subflow.identity.remote,
            bytes_received: subflow.counters.bytes_received,
            bytes_retransmitted: subflow.counters.bytes_retransmitted,
            view: subflow.view(&*self.congestion, &self.config.tcp),
        };
        self.subflows.iter().map(report).collect()
    }

    /// The receiving side now.
    pub fn receive_state(&self) -> ReceiveState {
        ReceiveState {
            next: self.receive.next(),
            readable: self.receive.readable(),
            out_of_order: self.receive.out_of_order(),
            buffer: self.receive.size(),
        }
    }

    /// Its counters.
    pub fn stats(&self) -> ConnectionStats {
        let mut stats = self.stats.with(self.data_una(), self.receive.next());
        if let Some(partial) = &self.partial {
            partial.report(&mut stats);
            stats.worst_path_of_peer = self.worst_path_of_peer();
        }
        stats
    }

    /// The longest smoothed round trip of the subflows that carry data, at least 10 ms.
    fn round_trip(&self) -> Duration {
        let usable = self.subflows.iter().filter(|subflow| subflow.is_usable());
        usable.map(|subflow| subflow.rtt.smoothed()).max().unwrap_or_default().max(Duration::from_millis(10))
    }

    /// Continues as plain TCP; tells the application why.
    fn note_fallback(&mut self, cause: FallbackCause) {
        if self.introduced {
            self.notify(Event::FellBack(self.id, cause));
        } else {
            self.untold_fallback = Some(cause);
        }
    }
}
