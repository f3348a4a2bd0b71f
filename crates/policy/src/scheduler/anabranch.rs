//! Our own: the fastest path first, and a slower one only for data that it delivers before the faster ones, or the
//! receive window, would wait for it.
//!
//! Per subflow: s smoothed RTT, B the bandwidth that its congestion control counts on. W is what is left of the
//! connection's window, k what the application has written and nobody was given yet.
//!
//! **New data** is offered to the subflow S with the lowest s that can send now: room in the window, nothing to repair,
//! and at most [`BURST`] segments waiting for the pacing. If faster subflows F exist that cannot, S gets the data
//! unless one of these says that waiting is better:
//!
//! - *The window would stall* (as BLEST, Networking 2016): while the data is on its way over S, for c s_S, the faster
//!   ones send X = c s_S (sum of B_F). S is used only if X + len <= W. The caution c is 1 at the least; each time the
//!   window really closed on a hole of S (once per s_S) it grows by half, to 8 at most, and it falls by 0.05 per s_S.
//! - *The end would be late* (as ECF, CoNEXT 2017): if the application has nothing more to write than these k bytes,
//!   the faster ones have them delivered after k / (sum of B_F) + s_F, S its part after s_S + len / B_S. S is used only
//!   if that is earlier. While the application is ahead of the send buffer (`backlogged`), there is no end.
//!
//! **Data on its way** is sent a second time on another subflow that can send now when nothing new can be sent anyway
//! (nothing is there, or the window is shut): if it arrives there before the holder's copy is expected, or if that is
//! overdue. At the end of what was written, the last [`TAIL`] segments go twice at once where the holder loses
//! segments and the second path is not much slower: the loss of a tail costs a timeout.
//!
//! It comes before new data where the holder acknowledged nothing in sequence for [`DOUBT`] smoothed RTTs: a probe of
//! the tail (RFC 8985, section 7) is due then, and what is overdue would stall the stream for longer.
//!
//! **A path that is silent** for three smoothed RTTs with data outstanding counts as stale: what it holds goes
//! elsewhere, and it gets nothing new until it is heard of.
//!
//! No window is halved as a punishment: a path that is not asked for what it would deliver late does no harm.

use super::candidates::{excluded, preferred};
use super::{Chunk, Decision, Outstanding, Scheduler};
use crate::ids::SubflowId;
use crate::table::{Parameter, SettingError, Settings};
use crate::view::{ConnectionView, Phase, SubflowView};

/// Segments that may wait for the pacing of a subflow.
const BURST: u64 = 2;
/// Smoothed round trips without progress after which what is overdue comes before new data.
const DOUBT: u64 = 2;
/// Segments at the end of what was written that may go twice.
const TAIL: u64 = 8;
/// Share of segments lost from which on the tail goes twice.
const LOSSY: f64 = 0.002;
/// By what factor a slower subflow must raise what the window lets the faster ones carry.
const WORTH: f64 = 1.02;
/// By what factor a subflow of the plan must raise what the others carry.
const IDLE_WORTH: f64 = 1.002;
/// How much longer an answer may take than the longest planned.
const SLACK: f64 = 1.1;
/// How much of the time that the window lasts an answer may take.
const SAFETY: f64 = 0.7;
/// Seconds that a receiver may delay the acknowledgement of a single segment (40 ms), and some scheduling.
const DELAYED: f64 = 0.05;

/// The settings of [`Anabranch`].
pub const PARAMETERS: &[Parameter] = &[
    Parameter {
        name: "wait",
        default: "on",
        values: "off | on",
        summary: "Wait for a faster path where a slower one would stall the window or deliver the end late",
    },
    Parameter {
        name: "duplicate",
        default: "on",
        values: "off | on",
        summary: "Send data that is overdue, or expected earlier on another path, there too when nothing new can be sent",
    },
    Parameter {
        name: "silence",
        default: "3",
        values: "smoothed round trips, 2 to 1000",
        summary: "How long a path with data outstanding may be silent before it counts as stale",
    },
];

/// What a subflow is expected to do.
#[derive(Clone, Copy, Debug)]
struct Forecast {
    id: SubflowId,
    /// Bytes per second; infinite if not known yet.
    rate: f64,
    /// Seconds until a segment given to it now is acknowledged: it goes behind what is in flight and queued.
    answer: f64,
    /// Seconds that data stays in the connection's window if no queue stands: an answer, and a repair where the path
    /// loses segments.
    stay: f64,
    /// A segment given to it now leaves at once, or nearly.
    ready: bool,
}

impl Forecast {
    fn of(subflow: &SubflowView, length: u32) -> Self {
        let mss = u64::from(subflow.mss);
        let (least, smoothed) = (subflow.min_rtt.as_secs_f64(), subflow.smoothed_rtt.as_secs_f64());
        let known = (subflow.bandwidth.bytes_per_second() as f64).max(1.0);
        let behind = (subflow.in_flight + subflow.queued + u64::from(length)) as f64;
        // The last answer on an idle path was to a single segment, which the peer may have delayed.
        let seen = if subflow.in_flight == 0 { subflow.latest_rtt.as_secs_f64() - DELAYED } else { smoothed };
        let own = if subflow.app_limited { 0.0 } else { behind / known };
        let alone = least + f64::from(length) / known;
        let answer = own.max(alone).max(seen);
        // What a path can carry that was never filled, nobody knows: it is tried.
        let never_filled = subflow.phase == Phase::SlowStart && behind / known < least * 1.5;
        let rate = if never_filled { f64::INFINITY } else { known };
        let spoilt = (known * least / mss.max(1) as f64 * subflow.loss_rate).min(1.0);
        let ready = subflow.queued <= BURST * mss && subflow.room() >= u64::from(length).min(mss);
        Self { id: subflow.id, rate, answer, stay: alone + spoilt * least, ready }
    }
}

/// What a window of `window` bytes lets paths carry together, in bytes per second, that have `rate` and keep data in it
/// for `stay` seconds.
fn throughput(window: f64, rate: f64, stay: f64) -> f64 {
    rate.min(window / stay.max(1e-9))
}

/// Leaves in `paths`, in order of their stay, those with which the window carries most; gives how much.
fn plan(window: f64, paths: &mut Vec<Forecast>) -> f64 {
    paths.sort_unstable_by(|a, b| a.stay.total_cmp(&b.stay));
    let (mut rate, mut best, mut keep) = (0.0, 0.0, 1);
    for (at, path) in paths.iter().enumerate() {
        rate += path.rate;
        let together = throughput(window, rate, path.stay);
        if together > best * WORTH {
            (best, keep) = (together, at + 1);
        }
    }
    paths.truncate(keep);
    // Where the window is the limit, who adds nothing only holds it up.
    while paths.len() > 1 {
        let Some((at, _)) = paths.iter().enumerate().min_by(|(_, a), (_, b)| a.rate.total_cmp(&b.rate)) else { break };
        let without = paths.iter().enumerate().filter(|(other, _)| *other != at);
        let (rate, stay) =
            without.fold((0.0, 0.0), |(rate, stay): (f64, f64), (_, path)| (rate + path.rate, stay.max(path.stay)));
        if throughput(window, rate, stay) * IDLE_WORTH < best {
            break;
        }
        paths.remove(at);
    }
    best
}

/// The scheduler `anabranch`.
#[derive(Debug)]
pub struct Anabranch {
    wait: bool,
    duplicate: bool,
    silence: f32,
    /// The subflows at a decision: kept for its memory.
    paths: Vec<Forecast>,
}

impl Default for Anabranch {
    fn default() -> Self {
        Self { wait: true, duplicate: true, silence: 3.0, paths: Vec::new() }
    }
}

impl Anabranch {
    /// Makes one from [`PARAMETERS`].
    pub fn build(settings: &Settings) -> Result<Box<dyn Scheduler>, SettingError> {
        let on = |name| settings.word(name, &["off", "on"], 1).map(|word| word == 1);
        let silence = settings.number("silence", 3.0, 2.0..=1000.0)? as f32;
        Ok(Box::new(Self { wait: on("wait")?, duplicate: on("duplicate")?, silence, paths: Vec::new() }))
    }

    /// The subflow that answers first of those that can send now; none if it is better to wait for one that cannot.
    fn choose<'a>(
        &mut self,
        connection: &ConnectionView,
        length: u32,
        candidates: impl Iterator<Item = &'a SubflowView>,
    ) -> Option<SubflowId> {
        self.paths.clear();
        self.paths.extend(candidates.map(|subflow| Forecast::of(subflow, length)));
        let window = connection.window as f64;
        let carried = if self.wait { plan(window, &mut self.paths) } else { 0.0 };
        let able = self.paths.iter().filter(|path| path.ready);
        let chosen = *able.min_by(|a, b| a.answer.total_cmp(&b.answer))?;
        let faster = self.paths.iter().filter(|other| other.answer < chosen.answer);
        let (rate, answer) = faster.fold((0.0, f64::INFINITY), |(rate, answer): (f64, f64), other| {
            (rate + other.rate, answer.min(other.answer))
        });
        if !self.wait || rate <= 0.0 {
            return Some(chosen.id);
        }
        let longest = self.paths.iter().map(|path| path.stay).fold(0.0, f64::max);
        let stalls = chosen.answer > (longest * SLACK).max(SAFETY * window / carried.max(1.0));
        let ends = !connection.backlogged && connection.unsent as f64 / rate + answer <= chosen.answer;
        (!stalls && !ends).then_some(chosen.id)
    }
}

impl Scheduler for Anabranch {
    fn schedule(&mut self, connection: &ConnectionView, chunk: &Chunk, subflows: &[SubflowView]) -> Decision {
        let candidates = preferred(subflows, excluded(chunk));
        match self.choose(connection, chunk.length, candidates) {
            Some(id) => Decision::Send(id),
            None => Decision::Wait(None),
        }
    }

    fn duplicates(&self) -> bool {
        self.duplicate
    }

    fn duplicates_first(&mut self, connection: &ConnectionView, subflows: &[SubflowView]) -> bool {
        let silent = |subflow: &SubflowView| {
            let silence = connection.now.since(subflow.last_progress);
            subflow.usable() && !subflow.stale && subflow.in_flight > 0 && silence > subflow.smoothed_rtt * DOUBT
        };
        self.duplicate && subflows.iter().any(silent)
    }

    fn duplicate(
        &mut self,
        connection: &ConnectionView,
        outstanding: &Outstanding,
        subflows: &[SubflowView],
    ) -> Option<SubflowId> {
        let holder = subflows.iter().find(|subflow| subflow.id == outstanding.holder)?;
        let others = preferred(subflows, Some(holder.id)).filter(|other| !other.stale);
        let able = others.map(|other| Forecast::of(other, outstanding.length)).filter(|other| other.ready);
        let other = able.min_by(|a, b| a.answer.total_cmp(&b.answer))?;
        let waited = connection.now.since(outstanding.sent_at).as_secs_f64();
        let usual = holder.smoothed_rtt.as_secs_f64();
        let overdue = waited > usual + (holder.rtt_variation.as_secs_f64() * 4.0).max(usual / 2.0);
        let earlier = waited + other.answer < usual;
        let behind = connection.data_nxt.saturating_sub(outstanding.data_seq);
        let tail = connection.unsent == 0 && behind <= TAIL * u64::from(holder.mss);
        let risky = holder.loss_rate > LOSSY && other.answer < usual * 3.0;
        (overdue || earlier || (tail && risky)).then_some(other.id)
    }

    fn silence(&self) -> Option<f32> {
        Some(self.silence)
    }

    fn mapping_train(&self) -> u32 {
        16
    }
}

#[cfg(test)]
mod tests;
