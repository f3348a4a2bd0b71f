//! Acknowledgements on a subflow: progress, round-trip time, losses, recovery and windows.

#[cfg(test)]
mod tests;

use super::context::Context;
use super::negotiated::MAPPING_SPACE;
use super::recovery::{Conditions, Phase, Prr, Undo};
use super::scoreboard::{Acknowledged, Proofs};
use super::state::Subflow;
use super::timers::Retransmit;
use super::timers::SubflowTimer;
use crate::config::TcpConfig;
use anabranch_policy::congestion::{Ack, Congestion, CongestionEvent, Lost};
use anabranch_policy::time::{Duration, Instant};
use anabranch_wire::tcp::{SackBlock, SackBlocks};
use anabranch_wire::{Flags, Segment, SeqNumber};

/// Weight of one segment in the smoothed loss rate.
const LOSS_WEIGHT: f64 = 1.0 / 100.0;

/// Effects of an acknowledgement on the data in flight.
#[derive(Clone, Copy, Debug)]
struct Flight {
    /// In flight before the acknowledgement, in bytes.
    before: u64,
    /// Bytes newly marked lost.
    newly_lost: u64,
    /// A round-trip time sample.
    rtt: Option<Duration>,
    /// Congestion control must not increase its window.
    holds: bool,
}

/// Progress that the connection needs to know.
#[derive(Clone, Copy, Debug, Default)]
pub struct Progress {
    /// Highest data sequence newly delivered.
    pub data_end: u64,
    /// Our FIN was acknowledged.
    pub fin: bool,
}

/// Classification of an acknowledgement number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AckJudgement {
    /// Between SND.UNA and SND.NXT.
    Current,
    /// An old duplicate.
    Old,
    /// Older than any acknowledgement of an honest peer.
    TooOld,
    /// Beyond SND.NXT.
    Future,
}

impl Subflow {
    /// Handles an acceptable acknowledgement, between SND.UNA and SND.NXT.
    #[inline]
    pub fn handle_acknowledgement(&mut self, cx: &mut Context<'_>, segment: &Segment) -> Progress {
        if self.is_no_news(segment) {
            self.window.last = segment.window;
            return Progress::default();
        }
        self.handle_news(cx, segment)
    }

    /// Whether nothing is outstanding that could be acknowledged, and the segment has no other news. True of all data
    /// segments that arrive at an end that only receives.
    fn is_no_news(&self, segment: &Segment) -> bool {
        segment.ack == self.send.una
            && self.scoreboard.is_at_rest()
            && segment.options.sack.is_empty()
            && self.recovery.is_at_rest()
            && !self.has_narrow_path()
            && !self.negotiated.ecn.marks()
    }

    fn handle_news(&mut self, cx: &mut Context<'_>, segment: &Segment) -> Progress {
        let prior_in_flight = self.pipe();
        let prior_una = self.send.una;
        let dsack = self.find_dsack(segment);
        let sack = if self.negotiated.sack { &segment.options.sack } else { const { &SackBlocks::new() } };
        let mut acked = self.scoreboard.acknowledge(cx.now, segment.ack, sack, &self.proofs(cx, segment));
        let advanced = segment.ack.after(prior_una);
        let echo_counts = advanced && dsack.is_none() && !self.may_echo_an_outage(segment);
        if advanced {
            self.send.una = segment.ack;
            self.liveness.last_progress = cx.now;
            self.liveness.timeouts_in_row = 0;
            self.counters.bytes_acked += acked.cumulative - u64::from(acked.fin);
            self.counters.acknowledgements = self.counters.acknowledgements.wrapping_add(1);
        }
        if self.liveness.silent && acked.delivered > 0 {
            self.liveness.silent = false;
            self.rtt.end_pause(cx.now);
        }
        self.count_duplicate(segment, advanced, &mut acked);
        let repeats = !advanced && self.repeats_the_last(segment);
        self.window.last = segment.window;
        let rtt = self.sample_rtt(cx, segment, &acked, echo_counts);
        self.react_to_mark(cx, segment, prior_in_flight);
        if self.has_narrow_path() {
            self.record_delivered_probe(cx);
        }
        let newly_lost = self.detect_losses(cx, &acked, dsack.is_some());
        let newly_lost = self.without_lost_probe(cx.now, newly_lost);
        self.report_losses(cx);
        // The window must not grow on an acknowledgement that ends a recovery or echoes a congestion mark (RFC 3168,
        // section 6.1.2).
        let holds = self.in_fast_recovery() || (self.negotiated.ecn.marks() && segment.flags.contains(Flags::ECE));
        self.advance_recovery(cx, newly_lost, prior_in_flight, advanced, dsack, segment);
        self.resolve_tail_probe(cx, repeats, dsack, prior_in_flight);
        if acked.delivered > 0 {
            self.grow(cx, &acked, Flight { before: prior_in_flight, newly_lost, rtt, holds });
        }
        if let Phase::Fast { prr, .. } = &mut self.recovery.phase {
            let in_flight = self
                .scoreboard
                .in_flight()
                .saturating_sub(u64::from(self.recovery.duplicate_acks) * u64::from(self.mss));
            let ssthresh = cx.congestion.ssthresh(self.identity.id);
            prr.on_ack(acked.delivered, in_flight, ssthresh, u64::from(self.mss), advanced && newly_lost == 0);
            if !self.negotiated.sack && advanced {
                // A partial acknowledgement reveals the next hole, which is retransmitted at once (RFC 6582, section
                // 3.2, step 3).
                prr.allow(in_flight + u64::from(self.mss));
            }
        }
        if self.restarts_timer(advanced, acked.delivered, newly_lost) {
            self.arm_retransmit(cx.now, cx.config, true);
        }
        Progress { data_end: acked.data_end, fin: acked.fin }
    }

    /// Whether an acknowledgement restarts the retransmission timer. Without SACK each hole is found a round trip after
    /// the one before: if there are many, a timeout repairs them sooner. So in a recovery only the fast retransmit and
    /// the first partial acknowledgement restart it (RFC 6582, section 3.2, step 3).
    fn restarts_timer(&self, advanced: bool, delivered: u64, newly_lost: u64) -> bool {
        if self.negotiated.sack {
            return advanced || delivered > 0;
        }
        let later = matches!(self.recovery.phase, Phase::Fast { partial_acks: 2.., .. });
        !later && (advanced || newly_lost > 0)
    }

    /// By what an acknowledgement of a segment that was sent again is known for that of the last transmission.
    fn proofs(&self, cx: &Context<'_>, segment: &Segment) -> Proofs {
        let stamps = segment.options.timestamps.filter(|stamps| self.negotiated.timestamps && stamps.echo != 0);
        Proofs { min_rtt: self.rtt.min(), echo: stamps.map(|stamps| (stamps.echo, cx.clock)) }
    }

    /// The first SACK block, if it reports a duplicate (RFC 2883, section 4) of something that was sent.
    fn find_dsack(&self, segment: &Segment) -> Option<SackBlock> {
        let first = segment.options.sack.as_slice().first().filter(|_| self.negotiated.sack)?;
        let inside = |outer: &SackBlock| outer.start.at_or_before(first.start) && outer.end.at_or_after(first.end);
        let duplicate = first.start.before(segment.ack) || segment.options.sack.as_slice().get(1).is_some_and(inside);
        let sent = first.start.before(first.end) && first.end.at_or_before(self.send.nxt);
        (duplicate && sent).then_some(*first)
    }

    /// Without SACK, losses are found by duplicate acknowledgements alone (RFC 5681, section 2; RFC 6582).
    fn count_duplicate(&mut self, segment: &Segment, advanced: bool, acked: &mut Acknowledged) {
        if self.negotiated.sack {
            return;
        }
        if advanced {
            // Segments for which duplicates came have been counted then.
            let segments = (acked.cumulative / u64::from(self.mss)) as u32;
            let most = u16::try_from(segments.max(1) - 1).unwrap_or(u16::MAX);
            let counted = self.recovery.duplicate_acks.min(most);
            self.recovery.duplicate_acks -= counted;
            acked.delivered = acked.delivered.saturating_sub(u64::from(counted) * u64::from(self.mss));
            if self.recovery.phase == Phase::Open {
                self.recovery.duplicate_acks = 0;
            }
        } else if self.is_duplicate(segment) {
            // No more duplicates can be genuine than segments are behind the first hole. Others answer duplicate data;
            // counting one for each retransmission would postpone the timeout for ever.
            let behind = u16::try_from(self.scoreboard.sent_records().saturating_sub(1)).unwrap_or(u16::MAX);
            if self.recovery.duplicate_acks < behind {
                self.recovery.duplicate_acks += 1;
                acked.delivered += u64::from(self.mss);
            }
        }
    }

    /// RFC 5681, section 2: no data, no FIN, data outstanding, and the same window, so that window updates do not
    /// count. Under MPTCP the window belongs to the connection and is not compared (RFC 8684, section 3.3.5), and
    /// acknowledgements that only carry an option are no sign of congestion (section 3.4.1).
    fn is_duplicate(&self, segment: &Segment) -> bool {
        let empty = segment.payload.is_empty() && !segment.flags.contains(Flags::FIN);
        let same_window = segment.window == self.window.last || segment.options.dss.is_some();
        // Duplicates of data sent before a timeout start no recovery (RFC 6582, section 4).
        let after_timeout = matches!(self.recovery.phase, Phase::Timeout { .. });
        empty && !after_timeout && same_window && segment.options.mptcp.is_empty() && !self.scoreboard.is_idle()
    }

    /// Whether an acknowledgement that does not advance says nothing but that something came again.
    fn repeats_the_last(&self, segment: &Segment) -> bool {
        let empty = segment.payload.is_empty() && !segment.flags.contains(Flags::FIN);
        let options = &segment.options;
        empty && segment.window == self.window.last && options.sack.is_empty() && options.mptcp.is_empty()
    }

    /// After a second timeout, an echoed timestamp from before the first is no valid sample: the acknowledgement of
    /// that transmission may have been lost, and this one been sent for another reason. The same holds for the echo of
    /// a duplicate.
    fn may_echo_an_outage(&self, segment: &Segment) -> bool {
        let first =
            self.recovery.undo.as_ref().and_then(|undo| undo.first_stamp).filter(|_| self.liveness.timeouts_in_row > 1);
        let echo = segment.options.timestamps.map(|stamps| stamps.echo);
        first.zip(echo).is_some_and(|(first, echo)| (echo.wrapping_sub(first) as i32) < 0)
    }

    /// A sample from a segment that was sent once (Karn), or else from the echoed timestamp (RFC 7323, section 4).
    fn sample_rtt(
        &mut self,
        cx: &Context<'_>,
        segment: &Segment,
        acked: &Acknowledged,
        echo_counts: bool,
    ) -> Option<Duration> {
        let echoed = || {
            let stamps = segment.options.timestamps.filter(|_| echo_counts && self.negotiated.timestamps)?;
            let millis = cx.stamp().wrapping_sub(stamps.echo);
            (stamps.echo != 0 && millis < 0x8000_0000).then(|| Duration::from_millis(u64::from(millis.max(1))))
        };
        let rtt = acked.rtt.or_else(echoed).filter(|rtt| !self.rtt.measures_pause(cx.now, *rtt))?;
        self.rtt.sample(rtt, cx.config.rto);
        Some(rtt)
    }

    /// Reacts to an echoed congestion mark, once per round trip (RFC 3168, section 6.1.2).
    fn react_to_mark(&mut self, cx: &mut Context<'_>, segment: &Segment, prior_in_flight: u64) {
        if !self.negotiated.ecn.marks() || !segment.ack.after(self.recovery.mark_answered) {
            return;
        }
        if !segment.flags.contains(Flags::ECE) {
            // Keep it next to the acknowledgements: left behind by half the sequence space, it would compare as ahead
            // of them.
            self.recovery.mark_answered = segment.ack - 1;
        } else if self.recovery.phase == Phase::Open && !segment.flags.contains(Flags::SYN) {
            self.congestion_event(cx, Congestion::Mark, prior_in_flight, 0, false);
        }
    }

    /// RACK (RFC 8985, section 6.2), or three duplicate acknowledgements without SACK. Returns the bytes newly marked
    /// lost.
    fn detect_losses(&mut self, cx: &Context<'_>, acked: &Acknowledged, dsack: bool) -> u64 {
        if !self.negotiated.sack {
            return self.detect_losses_without_sack(acked);
        }
        if self.scoreboard.first_is_sacked() {
            self.scoreboard.forget_sacks();
        }
        if let Some(certain) = acked.certain {
            self.recovery.rack.update(cx.now, certain);
        }
        // A duplicate is reported, as a rule, by an acknowledgement of nothing new.
        let delivers = acked.newest.is_some();
        if delivers || dsack {
            self.recovery.rack.adapt(acked, dsack, self.send.una, self.send.nxt);
        }
        if delivers { self.mark_lost_by_time(cx.now) } else { 0 }
    }

    fn detect_losses_without_sack(&mut self, acked: &Acknowledged) -> u64 {
        let mut partial = false;
        if let Phase::Fast { end, partial_acks, .. } = &mut self.recovery.phase
            && self.send.una.before(*end)
            && acked.cumulative > 0
        {
            partial = true;
            *partial_acks = partial_acks.saturating_add(1);
        }
        let third = self.recovery.phase == Phase::Open && self.recovery.duplicate_acks == 3;
        let lost = if partial || third { self.count_loss(|board| board.mark_first_lost()) } else { 0 };
        self.count_lost_segments(lost);
        lost
    }

    /// Marks segments lost by RACK, and arms its timer for those that will be.
    pub(super) fn mark_lost_by_time(&mut self, now: Instant) -> u64 {
        let window = self.recovery.rack.reordering_window(&Conditions {
            recovering: self.recovery.phase != Phase::Open,
            many_sacked: self.scoreboard.sacked() >= 3 * u64::from(self.mss),
            min_rtt: self.rtt.min(),
            smoothed_rtt: self.rtt.smoothed(),
        });
        let rack = self.recovery.rack;
        let mut spared = None;
        let lost = self.count_loss(|board| {
            let (lost, kept) = board.mark_lost_in_time_order(|sent_at, end| rack.is_lost(now, window, sent_at, end));
            spared = kept;
            lost
        });
        self.count_lost_segments(lost);
        let deadline = spared.and_then(|sent_at| rack.deadline(window, sent_at)).filter(|deadline| *deadline > now);
        self.timers.set(SubflowTimer::Reordering, deadline.unwrap_or(Instant::NEVER));
        lost
    }

    /// Counts losses found by acknowledgements. Segments marked by a timeout are not known to be lost.
    fn count_lost_segments(&mut self, lost: u64) {
        if lost == 0 {
            return;
        }
        let size = self.mss.max(1) + if self.scoreboard.shares_mappings() { MAPPING_SPACE } else { 0 };
        let segments = lost.div_ceil(u64::from(size)) as u32;
        self.counters.segments_lost = self.counters.segments_lost.wrapping_add(segments);
    }

    pub(super) fn count_loss(&mut self, mark: impl FnOnce(&mut super::scoreboard::Scoreboard) -> u64) -> u64 {
        let lost = mark(&mut self.scoreboard);
        if lost > 0 {
            let segments = lost as f64 / f64::from(self.mss);
            self.rates.loss_rate += (1.0 - self.rates.loss_rate) * (segments * LOSS_WEIGHT).min(1.0);
        }
        lost
    }

    /// Reports each lost segment to a congestion control that asks for it.
    fn report_losses(&mut self, cx: &mut Context<'_>) {
        if self.scoreboard.losses.is_empty() {
            return;
        }
        let total_delivered = self.scoreboard.sampler.delivered();
        for segment in self.scoreboard.losses.take() {
            let lost = Lost {
                now: cx.now,
                bytes: u64::from(segment.length),
                total_lost: segment.total_lost,
                total_delivered,
                prior_lost: segment.departure.lost,
                tx_in_flight: segment.departure.in_flight,
                app_limited: segment.departure.application_limited,
            };
            cx.congestion.on_lost(self.identity.id, &lost);
        }
    }

    /// Enters and leaves recovery phases.
    fn advance_recovery(
        &mut self,
        cx: &mut Context<'_>,
        newly_lost: u64,
        prior_in_flight: u64,
        advanced: bool,
        dsack: Option<SackBlock>,
        segment: &Segment,
    ) {
        let echo = segment.options.timestamps.map(|stamps| stamps.echo).filter(|echo| *echo != 0);
        let una = self.send.una;
        if self.recovery.undo.as_mut().is_some_and(|undo| undo.is_spurious(una, echo, dsack)) {
            self.undo_episode(cx);
        }
        match self.recovery.phase {
            Phase::Fast { end, .. } | Phase::Timeout { end } if advanced && una.at_or_after(end) => {
                self.end_recovery(cx);
            }
            Phase::Open | Phase::Fast { .. } | Phase::Timeout { .. } => {}
        }
        if self.recovery.phase == Phase::Open && newly_lost > 0 && self.scoreboard.lost() > 0 {
            self.begin_fast_recovery(cx, prior_in_flight, newly_lost);
        }
    }

    fn end_recovery(&mut self, cx: &mut Context<'_>) {
        if matches!(self.recovery.phase, Phase::Fast { .. }) || cx.congestion.governs_recovery() {
            cx.congestion.on_recovery_end(self.identity.id, cx.now);
        }
        self.recovery.phase = Phase::Open;
        self.recovery.duplicate_acks = 0;
        self.recovery.rack.on_recovery_end();
    }

    pub(super) fn begin_fast_recovery(&mut self, cx: &mut Context<'_>, prior_in_flight: u64, lost: u64) {
        self.congestion_event(cx, Congestion::Loss, prior_in_flight, lost, false);
        let flight_size = u64::from(self.send.nxt - self.send.una);
        let prr = Box::new(Prr::new(flight_size, self.pipe(), u64::from(self.mss)));
        self.recovery.phase = Phase::Fast { end: self.send.nxt, partial_acks: 0, prr };
        self.recovery.undo = Some(Box::new(Undo::new(self.send.una)));
        self.recovery.tail_probe = None;
    }

    pub(super) fn congestion_event(
        &mut self,
        cx: &mut Context<'_>,
        cause: Congestion,
        in_flight: u64,
        lost: u64,
        repeated: bool,
    ) {
        // Marks on segments already in flight ask for the same reduction. CWR is sent in each case (RFC 3168, section
        // 6.1.2).
        self.recovery.mark_answered = self.send.nxt;
        self.recovery.send_cwr = self.negotiated.ecn.marks();
        let uncounted = !self.negotiated.sack;
        let event = CongestionEvent { now: cx.now, cause, in_flight, lost, repeated, uncounted };
        cx.congestion.on_congestion(self.identity.id, &event);
    }

    /// The recovery was spurious: restores the windows (RFC 4015 in spirit).
    fn undo_episode(&mut self, cx: &mut Context<'_>) {
        cx.congestion.on_spurious(self.identity.id, cx.now);
        self.scoreboard.unmark_lost();
        // A spurious timeout must not lengthen the next one (RFC 4015, section 3).
        self.rtt.end_back_off();
        self.recovery.phase = Phase::Open;
        self.recovery.undo = None;
        self.recovery.duplicate_acks = 0;
    }

    /// A tail loss probe that repaired a loss counts as one loss. What acknowledges no more than the probe may be for the
    /// original: a report of the duplicate follows then, or, from a peer that does not report them, the acknowledgement
    /// once more (RFC 8985, section 7.4.2).
    fn resolve_tail_probe(
        &mut self,
        cx: &mut Context<'_>,
        repeats: bool,
        dsack: Option<SackBlock>,
        prior_in_flight: u64,
    ) {
        let Some(probe) = self.recovery.tail_probe else { return };
        let una = self.send.una;
        let needless = dsack.is_some_and(|block| block.end == probe.end) || (repeats && una == probe.end);
        let repaired = una.after(probe.end);
        let new_arrived = !probe.retransmitted && una.at_or_after(probe.end);
        if !(needless || repaired || new_arrived) {
            return;
        }
        self.recovery.tail_probe = None;
        if probe.retransmitted && !needless && self.recovery.phase == Phase::Open {
            self.congestion_event(cx, Congestion::Loss, prior_in_flight, u64::from(self.mss), false);
            cx.congestion.on_recovery_end(self.identity.id, cx.now);
        }
    }

    fn grow(
        &mut self,
        cx: &mut Context<'_>,
        acked: &Acknowledged,
        Flight { before: prior_in_flight, newly_lost, rtt, holds }: Flight,
    ) {
        if self.rates.loss_rate > 0.0 {
            let segments = (acked.delivered as f64 / f64::from(self.mss)).min(1.0 / LOSS_WEIGHT);
            self.rates.loss_rate -= self.rates.loss_rate * segments * LOSS_WEIGHT;
        }
        let sampler = &self.scoreboard.sampler;
        let newest = acked.newest.as_ref();
        let rate = newest.and_then(|n| sampler.rate(cx.now, n.sent_at, &n.departure, self.rtt.min()));
        self.rates.delivery_rate = rate.unwrap_or(self.rates.delivery_rate);
        let departure = newest.map(|newest| newest.departure);
        let id = self.identity.id;
        let window = cx.congestion.window(id);
        let slow_start = window < cx.congestion.ssthresh(id);
        let limited =
            self.window.limited_until.at_or_after(self.send.una) || (slow_start && prior_in_flight * 2 >= window);
        let ack = Ack {
            now: cx.now,
            acked: acked.cumulative,
            delivered: acked.delivered,
            total_acked: self.counters.bytes_acked,
            total_sent: self.counters.bytes_sent,
            prior_in_flight,
            in_flight: self.pipe(),
            rtt,
            smoothed_rtt: self.rtt.smoothed(),
            min_rtt: self.rtt.min(),
            delivery_rate: rate,
            app_limited: departure.is_some_and(|departure| departure.application_limited),
            total_delivered: sampler.delivered(),
            prior_delivered: departure.map(|departure| departure.delivered),
            lost: newly_lost,
            total_lost: sampler.lost(),
            prior_lost: departure.map_or(sampler.lost(), |departure| departure.lost),
            tx_in_flight: departure.map_or(0, |departure| departure.in_flight),
            cwnd_limited: limited,
            in_recovery: holds || self.in_fast_recovery(),
        };
        cx.congestion.on_ack(id, &ack);
    }

    /// Arms the retransmission timer, or a tail loss probe if one is useful (RFC 6298, section 5; RFC 8985, section
    /// 7.2). Leaves a running timer alone unless `restart`.
    #[inline(always)]
    pub(super) fn arm_retransmit(&mut self, now: Instant, config: &TcpConfig, restart: bool) {
        if self.scoreboard.is_idle() {
            self.timers.stop(SubflowTimer::Retransmit);
            return;
        }
        let rto = self.rtt.rto(config);
        let probe = config.tail_loss_probe
            && self.negotiated.sack
            && self.recovery.phase == Phase::Open
            && self.recovery.tail_probe.is_none()
            && self.scoreboard.sacked() == 0
            && self.liveness.timeouts_in_row == 0
            && !self.rtt.smoothed().is_zero()
            // On a stale subflow each tail loss probe would postpone the timeout, and with it the end of the subflow.
            && !self.is_stale()
            && self.state.is_synchronised();
        if probe {
            let mut span = self.rtt.smoothed() * 2;
            if self.scoreboard.sent_records() == 1 {
                span += config.delayed_ack.max(Duration::from_millis(200)); // WCDelAckT
            }
            self.timers.set(SubflowTimer::Retransmit, now + span.min(rto));
            self.recovery.retransmit_kind = Retransmit::TailProbe;
        } else if restart
            || !self.timers.runs(SubflowTimer::Retransmit)
            || self.recovery.retransmit_kind == Retransmit::TailProbe
        {
            self.timers.set(SubflowTimer::Retransmit, now + rto);
            self.recovery.retransmit_kind = Retransmit::Timeout;
        }
    }

    /// The retransmission timer expired (RFC 6298, section 5.4 to 5.7). Returns false if the subflow must be closed.
    pub fn handle_retransmit_timeout(&mut self, cx: &mut Context<'_>) -> bool {
        if self.recovery.retransmit_kind == Retransmit::TailProbe {
            self.due.probe = true;
            // Whether or not the probe can be sent, the next expiry is a timeout.
            self.recovery.retransmit_kind = Retransmit::Timeout;
            self.timers.set(SubflowTimer::Retransmit, cx.now + self.rtt.rto(cx.config));
            return true;
        }
        self.liveness.timeouts_in_row += 1;
        self.counters.timeouts += 1;
        // A peer that shrank its window below what was sent, and keeps answering, is alive (RFC 9293, MUST-37).
        let shut_out =
            self.window.edge.at_or_before(self.send.una) && self.liveness.last_heard > self.liveness.last_sent;
        if self.liveness.timeouts_in_row > cx.config.max_timeouts && !shut_out {
            return false;
        }
        let in_flight = self.pipe();
        if self.scoreboard.first_is_sacked() {
            self.scoreboard.forget_sacks();
        }
        let repeated = self.liveness.timeouts_in_row > 1;
        let before = self.rates.loss_rate;
        let lost = self.count_loss(|board| board.mark_all_lost());
        if self.liveness.silent {
            // Silence of the path is not loss: it may still deliver all of this.
            self.rates.loss_rate = before;
        }
        self.report_losses(cx);
        if !shut_out {
            // Before the window is computed, so that it is one segment of the new size.
            self.consider_black_hole(cx);
        }
        self.congestion_event(cx, Congestion::Timeout, in_flight.max(lost), lost, repeated);
        if !repeated {
            self.recovery.undo = Some(Box::new(Undo::new(self.send.una)));
        }
        self.recovery.phase = Phase::Timeout { end: self.send.nxt };
        self.recovery.duplicate_acks = 0;
        self.recovery.tail_probe = None;
        self.due.probe = false;
        self.timers.stop(SubflowTimer::Reordering);
        self.rtt.back_off();
        self.timers.set(SubflowTimer::Retransmit, cx.now + self.rtt.rto(cx.config));
        true
    }

    /// RACK's reordering timer expired (RFC 8985, section 6.3).
    pub fn handle_reordering_timeout(&mut self, cx: &mut Context<'_>) {
        self.timers.stop(SubflowTimer::Reordering);
        let in_flight = self.pipe();
        let lost = self.mark_lost_by_time(cx.now);
        let lost = self.without_lost_probe(cx.now, lost);
        self.report_losses(cx);
        if lost > 0 && self.recovery.phase == Phase::Open {
            self.begin_fast_recovery(cx, in_flight, lost);
        }
    }

    /// Whether an acknowledgement number is within what was sent, or too old (RFC 5961, section 5). As in Linux, one of
    /// before the first octet is too old: otherwise a number that is guessed would fit more easily the less was sent.
    pub fn judge_acknowledgement(&self, ack: SeqNumber) -> AckJudgement {
        if ack.after(self.send.nxt) {
            return AckJudgement::Future;
        }
        if ack.at_or_after(self.send.una) {
            return AckJudgement::Current;
        }
        let oldest = if self.counters.bytes_acked < u64::from(self.window.largest) {
            self.send.initial + 1
        } else {
            self.send.una - self.window.largest
        };
        if ack.at_or_after(oldest) { AckJudgement::Old } else { AckJudgement::TooOld }
    }
}
