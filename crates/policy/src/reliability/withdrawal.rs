//! Two schemes in which only the sender decides: it withdraws expired data and notifies the receiver.
//!
//! The recPR paper compares itself with both and describes neither beyond "drops expired data and says so" (PR-MPTCP,
//! after PR-SCTP's timed reliability, RFC 3758, section 4.1) and "whole messages at a time, with message-oriented
//! retransmission" (MO-PR). So:
//!
//! - `pr_mptcp` withdraws the missing part of a message when its lifetime, counted from when it was written, is over;
//! - `mo_pr` withdraws the whole message as soon as a part of it is to be sent or retransmitted that can no longer
//!   arrive in time: half the minimum round trip before the lifetime ends. So only messages that can be complete in
//!   time are retransmitted.
//!
//! The receiver waits for the notice of the sender, which may be lost; it is repeated each round trip until the
//! DATA_ACK has passed the data.

use super::{Level, Outstanding, Reliability, Terms, Unit, Verdict};
use crate::table::{Member, Milliseconds, Number, Reader, SettingError};
use crate::time::{Duration, Instant};

/// The entry of `pr_mptcp` in [`super::TABLE`].
pub const PR_MPTCP: Member<dyn Reliability> = Member {
    name: "pr_mptcp",
    summary: "The sender withdraws what is missing of expired messages, and tells the receiver.",
    source: "RFC 3758, 4.1; recPR-MPTCP",
    build: |reader| build(reader, Unit::Bytes),
};

/// The entry of `mo_pr` in [`super::TABLE`].
pub const MO_PR: Member<dyn Reliability> = Member {
    name: "mo_pr",
    summary: "The sender withdraws whole messages that can no longer arrive in time, and tells the receiver.",
    source: "recPR-MPTCP",
    build: |reader| build(reader, Unit::Message),
};

const LIFETIME: Milliseconds = Milliseconds(Number {
    name: "lifetime",
    unit: "ms",
    default: 500.0,
    range: 1.0..=60_000.0,
    summary: "How long after it was written a message is of use, where the application does not say.",
});

fn build(reader: &mut Reader<'_>, unit: Unit) -> Result<Box<dyn Reliability>, SettingError> {
    Ok(Box::new(Withdrawal { unit, lifetime: reader.read(&LIFETIME)? }))
}

/// What is withdrawn together, and when.
#[derive(Clone, Copy, Debug)]
struct Withdrawal {
    unit: Unit,
    lifetime: Duration,
}

impl Reliability for Withdrawal {
    fn terms(&self) -> Terms {
        let sender = Some(self.unit);
        Terms { receiver: false, sender, latency: self.lifetime, level: Level::Data, most_skipped: 0.0 }
    }

    fn withdraw(&mut self, now: Instant, message: &Outstanding) -> Verdict {
        let expires = message.expires.unwrap_or(message.written + self.lifetime);
        let to_send = message.left() > 0 || message.lost > 0;
        let hopeless = expires - message.round_trip / 2;
        let until = match self.unit {
            // From then on a (re)transmission is too late; before, a part of it may still be lost.
            Unit::Message if to_send || now < hopeless => hopeless,
            Unit::Message | Unit::Bytes => expires,
        };
        if now >= until { Verdict::Withdraw } else { Verdict::Keep { until } }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(millis)
    }
    /// Written at 100 ms and sent whole, round trip 40 ms.
    fn message() -> Outstanding {
        Outstanding {
            importance: 0,
            length: 1_000,
            assigned: 1_000,
            lost: 0,
            written: at(100),
            expires: None,
            round_trip: Duration::from_millis(40),
        }
    }

    #[test]
    fn what_is_under_way_is_withdrawn_at_the_end_of_its_lifetime() {
        for (unit, first) in [(Unit::Bytes, 600), (Unit::Message, 580)] {
            let mut policy = Withdrawal { unit, lifetime: Duration::from_millis(500) };
            assert_eq!(policy.withdraw(at(100), &message()), Verdict::Keep { until: at(first) });
            assert_eq!(policy.withdraw(at(599), &message()), Verdict::Keep { until: at(600) });
            assert_eq!(policy.withdraw(at(600), &message()), Verdict::Withdraw);
            let said = Outstanding { expires: Some(at(300)), ..message() };
            assert_eq!(policy.withdraw(at(300), &said), Verdict::Withdraw);
        }
    }

    #[test]
    fn a_message_that_needs_another_half_round_trip_and_has_less_is_withdrawn_whole_at_once() {
        let mut whole = Withdrawal { unit: Unit::Message, lifetime: Duration::from_millis(500) };
        let lost = Outstanding { lost: 100, ..message() };
        let unsent = Outstanding { assigned: 900, ..message() };
        for waits in [lost, unsent] {
            assert_eq!(whole.withdraw(at(579), &waits), Verdict::Keep { until: at(580) });
            assert_eq!(whole.withdraw(at(580), &waits), Verdict::Withdraw);
        }
    }
}
