//! How long what is written now will wait before it is sent, and what is not worth sending then.

use anabranch_policy::reliability::{DEPENDED_ON, ESSENTIAL};
use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// What was written and has not been sent.
#[derive(Debug, Default)]
pub struct Backlog {
    /// Ends of messages in bytes since the beginning, and when they were written.
    waiting: VecDeque<(u64, Instant)>,
    written: u64,
}

impl Backlog {
    /// A message of so many bytes was written.
    pub fn written(&mut self, bytes: u64, now: Instant) {
        self.written += bytes;
        self.waiting.push_back((self.written, now));
    }

    /// How long the first message that has not been sent whole has been waiting, if so many bytes have not been sent.
    pub fn age(&mut self, unsent: u64, now: Instant) -> Duration {
        let sent = self.written.saturating_sub(unsent);
        while self.waiting.front().is_some_and(|(end, _)| *end <= sent) {
            self.waiting.pop_front();
        }
        self.waiting.front().map_or(Duration::ZERO, |(_, written)| now.saturating_duration_since(*written))
    }
}

/// Whether a message is sent that has waited, or will wait, so long: what nobody needs only for half of the latency, so that the
/// rest gets through; what all others need always.
pub fn is_worth_sending(importance: u8, wait: Duration, latency: Duration) -> bool {
    match importance {
        ESSENTIAL => true,
        1..=DEPENDED_ON => wait <= latency,
        _ => wait <= latency / 2,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_message_that_has_not_been_sent_whole_says_how_long_one_waits() {
        let began = Instant::now();
        let after = |ms| began + Duration::from_millis(ms);
        let mut backlog = Backlog::default();
        assert_eq!(backlog.age(0, began), Duration::ZERO);
        backlog.written(1_000, after(0));
        backlog.written(500, after(10));
        backlog.written(500, after(20));
        assert_eq!(backlog.age(1_001, after(30)), Duration::from_millis(30));
        assert_eq!(backlog.age(1_000, after(30)), Duration::from_millis(20));
        assert_eq!(backlog.age(1, after(30)), Duration::from_millis(10));
        assert_eq!(backlog.age(0, after(30)), Duration::ZERO);
    }

    #[test]
    fn the_less_important_goes_first() {
        let ms = Duration::from_millis;
        let worth = |wait| [0, 128, 255].map(|importance| is_worth_sending(importance, ms(wait), ms(300)));
        assert_eq!(
            [150, 151, 300, 301].map(worth),
            [[true; 3], [true, true, false], [true, true, false], [true, false, false]]
        );
    }
}
