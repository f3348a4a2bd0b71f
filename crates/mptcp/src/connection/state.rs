//! State of a connection, split into parts that own it, and queries of the whole.

use super::association::{Association, Protocol};
use super::identity::ConnectionIdentity;
use super::life::Life;
use super::measurement::Measurement;
use super::opening::{Joins, Opening};
use super::output::{Output, Workspace};
use super::partial::Partial;
use super::race::Race;
use super::receiver::DataReceiver;
use super::scheduling::Scheduling;
use super::sender::DataSender;
use super::signalling::Signalling;
use super::subflows::{Handle, Subflows};
use super::timer_table::ConnectionTimers;
use crate::config::{BufferSize, ConnectionConfig};
use crate::event::{CloseCause, Event, FallbackCause};
use crate::stamp_clock::StampClock;
use crate::stats::Totals;
use crate::subflow::Context;
use crate::subflow::{Identity, MAPPING_SPACE, Subflow};
use anabranch_policy::congestion::CongestionControl;
use anabranch_policy::ids::{ConnectionId, SubflowId};
use anabranch_policy::path_manager::Role;
use anabranch_policy::time::{Duration, Instant};
use anabranch_policy::view::{ConnectionView, SubflowView};
use core::net::{IpAddr, SocketAddr};
use std::sync::Arc;

pub struct Connection {
    pub(super) id: ConnectionId,
    pub(super) config: Arc<ConnectionConfig>,
    pub(super) identity: ConnectionIdentity,
    pub(super) association: Association,
    pub(super) subflows: Subflows,
    pub(super) joins: Joins,
    /// Attempts to open it, if there may be several, until one is answered.
    pub(super) race: Option<Box<Race>>,
    pub(super) congestion: Box<dyn CongestionControl>,
    pub(super) scheduling: Scheduling,
    pub(super) sender: DataSender,
    pub(super) receiver: DataReceiver,
    pub(super) life: Life,
    pub(super) signalling: Signalling,
    pub(super) measurement: Measurement,
    /// Messages and abandoned data, if the connection has either.
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
    pub(super) fn is_initial(&self, handle: Handle) -> bool {
        self.subflows[handle].id() == SubflowId(0)
    }

    /// As a receiver measures it, from echoed timestamps or handshakes; at least 10 ms.
    pub(super) fn longest_round_trip(&self) -> Duration {
        let each = self.subflows.iter().map(|s| s.receiver.round_trip.max(s.rtt.smoothed()));
        each.max().unwrap_or_default().max(Duration::from_millis(10))
    }

    pub(super) fn new(opening: Opening, role: Role, protocol: Protocol) -> Self {
        let policies = &opening.config.policies;
        let partial = Partial::of(opening.config.framing, (policies.reliability)());
        // If a mapping may have a hole, its checksum cannot be verified.
        let checksum = opening.config.checksum && !partial.as_ref().is_some_and(|partial| partial.abandons());
        Self {
            id: opening.id,
            identity: ConnectionIdentity::new(&opening, role),
            association: Association::new(protocol, checksum),
            subflows: Subflows::default(),
            joins: Joins::default(),
            race: None,
            congestion: (policies.congestion)(),
            scheduling: Scheduling::new((policies.scheduler)(), opening.config.segments_per_mapping),
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

    pub fn id(&self) -> ConnectionId {
        self.id
    }

    pub fn role(&self) -> Role {
        self.identity.role
    }

    pub fn protocol(&self) -> Protocol {
        self.association.protocol
    }

    /// Our token, if MPTCP was offered.
    pub fn token(&self) -> Option<u32> {
        self.config.multipath.then_some(self.identity.local.token)
    }

    /// Why it ended, if it has.
    pub fn closed(&self) -> Option<CloseCause> {
        self.life.closed
    }

    /// Whether nothing is left to do, so that it can be removed.
    pub fn is_over(&self) -> bool {
        self.life.closed.is_some() && self.subflows.is_empty() && self.output.is_empty()
    }

    /// Whether it has no notice and is not over.
    pub fn is_quiet(&self) -> bool {
        !self.output.has_notices() && self.life.closed.is_none()
    }

    /// Whether an operation had no effect that concerns others: nothing is to be sent or notified.
    pub fn is_at_rest(&self) -> bool {
        self.is_quiet() && !self.output.pending && !self.output.has_trace()
    }

    /// Whether an input left no notice except that data is readable, and no subflow to sweep, as nearly every segment.
    #[inline]
    pub(crate) fn is_settled(&self) -> bool {
        !self.subflows.lost_members()
            && !self.output.has_notices_but_readable()
            && self.life.closed.is_none()
            && !self.output.has_trace()
    }

    /// The application knows of the connection before its handshake is complete.
    pub(crate) fn introduce(&mut self) {
        self.life.introduce();
    }

    /// Whether the handshake of its first subflow is incomplete.
    pub fn is_half_open(&self) -> bool {
        self.life.closed.is_none() && self.subflows.first().is_some_and(|subflow| subflow.state.is_opening())
    }

    /// Remote address and port of the initial subflow.
    pub fn initial_remote(&self) -> SocketAddr {
        self.identity.initial_remote
    }

    /// Local address of the initial subflow.
    pub fn initial_local(&self) -> IpAddr {
        self.identity.initial_local
    }

    /// Whether the peer does not allow joins to its initial address.
    pub fn remote_denies_joins(&self) -> bool {
        self.identity.remote_denies_joins
    }

    /// The identities of its subflows, in order of id.
    pub fn identities(&self) -> impl Iterator<Item = &Identity> {
        self.subflows.iter().map(|subflow| &subflow.identity)
    }

    /// Smoothed round-trip time of the initial subflow; zero before the first sample, and once it is gone.
    pub fn initial_rtt(&self) -> Duration {
        let initial = self.subflows.iter().find(|subflow| subflow.id() == SubflowId(0));
        initial.map(|subflow| subflow.rtt.smoothed()).unwrap_or_default()
    }

    /// Whether either end made a subflow a backup.
    pub fn is_backup(&self, id: SubflowId) -> bool {
        self.subflows.iter().any(|subflow| subflow.id() == id && subflow.is_backup())
    }

    /// The cause of the end, which is reported once the application has read everything; none if it has not ended.
    pub fn verdict(&self) -> Option<CloseCause> {
        self.life.verdict
    }

    /// Whether our direction is closed.
    pub fn write_closed(&self) -> bool {
        self.life.write_closed()
    }

    /// The connection's timestamp clock in milliseconds, shared by all subflows.
    pub(super) fn stamp(&self, now: Instant) -> u32 {
        self.stamp_clock().stamp(now)
    }

    pub(super) fn stamp_clock(&self) -> StampClock {
        StampClock { offset: self.identity.stamp_offset, drift: self.config.tcp.timestamp_drift }
    }

    /// A subflow, and what it borrows from the connection.
    pub(super) fn subflow_in_context(&mut self, now: Instant, handle: Handle) -> (&mut Subflow, Context<'_>) {
        let clock = self.stamp_clock();
        let subflow = &mut self.subflows[handle];
        (subflow, Context { now, config: &self.config.tcp, congestion: &mut *self.congestion, clock })
    }

    /// After an input: removes the subflows that it closed.
    #[inline]
    pub(crate) fn sweep(&mut self) {
        self.subflows.sweep();
    }

    pub(super) fn subflow_mut(&mut self, id: SubflowId) -> Option<&mut Subflow> {
        self.subflows.handle_of(id).map(|handle| &mut self.subflows[handle])
    }

    /// Window scale with which the largest buffer can be advertised (RFC 7323, section 2.3).
    pub(super) fn receive_scale(&self) -> u8 {
        let largest = match self.config.receive_buffer {
            BufferSize::Fixed(size) => size,
            BufferSize::Auto { initial, max } => max.max(initial),
        };
        (0..14).find(|shift| largest >> shift <= 0xffff).unwrap_or(14)
    }

    /// Option space that MPTCP uses on data segments, in bytes.
    pub(super) fn mptcp_option_space(&self) -> u32 {
        if self.association.protocol == Protocol::Tcp { 0 } else { MAPPING_SPACE }
    }

    /// The sending side, as policies see it.
    pub fn view(&self, now: Instant) -> ConnectionView {
        let una = self.sender.una();
        ConnectionView {
            id: self.id,
            now,
            data_una: una,
            data_nxt: self.sender.data_nxt,
            data_received: self.receiver.buffer.next(),
            unsent: self.sender.unsent(),
            window_left: self.sender.window_left(),
            window: self.sender.window_edge.saturating_sub(una),
            at_end: self.life.write_closed(),
            backlogged: self.is_backlogged(),
            priority: self.config.priority,
            play_out_left: (self.sender.play_out_ends != Instant::NEVER).then(|| self.sender.play_out_ends.since(now)),
        }
    }

    /// Whether the application waits for space: a write was short, or it had no time yet to use the space since.
    pub(super) fn is_backlogged(&self) -> bool {
        let unsent = self.sender.unsent();
        !self.life.write_closed() && (self.life.write_was_short || unsent > self.sender.buffer.limit() / 2)
    }

    /// The subflows as policies see them.
    pub fn subflow_views(&self, views: &mut Vec<SubflowView>) {
        views.clear();
        views.extend(self.subflows.iter().map(|subflow| subflow.view(&*self.congestion, &self.config.tcp)));
    }

    /// The same at an opportunity to send: only what may have changed is updated.
    pub(super) fn refresh_views(&mut self, workspace: &mut Workspace) {
        let known = workspace.views_of.replace(self.id) == Some(self.id);
        let (congestion, config) = (&*self.congestion, &self.config.tcp);
        workspace.changes += 1;
        let changes = workspace.changes;
        let view = |subflow: &Subflow| {
            let mut view = subflow.view(congestion, config);
            view.counters.changes = changes;
            view
        };
        self.subflows.refresh(known, &mut workspace.views, view);
        #[cfg(debug_assertions)]
        {
            let mut anew: Vec<SubflowView> = self.subflows.iter().map(view).collect();
            for (view, known) in anew.iter_mut().zip(&workspace.views) {
                view.counters.changes = known.counters.changes;
            }
            assert_eq!(workspace.views, anew, "a change was not marked");
        }
    }

    /// The longest smoothed round trip of the subflows that carry data, at least 10 ms.
    pub(super) fn round_trip(&self) -> Duration {
        let usable = self.subflows.iter().filter(|subflow| subflow.is_usable());
        usable.map(|subflow| subflow.rtt.smoothed()).max().unwrap_or_default().max(Duration::from_millis(10))
    }

    /// Continues as plain TCP, and tells the application why.
    pub(super) fn report_fallback(&mut self, cause: FallbackCause) {
        if self.life.introduced() {
            self.output.notify(Event::FellBack(self.id, cause));
        } else {
            self.life.untold_fallback = Some(cause);
        }
    }
}
