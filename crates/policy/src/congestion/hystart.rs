//! HyStart++ (RFC 9406): ends the first slow start before the queue that it builds overflows.
//!
//! Round trips are counted by bytes: a round ends when all that had been sent at its beginning is acknowledged. When
//! the least RTT of a round is above that of the round before by an eighth of it (4 ms at least, 16 ms at most),
//! Conservative Slow Start (CSS) begins: growth at a quarter of the speed. If the RTT falls again below what it was
//! when CSS began, the rise was jitter and slow start resumes; after five rounds of CSS slow start is over.

use super::Ack;
use crate::time::Duration;

/// Minimum of the significant rise of the RTT (RFC 9406, section 4.3).
const MIN_RTT_THRESH: Duration = Duration::from_millis(4);
/// Maximum of the significant rise of the RTT.
const MAX_RTT_THRESH: Duration = Duration::from_millis(16);
/// The significant rise is the last round's minimum RTT divided by this, within the two bounds.
const MIN_RTT_DIVISOR: u64 = 8;
/// RTT samples that a round must have before it is judged.
const N_RTT_SAMPLE: u32 = 8;
/// How much slower CSS grows than slow start.
const CSS_GROWTH_DIVISOR: u64 = 4;
/// Rounds of CSS before congestion avoidance; the one in which CSS begins counts.
const CSS_ROUNDS: u32 = 5;
/// Segments that one acknowledgement may count when segments are not paced (RFC 9406, section 4.2).
pub(super) const SEGMENTS_PER_ACK: u64 = 8;

/// Stage of the first slow start.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Stage {
    /// Standard slow start.
    Standard,
    /// Conservative Slow Start.
    Conservative {
        /// Minimum RTT of the round in which it began.
        baseline: Duration,
        /// Rounds of it that have ended.
        rounds: u32,
    },
}

/// The state of one subflow's first slow start.
#[derive(Clone, Debug)]
pub(super) struct HyStart {
    stage: Stage,
    /// The round ends when this many bytes are acknowledged in total; `None` before the first acknowledgement.
    round_end: Option<u64>,
    /// Minimum RTT of the previous round; [`Duration::MAX`] if it had none.
    last_round_min: Duration,
    /// Minimum RTT of this round so far.
    current_round_min: Duration,
    /// RTT samples of this round.
    samples: u32,
}

impl HyStart {
    /// Before the first acknowledgement.
    pub(super) fn new() -> Self {
        Self {
            stage: Stage::Standard,
            round_end: None,
            last_round_min: Duration::MAX,
            current_round_min: Duration::MAX,
            samples: 0,
        }
    }

    /// The current divisor of growth.
    pub(super) fn growth_divisor(&self) -> u64 {
        match self.stage {
            Stage::Standard => 1,
            Stage::Conservative { .. } => CSS_GROWTH_DIVISOR,
        }
    }

    /// Handles an acknowledgement. Returns whether slow start has ended (RFC 9406, section 4.2).
    pub(super) fn on_ack(&mut self, ack: &Ack) -> bool {
        let round_end = *self.round_end.get_or_insert(ack.total_sent);
        if let Some(rtt) = ack.rtt {
            self.current_round_min = self.current_round_min.min(rtt);
            self.samples = self.samples.saturating_add(1);
        }
        if self.samples >= N_RTT_SAMPLE {
            self.judge();
        }
        if ack.total_acked < round_end {
            return false;
        }
        self.round_end = Some(ack.total_sent);
        self.last_round_min = self.current_round_min;
        self.current_round_min = Duration::MAX;
        self.samples = 0;
        match &mut self.stage {
            Stage::Standard => false,
            Stage::Conservative { rounds, .. } => {
                *rounds += 1;
                *rounds >= CSS_ROUNDS
            }
        }
    }

    /// Compares the minimum RTT of this round with the last round's or with the baseline.
    fn judge(&mut self) {
        match self.stage {
            Stage::Standard => {
                if self.last_round_min == Duration::MAX || self.current_round_min == Duration::MAX {
                    return;
                }
                let rise = (self.last_round_min / MIN_RTT_DIVISOR).clamp(MIN_RTT_THRESH, MAX_RTT_THRESH);
                if self.current_round_min >= self.last_round_min + rise {
                    self.stage = Stage::Conservative { baseline: self.current_round_min, rounds: 0 };
                }
            }
            Stage::Conservative { baseline, .. } => {
                if self.current_round_min < baseline {
                    self.stage = Stage::Standard;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::congestion::harness::ack;

    const MSS: u64 = 1_000;

    /// In a round that does not end, after one whose least round-trip time is given.
    fn in_a_round_after(rtt_ms: u64) -> HyStart {
        let mut hystart = HyStart::new();
        hystart.last_round_min = Duration::from_millis(rtt_ms);
        hystart.round_end = Some(u64::MAX);
        hystart
    }

    /// Acknowledges a round of `segments` segments with this RTT, while twice as many are sent. Returns whether slow
    /// start ended.
    fn round(hystart: &mut HyStart, acked: &mut u64, sent: &mut u64, segments: u64, rtt_ms: u64) -> bool {
        let mut over = false;
        for _ in 0..segments {
            *acked += MSS;
            *sent += 2 * MSS;
            let one = Ack {
                rtt: Some(Duration::from_millis(rtt_ms)),
                total_acked: *acked,
                total_sent: *sent,
                ..ack(MSS, rtt_ms)
            };
            over |= hystart.on_ack(&one);
        }
        over
    }

    #[test]
    fn a_steady_rtt_never_ends_slow_start() {
        let (mut hystart, mut acked, mut sent) = (HyStart::new(), 0, 10 * MSS);
        for doubling in 0..8 {
            assert!(!round(&mut hystart, &mut acked, &mut sent, 10 << doubling, 40));
            assert_eq!(hystart.growth_divisor(), 1);
        }
    }

    #[test]
    fn a_rise_of_an_eighth_begins_css_and_five_rounds_of_it_end_slow_start() {
        let (mut hystart, mut acked, mut sent) = (HyStart::new(), 0, 10 * MSS);
        round(&mut hystart, &mut acked, &mut sent, 16, 40);
        // An eighth of 40 ms is 5 ms: 44 ms is not enough.
        round(&mut hystart, &mut acked, &mut sent, 32, 44);
        assert_eq!(hystart.growth_divisor(), 1);
        // An eighth of 44 ms is 5.5 ms: 50 ms is enough, once 8 samples of a round are in.
        let mut over = 0;
        while hystart.growth_divisor() == 1 {
            assert!(!round(&mut hystart, &mut acked, &mut sent, 1, 50));
            over += 1;
            assert!(over < 200, "CSS never began");
        }
        assert!(over >= 8);
        // From the middle of this round: it and four more.
        let mut rounds = 0;
        let mut ended = false;
        while !ended {
            let before = hystart.round_end;
            ended = round(&mut hystart, &mut acked, &mut sent, 1, 52);
            rounds += u32::from(hystart.round_end != before);
        }
        assert_eq!(rounds, 5);
    }

    #[test]
    fn the_threshold_is_four_milliseconds_for_short_rtts_and_sixteen_for_long_ones() {
        for (base, quiet, loud) in [(8, 11, 12), (400, 415, 416)] {
            for (rtt, divisor) in [(quiet, 1), (loud, CSS_GROWTH_DIVISOR)] {
                let mut hystart = in_a_round_after(base);
                let (mut acked, mut sent) = (0, 100 * MSS);
                round(&mut hystart, &mut acked, &mut sent, 8, rtt);
                assert_eq!(hystart.growth_divisor(), divisor, "base {base} ms, RTT {rtt} ms");
            }
        }
    }

    #[test]
    fn seven_samples_are_too_few_to_judge_a_round() {
        let mut hystart = in_a_round_after(40);
        let (mut acked, mut sent) = (0, 100 * MSS);
        round(&mut hystart, &mut acked, &mut sent, 7, 100);
        assert_eq!(hystart.growth_divisor(), 1);
        round(&mut hystart, &mut acked, &mut sent, 1, 100);
        assert_eq!(hystart.growth_divisor(), CSS_GROWTH_DIVISOR);
    }

    #[test]
    fn an_rtt_below_the_baseline_resumes_slow_start() {
        let mut hystart = HyStart::new();
        hystart.stage = Stage::Conservative { baseline: Duration::from_millis(50), rounds: 2 };
        hystart.round_end = Some(u64::MAX);
        let (mut acked, mut sent) = (0, 100 * MSS);
        round(&mut hystart, &mut acked, &mut sent, 8, 50);
        assert_eq!(hystart.growth_divisor(), CSS_GROWTH_DIVISOR);
        round(&mut hystart, &mut acked, &mut sent, 1, 49);
        assert_eq!(hystart.growth_divisor(), 1);
    }

    #[test]
    fn samples_count_in_their_round_only() {
        let (mut hystart, mut acked, mut sent) = (HyStart::new(), 0, 10 * MSS);
        // The first acknowledgement finds twelve segments sent: the round has twelve samples.
        round(&mut hystart, &mut acked, &mut sent, 12, 40);
        round(&mut hystart, &mut acked, &mut sent, 7, 100);
        assert_eq!(hystart.growth_divisor(), 1);
        round(&mut hystart, &mut acked, &mut sent, 1, 100);
        assert_eq!(hystart.growth_divisor(), CSS_GROWTH_DIVISOR);
    }

    #[test]
    fn the_baseline_is_the_rtt_at_which_css_began() {
        let mut hystart = in_a_round_after(40);
        let (mut acked, mut sent) = (0, 100 * MSS);
        round(&mut hystart, &mut acked, &mut sent, 8, 50);
        assert_eq!(hystart.growth_divisor(), CSS_GROWTH_DIVISOR);
        // Above the round before, and below where CSS began.
        round(&mut hystart, &mut acked, &mut sent, 1, 49);
        assert_eq!(hystart.growth_divisor(), 1);
    }
}
