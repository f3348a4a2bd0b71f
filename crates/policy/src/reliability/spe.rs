//! The stream partial-reliability engine of recPR-MPTCP: the receiver abandons data that arrives too late to be useful.
//!
//! Source: "recPR-MPTCP: receiver-assisted partial reliability", section IV-A and algorithm 1. Missing data is
//! abandoned when
//!
//! 1. its lifetime is over or about to be (`expired`): now + reserve has reached the play-out time of the message
//!    ([`super`]); if that is not known, the time since which later data has waited, plus the latency;
//! 2. the receive buffer is severely blocked (`blocked`), unimportant data first, and never data of importance 0;
//! 3. a later message, which has arrived, is due (`overtaken`): now + reserve has reached its play-out time.
//!
//! What the paper leaves open: *about to be* is the setting `reserve`. *Severely blocked* means that the data behind
//! the hole has taken the share `blocked_from` of the space left for it, for at least a round trip, so that a
//! retransmission had a chance. From there to a full buffer the lowest importance value that is abandoned falls
//! linearly from 255 to 1, which in the paper's terms are B frames, then P frames, never I frames. Data of unknown
//! importance is not abandoned for this reason. The paper advances the cumulative acknowledgement and does not say at
//! which level: see [`super::Level`].

use super::{Decision, Level, Missing, Reason, Reliability, Terms};
use crate::table::{Choice, Member, Milliseconds, Number, Reader, SettingError, Switch};
use crate::time::{Duration, Instant};

const LATENCY: Milliseconds = Milliseconds(Number {
    name: "latency",
    unit: "ms",
    default: 500.0,
    range: 1.0..=60_000.0,
    summary: "Play-out delay beyond the transit time of the fastest message: the deadline.",
});
const LEVEL: Choice<Level> = Choice {
    name: "level",
    default: Level::Data,
    words: &[("data", Level::Data), ("subflow", Level::Subflow)],
    summary: "Whether the subflow's acknowledgement passes abandoned data too.",
};
const EXPIRED: Switch = Switch { name: "expired", default: true, summary: "Abandon expired data." };
const BLOCKED: Switch = Switch { name: "blocked", default: true, summary: "Abandon data that blocks the buffer." };
const OVERTAKEN: Switch =
    Switch { name: "overtaken", default: true, summary: "Abandon data that keeps a later message from play-out." };
const RESERVE: Milliseconds = Milliseconds(Number {
    name: "reserve",
    unit: "ms",
    default: 10.0,
    range: 0.0..=1_000.0,
    summary: "How long before its deadline a message counts as expired, or as due for play-out.",
});
const BLOCKED_FROM: Number = Number {
    name: "blocked_from",
    unit: "share",
    default: 0.75,
    range: 0.0..=1.0,
    summary: "Share of the buffer behind a hole from which it counts as severely blocked.",
};
const MOST_SKIPPED: Number = Number {
    name: "most_skipped",
    unit: "share",
    default: 0.05,
    range: 0.0..=0.5,
    summary: "At level subflow: most data that acknowledgements skip, as a share of what arrives.",
};

/// The entry in [`super::TABLE`].
pub const MEMBER: Member<dyn Reliability> = Member {
    name: "spe",
    summary: "The receiver abandons data that has expired, blocks its buffer, or was overtaken by a later message.",
    source: "recPR-MPTCP, IV-A",
    build,
};

fn build(reader: &mut Reader<'_>) -> Result<Box<dyn Reliability>, SettingError> {
    Ok(Box::new(Spe::read(reader)?))
}

/// The three triggers and their settings.
#[derive(Clone, Copy, Debug)]
pub(super) struct Spe {
    latency: Duration,
    level: Level,
    expired: bool,
    blocked: bool,
    overtaken: bool,
    reserve: Duration,
    blocked_from: f64,
    most_skipped: f64,
}

impl Spe {
    fn read(reader: &mut Reader<'_>) -> Result<Self, SettingError> {
        Ok(Self {
            latency: reader.read(&LATENCY)?,
            level: reader.read(&LEVEL)?,
            expired: reader.read(&EXPIRED)?,
            blocked: reader.read(&BLOCKED)?,
            overtaken: reader.read(&OVERTAKEN)?,
            reserve: reader.read(&RESERVE)?,
            blocked_from: reader.read(&BLOCKED_FROM)?,
            most_skipped: reader.read(&MOST_SKIPPED)?,
        })
    }

    /// Reads the settings of a receiver that abandons all data that is expired or overtaken, without a reserve.
    pub(super) fn without_reserve(reader: &mut Reader<'_>) -> Result<Self, SettingError> {
        Ok(Self {
            latency: reader.read(&LATENCY)?,
            level: reader.read(&LEVEL)?,
            expired: true,
            blocked: reader.read(&BLOCKED)?,
            overtaken: true,
            reserve: Duration::ZERO,
            blocked_from: reader.read(&BLOCKED_FROM)?,
            most_skipped: reader.read(&MOST_SKIPPED)?,
        })
    }

    /// The lowest importance value that is abandoned now; none if nothing is.
    fn abandoned_from(&self, missing: &Missing) -> Option<u8> {
        let buffer = missing.buffer;
        let full = buffer.held as f64 / (buffer.held + buffer.room).max(1) as f64;
        let beyond = full - self.blocked_from;
        // All at once if the bound is a full buffer.
        let share = if self.blocked_from < 1.0 { beyond / (1.0 - self.blocked_from) } else { 1.0 };
        (beyond >= 0.0).then_some((255.0 - 254.0 * share) as u8)
    }
}

impl Reliability for Spe {
    fn terms(&self) -> Terms {
        Terms {
            receiver: true,
            sender: None,
            latency: self.latency,
            level: self.level,
            most_skipped: self.most_skipped,
        }
    }

    fn abandon(&mut self, now: Instant, missing: &Missing) -> Decision {
        let ahead = now + self.reserve;
        let mut until = Instant::NEVER;
        if self.overtaken
            && let Some(later) = missing.later_play_out
        {
            if later <= ahead {
                return Decision::Abandon(Reason::Overtaken);
            }
            until = until.min(later - self.reserve);
        }
        if self.expired {
            let due = missing.play_out.unwrap_or(missing.since + self.latency);
            if due <= ahead {
                return Decision::Abandon(Reason::Expired);
            }
            until = until.min(due - self.reserve);
        }
        let expendable = missing.importance.filter(|importance| *importance > 0 && self.blocked);
        if let (Some(importance), Some(least)) = (expendable, self.abandoned_from(missing))
            && importance >= least
        {
            let patience = missing.since + missing.round_trip;
            if patience <= now {
                return Decision::Abandon(Reason::Blocked);
            }
            until = until.min(patience);
        }
        Decision::Wait { until }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{BufferState, TABLE};
    use super::*;
    use crate::table;
    use crate::table::Settings;

    fn spe(settings: &Settings) -> Box<dyn Reliability> {
        table::build(TABLE, "spe", settings).unwrap()
    }
    fn at(millis: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(millis)
    }
    /// Of importance 64, due at 1,000 ms, waited for since 600 ms, in a buffer that is a tenth full.
    fn missing() -> Missing {
        Missing {
            data_seq: 0,
            length: 1_000,
            since: at(600),
            importance: Some(64),
            play_out: Some(at(1_000)),
            later_play_out: Some(at(1_040)),
            buffer: BufferState { size: 100_000, held: 10_000, room: 90_000 },
            round_trip: Duration::from_millis(50),
        }
    }
    fn wait(millis: u64) -> Decision {
        Decision::Wait { until: at(millis) }
    }

    #[test]
    fn a_message_expires_the_reserve_before_its_time() {
        let mut spe = spe(&Settings::new());
        assert_eq!(spe.abandon(at(989), &missing()), wait(990));
        assert_eq!(spe.abandon(at(990), &missing()), Decision::Abandon(Reason::Expired));
    }

    #[test]
    fn without_a_known_time_the_lifetime_counts_from_when_later_data_began_to_wait() {
        let mut spe = spe(&Settings::new());
        let unknown = Missing { importance: None, play_out: None, later_play_out: None, ..missing() };
        // 600 + 500 - 10.
        assert_eq!(spe.abandon(at(700), &unknown), wait(1_090));
        assert_eq!(spe.abandon(at(1_090), &unknown), Decision::Abandon(Reason::Expired));
    }

    #[test]
    fn a_later_message_whose_time_has_come_overtakes_an_earlier_one_that_could_wait() {
        let mut spe = spe(&Settings::new());
        let earlier = Missing { later_play_out: Some(at(700)), ..missing() };
        assert_eq!(spe.abandon(at(680), &earlier), wait(690));
        assert_eq!(spe.abandon(at(690), &earlier), Decision::Abandon(Reason::Overtaken));
    }

    #[test]
    fn a_blocked_buffer_abandons_the_unimportant_first_and_never_importance_0() {
        let mut spe = spe(&Settings::new());
        let mut at_fullness = |held, importance| {
            let buffer = BufferState { size: 100_000, held, room: 100_000 - held };
            spe.abandon(at(700), &Missing { importance: Some(importance), buffer, ..missing() })
        };
        let abandons = Decision::Abandon(Reason::Blocked);
        assert_eq!(at_fullness(74_999, 255), wait(990));
        assert_eq!(at_fullness(75_000, 255), abandons);
        assert_eq!(at_fullness(75_000, 254), wait(990));
        // 255 - 254 * 0.8 = 51.8 with 95 % taken.
        assert_eq!(at_fullness(95_000, 52), abandons);
        assert_eq!(at_fullness(95_000, 50), wait(990));
        assert_eq!(at_fullness(100_000, 1), abandons);
        assert_eq!(at_fullness(100_000, 0), wait(990));
    }

    #[test]
    fn before_a_round_trip_is_over_the_retransmission_has_its_chance() {
        let mut spe = spe(&Settings::new());
        let full = Missing { buffer: BufferState { size: 1, held: 1, room: 0 }, ..missing() };
        assert_eq!(spe.abandon(at(640), &full), wait(650));
        assert_eq!(spe.abandon(at(650), &full), Decision::Abandon(Reason::Blocked));
    }

    #[test]
    fn each_trigger_can_be_switched_off() {
        let mut none = spe(&Settings::new().with("expired", "off").with("blocked", "off").with("overtaken", "off"));
        let full = Missing { buffer: BufferState { size: 1, held: 1, room: 0 }, ..missing() };
        assert_eq!(none.abandon(Instant::NEVER, &full), Decision::Wait { until: Instant::NEVER });
    }
}
