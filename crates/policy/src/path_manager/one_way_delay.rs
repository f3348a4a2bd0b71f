//! recPR's path management: when the receive buffer is blocked, the receiver names the path with the largest one-way
//! delay, and the sender avoids it until its delay is at most the mean of the others.
//!
//! Source: Cao, Zeng, Liu, Lei, Huang, Wang, "Receiver-Assisted Partial-Reliable Multimedia Multipathing Over
//! Multi-Homed Wireless Networks" (recPR-MPTCP), IEEE Access 7, 2019: what its SPE and SME do about paths, equations 3
//! to 7, Algorithm 2. A path is a subflow; the subflows are opened by [`super::full_mesh`], whose settings apply too.
//!
//! The receiver, for each path p and each segment of data m (times in the clocks that the timestamps are read off):
//!
//! ```text
//! t_m   = t_rec - t_send                                           (3)
//! FD(p) <- (FD(p) m + t_(m+1)) / (m + 1)                           (5), average = history
//! FD(p) <- FD(p) + (t_(m+1) - FD(p)) / 8                           average = weighted
//! blocked:  the active path with the largest FD is named underperforming (line 8)
//! q named:  returns when FD(q) <= mean of FD over the active paths (7), line 11
//! ```
//!
//! and the sender sends nothing on a path while it is named.
//!
//! Where the paper errs or is silent (the first value of each setting is the default):
//! - `return` mean | printed. Equation 7 and line 11 print FD(q) - mean >= 0, which takes back exactly the slow paths:
//!   a sign error. `printed` has it as it stands.
//! - `measured_by` receiver (the paper's Algorithm 2) | sender: the sender takes the timestamp of an acknowledgement
//!   less the one it echoes, goes by its own [`crate::path_manager::PathEvent::ReceiveBufferBlocked`] and suspends the
//!   path itself; nothing is asked of the peer. Delayed acknowledgements, 40 ms at most, are in these delays, and in
//!   those of lone probes always: paths of shorter delay hardly return.
//! - How the sender learns the name: the paper's "SACK chunk" does not exist in TCP. Here it is MP_PRIO (RFC 8684,
//!   section 3.3.8), B = 1 to name and B = 0 to take back, which any peer understands. It is sent on the path that it
//!   applies to, without confirmation, so each is sent three times, a round trip apart, and B = 1 again whenever more
//!   than eight data segments arrived on a named path within a round trip. Our engine also treats the path as a backup,
//!   so what *we* send avoids it as well.
//! - A sender with this path manager also suspends a path that its peer named: its unacknowledged data is reinjected,
//!   and it is probed ([`super::suspension`]), so that the receiver can measure it. A sender without it (Linux) sends
//!   nothing on a backup while it has another path, so there is nothing to measure: such a path is taken back when
//!   nothing has arrived on it for `return_after` (10 s, longer than the retransmission timeouts between probes; 0:
//!   never).
//! - Clocks. The paper wants them synchronised. They need not be: their offset is the same on every path and cancels in
//!   every comparison above, if the peer stamps all subflows from one clock (our engine does). A mean over all history
//!   bends with the clocks' drift, paths of different age differently; [`crate::forward_delay::drift`] takes that out.
//!   A Linux peer adds a random offset per pair of addresses. `clock` auto | shared | per_subflow: with per_subflow
//!   FD(p) is half the least RTT of p, plus FD less the least FD of the last minute, which is the queue and free of
//!   offsets; auto takes it when two paths lie more than a minute apart, which no delay explains.
//! - Without timestamps on some path, its FD is half its smoothed RTT, and the others are taken as under per_subflow.
//! - A path without an estimate is neither named nor in the mean: in the first round trip, a path so slow that nothing
//!   has arrived on it yet is not named, but another is, until the two can be compared. The last active path is never
//!   named: a backup or a named path does not count as another. When no active path is left, the named one with the
//!   smallest FD returns.
//! - A named path returns only if data came on it since; the test is made once per round trip and never in the event
//!   that names.
//! - There is no damping: a path that is bad only when it carries traffic is named and taken back again and again. The
//!   improved form is `hold`, the minimum time that a path stays away, doubled (32 times at most) for each time that
//!   the path had been back for less time than it had been away. `return_after` is doubled likewise. 0, the default, is
//!   the paper.

mod settings;

pub use settings::{Average, Clock, MeasuredBy, OneWayDelaySettings, Return};

use super::full_mesh::MeshSettings;
use super::suspending::{Memory, Occasion, Rule, Situation, Suspending};
use super::suspension::Suspensions;
use super::{ForwardDelays, PathAction, PathManager};
use crate::forward_delay::drift;
use crate::ids::{SubflowId, SubflowMap};
use crate::table::{Reader, SettingError};
use crate::time::{Duration, Instant};
use crate::view::{SubflowState, SubflowView};

/// Delays on paths with the same clock do not differ by more than this, in microseconds.
const DIFFERENT_CLOCKS: f64 = 60e6;
/// Transmissions of each MP_PRIO.
const TOLD: u8 = 3;
/// More segments than this in a round trip are no probes of a path that is avoided.
const STILL_USED: u64 = 8;
/// Limit of the doublings of the time away.
const DOUBLINGS: u32 = 5;

/// A path is avoided because we named it.
#[derive(Clone, Copy, Debug)]
struct Away {
    since: Instant,
    /// Samples at that time.
    samples: u64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Path {
    away: Option<Away>,
    /// When it last returned, and how long it had been away.
    returned: Option<(Instant, Duration)>,
    /// Consecutive namings, each soon after the return from the one before.
    relapses: u32,
    /// Remaining repetitions of the last MP_PRIO.
    untold: u8,
    /// Samples at the last measurement.
    samples: u64,
    /// The peer named it, and it is not suspended yet.
    named_by_peer: bool,
    delay: Option<f64>,
}

impl Path {
    fn leave(&mut self, now: Instant, samples: u64) {
        let soon = self.returned.is_some_and(|(at, away)| now.since(at) < away);
        self.relapses = if soon { (self.relapses + 1).min(DOUBLINGS) } else { 0 };
        self.away = Some(Away { since: now, samples });
        self.untold = TOLD - 1;
    }

    fn come_back(&mut self, now: Instant) {
        if let Some(away) = self.away.take() {
            self.returned = Some((now, now.since(away.since)));
            self.untold = TOLD - 1;
        }
    }
}

/// State of a connection.
#[derive(Debug, Default)]
pub struct Paths {
    paths: SubflowMap<Path>,
}

impl Memory for Paths {
    fn forget(&mut self, subflow: SubflowId) {
        self.paths.remove(subflow);
    }
}

impl Paths {
    /// One-way delays now, in microseconds from a common zero.
    fn estimate(&mut self, settings: &OneWayDelaySettings, situation: &mut Situation<'_>) {
        let (now, subflows) = (situation.connection.now, situation.subflows);
        let established = |view: &&SubflowView| view.state == SubflowState::Established;
        self.paths.retain(|id| subflows.iter().any(|view| view.id == id && established(&view)));
        let drift = drift(subflows.iter().filter_map(|view| view.forward_delay.as_ref()));
        let value = |view: &SubflowView| {
            let measured = view.forward_delay.filter(|delay| delay.samples() > 0)?;
            Some(match settings.average {
                Average::History => measured.mean(now, drift),
                Average::Weighted => measured.smoothed(now, drift),
            })
        };
        let shared = subflows.iter().filter(established).all(|view| view.forward_delay.is_some())
            && match settings.clock {
                Clock::Shared => true,
                Clock::PerSubflow => false,
                Clock::Auto => {
                    let values = || subflows.iter().filter(established).filter_map(value);
                    let [least, most] = [values().reduce(f64::min), values().reduce(f64::max)];
                    least.zip(most).is_none_or(|(least, most)| most - least < DIFFERENT_CLOCKS)
                }
            };
        for view in subflows.iter().filter(established) {
            let half = |rtt: Duration| rtt.as_secs_f64() * 1e6 / 2.0;
            let delay = match view.forward_delay {
                None => Some(half(view.smoothed_rtt)),
                Some(_) if shared => value(view),
                Some(measured) => value(view).map(|value| half(view.min_rtt) + (value - measured.least()).max(0.0)),
            };
            let before = self.paths.get(view.id).copied().unwrap_or_default();
            self.paths.insert(view.id, Path { delay, ..before });
            situation.suspensions.set_rank(view.id, -delay.unwrap_or(f64::MAX));
        }
    }

    fn path(&self, id: SubflowId) -> Path {
        self.paths.get(id).copied().unwrap_or_default()
    }

    /// The paths that carry data, without backups.
    fn active<'a>(&self, situation: &Situation<'a>) -> Vec<&'a SubflowView> {
        let counts = |view: &&SubflowView| {
            view.state == SubflowState::Established
                && !view.backup
                && !situation.suspensions.is_aside(view.id)
                && self.path(view.id).away.is_none()
        };
        situation.subflows.iter().filter(counts).collect()
    }

    /// Line 8.
    fn name_worst(&mut self, settings: &OneWayDelaySettings, situation: &mut Situation<'_>) {
        let active = self.active(situation);
        if active.len() < 2 {
            return;
        }
        let measured = active.into_iter().filter_map(|view| Some((view, self.path(view.id).delay?)));
        let Some((worst, _)) = measured.max_by(|(_, a), (_, b)| a.total_cmp(b)) else { return };
        let samples = worst.forward_delay.map_or(0, |delay| delay.samples());
        match settings.measured_by {
            MeasuredBy::Receiver => {
                let (connection, subflow) = (situation.connection.id, worst.id);
                situation.actions.push(PathAction::SetBackup { connection, subflow, backup: true });
            }
            MeasuredBy::Sender => situation.suspend(worst),
        }
        if let Some(path) = self.paths.get_mut(worst.id) {
            path.leave(situation.connection.now, samples);
        }
    }

    /// Lines 9 to 14.
    fn take_back(&mut self, settings: &OneWayDelaySettings, situation: &mut Situation<'_>) {
        for view in situation.subflows {
            if self.may_return(settings, view, situation) {
                self.bring_back(settings, view.id, situation);
            }
        }
    }

    fn may_return(&self, settings: &OneWayDelaySettings, view: &SubflowView, situation: &Situation<'_>) -> bool {
        let now = situation.connection.now;
        let path = self.path(view.id);
        let Some(away) = path.away else { return false };
        let doubled = |time: Duration| time * (1 << path.relapses);
        let active = self.active(situation);
        if active.is_empty() {
            return self.least_away() == Some(view.id);
        }
        if now.since(away.since) < doubled(settings.hold) {
            return false;
        }
        let latest = view.forward_delay.map_or(Instant::ZERO, |delay| delay.latest_at());
        let silence = now.since(away.since.max(latest));
        let by_receiver = settings.measured_by == MeasuredBy::Receiver;
        if by_receiver && !settings.return_after.is_zero() && silence >= doubled(settings.return_after) {
            return true;
        }
        let measured = match view.forward_delay {
            Some(delay) => delay.samples() > away.samples && (by_receiver || situation.suspensions.is_fit(view)),
            None => true,
        };
        let delays: Vec<f64> = active.iter().filter_map(|active| self.path(active.id).delay).collect();
        let Some(delay) = path.delay.filter(|_| measured && !delays.is_empty()) else { return false };
        // Times the number of paths, so that equal ones are equal; a thousandth of a microsecond is a rounding error.
        let above = delay * delays.len() as f64 - delays.iter().sum::<f64>();
        match settings.returns {
            Return::Mean => above <= 1e-3,
            Return::Printed => above >= -1e-3,
        }
    }

    fn bring_back(&mut self, settings: &OneWayDelaySettings, subflow: SubflowId, situation: &mut Situation<'_>) {
        let connection = situation.connection.id;
        match settings.measured_by {
            MeasuredBy::Receiver => {
                situation.actions.push(PathAction::SetBackup { connection, subflow, backup: false });
            }
            MeasuredBy::Sender => situation.resume(subflow),
        }
        if let Some(path) = self.paths.get_mut(subflow) {
            path.come_back(situation.connection.now);
        }
    }

    /// A path that was resumed because no other was left is no longer avoided.
    fn adopt_resumed(&mut self, now: Instant, suspensions: &Suspensions) {
        for (id, path) in self.paths.iter_mut() {
            if path.away.is_some() && !suspensions.is_aside(id) {
                path.come_back(now);
            }
        }
    }

    /// The avoided path with the smallest delay.
    fn least_away(&self) -> Option<SubflowId> {
        let away = self.paths.iter().filter(|(_, path)| path.away.is_some());
        let delay = |path: &Path| path.delay.unwrap_or(f64::MAX);
        away.min_by(|(_, a), (_, b)| delay(a).total_cmp(&delay(b))).map(|(id, _)| id)
    }

    /// Repeats MP_PRIO, which may be lost.
    fn tell_again(&mut self, situation: &mut Situation<'_>) {
        let alone = self.active(situation).is_empty();
        for view in situation.subflows {
            let Some(path) = self.paths.get_mut(view.id) else { continue };
            let samples = view.forward_delay.map_or(0, |delay| delay.samples());
            let came = samples - core::mem::replace(&mut path.samples, samples).min(samples);
            let still_used = path.away.is_some() && came > STILL_USED;
            if (path.untold > 0 || still_used) && !(alone && path.away.is_some()) {
                path.untold = path.untold.saturating_sub(1);
                let backup = path.away.is_some();
                let connection = situation.connection.id;
                situation.actions.push(PathAction::SetBackup { connection, subflow: view.id, backup });
            }
        }
    }

    /// Suspends the paths that the peer named; one that was a backup from the start is not among them.
    fn follow_peer(&mut self, situation: &mut Situation<'_>) {
        for view in situation.subflows.iter().filter(|view| view.state == SubflowState::Established) {
            if !self.path(view.id).named_by_peer {
                continue;
            }
            situation.suspend(view);
            let done = situation.suspensions.is_aside(view.id);
            if let Some(path) = self.paths.get_mut(view.id).filter(|_| done) {
                path.named_by_peer = false;
            }
        }
    }

    fn on_measured(&mut self, settings: &OneWayDelaySettings, situation: &mut Situation<'_>) {
        self.follow_peer(situation);
        if settings.measured_by == MeasuredBy::Receiver {
            self.tell_again(situation);
        }
        self.take_back(settings, situation);
    }
}

/// The path manager `one_way_delay`.
type OneWayDelay = Suspending<OneWayDelaySettings>;

pub fn build(reader: &mut Reader<'_>) -> Result<Box<dyn PathManager>, SettingError> {
    Ok(Box::new(OneWayDelay::new(OneWayDelaySettings::read(reader)?)))
}

impl Rule for OneWayDelaySettings {
    type Memory = Paths;

    fn acts_on(&self, _occasion: Occasion) -> bool {
        true
    }

    fn decide(&self, occasion: Occasion, paths: &mut Paths, situation: &mut Situation<'_>) {
        paths.estimate(self, situation);
        if self.measured_by == MeasuredBy::Sender {
            paths.adopt_resumed(situation.connection.now, situation.suspensions);
        }
        match (occasion, self.measured_by) {
            (Occasion::Measured, _) => paths.on_measured(self, situation),
            (Occasion::ReceiverBlocked, MeasuredBy::Receiver) | (Occasion::SenderBlocked, MeasuredBy::Sender) => {
                paths.name_worst(self, situation);
            }
            _ => {}
        }
    }

    fn takes_back(&self, paths: &mut Paths, subflow: SubflowId, backup: bool) -> bool {
        let before = paths.path(subflow);
        paths.paths.insert(subflow, Path { named_by_peer: backup, ..before });
        !backup
    }

    fn mesh(&self) -> MeshSettings {
        self.mesh
    }

    fn forward_delays(&self) -> ForwardDelays {
        match self.measured_by {
            MeasuredBy::Receiver => ForwardDelays::OfArrivals,
            MeasuredBy::Sender => ForwardDelays::OfAcknowledgements,
        }
    }
}

#[cfg(test)]
mod tests;
