//! Which lines about connections are printed, and how often those that anybody can cause.

use crate::console::{event, print};
use anabranch_proxy::{About, Journal, Outcome};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Minimum interval between two limited lines of one kind.
const INTERVAL: Duration = Duration::from_secs(10);

/// Lines that are limited, each kind by itself.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    /// The peer does not prove the key.
    Unproven,
    /// A client that has not proven the key goes, or is too slow.
    Stranger,
    /// This process may open no more files.
    NoDescriptors,
    /// There are as many connections as there may be.
    OverLimit,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Printed {
    Always,
    Rarely(Kind),
    Never,
}

fn judge(verbose: bool, about: About, outcome: Outcome) -> Printed {
    match (verbose, about, outcome) {
        (true, About::Client, _) => Printed::Always,
        (_, _, Outcome::NoDescriptors) => Printed::Rarely(Kind::NoDescriptors),
        (_, _, Outcome::OverLimit) => Printed::Rarely(Kind::OverLimit),
        (_, _, Outcome::Unproven) => Printed::Rarely(Kind::Unproven),
        (true, About::Stranger | About::NoRoom, _) => Printed::Rarely(Kind::Stranger),
        (false, ..) => Printed::Never,
    }
}

/// When the last line of each kind was printed.
#[derive(Default)]
struct Last([Option<Instant>; 4]);

impl Last {
    fn lets(&mut self, kind: Kind, now: Instant) -> bool {
        let Some(last) = self.0.get_mut(kind as usize) else { return true };
        let due = last.is_none_or(|last| now.duration_since(last) >= INTERVAL);
        if due {
            *last = Some(now);
        }
        due
    }
}

/// A journal of all connections while `is_verbose`, and otherwise of peers that do not prove the key and of a lack of room; these
/// lines are left out while a live view has the terminal.
pub fn connection_log(is_verbose: impl Fn() -> bool + Send + Sync + 'static, is_live: bool) -> Journal {
    let last: Mutex<Last> = Mutex::default();
    Arc::new(move |about, outcome, line: &str| {
        let verbose = is_verbose();
        let printed = match judge(verbose, about, outcome) {
            Printed::Always => true,
            Printed::Never => false,
            Printed::Rarely(kind) => last.lock().unwrap_or_else(PoisonError::into_inner).lets(kind, Instant::now()),
        };
        if printed && verbose {
            print(&format!("{line}\n"));
        } else if printed && !is_live {
            event(line);
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_anybody_can_cause_is_limited_with_verbose_too() {
        assert_eq!(judge(true, About::Client, Outcome::Finished), Printed::Always);
        assert_eq!(judge(true, About::Client, Outcome::Unproven), Printed::Always);
        assert_eq!(judge(true, About::Stranger, Outcome::Unproven), Printed::Rarely(Kind::Unproven));
        for outcome in [Outcome::LeftEarly, Outcome::TooSlow] {
            assert_eq!(judge(true, About::Stranger, outcome), Printed::Rarely(Kind::Stranger));
            assert_eq!(judge(false, About::Stranger, outcome), Printed::Never);
        }
    }

    #[test]
    fn what_needs_attention_is_told_without_verbose() {
        assert_eq!(judge(false, About::Stranger, Outcome::Unproven), Printed::Rarely(Kind::Unproven));
        assert_eq!(judge(false, About::Client, Outcome::Unproven), Printed::Rarely(Kind::Unproven));
        assert_eq!(judge(false, About::Client, Outcome::NoDescriptors), Printed::Rarely(Kind::NoDescriptors));
        for verbose in [false, true] {
            assert_eq!(judge(verbose, About::NoRoom, Outcome::OverLimit), Printed::Rarely(Kind::OverLimit));
        }
        assert_eq!(judge(false, About::Client, Outcome::Finished), Printed::Never);
    }

    #[test]
    fn one_line_of_a_kind_hides_none_of_another() {
        let (mut last, now) = (Last::default(), Instant::now());
        assert!(last.lets(Kind::Unproven, now));
        assert!(!last.lets(Kind::Unproven, now + INTERVAL / 2));
        assert!(last.lets(Kind::Stranger, now + INTERVAL / 2));
        assert!(last.lets(Kind::Unproven, now + INTERVAL));
    }
}
