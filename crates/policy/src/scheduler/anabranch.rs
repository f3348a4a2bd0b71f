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
//! **A path that is silent** for three smoothed RTTs with data outstanding counts as stale: what it holds goes
//! elsewhere, and it gets nothing new until it is heard of.
//!
//! No window is halved as a punishment: a path that is not asked for what it would deliver late does no harm.

use super::candidates::{excluded, preferred};
use super::{Chunk, ChunkKind, Decision, Hole, Outstanding, Relief, Scheduler};
use crate::ids::{SubflowId, SubflowMap};
use crate::table::{Parameter, SettingError, Settings};
use crate::time::{Duration, Instant};
use crate::view::{ConnectionView, SubflowView};

/// Segments that may wait for the pacing of a subflow.
const BURST: u64 = 2;
/// Segments at the end of what was written that may go twice.
const TAIL: u64 = 8;
/// Share of segments lost from which on the tail goes twice.
const LOSSY: f64 = 0.002;
/// Most that the caution against a subflow can be.
const MOST_CAUTION: f64 = 8.0;
/// What the caution falls by per smoothed RTT.
const FORGIVENESS: f64 = 0.05;

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

/// How careful to be with a subflow.
#[derive(Clone, Copy, Debug)]
struct Caution {
    factor: f64,
    raised: Instant,
}

impl Caution {
    /// What is left of it.
    fn now(&self, now: Instant, smoothed_rtt: Duration) -> f64 {
        let round_trips = now.since(self.raised).as_secs_f64() / smoothed_rtt.as_secs_f64().max(1e-6);
        (self.factor - FORGIVENESS * round_trips).max(1.0)
    }
}

/// The scheduler `anabranch`.
#[derive(Debug)]
pub struct Anabranch {
    wait: bool,
    duplicate: bool,
    silence: f32,
    cautions: SubflowMap<Caution>,
}

impl Default for Anabranch {
    fn default() -> Self {
        Self { wait: true, duplicate: true, silence: 3.0, cautions: SubflowMap::new() }
    }
}

impl Anabranch {
    /// Makes one from [`PARAMETERS`].
    pub fn build(settings: &Settings) -> Result<Box<dyn Scheduler>, SettingError> {
        let on = |name| settings.word(name, &["off", "on"], 1).map(|word| word == 1);
        let silence = settings.number("silence", 3.0, 2.0..=1000.0)? as f32;
        Ok(Box::new(Self { wait: on("wait")?, duplicate: on("duplicate")?, silence, cautions: SubflowMap::new() }))
    }

    fn caution(&self, now: Instant, subflow: &SubflowView) -> f64 {
        self.cautions.get(subflow.id).map_or(1.0, |caution| caution.now(now, subflow.smoothed_rtt))
    }

    /// Whether `length` bytes should rather wait for a subflow faster than `slow`.
    fn should_wait<'a>(
        &self,
        connection: &ConnectionView,
        length: u32,
        slow: &SubflowView,
        candidates: impl Iterator<Item = &'a SubflowView>,
    ) -> bool {
        let (mut rate, mut fastest) = (0.0, f64::INFINITY);
        for faster in candidates.filter(|other| other.smoothed_rtt < slow.smoothed_rtt) {
            rate += bytes_per_second(faster);
            fastest = f64::min(fastest, faster.smoothed_rtt.as_secs_f64());
        }
        if rate <= 0.0 {
            return false;
        }
        let round_trip = slow.smoothed_rtt.as_secs_f64();
        let meanwhile = self.caution(connection.now, slow) * round_trip * rate;
        if meanwhile + f64::from(length) > connection.window_left as f64 {
            return true;
        }
        let there = round_trip + f64::from(length) / bytes_per_second(slow).max(1.0);
        !connection.backlogged && connection.unsent as f64 / rate + fastest <= there
    }
}

fn bytes_per_second(subflow: &SubflowView) -> f64 {
    subflow.bandwidth.bytes_per_second() as f64
}

/// Whether a segment given to the subflow leaves at once, or nearly.
fn ready(subflow: &SubflowView, length: u32) -> bool {
    let mss = u64::from(subflow.mss);
    subflow.queued <= BURST * mss && subflow.room() >= u64::from(length).min(mss)
}

/// The one of the preferred subflows with the lowest smoothed RTT that can send now.
fn readiest(subflows: &[SubflowView], excluded: Option<SubflowId>, length: u32) -> Option<&SubflowView> {
    preferred(subflows, excluded).filter(|subflow| ready(subflow, length)).min_by_key(|subflow| subflow.smoothed_rtt)
}

impl Scheduler for Anabranch {
    fn schedule(&mut self, connection: &ConnectionView, chunk: &Chunk, subflows: &[SubflowView]) -> Decision {
        let excluded = excluded(chunk);
        let Some(subflow) = readiest(subflows, excluded, chunk.length) else { return Decision::Wait(None) };
        // What is sent again is what everything else waits for.
        let urgent = chunk.kind == ChunkKind::Reinjection;
        if self.wait && !urgent && self.should_wait(connection, chunk.length, subflow, preferred(subflows, excluded)) {
            return Decision::Wait(None);
        }
        Decision::Send(subflow.id)
    }

    fn on_window_blocked(&mut self, connection: &ConnectionView, hole: &Hole, subflows: &[SubflowView]) -> Relief {
        let culprit = subflows.iter().find(|subflow| subflow.id == hole.culprit);
        let best = preferred(subflows, Some(hole.culprit)).map(|other| other.smoothed_rtt).min();
        if let (Some(culprit), Some(best)) = (culprit, best)
            && culprit.smoothed_rtt > best
        {
            let now = connection.now;
            let last = self.cautions.get(culprit.id).copied();
            if last.is_none_or(|last| now.since(last.raised) >= culprit.smoothed_rtt) {
                let factor = (self.caution(now, culprit) * 1.5).min(MOST_CAUTION);
                self.cautions.insert(culprit.id, Caution { factor, raised: now });
            }
        }
        Relief::default()
    }

    fn duplicates(&self) -> bool {
        self.duplicate
    }

    fn duplicate(
        &mut self,
        connection: &ConnectionView,
        outstanding: &Outstanding,
        subflows: &[SubflowView],
    ) -> Option<SubflowId> {
        let holder = subflows.iter().find(|subflow| subflow.id == outstanding.holder)?;
        let other = readiest(subflows, Some(holder.id), outstanding.length)?;
        if other.stale {
            return None;
        }
        let now = connection.now;
        let expected = outstanding.sent_at + holder.smoothed_rtt;
        let overdue = now > expected + (holder.rtt_variation * 4).max(holder.smoothed_rtt / 2);
        let length = u64::from(outstanding.length) + other.queued;
        let there = now + other.smoothed_rtt + other.bandwidth.time_for(length).min(Duration::from_secs(60));
        let earlier = there < expected;
        let behind = connection.data_nxt.saturating_sub(outstanding.data_seq);
        let tail = connection.unsent == 0 && behind <= TAIL * u64::from(holder.mss);
        let risky = holder.loss_rate > LOSSY && other.smoothed_rtt < holder.smoothed_rtt * 3;
        (overdue || earlier || (tail && risky)).then_some(other.id)
    }

    fn silence(&self) -> Option<f32> {
        Some(self.silence)
    }

    fn on_subflow_removed(&mut self, id: SubflowId) {
        self.cautions.remove(id);
    }
}
