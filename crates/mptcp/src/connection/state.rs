//! A connection's state, split into parts that own it, and what everything else asks of the whole.

use super::association::{Association, Protocol};
use super::identity::ConnectionIdentity;
use super::life::Life;
use super::measurement::Measurement;
use super::opening::{Joins, Opening};
use super::output::Output;
use super::partial::Partial;
use super::receiver::DataReceiver;
use super::scheduling::Scheduling;
use super::sender::DataSender;
use super::signalling::Signalling;
use super::stamp_clock::StampClock;
use super::timer_table::ConnectionTimers;
use crate::config::{BufferSize, ConnectionConfig};
use crate::event::{CloseCause, Event, FallbackCause};
use crate::stats::{ConnectionStats, ReceiveState, SubflowReport, Totals};
use crate::subflow::acknowledge::Context;
use crate::subflow::{Identity, MAPPING_SPACE, Subflow};
use anabranch_policy::congestion::CongestionControl;
use anabranch_policy::ids::{ConnectionId, SubflowId};
use anabranch_policy::path_manager::Role;
use anabranch_policy::time::{Duration, Instant};
use anabranch_policy::view::{ConnectionView, SubflowView};
use bytes::Bytes;
use core::net::{IpAddr, SocketAddr};
use std::sync::Arc;

/// A connection.
pub struct Connection {
    pub(super) id: ConnectionId,
    pub(super) role: Role,
    pub(super) config: Arc<ConnectionConfig>,
    pub(super) identity: ConnectionIdentity,
    pub(super) association: Association,
    pub(super) subflows: Vec<Subflow>,
    pub(super) joins: Joins,
    pub(super) congestion: Box<dyn CongestionControl>,
    pub(super) scheduling: Scheduling,
    pub(super) sender: DataSender,
    pub(super) receiver: DataReceiver,
    pub(super) life: Life,
    pub(super) signalling: Signalling,
    pub(super) measurement: Measurement,
    /// Messages, and what is given up, if there is either.
    pub(super) partial: Option<Box<Partial>>,
    pub(super) timers: ConnectionTimers,
    pub(super) stats: Totals,
    pub(crate) output: Output,
}

impl std::fmt::Debug for Connection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Connection")
            .field("id", &self.id)
            .field("protocol", &self.association.protocol)
            .field("data_nxt", &self.sender.data_nxt)
            .field("subflows", &self.subflows)
            .finish_non_exhaustive()
    }
}

impl Connection {
    pub(super) fn new(opening: Opening, role: Role, protocol: Protocol) -> Self {
        let policies = &opening.config.policies;
        let partial = Partial::of(opening.config.framing, (policies.reliability)());
        // Where a mapping may have a hole, its checksum says nothing.
        let checksum = opening.config.checksum && !partial.as_ref().is_some_and(|partial| partial.gives_up());
        Self {
            id: opening.id,
            role,
            identity: ConnectionIdentity::new(&opening),
            association: Association::new(protocol, checksum),
            // As many as there mostly are: room that is never used is most of what an idle connection costs.
            subflows: Vec::with_capacity(if opening.config.multipath { 2 } else { 1 }),
            joins: Joins::default(),
            congestion: (policies.congestion)(),
            scheduling: Scheduling::new((policies.scheduler)()),
            sender: DataSender::new(&opening.config),
            receiver: DataReceiver::new(&opening.config),
            life: Life::new(role),
            signalling: Signalling::default(),
            measurement: Measurement::new(&opening),
            partial,
            timers: ConnectionTimers::new(),
            stats: Totals::default(),
            output: Output::new(opening.config.trace),
            config: opening.config,
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
        self.association.protocol
    }
    /// Our token, if MPTCP was offered.
    pub fn token(&self) -> Option<u32> {
        self.config.multipath.then_some(self.identity.local.token)
    }
    /// Its settings.
    pub fn config(&self) -> &ConnectionConfig {
        &self.config
    }
    /// Why it ended, if it did.
    pub fn closed(&self) -> Option<CloseCause> {
        self.life.closed
    }
    /// Whether nothing is left to do: it may be forgotten.
    pub fn is_over(&self) -> bool {
        self.life.closed.is_some() && self.subflows.is_empty() && self.output.is_empty()
    }
    /// Whether the handshake of its first subflow is not over.
    pub fn is_half_open(&self) -> bool {
        self.life.closed.is_none() && self.subflows.first().is_some_and(|subflow| subflow.state.is_opening())
    }
    /// The peer's address and port of the initial subflow.
    pub fn initial_remote(&self) -> SocketAddr {
        self.identity.initial_remote
    }
    /// Our address of the initial subflow.
    pub fn initial_local(&self) -> IpAddr {
        self.identity.initial_local
    }
    /// Whether the peer asked not to be joined at its initial address.
    pub fn remote_denies_joins(&self) -> bool {
        self.identity.remote_denies_joins
    }
    /// Its subflows' identities, in order of id.
    pub fn identities(&self) -> impl Iterator<Item = &Identity> {
        self.subflows.iter().map(|subflow| &subflow.identity)
    }
    /// Whether either side calls a subflow a backup.
    pub fn is_backup(&self, id: SubflowId) -> bool {
        self.subflows.iter().any(|subflow| subflow.id() == id && subflow.is_backup())
    }

    /// Takes as much of `data` as the send buffer holds; gives the bytes taken.
    pub fn write(&mut self, data: Bytes) -> usize {
        let offered = data.len();
        let taken = self.sender.buffer.write(data);
        self.life.write_was_short = taken < offered;
        self.output.pending = true;
        taken
    }

    /// How many bytes [`Self::write`] would take.
    pub fn room(&self) -> u64 {
        self.sender.buffer.space()
    }

    /// Holds small segments back while data is in flight, or not.
    pub fn set_nagle(&mut self, on: bool) {
        self.sender.nagle = on;
        self.output.pending = true;
    }

    /// Changes the application's priority; policies see it from now on. The few that do get settings of their own.
    pub fn set_priority(&mut self, priority: u8) {
        Arc::make_mut(&mut self.config).priority = priority.clamp(1, 6);
    }

    /// Tells policies for how long the peer's player can go on with what it has; none: it is not known.
    pub fn set_play_out_left(&mut self, now: Instant, left: Option<Duration>) {
        self.sender.play_out_ends = left.map_or(Instant::NEVER, |left| now + left);
        self.output.pending = true;
    }

    /// The next bytes in order.
    pub fn read(&mut self, now: Instant, max: usize) -> Option<Bytes> {
        let max = if self.partial.is_some() { self.readable_until_gap(max) } else { max };
        let bytes = self.receiver.buffer.read(now, max);
        self.after_read(now);
        bytes
    }

    pub(super) fn after_read(&mut self, now: Instant) {
        if !self.has_something_to_read() {
            self.life.readable_announced = false;
        }
        self.update_window();
        self.announce_end();
        self.finish_if_done(now);
        if let Some(cause) = self.life.verdict {
            self.conclude(cause);
        }
    }

    /// Tells the peer of a window that has grown much since it was last told.
    pub(super) fn update_window(&mut self) {
        let offered = self.receiver.advertised_edge.saturating_sub(self.receiver.buffer.next());
        let possible = self.receiver.buffer.window();
        if offered * 2 <= self.receiver.buffer.size() && possible >= offered * 2 && possible > 0 {
            self.subflows.iter_mut().filter(|s| s.state.can_receive()).for_each(|s| s.receiver.acknowledge_now());
            self.output.pending = true;
        }
    }

    /// How the connection will have ended, once the application has read what is there; none if it is not over.
    pub fn verdict(&self) -> Option<CloseCause> {
        self.life.verdict
    }

    /// Whether our direction is closed.
    pub fn write_closed(&self) -> bool {
        self.life.write_closed()
    }

    /// The connection's timestamp clock, milliseconds: one for all subflows.
    pub(super) fn stamp(&self, now: Instant) -> u32 {
        self.stamp_clock().stamp(now)
    }

    pub(super) fn stamp_clock(&self) -> StampClock {
        StampClock { offset: self.identity.stamp_offset, drift: self.config.tcp.timestamp_drift }
    }

    /// One of its subflows, and what that subflow's input and output needs of the rest.
    pub(super) fn subflow_in_context(&mut self, now: Instant, index: usize) -> Option<(&mut Subflow, Context<'_>)> {
        let stamp = self.stamp(now);
        let subflow = self.subflows.get_mut(index)?;
        Some((subflow, Context { now, config: &self.config.tcp, congestion: &mut *self.congestion, stamp }))
    }

    pub(super) fn index_of(&self, id: SubflowId) -> Option<usize> {
        self.subflows.iter().position(|subflow| subflow.id() == id)
    }

    pub(super) fn subflow_mut(&mut self, id: SubflowId) -> Option<&mut Subflow> {
        self.subflows.iter_mut().find(|subflow| subflow.id() == id)
    }

    /// Window scale that lets the largest buffer be advertised (RFC 7323, section 2.3).
    pub(super) fn receive_scale(&self) -> u8 {
        let largest = match self.config.receive_buffer {
            BufferSize::Fixed(size) => size,
            BufferSize::Auto { initial, max } => max.max(initial),
        };
        (0..14).find(|shift| largest >> shift <= 0xffff).unwrap_or(14)
    }

    /// Option space that MPTCP takes on data segments.
    pub(super) fn mptcp_option_space(&self) -> u32 {
        if self.association.protocol == Protocol::Tcp { 0 } else { MAPPING_SPACE }
    }

    /// The sending side as policies see it.
    pub fn view(&self, now: Instant) -> ConnectionView {
        let una = self.sender.una();
        ConnectionView {
            id: self.id,
            now,
            data_una: una,
            data_nxt: self.sender.data_nxt,
            unsent: self.sender.unsent(),
            window_left: self.sender.window_left(),
            window: self.sender.window_edge.saturating_sub(una),
            at_end: self.life.write_closed(),
            backlogged: self.is_backlogged(),
            priority: self.config.priority,
            play_out_left: (self.sender.play_out_ends != Instant::NEVER).then(|| self.sender.play_out_ends.since(now)),
        }
    }

    /// Whether the application waits for space: it was refused some, or has not had time to use what it got.
    pub(super) fn is_backlogged(&self) -> bool {
        let unsent = self.sender.unsent();
        !self.life.write_closed() && (self.life.write_was_short || unsent > self.sender.buffer.limit() / 2)
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
            next: self.receiver.buffer.next(),
            readable: self.receiver.buffer.readable(),
            out_of_order: self.receiver.buffer.out_of_order(),
            buffer: self.receiver.buffer.size(),
        }
    }

    /// Its counters.
    pub fn stats(&self) -> ConnectionStats {
        let mut stats = self.stats.with(self.sender.una(), self.receiver.buffer.next());
        if let Some(partial) = &self.partial {
            partial.report(&mut stats);
            stats.worst_path_of_peer = self.worst_path_of_peer();
        }
        stats
    }

    /// The longest smoothed round trip of the subflows that carry data, at least 10 ms.
    pub(super) fn round_trip(&self) -> Duration {
        let usable = self.subflows.iter().filter(|subflow| subflow.is_usable());
        usable.map(|subflow| subflow.rtt.smoothed()).max().unwrap_or_default().max(Duration::from_millis(10))
    }

    /// Continues as plain TCP; tells the application why.
    pub(super) fn note_fallback(&mut self, cause: FallbackCause) {
        if self.life.introduced() {
            self.output.notify(Event::FellBack(self.id, cause));
        } else {
            self.life.untold_fallback = Some(cause);
        }
    }
}
