//! A daemon that steers the connections of a host of the lab: it sees what Linux's counters tell, ten times a second,
//! and changes priorities, as `anabranch steer` does. What it thinks is compared with what the engine knows.

use crate::scenario::Scenario;
use crate::scenario::model::Heading;
use anabranch_mptcp::{ConnectionInfo, Endpoint, SubflowInfo, TcpState as State};
use anabranch_policy::ids::{ConnectionId, SubflowId};
use anabranch_policy::path_manager::{self, PathAction};
use anabranch_policy::table::build;
use anabranch_policy::time::{Duration, Instant};
use anabranch_policy::view::{Phase, SubflowState, SubflowView};
use anabranch_settings::contender::{Contender, SteeredEnd};
use anabranch_settings::diagnostic::Diagnostic;
use anabranch_sim::{HostId, Supervisor, World};
use anabranch_steering::command::{Command, Outcome};
use anabranch_steering::estimator::Blocked;
use anabranch_steering::sample::{
    Bytes, CaState, Chronographs, ConnectionSample, Endpoints, HostSample, Last, Owner, Segments, SubflowSample,
    TcpState, Token,
};
use anabranch_steering::settings::{Control, Settings};
use anabranch_steering::steering::Steering;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

/// The kernel's "no threshold yet".
const NO_THRESHOLD: u32 = 0x7fff_ffff;
/// Samples that the truth is averaged over: as many as the estimator remembers.
const REMEMBERED: usize = 8;
/// Share of the time in which a connection is blocked if it is called so.
const BLOCKED: f64 = 0.1;

/// What a daemon did, and how its estimator did.
#[derive(Clone, Copy, Debug, Default)]
pub struct Tally {
    demotions: u64,
    /// Samples of all connections, and those with a demoted path.
    taken: u64,
    demoted: u64,
    /// By whether the connection was blocked, and whether the estimator said so.
    samples: [[u64; 2]; 2],
}

/// Adds the daemon of a contender, if it has one.
pub fn add(
    world: &mut World,
    scenario: &Scenario,
    contender: &Contender,
    (client, server): (HostId, HostId),
) -> Result<Option<Rc<RefCell<Tally>>>, Diagnostic> {
    let Some(steered) = contender.steered.as_ref().filter(|_| contender.multipath) else { return Ok(None) };
    let manager = build(path_manager::TABLE, &steered.manager.name, &steered.manager.settings)
        .map_err(|error| Diagnostic::plain(format!("{}: {error}", contender.name)))?;
    let (sender, receiver) = match scenario.heading {
        Heading::Upload => (client, server),
        Heading::Download => (server, client),
    };
    let host = match steered.end {
        SteeredEnd::Sender => sender,
        SteeredEnd::Receiver => receiver,
    };
    let settings = Settings { control: Control::Priorities, ..Settings::default() };
    let tally = Rc::new(RefCell::new(Tally::default()));
    let daemon = Daemon {
        steering: Steering::new(manager, settings),
        interval: settings.interval,
        subflows: BTreeMap::new(),
        connections: BTreeMap::new(),
        observed: Instant::ZERO,
        acted: Instant::ZERO,
        tally: Rc::clone(&tally),
    };
    world.add_supervisor(host, Box::new(daemon));
    Ok(Some(tally))
}

/// Metrics of a run with a daemon.
pub fn metrics(tally: &Rc<RefCell<Tally>>) -> Vec<(String, f64)> {
    let tally = *tally.borrow();
    let [[unblocked_seen, imagined], [missed, seen]] = tally.samples;
    let all = [
        ("demotions", tally.demotions),
        ("blocked_seen", seen),
        ("blocked_missed", missed),
        ("blocked_imagined", imagined),
        ("unblocked_seen", unblocked_seen),
    ];
    let mut metrics: Vec<(String, f64)> =
        all.into_iter().map(|(name, count)| (name.to_owned(), count as f64)).collect();
    if tally.taken > 0 {
        metrics.push(("demoted".to_owned(), tally.demoted as f64 / tally.taken as f64 * 100.0));
    }
    metrics
}

/// What the engine does not count of a subflow.
#[derive(Clone, Copy, Debug, Default)]
struct Busy {
    now: bool,
    total: Duration,
}

/// What only the engine knows of a connection.
#[derive(Clone, Debug, Default)]
struct Truth {
    blocked: bool,
    /// Since the last sample.
    time: Duration,
    /// Shares of the time blocked, of the last intervals.
    shares: Vec<f64>,
}

struct Daemon {
    steering: Steering,
    interval: Duration,
    subflows: BTreeMap<(ConnectionId, SubflowId), Busy>,
    connections: BTreeMap<ConnectionId, Truth>,
    observed: Instant,
    acted: Instant,
    tally: Rc<RefCell<Tally>>,
}

impl Supervisor for Daemon {
    fn interval(&self) -> Duration {
        self.interval
    }

    fn act(&mut self, now: Instant, endpoint: &mut Endpoint) {
        self.pass(now);
        let sample = self.sample(now, endpoint);
        self.steering.handle_sample(&sample);
        self.compare(now, endpoint);
        self.acted = now;
        while let Some(command) = self.steering.poll_command() {
            let outcome = self.carry_out(now, endpoint, command);
            self.steering.handle_outcome(now, command, outcome);
        }
    }

    fn observe(&mut self, now: Instant, endpoint: &Endpoint) {
        self.pass(now);
        for id in endpoint.connection_ids() {
            let views = endpoint.subflow_views(now, id);
            for view in &views {
                let busy = self.subflows.entry((id, view.id)).or_default();
                busy.now = view.in_flight + view.queued > 0;
            }
            let blocked = endpoint.connection_view(now, id).is_some_and(|connection| {
                let waits = connection.unsent > 0 || connection.backlogged;
                waits && views.iter().any(is_kept_idle)
            });
            self.connections.entry(id).or_default().blocked = blocked;
        }
    }
}

/// Active, with nothing to send and space in its congestion window.
fn is_kept_idle(view: &SubflowView) -> bool {
    view.state == SubflowState::Established && !view.backup && view.in_flight + view.queued == 0 && view.has_room()
}

impl Daemon {
    /// Adds the time since the last observation to what was true at it.
    fn pass(&mut self, now: Instant) {
        let span = now.since(core::mem::replace(&mut self.observed, now));
        self.subflows.values_mut().filter(|busy| busy.now).for_each(|busy| busy.total += span);
        self.connections.values_mut().filter(|truth| truth.blocked).for_each(|truth| truth.time += span);
    }

    fn sample(&self, now: Instant, endpoint: &Endpoint) -> HostSample {
        let one = |id: ConnectionId| {
            let info = endpoint.info(now, id)?;
            let token = Token(info.token?);
            let mut subflows: Vec<SubflowSample> = info
                .subflows
                .iter()
                .filter(|subflow| !matches!(subflow.state, State::TimeWait))
                .map(|subflow| self.subflow(id, subflow))
                .collect();
            subflows.sort_by_key(|subflow| subflow.endpoints);
            let ConnectionInfo { write_seq, snd_una, rcv_nxt, .. } = info;
            Some(ConnectionSample {
                token,
                fallback: info.fell_back,
                closing: false,
                write_seq,
                snd_una,
                rcv_nxt,
                subflows,
            })
        };
        let mut connections: Vec<ConnectionSample> = endpoint.connection_ids().filter_map(one).collect();
        connections.sort_by_key(|connection| connection.token);
        HostSample { at: now, connections }
    }

    fn subflow(&self, connection: ConnectionId, info: &SubflowInfo) -> SubflowSample {
        let mss = u64::from(info.snd_mss.max(1));
        let segments = |bytes: u64| u32::try_from(bytes.div_ceil(mss)).unwrap_or(u32::MAX);
        let backoff = u8::try_from(info.retransmits).unwrap_or(u8::MAX);
        let unacked = segments(info.bytes.sent.saturating_sub(info.bytes.acked));
        let busy = self.subflows.get(&(connection, info.identity.id)).copied().unwrap_or_default();
        SubflowSample {
            endpoints: Endpoints { local: info.identity.local, remote: info.identity.remote },
            local_id: info.identity.local_address.0,
            remote_id: info.identity.remote_address.0,
            backup_local: info.priority.backup,
            backup_remote: info.priority.request_bkup,
            owner: Owner::default(),
            state: match info.state {
                State::SynSent | State::SynReceived => TcpState::Opening,
                State::Established => TcpState::Established,
                _ => TcpState::Closing,
            },
            ca_state: match info.phase {
                Phase::SlowStart | Phase::CongestionAvoidance => CaState::Open,
                Phase::FastRecovery => CaState::Recovery,
                Phase::TimeoutRecovery => CaState::Loss,
            },
            snd_mss: info.snd_mss,
            snd_cwnd: segments(info.snd_cwnd),
            snd_ssthresh: info.snd_ssthresh.map_or(NO_THRESHOLD, segments),
            segments: Segments {
                unacked,
                sacked: 0,
                lost: unacked.saturating_sub(segments(info.in_flight)),
                retrans: 0,
                total_retrans: segments(info.bytes.retrans),
            },
            retransmits: backoff,
            rtt: info.round_trip.rtt,
            rttvar: info.round_trip.rttvar,
            min_rtt: Some(info.round_trip.min_rtt).filter(|least| !least.is_zero()),
            rto: info.round_trip.rto * (1 << backoff.min(16)),
            backoff,
            last: Last {
                data_sent: info.last.data_sent.unwrap_or(Duration::MAX),
                ack_recv: info.last.progress,
                data_recv: info.last.recv,
            },
            pacing_rate: info.pacing_rate,
            delivery_rate: Some(info.delivery_rate),
            delivery_rate_app_limited: info.delivery_rate_app_limited,
            bytes: Bytes {
                acked: info.bytes.acked,
                received: info.bytes.received,
                sent: Some(info.bytes.sent + info.bytes.retrans),
                retrans: Some(info.bytes.retrans),
                notsent: Some(u32::try_from(info.bytes.notsent).unwrap_or(u32::MAX)),
            },
            chronographs: Chronographs { busy_time: busy.total, ..Chronographs::default() },
            snd_wnd: Some(u32::try_from(info.snd_wnd).unwrap_or(u32::MAX)),
        }
    }

    /// Compares the estimator with the engine, in each connection that has lasted long enough.
    fn compare(&mut self, now: Instant, endpoint: &Endpoint) {
        let interval = now.since(self.acted).as_secs_f64();
        let mut tally = self.tally.borrow_mut();
        for status in self.steering.connections() {
            tally.taken += 1;
            tally.demoted += u64::from(status.subflows.iter().any(|subflow| subflow.suspended));
            let same = |id: &ConnectionId| endpoint.info(now, *id).and_then(|info| info.token) == Some(status.token.0);
            let Some(truth) = endpoint.connection_ids().find(same).and_then(|id| self.connections.get_mut(&id)) else {
                continue;
            };
            let time = core::mem::take(&mut truth.time).as_secs_f64();
            if truth.shares.len() == REMEMBERED {
                truth.shares.remove(0);
            }
            truth.shares.push(if interval > 0.0 { time / interval } else { 0.0 });
            if truth.shares.len() == REMEMBERED {
                let share = truth.shares.iter().sum::<f64>() / REMEMBERED as f64;
                let (is, said) = (usize::from(share > BLOCKED), usize::from(status.blocked != Blocked::No));
                tally.samples[is][said] += 1;
            }
        }
    }

    fn carry_out(&mut self, now: Instant, endpoint: &mut Endpoint, command: Command) -> Outcome {
        let Command::SetBackup { token, endpoints, backup } = command else { return Outcome::Unsupported };
        let found = endpoint.connection_ids().find_map(|id| {
            let info = endpoint.info(now, id).filter(|info| info.token == Some(token.0))?;
            let is_it = |subflow: &&SubflowInfo| {
                (subflow.identity.local, subflow.identity.remote) == (endpoints.local, endpoints.remote)
            };
            Some((id, info.subflows.iter().find(is_it)?.identity.id))
        });
        let Some((connection, subflow)) = found else { return Outcome::Refused(2) };
        self.tally.borrow_mut().demotions += u64::from(backup);
        if endpoint.carry_out_action(now, PathAction::SetBackup { connection, subflow, backup }) {
            Outcome::Done
        } else {
            Outcome::Refused(22)
        }
    }
}
