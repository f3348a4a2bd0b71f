//! Selects the record that a subflow sends next.

use super::context::Context;
use super::receiver::AckDue;
use super::recovery::{Phase, TailProbe};
use super::scoreboard::{Departing, Record};
use super::state::Subflow;
use super::tcp_state::State;
use super::timers::SubflowTimer;
use crate::event::SendKind;
use anabranch_policy::congestion::{HOLD, Sent, send_quantum, whole_packet};
use anabranch_policy::rate::Rate;
use anabranch_policy::time::{Duration, Instant};

/// A record to be sent.
#[derive(Debug)]
pub struct Outgoing {
    pub record: Departing,
    pub kind: SendKind,
}

impl Subflow {
    /// Whether there is data that the state allows to send.
    pub fn has_something_to_send(&self) -> bool {
        let waits = self.scoreboard.lost() > 0 || self.scoreboard.has_unsent() || self.due.probe;
        waits && self.state.is_synchronised() && self.state != State::TimeWait && self.handshake.confirmed
    }

    /// Whether pacing delays the next segment.
    pub fn is_paced_out(&self, now: Instant) -> bool {
        self.rates.pace_until > now && self.rates.released == 0
    }

    #[cfg(test)]
    pub fn set_paced_until(&mut self, until: Instant) {
        self.rates.pace_until = until;
    }

    /// Arms a timer for the time when pacing allows the next segment; returns it.
    pub fn wait_for_pacing(&mut self) -> Instant {
        self.timers.set(SubflowTimer::Pace, self.rates.pace_until);
        self.rates.pace_until
    }

    /// Handles the timer of [`Self::wait_for_pacing`], which a busy host calls late.
    pub fn end_pacing(&mut self, now: Instant) {
        self.timers.stop(SubflowTimer::Pace);
        self.rates.late = now.since(self.rates.pace_until).min(HOLD).as_nanos() as u32;
    }

    /// The next record that the windows allow, already marked as sent. The caller has checked the state
    /// ([`Self::has_something_to_send`]) and pacing ([`Self::is_paced_out`]).
    pub fn next_transmission(&mut self, cx: &mut Context<'_>) -> Option<Outgoing> {
        let lost = self.scoreboard.lost() > 0;
        let window = self.window(cx.congestion, cx.config);
        let pipe = self.pipe();
        let fits = |length: u32| pipe == 0 || pipe + u64::from(length) <= window;
        let outgoing = if lost && self.scoreboard.next_lost().is_some_and(|record| fits(record.length)) {
            let record = self.scoreboard.retransmit_next(cx.now)?;
            Outgoing { record, kind: SendKind::Retransmission }
        } else if !lost && self.scoreboard.next_unsent().is_some_and(|r| self.permits(r) && (r.fin || fits(r.length))) {
            self.send_new(cx)?
        } else if self.due.probe {
            self.send_probe(cx)?
        } else {
            return None;
        };
        self.account(cx, &outgoing);
        Some(outgoing)
    }

    /// Whether the peer's window on this subflow allows a record.
    fn permits(&self, record: &Record) -> bool {
        record.end().at_or_before(self.window.edge) || (record.fin && !self.window.bounds_fin)
    }

    #[inline(always)]
    fn send_new(&mut self, cx: &mut Context<'_>) -> Option<Outgoing> {
        self.restart_after_idle(cx);
        let record = self.scoreboard.send_next(cx.now)?;
        self.send.nxt = record.end();
        self.record_probe(&record);
        Some(Outgoing { record, kind: SendKind::New })
    }

    /// A tail loss probe: new data if there is some, otherwise the last segment again (RFC 8985, section 7.3). A stale
    /// subflow is probed with the first segment: only that one is in flight then, and its acknowledgement allows the
    /// next.
    fn send_probe(&mut self, cx: &mut Context<'_>) -> Option<Outgoing> {
        self.due.probe = false;
        if self.is_stale() {
            let record = self.scoreboard.retransmit_first(cx.now)?;
            return Some(Outgoing { record, kind: SendKind::Retransmission });
        }
        let next = self.scoreboard.next_unsent().is_some_and(|record| self.permits(record));
        let path_probe_lost = !next && self.lose_probe(cx.now);
        let again = |record| Outgoing { record, kind: SendKind::Retransmission };
        let outgoing = match next {
            true => self.send_new(cx)?,
            false if path_probe_lost => again(self.scoreboard.retransmit_next(cx.now)?),
            false => again(self.scoreboard.retransmit_last(cx.now)?),
        };
        // The retransmission of a path MTU probe is no sign of congestion.
        let retransmitted = outgoing.kind == SendKind::Retransmission && !path_probe_lost;
        self.recovery.tail_probe = Some(TailProbe { end: self.send.nxt, retransmitted });
        Some(outgoing)
    }

    /// After an idle time longer than the timeout, the window may no longer fit the path (RFC 5681, section 4.1).
    fn restart_after_idle(&mut self, cx: &mut Context<'_>) {
        let idle = self.scoreboard.is_idle() && self.liveness.last_sent > Instant::ZERO;
        if idle && cx.now.since(self.liveness.last_sent) > self.rtt.base_rto(cx.config) {
            let restart = u64::from(cx.config.initial_window) * u64::from(self.mss);
            cx.congestion.on_idle_restart(self.identity.id, restart);
        }
    }

    fn account(&mut self, cx: &mut Context<'_>, outgoing: &Outgoing) {
        let bytes = u64::from(outgoing.record.length);
        let payload = outgoing.record.payload.len() as u64;
        if outgoing.kind == SendKind::Retransmission {
            self.counters.bytes_retransmitted += payload;
            if let Some(undo) = &mut self.recovery.undo {
                undo.on_retransmission(cx.stamp(), outgoing.record.end());
            }
        } else {
            self.counters.bytes_sent += payload;
        }
        if let Phase::Fast { prr, .. } = &mut self.recovery.phase {
            prr.on_sent(bytes);
        }
        self.liveness.last_sent = cx.now;
        let in_flight = self.pipe();
        let sampler = &self.scoreboard.sampler;
        let (total_delivered, app_limited) = (sampler.delivered(), sampler.is_application_limited());
        let sent = Sent { now: cx.now, bytes, in_flight, total_delivered, app_limited };
        cx.congestion.on_sent(self.identity.id, &sent);
        if in_flight + u64::from(self.mss) > cx.congestion.window(self.identity.id) {
            self.window.limited_until = self.send.nxt;
        }
        self.arm_retransmit(cx.now, cx.config, false);
        self.pace(cx, bytes);
    }

    /// Sets the time of the next segment if pacing is on: by the rate of congestion control, or by window over round
    /// trip times a factor (2 in slow start, 1.2 later) that other stacks use too.
    pub(super) fn pace(&mut self, cx: &Context<'_>, bytes: u64) {
        let id = self.identity.id;
        let rate = match cx.congestion.pacing_rate(id) {
            Some(rate) if rate > Rate::ZERO => {
                return self.pace_quantum(cx.now, rate, bytes);
            }
            None if cx.config.pacing => {
                let window = cx.congestion.window(id);
                let headroom = if window < cx.congestion.ssthresh(id) { 2.0 } else { 1.2 };
                Rate::from_bytes_over(window, self.rtt.smoothed()).mul_f64(headroom)
            }
            Some(_) | None => return,
        };
        if rate > Rate::ZERO {
            self.rates.pace_until = self.rates.pace_until.max(cx.now) + rate.time_for(bytes);
        }
    }

    /// Segments of a quantum leave together (send_quantum, draft-ietf-ccwg-bbr, section 5.6.3). A quantum of two segments
    /// is spread, as their acknowledgements are. Who comes late makes up for half a quantum, or for a whole one if it
    /// consists of whole packets of segmentation offload; where only pacing delayed and its timer was late, for [`HOLD`].
    pub(super) fn pace_quantum(&mut self, now: Instant, rate: Rate, bytes: u64) {
        if self.timers.is_due(SubflowTimer::Pace, now) {
            // Something else has woken us before the timer did.
            self.end_pacing(now);
        }
        let quantum = send_quantum(rate, self.mss);
        let whole = quantum >= whole_packet(self.mss);
        let together = quantum > 2 * u64::from(self.mss);
        // A quantum of whole packets is not restarted halfway: one and a half would end with a partial packet.
        if self.rates.pace_until <= now && !(whole && self.rates.released > 0) {
            self.rates.released = if together { quantum as u32 } else { 0 };
        }
        let late = rate.time_for(match (whole, together) {
            (true, _) => quantum,
            (false, true) => quantum / 2,
            (false, false) => bytes,
        });
        self.rates.released = self.rates.released.saturating_sub(bytes as u32);
        let late = late.max(Duration::from_nanos(u64::from(self.rates.late)));
        self.rates.pace_until = self.rates.pace_until.max(now - late) + rate.time_for(bytes);
        if self.rates.pace_until > now {
            self.rates.late = 0;
        }
    }

    /// Whether a bare acknowledgement must be sent now: an acknowledgement, an option or a probe is due.
    pub fn wants_acknowledgement(&self, now: Instant) -> bool {
        let due = match self.receiver.due {
            AckDue::No => false,
            AckDue::By(at) => at <= now,
            AckDue::Now => true,
        };
        (due || self.has_more_to_acknowledge()) && self.state.is_synchronised()
    }

    /// Whether a bare acknowledgement must be sent now or later, unless a data segment carries it.
    pub fn will_want_acknowledgement(&self) -> bool {
        (self.receiver.due != AckDue::No || self.has_more_to_acknowledge()) && self.state.is_synchronised()
    }

    /// What waits for a bare acknowledgement. Until a join is confirmed each carries the HMAC and nothing else (RFC
    /// 8684, section 3.2), so it goes on waiting.
    fn has_more_to_acknowledge(&self) -> bool {
        self.handshake.confirmed && (!self.control.is_empty() || self.due.keepalive || self.due.data_fin)
    }

    /// The deadline of a delayed acknowledgement.
    pub fn acknowledgement_deadline(&self) -> Instant {
        match self.receiver.due {
            AckDue::By(at) => at,
            AckDue::No | AckDue::Now => Instant::NEVER,
        }
    }
}
