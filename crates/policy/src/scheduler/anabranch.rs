//! Our own: plans on which paths the window is best spent, gives each segment to the one of them that answers first, and
//! waits where a slower one would stall the window or deliver the end late.
//!
//! Per subflow: B the bandwidth that its congestion control counts on, r its least round-trip time, s its smoothed one, f
//! what is in flight and queued there; W is the whole window of the connection.
//!
//! **What a subflow will do.** A segment of len bytes is answered after max(r + len / B, (f + len) / B): it goes behind what
//! is there (Little's law). In the window it stays for r + len / B, or for 2 s more if it is lost. Of a path that was
//! never filled (start-up, and no more in flight than 1.2 r B) nobody knows B: it is trusted with eight times
//! what was seen, and so tried. While the application is not ahead of the send buffer this holds, whatever is in flight, until
//! a round trip shows a queue, and for len / B too: of a path that gets little, little was seen, and it would never get more.
//!
//! **The plan**, made anew every eighth of the shortest stay (1 to 100 ms): of all sets of subflows the one that carries
//! most,
//!
//! T = min(sum of B, m W / longest stay), m = 1 for one subflow and 0.85 for several,
//!
//! divided by one plus the share of time in which the window stands still for repairs that outlast it; of sets within
//! 0.3 % the one with the shortest stay. With much window that is all paths. With little it is BLEST's condition
//! (Networking 2016), for sets: a slow path is worth it only if W / stay is more than what the fast ones carry; and
//! where one path alone would fill the window best, it gets all.
//!
//! **A segment** goes to the subflow of the plan with the earliest answer among those that can send now: room in the
//! window, and at most 2 segments, or 10 ms and 16, waiting for the pacing. It waits instead if
//!
//! - *the window would stall*: the answer takes longer than 1.1 times the longest stay of the plan and than 0.85 W / T,
//!   the time that the window lasts;
//! - *the end would be late* (as ECF, CoNEXT 2017): the application has nothing more than these k bytes, and the
//!   faster subflows have delivered them after k / (sum of B) and their answer before this one answers. While the
//!   application is ahead of the send buffer (`backlogged`), there is no end. Of data with a deadline ([`Chunk::time_left`])
//!   before which this one answers, so that it can be sent again in time, the arrivals are compared and not the answers: half
//!   of the stay is the way back. So a burst that the fast subflow takes longer for than the slow one's delay is
//!   divided at its beginning, when a repair is still in time;
//! - *a mapping can be shared*: the window is what limits, a queue stands, and within 2 ms what is in flight will open it
//!   for several segments ([`Needs::segments_per_mapping`]).
//!
//! **Data on its way** is sent a second time on another subflow that can send now when nothing new can be sent anyway
//! (nothing is there, or the window is shut): if it is answered there before it is expected from the sender, or if that is
//! overdue. At the end of what was written, the last 8 segments go twice at once where the sender loses
//! segments and the second path is not much slower: the loss of a tail costs a timeout.
//!
//! Data with a deadline goes twice on its own subflow where that loses segments, if a loss could not be made good in time:
//! the time left is less than 1.25 s and half of what the quickest subflow alive takes longer than the quickest of all. Half
//! of the window stays free. So a stream goes on where its quick path has died and the slow one loses.
//!
//! It comes before new data
//!
//! - where the sender acknowledged nothing in sequence for two smoothed RTTs: a probe of the tail (RFC 8985, section
//!   7) is due then, and what is overdue would stall the stream for longer;
//! - where the sender found it lost, and another answers before the sender could: the sender has to send it again in any
//!   case, so this costs a segment, and it is paid where delay counts more than throughput, that is unless the
//!   application is ahead of the send buffer;
//! - where the peer says that it is missing there, before the sender could know it ([`Work::missing`]): for
//!   the same price, and under the same condition.
//!
//! **A path that is silent** for three smoothed RTTs with data outstanding counts as stale: what it holds goes
//! elsewhere, and it gets nothing new until it is heard of.
//!
//! No window is halved as a punishment: a path that is not asked for what it would deliver late does no harm.

use super::candidates::{excluded, preferred, preferred_with_room};
use super::{Answer, Chunk, ChunkKind, Decision, Needs, Outstanding, Scheduler, Work, again, unsent};
use crate::congestion::send_quantum;
use crate::ids::SubflowId;
use crate::table::{Number, Reader, SettingError, Settings, Switch};
use crate::time::{Duration, Instant};
use crate::view::{ConnectionView, Phase, SubflowView};

/// Segments that may wait for the pacing of a subflow in any case, at most, and seconds that they may wait.
const BURST: u64 = 2;
const TRAIN: u64 = 16;
const QUEUED: f64 = 0.01;
/// Smoothed round trips without progress after which what is overdue comes before new data.
const DOUBT: u64 = 2;
/// Smoothed round trips after which a loss is known: one, and a quarter for what may have been reordered (RFC 8985, section 6.2).
const KNOWN: f64 = 1.25;
/// How long an acknowledgement may be delayed (40 ms), and some.
const DELAYED: Duration = Duration::from_millis(50);
/// Segments at the end of what was written that may go twice.
const TAIL: u64 = 8;
/// Share of segments lost from which on the tail goes twice.
const LOSSY: f64 = 0.002;
/// Seconds that data may wait for more to share a mapping with.
const GATHER: f64 = 0.002;
/// How much of a window is used where several paths fill it: they do not hold it up at the same moments.
const MIXED: f64 = 0.85;
/// Sets of paths that carry nearly the same are as good.
const AS_GOOD: f64 = 1.003;
/// Most paths of which all sets are looked at.
const MOST_PLANNED: usize = 8;
/// How much longer an answer may take than the longest planned.
const SLACK: f64 = 1.1;
/// How much of the time that the window lasts an answer may take.
const SAFETY: f64 = 0.85;

const SILENCE: Number = Number {
    name: "silence",
    unit: "smoothed round trips",
    default: 3.0,
    range: 2.0..=1000.0,
    summary: "How long a path with data outstanding may be silent before it counts as stale",
};
const WAIT: Switch = Switch {
    name: "wait",
    default: true,
    summary: "Wait for a faster path where a slower one would stall the window or deliver the end late",
};
const DUPLICATE: Switch = Switch {
    name: "duplicate",
    default: true,
    summary: "When nothing new can be sent, send data again that is overdue, expected earlier elsewhere, or late if lost",
};

/// What a subflow is expected to do.
#[derive(Clone, Copy, Debug)]
struct Forecast {
    id: SubflowId,
    /// Bytes per second, [`SubflowView::trusted_rate`].
    rate: f64,
    /// Seconds until a segment given to it now is acknowledged: it goes behind what is in flight and queued.
    answer: f64,
    /// Seconds that data stays in the connection's window if no queue stands and nothing is lost.
    stay: f64,
    /// The same for what is lost once.
    repaired: f64,
    /// Segments that are lost per second.
    losses: f64,
    /// A segment given to it now leaves at once, or nearly.
    ready: bool,
    /// Seconds that what it releases together takes; 0 if it releases segments one by one.
    together: f64,
}

impl Forecast {
    /// `live`: the application is not ahead of the send buffer, so that being late costs more than a queue.
    fn of(subflow: &SubflowView, length: u32, live: bool) -> Self {
        let mss = u64::from(subflow.mss);
        let (least, smoothed) = (subflow.min_rtt.as_secs_f64(), subflow.smoothed_rtt.as_secs_f64());
        let known = subflow.bytes_per_second();
        let behind = subflow.in_flight + subflow.queued + u64::from(length);
        let no_queue = !subflow.is_filled_by(behind) || (live && !subflow.has_queue_in(subflow.latest_rtt));
        let never_filled = subflow.phase == Phase::SlowStart && no_queue;
        let rate = subflow.trusted_rate(never_filled);
        let alone = least + f64::from(length) / if live { rate } else { known };
        let queue = if never_filled { 0.0 } else { behind as f64 / known };
        let answer = alone.max(queue);
        let losses = known / mss.max(1) as f64 * subflow.loss_rate;
        let quantum = send_quantum(subflow.rates.bandwidth, subflow.mss);
        let together = if quantum > BURST * mss { quantum as f64 / known } else { 0.0 };
        let ready = is_ready(subflow, length);
        Self { id: subflow.id, rate, answer, stay: alone, repaired: alone + 2.0 * smoothed, losses, ready, together }
    }
}

/// Whether a segment of this length given to a subflow now leaves at once, or nearly.
fn is_ready(subflow: &SubflowView, length: u32) -> bool {
    let mss = u64::from(subflow.mss);
    let few = || {
        // What is released together is queued together.
        let quantum = send_quantum(subflow.rates.bandwidth, subflow.mss);
        let most = (subflow.bytes_per_second() * QUEUED).min((TRAIN * mss).max(quantum) as f64);
        subflow.queued as f64 <= most
    };
    (subflow.queued <= BURST * mss || few()) && subflow.room() >= u64::from(length).min(mss)
}

/// The subflows to be used for a while.
#[derive(Clone, Copy, Debug)]
struct Plan {
    /// When to think again.
    until: Instant,
    /// Among whom the choice was, as bits of their numbers.
    among: u64,
    /// Who was chosen.
    members: u64,
    /// Bytes per second that they carry together.
    carried: f64,
    /// The longest of their stays, seconds.
    longest: f64,
}

impl Plan {
    const NONE: Self = Self { until: Instant::ZERO, among: 0, members: u64::MAX, carried: 0.0, longest: 0.0 };

    /// The set of paths with which a window of so many bytes carries most: of sets that are as good, within
    /// [`AS_GOOD`], the one with the shortest stay.
    fn best(window: f64, paths: &[Forecast]) -> Self {
        let mut best = Self::NONE;
        let all = 1_usize << paths.len().min(MOST_PLANNED);
        // Rate and longest stay of each set.
        let mut sets = Vec::with_capacity(all);
        sets.push((0.0, 0.0));
        for set in 1..all {
            let last = set.ilog2() as usize;
            let (Some(path), Some((rate, longest))) = (paths.get(last), sets.get(set & !(1 << last)).copied()) else {
                continue;
            };
            let (rate, longest) = (rate + path.rate, f64::max(longest, path.stay));
            sets.push((rate, longest));
            let usable = if set.count_ones() > 1 { window * MIXED } else { window };
            let carried = f64::min(rate, usable / f64::max(longest, 1e-9));
            // A standstill only takes from it.
            if carried * AS_GOOD <= best.carried {
                continue;
            }
            let carried = carried / (1.0 + Self::standstill(window / carried.max(1.0), set, paths));
            let better = carried > best.carried * AS_GOOD;
            if better || (carried * AS_GOOD > best.carried && longest < best.longest) {
                best = Self { carried: carried.max(best.carried), longest, members: Self::members(set, paths), ..best };
            }
        }
        best
    }

    /// The paths of a set.
    fn chosen(set: usize, paths: &[Forecast]) -> impl Iterator<Item = &Forecast> {
        paths.iter().enumerate().filter(move |(at, _)| set >> at & 1 == 1).map(|(_, path)| path)
    }

    fn members(set: usize, paths: &[Forecast]) -> u64 {
        Self::chosen(set, paths).fold(0, |members, path| members | bit(path.id))
    }

    /// How long the window stands still for repairs that take longer than it lasts, per time that it lasts.
    fn standstill(lasts: f64, set: usize, paths: &[Forecast]) -> f64 {
        let chosen = Self::chosen(set, paths);
        chosen.map(|path| (path.losses * lasts).min(1.0) * (path.repaired - lasts).max(0.0) / lasts).sum()
    }
}

/// A subflow in a set of them.
fn bit(id: SubflowId) -> u64 {
    1 << (id.0 % 64)
}

/// The scheduler `anabranch`.
#[derive(Debug)]
pub struct Anabranch {
    wait: bool,
    duplicate: bool,
    silence: f32,
    plan: Plan,
    /// The subflows at a decision: kept for its memory as long as there is something to decide.
    paths: Vec<Forecast>,
    /// Where new data went last.
    last: Option<SubflowId>,
}

impl Default for Anabranch {
    fn default() -> Self {
        Settings::new().read(Self::read).expect("the defaults are in their ranges")
    }
}

impl Anabranch {
    /// Makes one.
    pub fn build(reader: &mut Reader<'_>) -> Result<Box<dyn Scheduler>, SettingError> {
        Ok(Box::new(Self::read(reader)?))
    }

    fn read(reader: &mut Reader<'_>) -> Result<Self, SettingError> {
        Ok(Self {
            wait: reader.read(&WAIT)?,
            duplicate: reader.read(&DUPLICATE)?,
            silence: reader.read(&SILENCE)? as f32,
            plan: Plan::NONE,
            paths: Vec::new(),
            last: None,
        })
    }

    /// Takes in how the candidates are, and leaves out those that are better not used now.
    fn look<'a>(
        &mut self,
        connection: &ConnectionView,
        length: u32,
        candidates: impl Iterator<Item = &'a SubflowView>,
    ) {
        self.paths.clear();
        self.paths.extend(candidates.map(|subflow| Forecast::of(subflow, length, !connection.backlogged)));
        if !self.wait || self.paths.len() < 2 {
            return;
        }
        let among = self.paths.iter().fold(0, |among, path| among | bit(path.id));
        if connection.now >= self.plan.until || among != self.plan.among {
            let shortest = self.paths.iter().map(|path| path.stay).fold(f64::INFINITY, f64::min);
            let until = connection.now + Duration::from_secs_f64((shortest / 8.0).clamp(0.001, 0.1));
            self.plan = Plan { until, among, ..Plan::best(connection.window as f64, &self.paths) };
        }
        let members = self.plan.members;
        self.paths.retain(|path| members & bit(path.id) != 0);
    }

    /// The subflow that answers first of those that can send now; none if it is better to wait for one that cannot.
    fn choose(&self, connection: &ConnectionView, time_left: Option<Duration>) -> Option<SubflowId> {
        let able = self.paths.iter().filter(|path| path.ready);
        let first = able.clone().min_by(|a, b| a.answer.total_cmp(&b.answer))?;
        // Consecutive data that leaves together is one packet to whoever handles it: the next goes where the last went, as long as
        // that answers as early as if they had not been told apart.
        let last =
            able.filter(|path| Some(path.id) == self.last).find(|path| path.answer <= first.answer + path.together);
        let chosen = last.unwrap_or(first);
        // Who answers before the first that is able is not: only such a one can be waited for.
        let faster = self.paths.iter().filter(|other| self.wait && other.answer < first.answer);
        let Some(fastest) = faster.clone().min_by(|a, b| a.answer.total_cmp(&b.answer)) else { return Some(chosen.id) };
        let rate: f64 = faster.map(|other| other.rate).sum();
        let lasts = connection.window as f64 / self.plan.carried.max(1.0);
        let stalls = chosen.answer > (self.plan.longest * SLACK).max(SAFETY * lasts);
        // The way back does not count where a loss is known in time.
        let in_time = time_left.is_some_and(|left| chosen.answer <= left.as_secs_f64());
        let there = |path: &Forecast| if in_time { path.answer - path.stay / 2.0 } else { path.answer };
        let ends = !connection.backlogged && connection.unsent as f64 / rate + there(fastest) <= there(chosen);
        (!stalls && !ends).then_some(chosen.id)
    }

    /// Whether what is outstanding comes before new data now.
    fn duplicates_first(&mut self, connection: &ConnectionView, subflows: &[SubflowView]) -> bool {
        let repairs = |subflow: &SubflowView| subflow.phase == Phase::FastRecovery && !connection.backlogged;
        self.duplicate
            && subflows.len() > 1
            && subflows.iter().any(|subflow| repairs(subflow) || is_silent(connection, subflow))
    }

    /// Where outstanding data is sent a second time, if it is.
    fn duplicate(
        &mut self,
        connection: &ConnectionView,
        outstanding: &Outstanding,
        subflows: &[SubflowView],
    ) -> Option<SubflowId> {
        let sender = subflows.iter().find(|subflow| subflow.id == outstanding.sender)?;
        let others = preferred(subflows, Some(sender.id)).filter(|other| !other.stale);
        let able = others
            .map(|other| Forecast::of(other, outstanding.length, !connection.backlogged))
            .filter(|other| other.ready);
        let other = able.min_by(|a, b| a.answer.total_cmp(&b.answer))?;
        let waited = connection.now.since(outstanding.sent_at).as_secs_f64();
        let usual = sender.smoothed_rtt.as_secs_f64();
        let overdue = waited > usual + (sender.rtt_variation.as_secs_f64() * 4.0).max(usual / 2.0);
        // Before new data goes what is lost, and what a silent path holds.
        let may_wait = connection.unsent > 0 && connection.window_left > 0 && !is_silent(connection, sender);
        let earlier = waited + other.answer < usual && (outstanding.lost || !may_wait);
        let behind = connection.data_nxt.saturating_sub(outstanding.data_seq);
        let tail = connection.unsent == 0 && behind <= TAIL * u64::from(sender.mss);
        let risky = sender.loss_rate > LOSSY && other.answer < usual * 3.0;
        (overdue || earlier || (tail && risky)).then_some(other.id)
    }

    /// Whether data that may wait so long is sent a second time at once by the subflow that sent it.
    fn twice(
        &mut self,
        connection: &ConnectionView,
        outstanding: &Outstanding,
        time_left: Duration,
        subflows: &[SubflowView],
    ) -> bool {
        self.duplicate && goes_twice(connection, outstanding, time_left, subflows)
    }

    /// Whether what the peer reported missing is sent again elsewhere at once.
    fn repairs_elsewhere(&mut self, connection: &ConnectionView) -> bool {
        self.duplicate && !connection.backlogged
    }

    /// A copy on another subflow of the first outstanding data that is to have one.
    fn copy(&mut self, connection: &ConnectionView, work: &mut dyn Work, subflows: &[SubflowView]) -> Option<Answer> {
        let mut after = None;
        while let Some(outstanding) = work.outstanding(after) {
            if let Some(id) = self.duplicate(connection, &outstanding, subflows) {
                return Some(Answer::Copy(outstanding, id));
            }
            after = Some(outstanding.data_seq);
        }
        None
    }

    /// A second copy, on the subflow that sent it, of data whose loss could not be repaired in time.
    fn second(&mut self, connection: &ConnectionView, work: &mut dyn Work, subflows: &[SubflowView]) -> Option<Answer> {
        while let Some((held, time_left)) = work.recent() {
            if self.twice(connection, &held, time_left, subflows) {
                return Some(Answer::Copy(held, held.sender));
            }
        }
        None
    }
}

/// Whether it is worth while to wait until the window lets several segments go, so that they share a mapping: it is the
/// window that limits, and what is in flight will open it within [`GATHER`].
fn gathers(connection: &ConnectionView, id: SubflowId, subflows: &[SubflowView]) -> bool {
    let Some(subflow) = subflows.iter().find(|subflow| subflow.id == id) else { return false };
    let mss = u64::from(subflow.mss);
    let several = ((subflow.bytes_per_second() * GATHER) as u64).min(TRAIN * mss);
    let queue = subflow.has_queue_in(subflow.smoothed_rtt);
    let opens = queue && subflow.in_flight > 4 * several && subflow.queued == 0 && subflow.loss_rate < LOSSY / 2.0;
    several >= 2 * mss && opens && connection.window_left < several && connection.unsent > several
}

/// Whether a subflow with data outstanding has been silent for longer than one acknowledgement can be late.
fn is_silent(connection: &ConnectionView, subflow: &SubflowView) -> bool {
    let silence = connection.now.since(subflow.last_progress);
    // A single segment may be acknowledged late.
    let patience = (subflow.smoothed_rtt * DOUBT).max(subflow.smoothed_rtt + DELAYED);
    subflow.usable() && !subflow.stale && subflow.in_flight > u64::from(subflow.mss) && silence > patience
}

/// Whether what a subflow has just sent goes there a second time: nothing could make its loss good before the deadline.
fn goes_twice(
    connection: &ConnectionView,
    outstanding: &Outstanding,
    time_left: Duration,
    subflows: &[SubflowView],
) -> bool {
    let alive = |subflow: &&SubflowView| subflow.usable() && !subflow.stale;
    let sender = subflows.iter().find(|subflow| subflow.id == outstanding.sender);
    let Some(sender) = sender.filter(|sender| alive(sender) && sender.loss_rate > LOSSY) else { return false };
    let quickest = subflows.iter().map(|subflow| subflow.min_rtt).min().unwrap_or_default();
    let repairer = subflows.iter().filter(alive).map(|subflow| subflow.min_rtt).min().unwrap_or_default();
    // The deadline has the way of the quickest path in it.
    let repaired = sender.smoothed_rtt.mul_f64(KNOWN) + (repairer - quickest) / 2;
    let fresh = connection.now.since(outstanding.sent_at) < sender.smoothed_rtt / 2;
    let ahead = sender.in_flight + sender.queued + u64::from(outstanding.length);
    let spare = ahead * 2 <= sender.cwnd && Forecast::of(sender, outstanding.length, true).ready;
    !connection.backlogged && !outstanding.lost && fresh && spare && time_left < repaired
}

impl Scheduler for Anabranch {
    fn schedule(&mut self, connection: &ConnectionView, chunk: &Chunk, subflows: &[SubflowView]) -> Decision {
        // Most questions come when all windows are full: the answer to those costs no forecast.
        let Some(candidates) = preferred_with_room(subflows, excluded(chunk), chunk.length) else {
            return Decision::Wait(None);
        };
        let mut others = candidates.clone();
        let only = others.next().filter(|_| others.next().is_none());
        // Where there is one there is nothing to compare.
        let chosen = match only {
            Some(only) => is_ready(only, chunk.length).then_some(only.id),
            None => {
                self.look(connection, chunk.length, candidates);
                self.choose(connection, chunk.time_left)
            }
        };
        match chosen.filter(|id| chunk.kind != ChunkKind::New || !gathers(connection, *id, subflows)) {
            Some(id) => {
                self.last = if chunk.kind == ChunkKind::New { Some(id) } else { self.last };
                Decision::Send(id)
            }
            None => Decision::Wait(None),
        }
    }

    fn next(&mut self, connection: &ConnectionView, work: &mut dyn Work, subflows: &[SubflowView]) -> Answer {
        if work.missing() && self.repairs_elsewhere(connection) {
            work.repair_missing();
        }
        if let Some(answer) = again(self, connection, work, subflows) {
            return answer;
        }
        if work.has_unsent()
            && self.duplicates_first(connection, subflows)
            && let Some(copy) = self.copy(connection, work, subflows)
        {
            return copy;
        }
        if let Some(answer) = unsent(self, connection, work, subflows) {
            return answer;
        }
        if !work.has_unsent() {
            self.paths = Vec::new();
        }
        if !self.duplicate || !work.is_shut() {
            return Answer::Wait;
        }
        self.copy(connection, work, subflows)
            .or_else(|| self.second(connection, work, subflows))
            .unwrap_or(Answer::Wait)
    }

    fn needs(&self) -> Needs {
        Needs {
            outstanding: self.duplicate,
            silence: Some(self.silence),
            segments_per_mapping: TRAIN as u32,
            ..Needs::default()
        }
    }
}

#[cfg(test)]
mod tests;
