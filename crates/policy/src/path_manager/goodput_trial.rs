//! Our own, for a scheduler that cannot be replaced: a path that holds the connection back is not used, by trial.
//!
//! A scheduler that fills every path lets a slow one hold back the others: what the slow one carries late blocks the
//! receive window, or the send buffer. Counters tell that a connection is blocked, but not whether it would carry more
//! without a path. The goodput does: a path is suspended for a moment, and stays so if the goodput is larger. Subflows
//! are opened, and opened again, by [`super::full_mesh`].
//!
//! Once per 100 ms, for each connection that always has data waiting. G is the sum over the active paths of what is
//! acknowledged on them per second: unlike what is acknowledged at data level it does not jump when a hole is filled.
//!
//! - **Blocked**: in each of the last two seconds at least three measurements find that nothing of the connection's
//!   window is left, or that the program has more to write and an active path is idle. With `late`, the end that
//!   receives more than it sends takes what is received for G, and for blocked that so much waits for a hole: the sum
//!   over all subflows of what was received exceeds the data in order by four segments, and by what arrives in `late`,
//!   more than at some time before. It does not know the rates below, so it makes the trials that they would spare.
//!   MP_PRIO makes the peer take the path for a backup.
//! - **Trial**: a blocked connection with several active paths whose G does not grow suspends one, the one with the
//!   longest smoothed RTT first, then the others in turn, if the rates of the rest (window over RTT), doubled, reach G.
//!   Each path is ten round trips old, or four and its congestion window and the peer's window have not grown for 1.5.
//!   When what the path holds has arrived (10 s at most), G is measured for 1 s, or eight round trips of the others if that is longer (3 s at
//!   most), and once more if it grows. The path stays suspended if G >= (1 + `gain`) G_before. A trial ends early when G
//!   falls below 0.85 G_before and does not grow.
//! - **Return**: a suspended path returns for such a trial after two pauses, if its rate, doubled, reaches `gain` G, or
//!   when G has fallen below 0.7 of what the trial found. G is measured two of its round trips later. It stays if G >=
//!   (1 + `gain`) G_before; it is suspended again, early, when G falls below 0.85 G_before.
//! - A round of trials that fails, or a return, doubles the pause before the next, up to `longest_pause`; one that
//!   succeeds sets it back.
//! - **Dead**: an active path with data in flight and without progress for `dead_after` (for longer if its
//!   retransmission timeout is longer), while another path made progress, is suspended and closed: the operating system
//!   then reinjects what it holds. It is opened again every 2 s until that works; the suspended one, where closing is
//!   not possible, returns with its first progress.
//! - The last active path is never suspended; if none is left, all return.

mod receiving;
mod settings;

use self::receiving::Receiving;
pub use self::settings::TrialSettings;
use super::full_mesh::FullMesh;
use super::{Measurements, PathAction, PathEvent, PathManager, Role};
use crate::ids::{AddressId, ConnectionId, SubflowId, SubflowMap};
use crate::table::{Reader, SettingError};
use crate::time::{Duration, Instant};
use crate::view::{ConnectionView, SubflowState, SubflowView};
use std::collections::{BTreeMap, VecDeque};

/// Interval of measurements.
const LOOK: Duration = Duration::from_millis(100);
/// Measurements that are remembered: those of two seconds, and one more.
const REMEMBERED: usize = 21;
/// Of so many of the last measurements...
const RECENT: usize = 10;
/// ... so many must find the connection blocked.
const BLOCKED: usize = 3;
/// Time that a trial measures.
const MEASURED: Duration = Duration::from_secs(1);
const MEASURED_AT_MOST: Duration = Duration::from_secs(3);
/// Least and longest time until a trial measures.
const SETTLED: Duration = Duration::from_millis(200);
const SETTLED_AT_MOST: Duration = Duration::from_secs(3);
/// For so long it is waited for what a suspended path holds: a slow one has a queue of seconds, behind which the others stand
/// still.
const DRAINED_AT_MOST: Duration = Duration::from_secs(10);
/// What grows by this factor from one half of a time to the other is not measured yet.
const GROWS: f64 = 1.15;
/// A trial ends early below this share of the goodput before it.
const HOPELESS: f64 = 0.85;
/// Below this share of what a trial found that does not hold any more.
const FELL: f64 = 0.7;
/// Interval between attempts to open a dead path again.
const REOPENED: Duration = Duration::from_secs(2);
/// Pause before the first trial of a return, in pauses.
const FIRST_RETURN: u64 = 2;
/// By this factor the rate of a path may exceed the measured one.
const UNDERESTIMATED: f64 = 2.0;

/// A change that is tried.
#[derive(Clone, Copy, Debug)]
struct Trial {
    subflow: SubflowId,
    /// The path returns; else it is suspended.
    returns: bool,
    /// Goodput before it.
    before: f64,
    begun: Instant,
    earliest: Instant,
    /// The goodput counts from then; none while what the suspended path holds has not arrived.
    from: Option<Instant>,
    length: Duration,
    extended: bool,
}

impl Trial {
    /// Whether its end is known before its time.
    fn is_hopeless(&self, memory: &Memory, now: Instant) -> bool {
        let from = if self.returns { Some(self.begun + SETTLED) } else { self.from };
        let Some(from) = from else { return false };
        let lately = memory.goodput(from.max(now - LOOK * 5), now);
        now.since(from) >= LOOK * 5
            && lately.is_some_and(|goodput| goodput < HOPELESS * self.before)
            && !memory.grows(from, now)
    }
}

/// A measurement.
#[derive(Clone, Copy, Debug)]
struct Point {
    at: Instant,
    acknowledged: u64,
    received: u64,
    blocked: bool,
}

/// What is remembered of a subflow.
#[derive(Clone, Copy, Debug)]
struct Watched {
    /// Since when it has had data and no progress.
    waits_since: Instant,
    /// When it was first seen.
    seen: Instant,
    /// Its congestion window when that last grew, and when it did.
    window: u64,
    grew: Instant,
}

/// A connection.
#[derive(Debug)]
struct Memory {
    role: Role,
    points: VecDeque<Point>,
    trial: Option<Trial>,
    /// Paths that trials suspended, and the goodput then; dead ones are not among them.
    without: SubflowMap<f64>,
    watched: SubflowMap<Watched>,
    /// The largest window of the peer, and since when it is that.
    peer_window: (u64, Instant),
    receiving: Receiving,
    /// Suspended as dead.
    dead: SubflowMap<()>,
    /// Paths whose suspension was tried in vain since the last success.
    vain: SubflowMap<()>,
    /// Dead paths that were closed, and when they are opened again.
    closed: BTreeMap<(AddressId, AddressId), Instant>,
    next_trial: Instant,
    next_return: Instant,
    pause: Duration,
    return_pause: Duration,
    /// Before it a low goodput is no reason for a return.
    next_fall: Instant,
    /// The goodput before the last trial in vain.
    tried: f64,
}

impl Memory {
    fn new(role: Role, pause: Duration) -> Self {
        Self {
            role,
            points: VecDeque::new(),
            trial: None,
            without: SubflowMap::new(),
            watched: SubflowMap::new(),
            peer_window: (0, Instant::ZERO),
            receiving: Receiving::new(),
            dead: SubflowMap::new(),
            vain: SubflowMap::new(),
            closed: BTreeMap::new(),
            next_trial: Instant::ZERO,
            next_return: Instant::ZERO,
            pause,
            return_pause: pause * FIRST_RETURN,
            next_fall: Instant::ZERO,
            tried: 0.0,
        }
    }

    /// Bytes per second from one time to another, as far as there are measurements; none within less than 200 ms.
    fn goodput(&self, from: Instant, to: Instant) -> Option<f64> {
        let first = self.points.iter().find(|point| point.at >= from)?;
        let last = self.points.iter().rev().find(|point| point.at <= to)?;
        let span = last.at.since(first.at);
        // Between two measurements the last is before the first, and with a path its part of the sums goes.
        let acknowledged = last.acknowledged.saturating_sub(first.acknowledged);
        let bytes = acknowledged.max(last.received.saturating_sub(first.received));
        (span >= LOOK * 2).then(|| bytes as f64 / span.as_secs_f64())
    }

    /// Whether the goodput since `from` grows.
    fn grows(&self, from: Instant, now: Instant) -> bool {
        let middle = from + now.since(from) / 2;
        let halves = self.goodput(from, middle).zip(self.goodput(middle, now));
        halves.is_some_and(|(first, second)| second > first * GROWS)
    }

    fn is_blocked(&self) -> bool {
        let hits = |skipped| {
            self.points.iter().rev().skip(skipped).take(RECENT).filter(|point| point.blocked).count() >= BLOCKED
        };
        hits(0) && hits(RECENT)
    }

    fn forget(&mut self, subflow: SubflowId) {
        self.without.remove(subflow);
        self.dead.remove(subflow);
        self.watched.remove(subflow);
        self.receiving.forget(subflow);
        self.vain.remove(subflow);
        if self.trial.is_some_and(|trial| trial.subflow == subflow) {
            self.trial = None;
        }
    }
}

/// The path manager `goodput_trial`.
pub struct GoodputTrial {
    settings: TrialSettings,
    mesh: FullMesh,
    connections: BTreeMap<ConnectionId, Memory>,
}

impl GoodputTrial {
    pub fn new(settings: TrialSettings) -> Self {
        Self { mesh: FullMesh::new(settings.mesh), settings, connections: BTreeMap::new() }
    }

    pub fn build(reader: &mut Reader<'_>) -> Result<Box<dyn PathManager>, SettingError> {
        Ok(Box::new(Self::new(TrialSettings::read(reader)?)))
    }
}

impl PathManager for GoodputTrial {
    fn handle(&mut self, now: Instant, event: &PathEvent<'_>, actions: &mut Vec<PathAction>) {
        self.mesh.handle(now, event, actions);
        match *event {
            PathEvent::ConnectionEstablished { connection, role, .. } => {
                self.connections.insert(connection, Memory::new(role, self.settings.pause));
            }
            PathEvent::ConnectionClosed { connection } => {
                self.connections.remove(&connection);
            }
            PathEvent::SubflowEstablished { connection, local, remote, .. } => {
                if let Some(memory) = self.connections.get_mut(&connection) {
                    memory.closed.remove(&(local, remote));
                    // Another set of paths: nothing is known of it.
                    memory.points.clear();
                    memory.receiving.restart();
                }
            }
            PathEvent::SubflowClosed { connection, subflow, .. } => {
                if let Some(memory) = self.connections.get_mut(&connection) {
                    memory.forget(subflow);
                    memory.points.clear();
                    memory.receiving.restart();
                }
            }
            PathEvent::Measured { connection, subflows } => {
                if let Some(memory) = self.connections.get_mut(&connection.id) {
                    Look { settings: &self.settings, memory, connection, subflows, actions }.decide();
                }
            }
            _ => {}
        }
    }

    fn measurements(&self) -> Measurements {
        Measurements::Every(LOOK)
    }
}

/// A measurement of a connection, and what is done about it.
struct Look<'a> {
    settings: &'a TrialSettings,
    memory: &'a mut Memory,
    connection: &'a ConnectionView,
    subflows: &'a [SubflowView],
    actions: &'a mut Vec<PathAction>,
}

/// Established, and used for new data.
fn is_active(view: &SubflowView) -> bool {
    view.state == SubflowState::Established && !view.backup && !view.suspended
}

fn is_idle(view: &SubflowView) -> bool {
    view.in_flight + view.queued == 0
}

impl Look<'_> {
    fn decide(&mut self) {
        self.record();
        self.watch();
        self.reopen();
        self.bury();
        self.revive();
        if self.memory.trial.is_some() {
            self.judge();
        } else if self.sends_all() && !self.receives() {
            // Nothing waits, so the goodput says nothing of the paths.
            self.memory.points.clear();
        } else {
            self.consider();
        }
    }

    fn active(&self) -> impl Iterator<Item = &SubflowView> {
        self.subflows.iter().filter(|view| is_active(view))
    }

    /// Everything that was written is acknowledged.
    fn sends_all(&self) -> bool {
        self.connection.data_una == self.connection.data_nxt && self.connection.unsent == 0
    }

    /// Whether it receives, and the end that receives makes trials.
    fn receives(&self) -> bool {
        !self.settings.late.is_zero() && self.memory.receiving.is_on(self.connection.now)
    }

    /// Whether data that arrived waits for a path, at the end that receives.
    fn is_held_back(&mut self) -> bool {
        let now = self.connection.now;
        self.memory.receiving.observe(self.connection, self.subflows);
        if self.active().count() < 2 {
            let arrives = self.subflows.iter().filter(|view| self.memory.receiving.may_arrive_on(view.id, now));
            if arrives.count() < 2 {
                self.memory.receiving.settle();
            }
        }
        let mss = self.active().map(|view| u64::from(view.mss)).max().unwrap_or(1);
        let goodput = self.memory.goodput(now - MEASURED, now);
        self.receives()
            && goodput.is_some_and(|goodput| self.memory.receiving.is_held_back(goodput, mss, self.settings.late))
    }

    fn record(&mut self) {
        let shut = self.connection.window_left < self.active().map(|view| u64::from(view.mss)).max().unwrap_or(1);
        let waits = self.connection.unsent > 0 || self.connection.backlogged;
        let blocked = waits && shut || self.connection.backlogged && self.active().any(is_idle);
        let blocked = self.is_held_back() || blocked;
        if self.memory.points.len() == REMEMBERED {
            self.memory.points.pop_front();
        }
        let at = self.connection.now;
        let acknowledged = self.active().map(|view| view.counters.bytes_acked).sum();
        let counts = !self.settings.late.is_zero();
        let received = self.active().filter(|_| counts).map(|view| view.counters.bytes_received).sum();
        self.memory.points.push_back(Point { at, acknowledged, received, blocked });
    }

    fn suspend(&mut self, subflow: SubflowId) {
        self.actions.push(PathAction::Suspend { connection: self.connection.id, subflow });
        self.memory.points.clear();
    }

    fn resume(&mut self, subflow: SubflowId) {
        self.actions.push(PathAction::Resume { connection: self.connection.id, subflow });
        self.memory.points.clear();
    }

    /// Opens closed paths again.
    fn reopen(&mut self) {
        let (now, connection) = (self.connection.now, self.connection.id);
        for ((local, remote), at) in self.memory.closed.iter_mut().filter(|(_, at)| **at <= now) {
            *at = now + REOPENED;
            let (local, remote) = (*local, *remote);
            self.actions.push(PathAction::CreateSubflow { connection, local, remote, backup: false });
        }
    }

    /// Records since when each subflow waits for an acknowledgement, and when its window and the peer's grew.
    fn watch(&mut self) {
        let now = self.connection.now;
        if self.connection.window as f64 > self.memory.peer_window.0 as f64 * GROWS {
            self.memory.peer_window = (self.connection.window, now);
        }
        for view in self.subflows {
            let first = Watched { waits_since: now, seen: now, window: view.cwnd, grew: now };
            let mut watched = self.memory.watched.get(view.id).copied().unwrap_or(first);
            watched.waits_since = if is_idle(view) { now } else { watched.waits_since.max(view.last_progress) };
            if view.cwnd as f64 > watched.window as f64 * GROWS {
                (watched.window, watched.grew) = (view.cwnd, now);
            }
            watched.window = watched.window.min(view.cwnd);
            self.memory.watched.insert(view.id, watched);
        }
    }

    fn is_dead(&self, view: &SubflowView) -> bool {
        let patience = self.settings.dead_after.max(view.rto.mul_f64(1.5));
        let since = self.memory.watched.get(view.id).map(|watched| watched.waits_since);
        since.is_some_and(|since| self.connection.now.since(since) > patience)
    }

    /// Whether it could grow, or neither its window nor the peer's does.
    fn is_old(&self, view: &SubflowView) -> bool {
        let lasts = |since, round_trips| self.connection.now.since(since) >= view.min_rtt.mul_f64(round_trips);
        let Some(&Watched { seen, grew, .. }) = self.memory.watched.get(view.id) else { return false };
        lasts(seen, 10.0) || lasts(seen, 4.0) && lasts(grew.max(self.memory.peer_window.1), 1.5)
    }

    /// Suspends and closes dead paths.
    fn bury(&mut self) {
        let dead: Vec<&SubflowView> = self.active().filter(|view| self.is_dead(view)).collect();
        let recently = |view: &&SubflowView| {
            self.connection.now.since(view.last_progress) <= self.settings.dead_after && !self.is_dead(view)
        };
        if dead.is_empty() || !self.active().any(|view| recently(&view)) {
            return;
        }
        let dead: Vec<(SubflowId, AddressId, AddressId)> =
            dead.iter().map(|view| (view.id, view.local_address, view.remote_address)).collect();
        for (id, local, remote) in dead {
            self.memory.forget(id);
            self.memory.dead.insert(id, ());
            self.suspend(id);
            self.actions.push(PathAction::CloseSubflow { connection: self.connection.id, subflow: id });
            if self.memory.role == Role::Client {
                self.memory.closed.insert((local, remote), self.connection.now + REOPENED / 2);
            }
        }
    }

    /// Lets paths return that were called dead and make progress, and all if none is active.
    fn revive(&mut self) {
        let alive = |view: &&SubflowView| {
            self.memory.dead.get(view.id).is_some()
                && (is_idle(view) || self.connection.now.since(view.last_progress) <= LOOK * 2)
        };
        let none = !self.subflows.iter().any(is_active);
        let established = self.subflows.iter().filter(|view| view.state == SubflowState::Established && view.suspended);
        let returning: Vec<SubflowId> = established.filter(|view| none || alive(view)).map(|view| view.id).collect();
        for id in returning {
            self.memory.forget(id);
            self.resume(id);
        }
    }

    /// Begins a trial if there is reason for one.
    fn consider(&mut self) {
        let now = self.connection.now;
        let enough = self.memory.points.len() >= RECENT;
        let Some(goodput) = self.memory.goodput(now - MEASURED * 2, now).filter(|_| enough) else { return };
        let several = self.active().count() > 1 && self.active().all(|view| self.is_old(view));
        let due = now >= self.memory.next_trial || goodput < FELL * self.memory.tried;
        let steady = self.memory.points.len() == REMEMBERED && !self.memory.grows(now - MEASURED * 2, now);
        if several && steady && due && self.memory.is_blocked() {
            let hopeful =
                |view: &&SubflowView| self.memory.vain.get(view.id).is_none() && self.can_do_without(view, goodput);
            let untried = self.active().filter(hopeful);
            let slowest = untried.max_by_key(|view| view.smoothed_rtt).map(|view| (view.id, view.smoothed_rtt));
            let Some((id, round_trip)) = slowest else {
                self.end_round();
                return;
            };
            self.begin(id, false, goodput, round_trip);
            self.suspend(id);
            return;
        }
        let found = self.memory.without.iter().map(|(id, found)| (id, *found)).next();
        let Some((id, found)) = found else { return };
        let fell = goodput < FELL * found && now >= self.memory.next_fall;
        if now >= self.memory.next_return || fell {
            let returning = self.subflows.iter().find(|view| view.id == id);
            let Some(round_trip) = returning.map(|view| view.smoothed_rtt) else { return };
            let adds = returning.map_or(0.0, SubflowView::bytes_per_second) * UNDERESTIMATED;
            if !fell && !self.receives() && adds < self.settings.gain * goodput {
                self.memory.next_return = now + self.memory.return_pause;
                return;
            }
            self.begin(id, true, goodput, round_trip);
            self.resume(id);
        }
    }

    fn begin(&mut self, subflow: SubflowId, returns: bool, before: f64, round_trip: Duration) {
        let now = self.connection.now;
        let others = self.active().filter(|view| view.id != subflow).map(|view| view.smoothed_rtt).max();
        let length = (others.unwrap_or_default() * 8).max(MEASURED).min(MEASURED_AT_MOST);
        let settled = if returns { (round_trip * 2).max(SETTLED).min(SETTLED_AT_MOST) } else { SETTLED };
        let earliest = now + settled;
        self.memory.trial =
            Some(Trial { subflow, returns, before, begun: now, earliest, from: None, length, extended: false });
    }

    /// When a trial began to measure; begins that when it is time.
    fn measures_from(&mut self, trial: &mut Trial) -> Option<Instant> {
        let now = self.connection.now;
        if trial.from.is_none() && now >= trial.earliest {
            let holds = self.subflows.iter().any(|view| view.id == trial.subflow && !is_idle(view))
                || self.receives() && self.memory.receiving.may_arrive_on(trial.subflow, now);
            if trial.returns || !holds || now >= trial.earliest + DRAINED_AT_MOST {
                trial.from = Some(now);
                self.memory.trial = Some(*trial);
            }
        }
        trial.from
    }

    /// Ends a trial when its result is known.
    fn judge(&mut self) {
        let now = self.connection.now;
        let Some(mut trial) = self.memory.trial else { return };
        let from = self.measures_from(&mut trial);
        if trial.is_hopeless(self.memory, now) {
            self.end(&trial, false, 0.0);
            return;
        }
        let Some(from) = from.filter(|from| now >= *from + trial.length) else { return };
        let Some(goodput) = self.memory.goodput(from, now) else { return };
        let grows = self.memory.grows(from, now);
        let gained = goodput >= trial.before * (1.0 + self.settings.gain);
        if !gained && grows && !trial.extended {
            (trial.extended, trial.from) = (true, Some(now));
            self.memory.trial = Some(trial);
            return;
        }
        self.end(&trial, gained, goodput);
    }

    fn end(&mut self, trial: &Trial, gained: bool, goodput: f64) {
        self.memory.trial = None;
        match (trial.returns, gained) {
            (false, true) => self.stay_without(trial.subflow, goodput),
            (false, false) => self.take_back(trial.subflow, trial.before),
            (true, true) => self.stay_with(trial.subflow),
            (true, false) => self.leave_again(trial.subflow, trial.before),
        }
    }

    fn stay_without(&mut self, subflow: SubflowId, goodput: f64) {
        let now = self.connection.now;
        self.memory.without.insert(subflow, goodput);
        self.memory.vain = SubflowMap::new();
        self.memory.pause = self.settings.pause;
        self.memory.return_pause = self.settings.pause * FIRST_RETURN;
        self.memory.next_return = now + self.memory.return_pause;
        self.memory.next_fall = now + self.settings.pause;
        self.memory.tried = 0.0;
        self.memory.next_trial = now + LOOK * RECENT as u64;
    }

    /// Whether the other paths may carry as much as all do now.
    fn can_do_without(&self, path: &SubflowView, goodput: f64) -> bool {
        let others = self.active().filter(|view| view.id != path.id);
        self.receives() || others.map(SubflowView::bytes_per_second).sum::<f64>() * UNDERESTIMATED > goodput
    }

    /// The next path is tried soon.
    fn take_back(&mut self, subflow: SubflowId, goodput: f64) {
        let now = self.connection.now;
        self.memory.vain.insert(subflow, ());
        self.memory.tried = goodput;
        self.memory.next_trial = now + MEASURED * 2;
        self.resume(subflow);
    }

    /// All paths were tried in vain: a pause begins.
    fn end_round(&mut self) {
        self.memory.vain = SubflowMap::new();
        self.memory.next_trial = self.connection.now + self.memory.pause;
        self.memory.pause = (self.memory.pause * 2).min(self.settings.longest_pause);
    }

    fn stay_with(&mut self, subflow: SubflowId) {
        self.memory.without.remove(subflow);
        self.memory.return_pause = self.settings.pause * FIRST_RETURN;
        self.memory.next_trial = self.connection.now + self.memory.pause;
    }

    fn leave_again(&mut self, subflow: SubflowId, goodput: f64) {
        self.suspend(subflow);
        self.memory.without.insert(subflow, goodput);
        self.memory.return_pause = (self.memory.return_pause * 2).min(self.settings.longest_pause);
        self.memory.next_return = self.connection.now + self.memory.return_pause;
        self.memory.next_fall = self.connection.now + self.settings.pause;
    }
}

#[cfg(test)]
mod receiving_tests;
#[cfg(test)]
mod tests;
