//! Loss detection and the rate of retransmissions: RACK-TLP (RFC 8985) and PRR (RFC 9937).

use super::scoreboard::Acknowledged;
use super::timers::Retransmit;
use anabranch_policy::time::{Duration, Instant};
use anabranch_wire::SeqNumber;
use anabranch_wire::tcp::SackBlock;

/// Recoveries for which a larger reordering window persists (RFC 8985, section 6.2, step 4).
const WINDOW_PERSIST: u8 = 16;

/// Phase of loss recovery.
#[derive(Clone, PartialEq, Debug)]
pub enum Phase {
    /// No recovery.
    Open,
    /// Recovery of losses found by acknowledgements, until `end` is acknowledged.
    Fast {
        /// SND.NXT at its beginning (RecoveryPoint, RFC 6675).
        end: SeqNumber,
        /// Partial acknowledgements, where there is no SACK; no more than 255 are counted.
        partial_acks: u8,
        prr: Box<Prr>,
    },
    /// Recovery after a retransmission timeout, until `end` is acknowledged.
    Timeout {
        /// SND.NXT at the timeout.
        end: SeqNumber,
    },
}

/// Proportional rate reduction (RFC 9937, section 6).
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Prr {
    /// Delivered since the recovery began, in bytes.
    delivered: u64,
    /// Sent since then.
    out: u64,
    /// Outstanding at its beginning.
    flight_size: u64,
    /// Allowed in flight.
    window: u64,
}

/// Recent acknowledgement (RFC 8985, section 5.2).
#[derive(Clone, Copy, Debug)]
pub struct Rack {
    /// Transmission time and end of the most recently sent segment among those delivered.
    sent_at: Instant,
    end: SeqNumber,
    /// Round-trip time of that segment.
    rtt: Duration,
    reordering_seen: bool,
    window_multiplier: u8,
    window_persist: u8,
    /// End of the round in which the reordering window was last increased.
    dsack_round: Option<SeqNumber>,
}

/// Inputs of the reordering window besides RACK's state.
#[derive(Clone, Copy, Debug)]
pub struct Conditions {
    /// A recovery is in progress.
    pub recovering: bool,
    /// Three segments or more are selectively acknowledged (DupThresh).
    pub many_sacked: bool,
    /// Minimum round-trip time.
    pub min_rtt: Duration,
    pub smoothed_rtt: Duration,
}

/// A tail loss probe in flight (RFC 8985, section 7).
#[derive(Clone, Copy, Debug)]
pub struct TailProbe {
    /// SND.NXT after the probe.
    pub end: SeqNumber,
    /// It was a retransmission, not new data.
    pub retransmitted: bool,
}

/// State to detect a spurious recovery (RFC 3522 by timestamps, RFC 3708 by DSACK).
#[derive(Clone, Copy, Debug)]
pub struct Undo {
    /// SND.UNA when the recovery began.
    pub una: SeqNumber,
    /// Timestamp of the first retransmission.
    pub first_stamp: Option<u32>,
    /// End of what was retransmitted.
    pub end: SeqNumber,
    /// Retransmissions not yet reported as duplicates.
    pub retransmissions: u32,
    /// Timestamps have shown that the recovery was not spurious.
    pub stamps_answered: bool,
}

impl Prr {
    /// Starts a recovery with `flight_size` bytes outstanding. One segment may be sent at once (fast retransmit).
    pub fn new(flight_size: u64, in_flight: u64, mss: u64) -> Self {
        Self { delivered: 0, out: 0, flight_size: flight_size.max(1), window: in_flight + mss }
    }

    /// An acknowledgement delivered `delivered` bytes and leaves `in_flight`. `safe` if it made progress and showed no
    /// further loss (SafeACK).
    pub fn on_ack(&mut self, delivered: u64, in_flight: u64, ssthresh: u64, mss: u64, safe: bool) {
        self.delivered += delivered;
        let quota = if in_flight > ssthresh {
            let due = (u128::from(self.delivered) * u128::from(ssthresh)).div_ceil(u128::from(self.flight_size));
            u64::try_from(due).unwrap_or(u64::MAX).saturating_sub(self.out)
        } else {
            let mut limit = self.delivered.saturating_sub(self.out).max(delivered);
            if safe {
                limit += mss;
            }
            limit.min(ssthresh.saturating_sub(in_flight))
        };
        let quota = if self.out == 0 { quota.max(mss) } else { quota };
        self.window = in_flight + quota;
    }

    /// Allows at least `window` bytes in flight.
    pub fn allow(&mut self, window: u64) {
        self.window = self.window.max(window);
    }

    pub fn on_sent(&mut self, bytes: u64) {
        self.out += bytes;
    }

    /// Bytes allowed in flight.
    pub fn window(&self) -> u64 {
        self.window
    }
}

impl Rack {
    pub fn new(start: SeqNumber) -> Self {
        Self {
            sent_at: Instant::ZERO,
            end: start,
            rtt: Duration::ZERO,
            reordering_seen: false,
            window_multiplier: 1,
            window_persist: 0,
            dsack_round: None,
        }
    }

    /// Handles the newest segment that was delivered for certain (section 6.2, step 2): when it was sent, and its end.
    pub fn update(&mut self, now: Instant, (sent_at, end): (Instant, SeqNumber)) {
        self.rtt = now.since(sent_at);
        if self.sent_before(sent_at, end) {
            (self.sent_at, self.end) = (sent_at, end);
        }
    }

    /// Whether the newest delivered segment was sent before this one.
    fn sent_before(&self, sent_at: Instant, end: SeqNumber) -> bool {
        self.sent_at < sent_at || (self.sent_at == sent_at && end.after(self.end))
    }

    /// Adapts to signs of reordering (step 3) and of spurious retransmission (step 4).
    pub fn adapt(&mut self, acknowledged: &Acknowledged, dsack: bool, una: SeqNumber, nxt: SeqNumber) {
        self.reordering_seen |= acknowledged.reordered;
        if self.dsack_round.is_some_and(|round| una.at_or_after(round)) {
            self.dsack_round = None;
        }
        if dsack && self.dsack_round.is_none() {
            self.dsack_round = Some(nxt);
            self.window_multiplier = self.window_multiplier.saturating_add(1);
            self.window_persist = WINDOW_PERSIST;
        }
    }

    pub fn on_recovery_end(&mut self) {
        self.window_persist = self.window_persist.saturating_sub(1);
        if self.window_persist == 0 {
            self.window_multiplier = 1;
        }
    }

    /// The reordering window: by how much a segment may be late before it counts as lost.
    pub fn reordering_window(&self, conditions: &Conditions) -> Duration {
        if !self.reordering_seen && (conditions.recovering || conditions.many_sacked) {
            return Duration::ZERO;
        }
        (conditions.min_rtt / 4 * u64::from(self.window_multiplier)).min(conditions.smoothed_rtt)
    }

    /// Whether a segment sent at `sent_at` that ends at `end` is lost (step 5).
    pub fn is_lost(&self, now: Instant, window: Duration, sent_at: Instant, end: SeqNumber) -> bool {
        !self.sent_before(sent_at, end) && end != self.end && sent_at + self.rtt + window <= now
    }

    /// When a segment that is not yet lost will be; none if it was sent after the newest delivered segment.
    pub fn deadline(&self, window: Duration, sent_at: Instant) -> Option<Instant> {
        (sent_at <= self.sent_at && !self.rtt.is_zero()).then(|| sent_at + self.rtt + window)
    }
}

/// Loss recovery of a subflow.
#[derive(Debug)]
pub struct Recovery {
    pub phase: Phase,
    /// RACK (RFC 8985).
    pub rack: Rack,
    /// State to detect a spurious recovery. On the heap, as the state of [`Phase::Fast`]: most of the time there is no
    /// recovery.
    pub undo: Option<Box<Undo>>,
    /// A tail loss probe in flight.
    pub tail_probe: Option<TailProbe>,
    /// Duplicate acknowledgements in a row, where there is no SACK; no more than 65,535 are counted.
    pub duplicate_acks: u16,
    /// Sequence number up to which a congestion mark was answered (RFC 3168, section 6.1.2).
    pub mark_answered: SeqNumber,
    /// CWR is due.
    pub send_cwr: bool,
    /// What the retransmission timer will do.
    pub retransmit_kind: Retransmit,
}

impl Recovery {
    pub fn new(initial: SeqNumber) -> Self {
        Self {
            phase: Phase::Open,
            rack: Rack::new(initial),
            undo: None,
            tail_probe: None,
            duplicate_acks: 0,
            mark_answered: initial,
            send_cwr: false,
            retransmit_kind: Retransmit::Timeout,
        }
    }
}

impl Recovery {
    /// Whether no recovery is in progress or being verified.
    pub fn is_at_rest(&self) -> bool {
        self.phase == Phase::Open && self.undo.is_none() && self.tail_probe.is_none() && self.duplicate_acks == 0
    }
}

impl Undo {
    /// A recovery begins.
    pub fn new(una: SeqNumber) -> Self {
        Self { una, end: una, first_stamp: None, retransmissions: 0, stamps_answered: false }
    }

    /// A segment that ends at `end` is retransmitted.
    pub fn on_retransmission(&mut self, stamp: u32, end: SeqNumber) {
        self.first_stamp = self.first_stamp.or(Some(stamp));
        self.end = self.end.max(end);
        self.retransmissions += 1;
    }

    /// Whether an acknowledgement shows that nothing was lost: it answers a segment sent before the first
    /// retransmission (Eifel detection), or every retransmission was a duplicate. The network may duplicate other
    /// segments, too.
    pub fn is_spurious(&mut self, una: SeqNumber, echo: Option<u32>, dsack: Option<SackBlock>) -> bool {
        let of_retransmission =
            |block: &SackBlock| block.start.at_or_after(self.una) && block.end.at_or_before(self.end);
        if dsack.is_some_and(|block| of_retransmission(&block)) && self.retransmissions > 0 {
            self.retransmissions -= 1;
            if self.retransmissions == 0 {
                return true;
            }
        }
        let (Some(stamp), Some(echo), false) = (self.first_stamp, echo, self.stamps_answered) else { return false };
        if !una.after(self.una) {
            return false;
        }
        self.stamps_answered = true;
        (echo.wrapping_sub(stamp) as i32) < 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prr_sends_in_proportion_until_the_threshold_is_reached() {
        // 20 segments of 1000 bytes are outstanding, the threshold is 10: one is sent for every two delivered.
        let mut prr = Prr::new(20_000, 19_000, 1000);
        prr.on_ack(1000, 18_000, 10_000, 1000, false);
        assert_eq!(prr.window(), 19_000); // the fast retransmit
        prr.on_sent(1000);
        prr.on_ack(1000, 18_000, 10_000, 1000, true);
        assert_eq!(prr.window(), 18_000); // 2000 * 10/20 - 1000
        prr.on_ack(2000, 16_000, 10_000, 1000, true);
        assert_eq!(prr.window(), 17_000); // 4000 * 10/20 - 1000
    }

    #[test]
    fn prr_grows_back_to_the_threshold_by_one_segment_beyond_what_is_delivered() {
        let mut prr = Prr::new(20_000, 3_000, 1000);
        prr.on_sent(1000);
        prr.on_ack(1000, 3_000, 10_000, 1000, true);
        assert_eq!(prr.window(), 5_000); // max(1000 - 1000, 1000) + 1000
        prr.on_ack(1000, 3_000, 10_000, 1000, false);
        assert_eq!(prr.window(), 4_000); // max(2000 - 1000, 1000), no progress: conservative
    }

    #[test]
    fn rack_deems_lost_what_was_sent_a_round_trip_before_something_delivered() {
        let at = |millis: u64| Instant::from_nanos(millis * 1_000_000);
        let mut rack = Rack::new(SeqNumber(0));
        rack.update(at(110), (at(10), SeqNumber(400)));
        let window = Duration::from_millis(25);
        assert!(!rack.is_lost(at(110), window, at(5), SeqNumber(100)));
        assert!(rack.is_lost(at(130), window, at(5), SeqNumber(100)));
        assert!(!rack.is_lost(at(200), window, at(11), SeqNumber(500)));
        assert_eq!(rack.deadline(window, at(5)), Some(at(130)));
        assert_eq!(rack.deadline(window, at(11)), None);
    }

    #[test]
    fn the_reordering_window_is_a_quarter_round_trip_unless_loss_is_plain() {
        let mut rack = Rack::new(SeqNumber(0));
        let millis = Duration::from_millis;
        let calm = Conditions { recovering: false, many_sacked: false, min_rtt: millis(80), smoothed_rtt: millis(90) };
        assert_eq!(rack.reordering_window(&calm), millis(20));
        assert_eq!(rack.reordering_window(&Conditions { many_sacked: true, ..calm }), Duration::ZERO);
        rack.adapt(&Acknowledged { reordered: true, ..Default::default() }, false, SeqNumber(0), SeqNumber(9));
        assert_eq!(rack.reordering_window(&Conditions { many_sacked: true, ..calm }), millis(20));
        rack.adapt(&Acknowledged::default(), true, SeqNumber(0), SeqNumber(9));
        rack.adapt(&Acknowledged::default(), true, SeqNumber(5), SeqNumber(20)); // the same round: no change
        assert_eq!(rack.reordering_window(&calm), millis(40));
    }

    #[test]
    fn an_answer_to_the_original_shows_that_the_retransmission_was_needless() {
        let mut undo = Undo::new(SeqNumber(100));
        undo.on_retransmission(5_000, SeqNumber(150));
        assert!(!undo.is_spurious(SeqNumber(100), Some(4_000), None)); // no progress: no conclusion
        assert!(undo.is_spurious(SeqNumber(200), Some(4_000), None));
        let mut undo = Undo::new(SeqNumber(100));
        undo.on_retransmission(5_000, SeqNumber(150));
        undo.on_retransmission(5_001, SeqNumber(200));
        assert!(!undo.is_spurious(SeqNumber(200), Some(5_000), None));
        let block = |start: u32, end: u32| Some(SackBlock { start: SeqNumber(start), end: SeqNumber(end) });
        assert!(!undo.is_spurious(SeqNumber(200), None, block(100, 150)));
        assert!(!undo.is_spurious(SeqNumber(200), None, block(99, 200)), "begins before what was lost");
        assert!(!undo.is_spurious(SeqNumber(200), None, block(150, 201)), "ends behind what was sent again");
        assert!(undo.is_spurious(SeqNumber(200), None, block(150, 200)));
    }

    #[test]
    fn a_needless_retransmission_widens_the_reordering_window_until_sixteen_recoveries_have_ended() {
        let millis = Duration::from_millis;
        let calm = Conditions { recovering: false, many_sacked: false, min_rtt: millis(80), smoothed_rtt: millis(90) };
        let mut rack = Rack::new(SeqNumber(0));
        rack.adapt(&Acknowledged::default(), true, SeqNumber(0), SeqNumber(9));
        for _ in 0..15 {
            rack.on_recovery_end();
            assert_eq!(rack.reordering_window(&calm), millis(40));
        }
        rack.on_recovery_end();
        assert_eq!(rack.reordering_window(&calm), millis(20));
    }

    #[test]
    fn recovery_rests_only_while_nothing_of_it_is_open() {
        let rests = |change: fn(&mut Recovery)| {
            let mut recovery = Recovery::new(SeqNumber(0));
            change(&mut recovery);
            recovery.is_at_rest()
        };
        assert!(rests(|_| {}));
        assert!(rests(|recovery| recovery.send_cwr = true), "the next segment says so");
        assert!(!rests(|recovery| recovery.phase = Phase::Timeout { end: SeqNumber(9) }));
        assert!(!rests(|recovery| recovery.undo = Some(Box::new(Undo::new(SeqNumber(0))))));
        assert!(!rests(|recovery| recovery.tail_probe = Some(TailProbe { end: SeqNumber(9), retransmitted: true })));
        assert!(!rests(|recovery| recovery.duplicate_acks = 1));
    }

    #[test]
    fn a_recovery_was_spurious_if_all_that_was_sent_again_came_twice_or_a_stamp_from_before_it_is_echoed() {
        let una = SeqNumber(1_000);
        let begun = |retransmissions: u32| {
            let mut undo = Undo::new(una);
            (0..retransmissions).for_each(|number| undo.on_retransmission(70 + number, una + 1));
            undo
        };
        // RFC 3708.
        let again = Some(SackBlock { start: una, end: una + 1 });
        let mut twice = begun(2);
        assert!(!twice.is_spurious(una, None, again) && twice.is_spurious(una, None, again));
        assert!(!twice.is_spurious(una, None, again), "there is nothing left that could have come twice");
        assert!(!begun(0).is_spurious(una, None, again));
        // RFC 3522: the first acknowledgement that advances decides.
        assert!(begun(2).is_spurious(una + 1, Some(69), None));
        assert!(!begun(2).is_spurious(una + 1, Some(70), None) && !begun(2).is_spurious(una, Some(69), None));
        let mut late = begun(1);
        assert!(!late.is_spurious(una + 1, Some(71), None) && !late.is_spurious(una + 2, Some(69), None));
        assert!(!begun(0).is_spurious(una + 1, Some(1), None), "nothing was sent again");
    }
}
