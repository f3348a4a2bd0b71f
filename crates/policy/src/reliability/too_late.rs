//! SRT's too-late packet drop, for comparison: the receiver skips missing data when later data is due, and the sender
//! drops data that has waited too long.
//!
//! Source: draft-sharabayko-srt, section 4.6. The receiver has one trigger: a received packet is due; missing data
//! before it is skipped and acknowledged. The sender drops data that has been in its buffer for longer than the
//! threshold, 1.25 times the latency and at least 1 s, since the receiver will have skipped it. SRT drops packets; here
//! messages are dropped, since an incomplete message is useless.

use super::{Decision, Level, Missing, Outstanding, Reason, Reliability, Terms, Unit, Verdict};
use crate::table::{Member, Milliseconds, Number, Reader, SettingError};
use crate::time::{Duration, Instant};

/// The threshold as a multiple of the latency.
const THRESHOLD: f64 = 1.25;
/// Minimum of the threshold.
const LEAST_THRESHOLD: Duration = Duration::from_secs(1);

/// The entry in [`super::TABLE`].
pub const MEMBER: Member<dyn Reliability> = Member {
    name: "too_late",
    summary: "Reference: the receiver skips what is missing when a later message is to be played; the sender drops what is old.",
    source: "draft-sharabayko-srt, 4.6",
    build,
};

const LATENCY: Milliseconds = Milliseconds(Number {
    name: "latency",
    unit: "ms",
    default: 500.0,
    range: 1.0..=60_000.0,
    summary: "Play-out delay beyond the transit time of the fastest message.",
});

fn build(reader: &mut Reader<'_>) -> Result<Box<dyn Reliability>, SettingError> {
    Ok(Box::new(TooLate { latency: reader.read(&LATENCY)? }))
}

#[derive(Clone, Copy, Debug)]
struct TooLate {
    latency: Duration,
}

impl Reliability for TooLate {
    fn terms(&self) -> Terms {
        Terms {
            receiver: true,
            sender: Some(Unit::Message),
            latency: self.latency,
            level: Level::Data,
            most_skipped: 0.0,
        }
    }

    fn abandon(&mut self, now: Instant, missing: &Missing) -> Decision {
        match missing.later_play_out {
            Some(later) if later <= now => Decision::Abandon(Reason::Overtaken),
            Some(later) => Decision::Wait { until: later },
            None => Decision::Wait { until: Instant::NEVER },
        }
    }

    fn withdraw(&mut self, now: Instant, message: &Outstanding) -> Verdict {
        let threshold = self.latency.mul_f64(THRESHOLD).max(LEAST_THRESHOLD);
        let until = message.expires.unwrap_or(message.written + threshold);
        if now >= until { Verdict::Withdraw } else { Verdict::Keep { until } }
    }
}

#[cfg(test)]
mod tests {
    use super::super::BufferState;
    use super::*;

    fn at(millis: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(millis)
    }

    #[test]
    fn only_a_later_message_to_be_played_makes_the_receiver_go_on() {
        let mut too_late = TooLate { latency: Duration::from_millis(120) };
        let missing = Missing {
            data_seq: 0,
            length: 1,
            since: at(0),
            importance: Some(255),
            play_out: Some(at(100)),
            later_play_out: Some(at(140)),
            buffer: BufferState { size: 1, held: 1, room: 0 },
            round_trip: Duration::ZERO,
        };
        assert_eq!(too_late.abandon(at(139), &missing), Decision::Wait { until: at(140) });
        assert_eq!(too_late.abandon(at(140), &missing), Decision::Abandon(Reason::Overtaken));
        let alone = Missing { later_play_out: None, ..missing };
        assert_eq!(too_late.abandon(at(5_000), &alone), Decision::Wait { until: Instant::NEVER });
    }

    #[test]
    fn the_sender_drops_after_a_second_or_a_quarter_more_than_the_latency() {
        let message = Outstanding {
            importance: 0,
            length: 1,
            assigned: 0,
            lost: 0,
            written: at(0),
            expires: None,
            round_trip: Duration::ZERO,
        };
        let mut short = TooLate { latency: Duration::from_millis(120) };
        assert_eq!(short.withdraw(at(999), &message), Verdict::Keep { until: at(1_000) });
        assert_eq!(short.withdraw(at(1_000), &message), Verdict::Withdraw);
        let mut long = TooLate { latency: Duration::from_secs(2) };
        assert_eq!(long.withdraw(at(2_499), &message), Verdict::Keep { until: at(2_500) });
    }
}
