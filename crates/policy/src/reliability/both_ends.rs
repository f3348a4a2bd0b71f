//! The stream partial-reliability engine at the receiver, and withdrawal at the sender: an improvement of recPR-MPTCP.
//!
//! A receiver can abandon data that is in flight and late. It has no influence on a queue at the sender: if more is
//! written than the paths carry, every message waits there until it is late, and all of them are still sent. Only the
//! sender knows that queue, and what the paths will deliver ([`super::forecast`]).
//!
//! With the deadline of [`super`], on the sender's clock: what is sent on the fastest path before *written + latency*
//! is in time, since the delay of that path is in the base. So
//!
//! 1. **a message that will not be in time is not sent**: its length exceeds what the paths deliver by its deadline. If
//!    its importance is 0 ([`ESSENTIAL`]), it is sent unless the deadline has passed: even late, other frames depend on
//!    it;
//! 2. **nor one that makes a more important one late**: one that waits behind it, would be in time if only equally
//!    important data came before it, and will not be in time otherwise. So B frames are dropped before P frames, and
//!    these before I frames, and only when it is their turn, since the queue may become shorter until then;
//! 3. a message of which a part was sent is withdrawn if another part is to be sent or retransmitted and no path can
//!    deliver that in time;
//! 4. **the receiver abandons only what prevents a later message from being played** that is complete and due, and only
//!    if the missing one is due too: where the streams of a multiplex have other delays, such as sound behind video,
//!    the later message may be due first. Before that nothing is gained, since the missing data may still arrive. There
//!    is no reserve: between that decision and the reader there is only its wake-up. Without play-out times, data is
//!    abandoned for which later data has waited as long as the latency; and data that blocks the buffer as in
//!    [`super::spe`].
//!
//! While all paths are stale nothing is known of what they will deliver. Then 1 and 2 drop only what is late already.
//!
//! Neither end waits for notices of the other.

use super::forecast::Forecast;
use super::spe::Spe;
use super::{Decision, ESSENTIAL, Missing, Outstanding, Reliability, Terms, Unit, Verdict};
use crate::table::{Member, Reader, SettingError};
use crate::time::{Duration, Instant};
use crate::view::SubflowView;

/// The entry in [`super::TABLE`].
pub const MEMBER: Member<dyn Reliability> = Member {
    name: "both_ends",
    summary: "The receiver abandons what keeps a later message from play-out, the sender what will be late, B frames first.",
    source: "recPR-MPTCP, IV-A, improved",
    build,
};

fn build(reader: &mut Reader<'_>) -> Result<Box<dyn Reliability>, SettingError> {
    Ok(Box::new(BothEnds { receiver: Spe::without_reserve(reader)? }))
}

struct BothEnds {
    receiver: Spe,
}

impl BothEnds {
    /// The last moment to send a part of it on a path as fast as the fastest was.
    fn deadline(&self, message: &Outstanding) -> Instant {
        self.last_moment(message.written, message.expires).unwrap_or(Instant::NEVER)
    }

    fn is_worth_beginning(&self, now: Instant, message: &Outstanding, forecast: &Forecast) -> bool {
        let left = self.deadline(message).since(now);
        match message.importance {
            ESSENTIAL => left > Duration::ZERO,
            _ if forecast.is_blind() => left > Duration::ZERO,
            _ => forecast.delivered_within(left, message.left()) >= message.left() as f64,
        }
    }
}

impl Reliability for BothEnds {
    fn terms(&self) -> Terms {
        Terms { sender: Some(Unit::Message), ..self.receiver.terms() }
    }

    fn last_moment(&self, written: Instant, expires: Option<Instant>) -> Option<Instant> {
        Some(expires.unwrap_or(written + self.receiver.terms().latency))
    }

    fn abandon(&mut self, now: Instant, missing: &Missing) -> Decision {
        // If play-out times are known, nothing is abandoned before a later message is due, nor before its own time.
        let known = missing.play_out.or(missing.later_play_out);
        let later = missing.later_play_out.map(|later| later.max(missing.play_out.unwrap_or(later)));
        let terms = Missing { play_out: known.map(|_| Instant::NEVER), later_play_out: later, ..*missing };
        self.receiver.abandon(now, &terms)
    }

    fn withdraw(&mut self, now: Instant, message: &Outstanding) -> Verdict {
        let deadline = self.deadline(message);
        match (now < deadline, message.left() > 0 || message.lost > 0) {
            (true, _) => Verdict::Keep { until: deadline },
            (false, true) => Verdict::Withdraw,
            // All of it is in flight and may be in time. Losses are known after a round trip.
            (false, false) => Verdict::Keep { until: now + message.round_trip },
        }
    }

    fn begin(&mut self, now: Instant, waiting: &[Outstanding], paths: &[SubflowView]) -> bool {
        let Some((next, behind)) = waiting.split_first() else { return true };
        let forecast = Forecast::of(paths);
        if !self.is_worth_beginning(now, next, &forecast) {
            return false;
        }
        if forecast.is_blind() {
            return true;
        }
        // Bytes of the messages behind it, by importance.
        let mut bytes = [0; 256];
        for message in behind {
            bytes.iter_mut().skip(usize::from(message.importance)).for_each(|bytes| *bytes += message.left());
            if message.importance < next.importance {
                let possible = forecast.delivered_within(self.deadline(message).since(now), message.left());
                let alone = bytes.get(usize::from(message.importance)).copied().unwrap_or_default();
                if (alone as f64) <= possible && (alone + next.left()) as f64 > possible {
                    return false;
                }
            }
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rate::Rate;
    use crate::reliability::{BufferState, Reason};
    use crate::scheduler::tests::subflow;
    use crate::table::Settings;

    fn at(millis: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(millis)
    }
    fn policy() -> Box<dyn Reliability> {
        Settings::new().with("latency", 400).read(build).expect("a setting of spe")
    }
    /// 10,000 bytes, written at 100 ms, round trip 40 ms.
    fn message(importance: u8, assigned: u64) -> Outstanding {
        let round_trip = Duration::from_millis(40);
        Outstanding { importance, length: 10_000, assigned, lost: 0, written: at(100), expires: None, round_trip }
    }
    /// A path of 100 kB/s that was filled.
    fn path() -> [SubflowView; 1] {
        let mut path = SubflowView { in_flight: 40_000, ..subflow(0, 40) };
        path.rates.bandwidth = Rate::from_bits_per_second(800_000);
        [path]
    }

    #[test]
    fn a_message_begins_if_it_will_be_in_time_and_one_of_importance_0_while_its_time_has_not_come() {
        // 10,000 bytes take 100 ms of the 400 that it has.
        let begins = |now, importance| policy().begin(at(now), &[message(importance, 0)], &path());
        assert_eq!([400, 401].map(|now| begins(now, 2)), [true, false]);
        assert_eq!([400, 401].map(|now| begins(now, 1)), [true, false]);
        assert_eq!([499, 500].map(|now| begins(now, 0)), [true, false]);
        let said = Outstanding { expires: Some(at(200)), ..message(1, 0) };
        assert_eq!([100, 101].map(|now| policy().begin(at(now), &[said], &path())), [true, false]);
    }

    #[test]
    fn what_makes_a_more_important_one_late_is_not_begun() {
        let begins = |now, waiting: &[Outstanding]| policy().begin(at(now), waiting, &path());
        let [b, p, i] = [2, 1, 0].map(|importance| message(importance, 0));
        // Two of them take 200 ms, and three 300.
        assert_eq!([300, 301].map(|now| begins(now, &[b, p])), [true, false]);
        assert_eq!([300, 301].map(|now| begins(now, &[b, b, p])), [true, false]);
        assert_eq!([300, 301].map(|now| begins(now, &[b, p, i])), [true, false]);
        assert_eq!([200, 201].map(|now| begins(now, &[b, i, p])), [true, false]);
        // It would be late in any case, and equally important messages do not matter.
        assert!(begins(400, &[b, Outstanding { expires: Some(at(450)), ..i }]));
        assert!(begins(400, &[p, p, b]));
    }

    #[test]
    fn while_all_paths_are_silent_only_what_is_late_already_is_not_begun() {
        let silent = path().map(|path| SubflowView { stale: true, ..path });
        let begins = |now, importance| policy().begin(at(now), &[message(importance, 0), message(0, 0)], &silent);
        assert_eq!([100, 499, 500].map(|now| begins(now, 255)), [true, true, false]);
        assert_eq!([499, 500].map(|now| begins(now, 0)), [true, false]);
        // One that carries tells what will be in time.
        let [carries] = path();
        assert!(!policy().begin(at(401), &[message(255, 0)], &[silent[0].clone(), carries]));
    }

    #[test]
    fn what_was_begun_is_withdrawn_when_something_of_it_is_to_be_sent_too_late() {
        let mut policy = policy();
        assert_eq!(policy.withdraw(at(499), &message(2, 10)), Verdict::Keep { until: at(500) });
        assert_eq!(policy.withdraw(at(500), &message(2, 10)), Verdict::Withdraw);
        assert_eq!(policy.withdraw(at(500), &message(0, 10_000)), Verdict::Keep { until: at(540) });
        assert_eq!(policy.withdraw(at(500), &Outstanding { lost: 1, ..message(0, 10_000) }), Verdict::Withdraw);
    }

    #[test]
    fn the_receiver_waits_until_a_later_message_is_to_be_played() {
        let missing = Missing {
            data_seq: 0,
            length: 1,
            since: at(0),
            importance: Some(0),
            play_out: Some(at(300)),
            later_play_out: Some(at(333)),
            buffer: BufferState { size: 10, held: 0, room: 10 },
            round_trip: Duration::ZERO,
        };
        let mut policy = policy();
        assert_eq!(policy.abandon(at(332), &missing), Decision::Wait { until: at(333) });
        assert_eq!(policy.abandon(at(333), &missing), Decision::Abandon(Reason::Overtaken));
        // Sound that lags behind the video of its multiplex is due before a picture that it follows.
        let lagging = Missing { later_play_out: Some(at(200)), ..missing };
        assert_eq!(policy.abandon(at(299), &lagging), Decision::Wait { until: at(300) });
        assert_eq!(policy.abandon(at(300), &lagging), Decision::Abandon(Reason::Overtaken));
        let alone = Missing { later_play_out: None, ..missing };
        assert_eq!(policy.abandon(at(5_000), &alone), Decision::Wait { until: Instant::NEVER });
        let bytes = Missing { play_out: None, ..alone };
        assert_eq!(policy.abandon(at(399), &bytes), Decision::Wait { until: at(400) });
        assert_eq!(policy.abandon(at(400), &bytes), Decision::Abandon(Reason::Expired));
        assert!(policy.terms().receiver && policy.terms().sender == Some(Unit::Message));
    }
}
