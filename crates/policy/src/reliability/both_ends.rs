//! The stream partial-reliability engine at the receiver, and withdrawal at the sender: an improvement of recPR-MPTCP.
//!
//! A receiver can give up what is under way and late. It can do nothing about a queue at the sender: where more is written
//! than the paths carry, every message waits there until it is late, and all of them are still sent. So the sender, which
//! alone knows of that queue, withdraws what can no longer arrive by the receiver's deadline, as in [`super::withdrawal`]; what nothing depends on
//! (importance above [`DEPENDED_ON`]: B frames) has half the lifetime, so that a queue is shortened at their cost first. Neither end waits
//! for the other's word: what the receiver would wait for in vain it gives up by [`super::spe`].

use super::{DEPENDED_ON, Decision, Missing, Outstanding, Reliability, Terms, Unit, Verdict, spe, withdrawal};
use crate::table::{Member, SettingError, Settings};
use crate::time::{Duration, Instant};

/// The line of [`super::TABLE`].
pub const MEMBER: Member<dyn Reliability> = Member {
    name: "both_ends",
    summary: "The receiver gives up as spe does, and the sender withdraws what can no longer be in time, B frames first.",
    source: "recPR-MPTCP, IV-A, improved",
    parameters: spe::PARAMETERS,
    build,
};

fn build(settings: &Settings) -> Result<Box<dyn Reliability>, SettingError> {
    let receiver = (spe::MEMBER.build)(settings)?;
    let latency = receiver.terms().latency;
    Ok(Box::new(BothEnds { receiver, sender: withdrawal::whole_messages(latency), latency }))
}

struct BothEnds {
    receiver: Box<dyn Reliability>,
    sender: withdrawal::Withdrawal,
    latency: Duration,
}

impl Reliability for BothEnds {
    fn terms(&self) -> Terms {
        Terms { sender: Some(Unit::Message), ..self.receiver.terms() }
    }

    fn give_up(&mut self, now: Instant, missing: &Missing) -> Decision {
        self.receiver.give_up(now, missing)
    }

    fn withdraw(&mut self, now: Instant, message: &Outstanding) -> Verdict {
        // The receiver counts its deadline from the fastest message's way, and so does the sender.
        let way = message.round_trip / 2;
        let mut expires = message.expires.unwrap_or(message.written + way + self.latency);
        // What is on its way already costs nothing more: only what has not begun is expendable.
        if message.importance > DEPENDED_ON && message.given == 0 {
            expires = expires - self.latency / 2;
        }
        self.sender.withdraw(now, &Outstanding { expires: Some(expires), ..*message })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reliability::{BufferState, Reason};

    fn at(millis: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(millis)
    }
    fn policy() -> Box<dyn Reliability> {
        build(&Settings::new().with("latency", 400)).expect("a setting of spe")
    }
    /// Written at 100 ms, 40 ms of round trip.
    fn message(importance: u8, given: u64) -> Outstanding {
        let round_trip = Duration::from_millis(40);
        Outstanding { importance, length: 1_000, given, lost: 0, written: at(100), expires: None, round_trip }
    }

    #[test]
    fn what_has_not_begun_and_nothing_depends_on_has_half_the_time() {
        let mut policy = policy();
        assert_eq!(policy.withdraw(at(299), &message(255, 0)), Verdict::Keep { until: at(300) });
        assert_eq!(policy.withdraw(at(300), &message(255, 0)), Verdict::Withdraw);
        assert_eq!(policy.withdraw(at(300), &message(255, 10)), Verdict::Keep { until: at(500) });
        assert_eq!(policy.withdraw(at(300), &message(128, 0)), Verdict::Keep { until: at(500) });
        assert_eq!(policy.withdraw(at(500), &message(0, 0)), Verdict::Withdraw);
        // All of it sent and nothing lost: half a round trip more, since nothing has to go that way any more.
        assert_eq!(policy.withdraw(at(500), &message(0, 1_000)), Verdict::Keep { until: at(520) });
    }

    #[test]
    fn the_applications_word_is_halved_by_as_much() {
        let said = Outstanding { expires: Some(at(400)), ..message(255, 0) };
        assert_eq!(policy().withdraw(at(100), &said), Verdict::Keep { until: at(180) });
    }

    #[test]
    fn the_receiver_gives_up_as_spe_does() {
        let missing = Missing {
            data_seq: 0,
            length: 1,
            since: at(0),
            importance: Some(0),
            play_out: Some(at(300)),
            later_play_out: None,
            buffer: BufferState { size: 10, held: 0, room: 10 },
            round_trip: Duration::ZERO,
        };
        let mut policy = policy();
        assert_eq!(policy.give_up(at(289), &missing), Decision::Wait { until: at(290) });
        assert_eq!(policy.give_up(at(290), &missing), Decision::GiveUp(Reason::Expired));
        assert!(policy.terms().receiver && policy.terms().sender == Some(Unit::Message));
    }
}
