//! A connection as it is known from events and samples.

use crate::attempts::Attempts;
use crate::estimator::{Estimator, Reading};
use crate::sample::{ConnectionSample, Endpoints, SubflowSample, TcpState};
use crate::status::ClosedSubflow;
use crate::subflow::Subflow;
use anabranch_policy::ids::{AddressId, ConnectionId, SubflowId};
use anabranch_policy::path_manager::{CloseReason, PathAction, Role};
use anabranch_policy::time::{Duration, Instant};
use anabranch_policy::view::{ConnectionView, SubflowView};
use core::net::SocketAddr;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Most subflows of a connection that are known.
pub const MOST_SUBFLOWS: usize = 32;
/// Most announced addresses of a peer.
const MOST_REMOTES: usize = 64;
/// Closed subflows that are remembered.
const MOST_CLOSED: usize = 8;
/// Samples in a row without it after which a connection or a subflow is taken for closed. One is not enough: a sample
/// is collected while connections begin.
const MISSING: u8 = 2;

/// What happened to a subflow.
#[derive(Clone, Copy, Debug)]
pub(crate) enum SubflowChange {
    Established { id: SubflowId, local: AddressId, remote: AddressId, backup: bool },
    Closed { id: SubflowId, local: AddressId, remote: AddressId, reason: CloseReason },
    TimedOut(SubflowId),
}

/// A connection.
#[derive(Debug)]
pub(crate) struct Connection {
    pub id: ConnectionId,
    pub role: Role,
    pub initial: Endpoints,
    /// The path manager knows it.
    pub told: bool,
    pub fallback: bool,
    /// See [`ConnectionSample::closing`].
    pub closing: bool,
    /// Subflows of IPv6 are possible. A connection that began by IPv4 may have a socket of IPv6, which samples tell.
    pub takes_ipv6: bool,
    pub adopted: bool,
    /// Consecutive samples without it.
    pub missing: u8,
    /// In order of id.
    pub subflows: Vec<Subflow>,
    /// Addresses that the peer announced, by its identifiers.
    pub remotes: BTreeMap<u8, SocketAddr>,
    /// Addresses of ours that we told to announce.
    pub announced: BTreeSet<AddressId>,
    /// What the path manager asked for, and would take a path that there is by another address.
    pub postponed: Vec<PathAction>,
    pub attempts: Attempts,
    pub closed: VecDeque<ClosedSubflow>,
    pub estimator: Estimator,
    /// When the path manager is measured for next, and told again that the connection is blocked.
    pub next_measured: Instant,
    pub next_blocked: Instant,
    /// Bytes per second at data level.
    pub goodput: f64,
    next_subflow: u32,
    last: Option<Last>,
}

/// The data level in the last sample.
#[derive(Clone, Copy, Debug)]
struct Last {
    at: Instant,
    write_seq: u64,
    snd_una: u64,
    rcv_nxt: u64,
}

impl Connection {
    pub fn new(id: ConnectionId, role: Role, initial: Endpoints) -> Self {
        Self {
            id,
            role,
            initial,
            told: false,
            fallback: false,
            closing: false,
            takes_ipv6: initial.remote.ip().to_canonical().is_ipv6(),
            adopted: false,
            missing: 0,
            subflows: Vec::new(),
            remotes: BTreeMap::new(),
            announced: BTreeSet::new(),
            postponed: Vec::new(),
            attempts: Attempts::default(),
            closed: VecDeque::new(),
            estimator: Estimator::default(),
            next_measured: Instant::ZERO,
            next_blocked: Instant::ZERO,
            goodput: 0.0,
            next_subflow: 0,
            last: None,
        }
    }

    /// What was postponed; nothing of a connection that the path manager does not know, or that fell back.
    pub fn take_postponed(&mut self) -> Vec<PathAction> {
        if self.told && !self.fallback { core::mem::take(&mut self.postponed) } else { Vec::new() }
    }

    /// The peer announced an address. Returns whether it is kept.
    pub fn announce(&mut self, id: u8, remote: SocketAddr) -> bool {
        let room = self.remotes.len() < MOST_REMOTES || self.remotes.contains_key(&id);
        if room {
            self.remotes.insert(id, remote);
        }
        room
    }

    /// The peer's address with this identifier.
    pub fn remote(&self, id: AddressId) -> Option<SocketAddr> {
        if id == AddressId(0) { Some(self.initial.remote) } else { self.remotes.get(&id.0).copied() }
    }

    /// The peer's identifier of an address: 0 of the initial one, else the announced one or that of the subflow.
    fn remote_id(&self, remote: SocketAddr, said: u8) -> AddressId {
        if remote.ip() == self.initial.remote.ip() {
            return AddressId(0);
        }
        let announced = self.remotes.iter().find(|(_, known)| known.ip() == remote.ip());
        AddressId(announced.map_or(said, |(id, _)| *id))
    }

    /// The identifiers by which the peer knows an address of ours. That of the first subflow's is 0 (RFC 8684, section 3.4.1), for
    /// joins that are accepted there too. What was announced before the connection was adopted is not known.
    pub fn identifiers(&self, local: AddressId) -> BTreeSet<u8> {
        let own = self.subflows.iter().filter(|subflow| subflow.local == local);
        let of = |subflow: &Subflow| match &subflow.sample {
            _ if subflow.endpoints == self.initial => 0,
            Some(sample) => sample.local_id,
            None => local.0,
        };
        let may_be_announced = self.adopted || self.announced.contains(&local);
        own.map(of).chain(may_be_announced.then_some(local.0)).collect()
    }

    pub fn subflow(&self, id: SubflowId) -> Option<&Subflow> {
        self.subflows.iter().find(|subflow| subflow.id == id)
    }

    pub fn subflow_mut(&mut self, id: SubflowId) -> Option<&mut Subflow> {
        self.subflows.iter_mut().find(|subflow| subflow.id == id)
    }

    pub fn find(&self, endpoints: Endpoints) -> Option<SubflowId> {
        self.subflows.iter().find(|subflow| subflow.endpoints == endpoints).map(|subflow| subflow.id)
    }

    /// The subflow that a close means. The kernel also reports closes without our address, of subflows that it has
    /// forgotten half of: then the ports and the peer's address decide, if only one subflow has them.
    pub fn find_closed(&self, endpoints: Endpoints) -> Option<SubflowId> {
        if !endpoints.local.ip().is_unspecified() {
            return self.find(endpoints);
        }
        let same = |subflow: &&Subflow| {
            subflow.endpoints.remote == endpoints.remote
                && subflow.endpoints.local.port() == endpoints.local.port()
                && endpoints.local.port() != 0
        };
        let mut found = self.subflows.iter().filter(same);
        found.next().filter(|_| found.next().is_none()).map(|subflow| subflow.id)
    }

    /// Adds a subflow. None if there are too many.
    pub fn add(&mut self, now: Instant, endpoints: Endpoints, local: AddressId, remote_id: u8) -> Option<&mut Subflow> {
        if self.subflows.len() >= MOST_SUBFLOWS {
            return None;
        }
        self.attempts.see(endpoints);
        let id = self.allot_subflow();
        let remote = self.remote_id(endpoints.remote, remote_id);
        self.subflows.push(Subflow::new(id, endpoints, local, remote, now));
        self.subflows.last_mut()
    }

    /// An identifier of a subflow that never was.
    pub fn allot_subflow(&mut self) -> SubflowId {
        self.next_subflow += 1;
        SubflowId(self.next_subflow - 1)
    }

    /// Forgets an attempt that gives way to another: neither it nor its end is told.
    pub fn give_up(&mut self, endpoints: Endpoints) {
        self.subflows.retain(|subflow| subflow.endpoints != endpoints);
        self.attempts.give_up(endpoints);
    }

    /// Removes a subflow.
    pub fn remove(&mut self, now: Instant, id: SubflowId, reason: CloseReason) -> Option<SubflowChange> {
        let at = self.subflows.iter().position(|subflow| subflow.id == id)?;
        let gone = self.subflows.remove(at);
        if self.closed.len() == MOST_CLOSED {
            self.closed.pop_front();
        }
        self.closed.push_back(ClosedSubflow { id, at: now, endpoints: gone.endpoints, reason, last: gone.sample });
        Some(SubflowChange::Closed { id, local: gone.local, remote: gone.remote, reason })
    }

    /// Whether the sample is of another connection that has this one's token.
    pub fn was_replaced_by(&self, sample: &ConnectionSample) -> bool {
        let shared = |subflow: &SubflowSample| self.find(subflow.endpoints).is_some();
        let backwards = self.last.is_some_and(|last| {
            sample.snd_una < last.snd_una || sample.rcv_nxt < last.rcv_nxt || sample.write_seq < last.write_seq
        });
        backwards && !sample.subflows.is_empty() && !sample.subflows.iter().any(shared)
    }

    /// Takes the data level of a sample, and lets the estimator judge. Returns whether anything moves or waits.
    pub fn observe(&mut self, now: Instant, sample: &ConnectionSample) -> bool {
        let held = sample.write_seq.saturating_sub(sample.snd_una);
        let before = self.last.replace(Last {
            at: now,
            write_seq: sample.write_seq,
            snd_una: sample.snd_una,
            rcv_nxt: sample.rcv_nxt,
        });
        let moved = before.map_or(0, |last| {
            sample.snd_una.saturating_sub(last.snd_una) + sample.rcv_nxt.saturating_sub(last.rcv_nxt)
        });
        let seconds = before.map_or(0.0, |last| now.since(last.at).as_secs_f64());
        self.goodput = if seconds > 0.0 { moved as f64 / seconds } else { 0.0 };
        let active = || self.subflows.iter().filter(|subflow| subflow.is_active());
        let windows = active().filter_map(|subflow| subflow.sample.as_ref()?.snd_wnd.map(u64::from));
        let segments = active().filter_map(|subflow| Some(u64::from(subflow.sample.as_ref()?.snd_mss)));
        let reading = Reading {
            held,
            least_busy: active().filter_map(|subflow| subflow.busy_share).min_by(f64::total_cmp),
            window: windows.max(),
            mss: segments.max().unwrap_or(1),
        };
        self.estimator.observe(&reading);
        held > 0 || moved > 0
    }

    /// Takes the counters of a connection that fell back, of which nothing is decided.
    pub fn count(&mut self, now: Instant, sample: &ConnectionSample) {
        let span = self.span(now);
        for sampled in &sample.subflows {
            if let Some(subflow) = self.find(sampled.endpoints).and_then(|id| self.subflow_mut(id)) {
                let _ = subflow.observe(now, span, sampled.clone());
            }
        }
        self.observe(now, sample);
    }

    /// Time since the last sample.
    pub fn span(&self, now: Instant) -> Duration {
        self.last.map_or(Duration::ZERO, |last| now.since(last.at))
    }

    /// Counts the subflows that a sample lacks. Those that it lacks for too long are removed; at once if `all`.
    pub fn miss(&mut self, now: Instant, sample: &ConnectionSample, all: bool) -> Vec<SubflowChange> {
        let mut gone = Vec::new();
        for subflow in &mut self.subflows {
            if sample.subflows.iter().any(|sampled| sampled.endpoints == subflow.endpoints) {
                continue;
            }
            subflow.missing += 1;
            if subflow.missing >= MISSING || all {
                let silent = subflow.sample.as_ref().is_none_or(|last| last.retransmits > 0 || last.backoff > 0);
                gone.push((subflow.id, if silent { CloseReason::TimedOut } else { CloseReason::Reset }));
            }
        }
        gone.into_iter().filter_map(|(id, reason)| self.remove(now, id, reason)).collect()
    }

    /// The same for the connection as a whole: whether it is over.
    pub fn is_missed(&mut self, all: bool) -> bool {
        self.missing += 1;
        self.missing >= MISSING || all
    }

    pub fn subflow_views(&self, now: Instant) -> Vec<SubflowView> {
        self.subflows.iter().filter_map(|subflow| subflow.view(now)).collect()
    }

    /// As a path manager sees it. `data_nxt` is not exported: what the subflows hold is taken to follow `data_una`, so
    /// it is too low where data beyond a hole was acknowledged. The window is the largest that a subflow has, and
    /// nothing of it is left while the estimator says so. The program waits for space while the estimator says that.
    /// Whether the stream ends is not known.
    pub fn view(&self, now: Instant, shut: bool, backlogged: bool) -> ConnectionView {
        let (written, data_una, data_received) =
            self.last.map_or((0, 0, 0), |last| (last.write_seq, last.snd_una, last.rcv_nxt));
        let samples = || self.subflows.iter().filter_map(|subflow| subflow.sample.as_ref());
        let on_subflow = |sample: &SubflowSample| {
            u64::from(sample.segments.unacked) * u64::from(sample.snd_mss)
                + u64::from(sample.bytes.notsent.unwrap_or(0))
        };
        let assigned: u64 = samples().map(on_subflow).sum();
        let data_nxt = written.min(data_una + assigned).max(data_una);
        let window = samples().filter_map(|sample| sample.snd_wnd).max().map_or(u64::MAX, u64::from);
        ConnectionView {
            id: self.id,
            now,
            data_una,
            data_nxt,
            data_received,
            unsent: written.saturating_sub(data_nxt),
            window_left: if shut { 0 } else { window.saturating_sub(data_nxt - data_una) },
            window,
            at_end: false,
            backlogged,
            priority: 1,
            play_out_left: None,
        }
    }
}

/// The role in a connection that began unseen: the end whose port is the same on all subflows accepted it, and of one
/// subflow the end with the lower port.
pub(crate) fn guess_role(sample: &ConnectionSample) -> Role {
    let ports: Vec<(u16, u16)> =
        sample.subflows.iter().map(|s| (s.endpoints.local.port(), s.endpoints.remote.port())).collect();
    let Some((local, remote)) = ports.first().copied() else { return Role::Client };
    let local_same = ports.iter().all(|(port, _)| *port == local);
    let remote_same = ports.iter().all(|(_, port)| *port == remote);
    match (local_same, remote_same) {
        (true, false) => Role::Server,
        (false, true) => Role::Client,
        _ if local < remote => Role::Server,
        _ => Role::Client,
    }
}

/// Whether a subflow can be said to be established.
pub(crate) fn is_established(sample: &SubflowSample) -> bool {
    sample.state == TcpState::Established
}
