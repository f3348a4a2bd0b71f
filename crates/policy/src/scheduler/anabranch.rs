//! Our own: plans which paths use the window best, assigns each segment to the one of them whose acknowledgement is expected first,
//! and waits where a slower one would stall the window or deliver the end late.
//!
//! Per subflow: B the bandwidth that its congestion control counts on, r its least round-trip time, s its smoothed one, f
//! what is in flight and queued there; W is the whole window of the connection.
//!
//! **What a subflow will do.** A segment of len bytes is answered after max(r + len / B, (f + len) / B): it goes behind what
//! is there (Little's law). In the window it stays for r + len / B, or for 2 s more if it is lost. Of a path that was
//! never filled (start-up, and no more in flight than 1.2 r B) B is unknown: eight times
//! the measured value is assumed, so that the path is tried. While the application is not ahead of the send buffer this holds, whatever is in flight, until
//! a round trip shows a queue, and for len / B too: a path with little data shows a low rate, and would never get more. In a
//! transfer that is always ahead the same holds for the first ten segments, an initial window (RFC 6928), and for no less than those in
//! a round trip: what a probe a second has shown is not what the path carries. The s of a repair is at most the answer's time, since a
//! path with nothing of ours in its queue is not the one that it was when the queue stood.
//!
//! **The plan**, made anew every eighth of the shortest stay (1 to 100 ms): of all sets of subflows the one that carries
//! most,
//!
//! T = min(sum of B, m W / longest stay), m = 1 for one subflow and 0.85 for several,
//!
//! divided by one plus the share of time in which the window stands still for repairs that outlast it; of sets within
//! 0.3 % the one with the shortest stay. With much window that is all paths. With little it is BLEST's condition
//! (Networking 2016), for sets: a slow path is worth it only if W / stay is more than what the fast ones carry; and
//! where one path alone would fill the window best, it gets all. Sets are looked at in the order of their longest stays, so that the
//! work grows with the square of the number of subflows, whatever that is (`Plan::best`).
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
//! **Outstanding data** is duplicated on another subflow that can send now if nothing new can be sent: because the window is closed
//! or the sender found it lost, if it is answered there before it is expected from the sender; because there is nothing new, if it is
//! answered there 10 ms before; in any case if it is overdue.
//! At the end of what was written, the last 4 segments are duplicated at once where the sender loses
//! segments and the second path is not much slower: the loss of a tail costs a timeout.
//!
//! Data with a deadline is duplicated on its own subflow where that loses segments, if a retransmission would be too late:
//! the time left is less than 1.25 s and half of what the quickest subflow alive takes longer than the quickest of all. Half
//! of the window stays free. So a stream continues where its fast path has failed and the slow one loses segments.
//!
//! It comes before new data
//!
//! - where the sender acknowledged nothing in sequence for longer than the quickest path's smoothed RTT (or its own, if that is less) and
//!   50 ms, and than four times its RTT variation. By the quickest path's clock: a path with a queue of three seconds has acknowledged
//!   something every few milliseconds, and its failure shows long before three seconds are over. What is older than its
//!   smoothed RTT by such a span is overdue;
//! - where the sender found it lost, and another answers before the sender could: the sender has to send it again in any
//!   case, so this costs a segment, and it is paid where delay counts more than throughput, that is unless the
//!   application is ahead of the send buffer;
//! - if the application is ahead, where the stream has stood still for 50 ms: the byte at its head, and what was lost, where another path
//!   answers twice before the sender could, or a quarter of a second earlier. Like paths repair their own losses;
//! - where the peer says that it is missing there, before the sender could know it ([`Work::missing`]): for
//!   the same price, and under the same condition.
//!
//! A backup duplicates nothing of a regular subflow until that is stale: it would be used while others work.
//!
//! **An unresponsive path**, without an acknowledgement for three smoothed RTTs with data outstanding, is stale: its outstanding data is
//! reinjected, and it gets nothing new until it acknowledges something. If three smoothed RTTs of the quickest path are less, they count, but
//! no less than half a second and four times its own variation, and the oldest segment must be late too.
//!
//! No window is halved as a punishment: a path that gets no data which it would deliver late does no harm.

mod forecast;
mod outlook;
mod plan;

use super::candidates::{excluded, preferred};
use super::{Answer, Chunk, ChunkKind, Decision, Needs, Outstanding, Scheduler, Work, again, unsent};
use crate::ids::{SubflowId, SubflowMap};
use crate::table::{Number, Reader, SettingError, Settings, Switch};
use crate::time::{Duration, Instant};
use crate::view::{ConnectionView, Phase, SubflowView};
use forecast::{DELAYED, Forecast, TOGETHER, is_ready};
use outlook::{Load, Outlook};
use plan::Plan;

/// Smoothed round trips after which a loss is known: one, and a quarter for what may have been reordered (RFC 8985, section 6.2).
const KNOWN: f64 = 1.25;
/// Segments at the end of what was written that may be duplicated.
const TAIL: u64 = 4;
/// Share of segments lost from which on the tail is duplicated.
const LOSSY: f64 = 0.002;
/// Seconds that data may wait for more to share a mapping with.
const GATHER: f64 = 0.002;
/// Seconds for which a stream that stands still is worth a copy.
const WORTH: f64 = 0.25;
/// Seconds by which a copy has to be earlier where nothing was lost and nothing new waits: of like paths each is a little
/// earlier than the other at times, and a stream would go over both.
const MARGIN: f64 = 0.01;
/// How much longer an answer may take than the longest planned.
const SLACK: f64 = 1.1;
/// How much of the time that the window lasts an answer may take.
const SAFETY: f64 = 0.85;

const SILENCE: Number = Number {
    name: "silence",
    unit: "smoothed round trips",
    default: 3.0,
    range: 2.0..=1000.0,
    summary: "How long a path with outstanding data may be unresponsive before it counts as stale",
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

/// What a copy of outstanding data goes out before.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Before {
    /// There is no new data, or the window is shut.
    Nothing,
    NewData,
}

/// The scheduler `anabranch`.
#[derive(Debug)]
pub struct Anabranch {
    wait: bool,
    duplicate: bool,
    silence: f32,
    plan: Plan,
    /// The subflows at the last decision: kept as long as there is something to decide.
    outlook: Option<Box<Outlook>>,
    /// Where new data went last.
    last: Option<SubflowId>,
    /// The first byte that is not acknowledged, and since when it is.
    head: (u64, Instant),
    /// When a subflow without a recent acknowledgement was last seen without data: its silence begins no earlier.
    idle: SubflowMap<Instant>,
}

impl Default for Anabranch {
    fn default() -> Self {
        Settings::new().read(Self::read).expect("the defaults are in their ranges")
    }
}

impl Anabranch {
    pub fn build(reader: &mut Reader<'_>) -> Result<Box<dyn Scheduler>, SettingError> {
        Ok(Box::new(Self::read(reader)?))
    }

    fn read(reader: &mut Reader<'_>) -> Result<Self, SettingError> {
        Ok(Self {
            wait: reader.read(&WAIT)?,
            duplicate: reader.read(&DUPLICATE)?,
            silence: reader.read(&SILENCE)? as f32,
            plan: Plan::NONE,
            outlook: None,
            last: None,
            head: (0, Instant::ZERO),
            idle: SubflowMap::new(),
        })
    }

    /// Plans anew if it is time, or if there are others to choose from than before.
    fn plan(&mut self, connection: &ConnectionView) {
        let Some(outlook) = &mut self.outlook else { return };
        let among = outlook.among();
        if connection.now < self.plan.until && among == self.plan.among {
            return;
        }
        let mut paths: Vec<Forecast> = outlook.eligible().copied().collect();
        let shortest = paths.iter().map(|path| path.stay).fold(f64::INFINITY, f64::min);
        let until = connection.now + Duration::from_secs_f64((shortest / 8.0).clamp(0.001, 0.1));
        self.plan = Plan { until, among, ..Plan::best(connection.window as f64, &mut paths) };
        outlook.follow(Some(&self.plan));
    }

    /// The subflow for the data, of several, regardless of shared mappings.
    fn place(&mut self, connection: &ConnectionView, chunk: &Chunk, subflows: &[SubflowView]) -> Option<SubflowId> {
        let load = Load { length: chunk.length, live: !connection.backlogged };
        // In most calls all windows are full.
        if !self.outlook.get_or_insert_default().look(subflows, load, excluded(chunk), self.wait.then_some(&self.plan))
        {
            return None;
        }
        // With a single subflow there is nothing to compare.
        if let Some(only) = self.outlook.as_ref().and_then(|outlook| outlook.only()) {
            return only.ready.then_some(only.id);
        }
        if self.wait {
            self.plan(connection);
        }
        self.choose(connection, chunk.time_left, self.outlook.as_ref()?.considered())
    }

    /// The subflow with the earliest answer among those that can send now; none if it is better to wait for one that
    /// cannot.
    fn choose<'a>(
        &self,
        connection: &ConnectionView,
        time_left: Option<Duration>,
        paths: impl Iterator<Item = &'a Forecast> + Clone,
    ) -> Option<SubflowId> {
        let (mut first, mut last, mut fastest): (Option<&Forecast>, Option<&Forecast>, Option<&Forecast>) =
            (None, None, None);
        let earlier = |path: &Forecast, than: Option<&Forecast>| than.is_none_or(|than| path.answer < than.answer);
        for path in paths.clone() {
            if path.ready && earlier(path, first) {
                first = Some(path);
            }
            if path.ready && Some(path.id) == self.last {
                last = Some(path);
            }
            if earlier(path, fastest) {
                fastest = Some(path);
            }
        }
        let first = first?;
        // Consecutive data that leaves together is merged into one packet: the next segment follows the last one, as
        // long as its answer there is as early as if they were separate.
        let chosen = last.filter(|path| path.answer <= first.answer + path.together).unwrap_or(first);
        // Waiting pays only for a subflow whose answer is earlier than that of the first one that can send.
        let Some(fastest) = fastest.filter(|other| self.wait && other.answer < first.answer) else {
            return Some(chosen.id);
        };
        let rate: f64 = paths.filter(|other| other.answer < first.answer).map(|other| other.rate).sum();
        let lasts = connection.window as f64 / self.plan.carried.max(1.0);
        let stalls = chosen.answer > (self.plan.longest * SLACK).max(SAFETY * lasts);
        // The return path does not count if a loss is detected in time.
        let in_time = time_left.is_some_and(|left| chosen.answer <= left.as_secs_f64());
        let there = |path: &Forecast| if in_time { path.answer - path.stay / 2.0 } else { path.answer };
        let ends = !connection.backlogged && connection.unsent as f64 / rate + there(fastest) <= there(chosen);
        (!stalls && !ends).then_some(chosen.id)
    }

    /// Whether outstanding data comes before new data now.
    fn duplicates_first(&mut self, connection: &ConnectionView, subflows: &[SubflowView]) -> bool {
        if !self.duplicate || subflows.len() < 2 {
            return false;
        }
        let repairs = |subflow: &SubflowView| subflow.phase == Phase::FastRecovery && !connection.backlogged;
        // After an acknowledgement this recent no subflow is silent, and the fastest one need not be computed.
        let lately = connection.now - DELAYED;
        let mut silent = false;
        for subflow in subflows.iter().filter(|subflow| subflow.last_progress < lately) {
            if subflow.in_flight + subflow.queued == 0 {
                self.idle.insert(subflow.id, connection.now);
            }
            silent |= self.is_silent(connection, subflow, quickest(subflows));
        }
        silent || self.is_stuck(connection) || subflows.iter().any(repairs)
    }

    /// Whether a subflow with data outstanding has been silent for longer than one acknowledgement can be late, by the
    /// round trip of the fastest path: a subflow with a long queue acknowledges something all the time.
    fn is_silent(&self, connection: &ConnectionView, subflow: &SubflowView, quickest: Duration) -> bool {
        let idle = self.idle.get(subflow.id).copied().unwrap_or_default();
        let silence = connection.now.since(subflow.last_progress.max(idle));
        // A single segment may be acknowledged late.
        let clock = subflow.smoothed_rtt.min(quickest);
        let patience = (clock + DELAYED).max(subflow.rtt_variation * 4);
        subflow.usable() && !subflow.stale && subflow.in_flight > u64::from(subflow.mss) && silence > patience
    }

    /// Whether the first unacknowledged byte has been the same for longer than an acknowledgement can be late.
    fn is_stuck(&self, connection: &ConnectionView) -> bool {
        let (head, since) = self.head;
        head == connection.data_una && connection.now.since(since) > DELAYED
    }

    /// The subflow that duplicates outstanding data, if any.
    fn duplicate(
        &mut self,
        connection: &ConnectionView,
        outstanding: &Outstanding,
        before: Before,
        subflows: &[SubflowView],
    ) -> Option<SubflowId> {
        let sender = subflows.iter().find(|subflow| subflow.id == outstanding.sender)?;
        let others = preferred(subflows, Some(sender.id)).filter(|other| may_copy(sender, other));
        let able = others
            .map(|other| Forecast::of(other, outstanding.length, !connection.backlogged))
            .filter(|other| other.ready);
        let other = able.min_by(|a, b| a.answer.total_cmp(&b.answer))?;
        let waited = connection.now.since(outstanding.sent_at).as_secs_f64();
        let usual = sender.smoothed_rtt.as_secs_f64();
        let quickest = quickest(subflows);
        let late = (usual / 2.0).min((quickest + DELAYED).as_secs_f64());
        let overdue = waited > usual + (sender.rtt_variation.as_secs_f64() * 4.0).max(late);
        let earlier = self.is_earlier(connection, outstanding, before, (sender, &other), quickest);
        let behind = connection.data_nxt.saturating_sub(outstanding.data_seq);
        let tail = connection.unsent == 0 && behind <= TAIL * u64::from(sender.mss);
        let risky = sender.loss_rate > LOSSY && other.answer < usual * 3.0;
        (overdue || earlier || (tail && risky)).then_some(other.id)
    }

    /// Whether a copy is answered so much earlier than what its sender has sent that it is worth it.
    fn is_earlier(
        &self,
        connection: &ConnectionView,
        outstanding: &Outstanding,
        before: Before,
        (sender, other): (&SubflowView, &Forecast),
        quickest: Duration,
    ) -> bool {
        let usual = sender.smoothed_rtt.as_secs_f64();
        let waited = connection.now.since(outstanding.sent_at).as_secs_f64();
        // Data marked lost that waits for the sender's window is acknowledged a round trip after its retransmission.
        let under_way = if outstanding.unrepaired { 0.0 } else { waited };
        let sooner = |times: f64| under_way + times * other.answer < usual;
        match before {
            // A shut window opens earlier.
            Before::Nothing if outstanding.lost || connection.unsent > 0 => sooner(1.0),
            Before::Nothing => under_way + other.answer + MARGIN < usual,
            Before::NewData if self.is_silent(connection, sender, quickest) => sooner(1.0),
            Before::NewData if !connection.backlogged => outstanding.lost && sooner(1.0),
            // A duplicate takes the place of a new segment: only if the stream stands still until one of the two
            // arrives, and this one by far first. Behind queues of seconds no path is twice as fast, and the stream
            // would stand still for as long as they are.
            Before::NewData => {
                (outstanding.lost || outstanding.data_seq <= connection.data_una)
                    && self.is_stuck(connection)
                    && (sooner(2.0) || under_way + other.answer + WORTH < usual)
            }
        }
    }

    /// Whether data with this time left is duplicated at once by the subflow that sent it.
    fn duplicates_recent(
        &mut self,
        connection: &ConnectionView,
        outstanding: &Outstanding,
        time_left: Duration,
        subflows: &[SubflowView],
    ) -> bool {
        self.duplicate && is_worth_duplicating(connection, outstanding, time_left, subflows)
    }

    /// Whether data reported missing is reinjected at once.
    fn repairs_elsewhere(&mut self, connection: &ConnectionView) -> bool {
        self.duplicate && !connection.backlogged
    }

    /// A duplicate on another subflow of the first outstanding data that needs one.
    fn copy(
        &mut self,
        connection: &ConnectionView,
        before: Before,
        work: &mut dyn Work,
        subflows: &[SubflowView],
    ) -> Option<Answer> {
        let mut after = None;
        while let Some(outstanding) = work.outstanding(after) {
            if let Some(id) = self.duplicate(connection, &outstanding, before, subflows) {
                return Some(Answer::Copy(outstanding, id));
            }
            after = Some(outstanding.data_seq);
        }
        None
    }

    /// A duplicate, on the subflow that sent it, of data whose loss could not be repaired in time.
    fn second(&mut self, connection: &ConnectionView, work: &mut dyn Work, subflows: &[SubflowView]) -> Option<Answer> {
        while let Some((held, time_left)) = work.recent() {
            if self.duplicates_recent(connection, &held, time_left, subflows) {
                return Some(Answer::Copy(held, held.sender));
            }
        }
        None
    }
}

/// Whether to wait until the window allows several segments, so that they share a mapping: the window is the limit, and
/// data in flight will open it within [`GATHER`].
fn gathers(connection: &ConnectionView, id: SubflowId, subflows: &[SubflowView]) -> bool {
    let Some(subflow) = subflows.iter().find(|subflow| subflow.id == id) else { return false };
    let mss = u64::from(subflow.mss);
    let several = ((subflow.bytes_per_second() * GATHER) as u64).min(TOGETHER * mss);
    let queue = subflow.has_queue_in(subflow.smoothed_rtt);
    let opens = queue && subflow.in_flight > 4 * several && subflow.queued == 0 && subflow.loss_rate < LOSSY / 2.0;
    several >= 2 * mss && opens && connection.window_left < several && connection.unsent > several
}

/// The minimum of the paths' round-trip times now, of those that answer.
fn quickest(subflows: &[SubflowView]) -> Duration {
    let alive = subflows.iter().filter(|subflow| subflow.usable() && !subflow.stale);
    alive.map(|subflow| subflow.smoothed_rtt).min().unwrap_or(Duration::MAX)
}

/// Whether another subflow may carry a copy of what `sender` has sent. Of a backup the user expects nothing as long as a regular
/// subflow is available (RFC 8684, section 3.3.8).
fn may_copy(sender: &SubflowView, other: &SubflowView) -> bool {
    !other.stale && (!other.backup || sender.stale || sender.backup)
}

/// Whether data just sent is duplicated on the same subflow: its loss could not be repaired before the deadline.
fn is_worth_duplicating(
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
    // The deadline includes the delay of the fastest path.
    let repaired = sender.smoothed_rtt.mul_f64(KNOWN) + (repairer - quickest) / 2;
    let fresh = connection.now.since(outstanding.sent_at) < sender.smoothed_rtt / 2;
    let ahead = sender.in_flight + sender.queued + u64::from(outstanding.length);
    let spare = ahead * 2 <= sender.cwnd && Forecast::of(sender, outstanding.length, true).ready;
    !connection.backlogged && !outstanding.lost && fresh && spare && time_left < repaired
}

impl Scheduler for Anabranch {
    fn schedule(&mut self, connection: &ConnectionView, chunk: &Chunk, subflows: &[SubflowView]) -> Decision {
        let chosen = match subflows {
            [only] => {
                let able = only.usable() && Some(only.id) != excluded(chunk) && is_ready(only, chunk.length);
                able.then_some(only.id)
            }
            _ => self.place(connection, chunk, subflows),
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
        if self.head.0 != connection.data_una {
            self.head = (connection.data_una, connection.now);
        }
        if work.missing() && self.repairs_elsewhere(connection) {
            work.repair_missing();
        }
        if let Some(answer) = again(self, connection, work, subflows) {
            return answer;
        }
        if work.has_unsent()
            && self.duplicates_first(connection, subflows)
            && let Some(copy) = self.copy(connection, Before::NewData, work, subflows)
        {
            return copy;
        }
        if let Some(answer) = unsent(self, connection, work, subflows) {
            return answer;
        }
        if !work.has_unsent() {
            // Releases memory.
            (self.outlook, self.plan) = (None, Plan::NONE);
        }
        if !self.duplicate || !work.is_shut() {
            return Answer::Wait;
        }
        self.copy(connection, Before::Nothing, work, subflows)
            .or_else(|| self.second(connection, work, subflows))
            .unwrap_or(Answer::Wait)
    }

    fn on_subflow_removed(&mut self, id: SubflowId) {
        self.idle.remove(id);
    }

    fn needs(&self) -> Needs {
        Needs {
            outstanding: self.duplicate,
            silence: Some(self.silence),
            segments_per_mapping: TOGETHER as u32,
            ..Needs::default()
        }
    }
}

#[cfg(test)]
mod tests;
