//! When a link is up and when it is down.

use crate::random::RandomStream;
use anabranch_policy::time::{Duration, Instant};

/// The up and down times of a link, fixed or drawn from its random stream. It starts up, unless it is down from time
/// zero.
#[derive(Clone, PartialEq, Debug, Default)]
pub enum Schedule {
    #[default]
    AlwaysUp,
    /// Down from the first to the second time of each pair; [`Instant::NEVER`] as the second: permanently. Order does
    /// not matter, and overlaps are merged.
    DownDuring(Vec<(Instant, Instant)>),
    /// Alternately up and down.
    Alternating {
        /// Time up.
        up: Duration,
        /// Time down.
        down: Duration,
    },
    /// Alternately up and down, for exponentially distributed times.
    Random {
        /// Mean time up.
        mean_up: Duration,
        /// Mean time down.
        mean_down: Duration,
    },
}

/// State of a schedule.
#[derive(Clone, Debug)]
pub(super) struct Clockwork {
    pub(super) up: bool,
    /// Next change of `up`, or start of a pause.
    pub(super) next_change: Instant,
    /// Next change of `up`.
    next_turn: Instant,
    rest: Rest,
    /// Future pauses, the last one first.
    pauses: Vec<(Instant, Instant)>,
    /// End of the latest pause that has begun.
    pub(super) paused_until: Instant,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Change {
    /// The link went up or down.
    Turned,
    /// A pause begins.
    Paused,
}

#[derive(Clone, Debug)]
enum Rest {
    /// Later changes, the last one first.
    Listed(Vec<Instant>),
    Alternating {
        /// Time up.
        up: Duration,
        /// Time down.
        down: Duration,
    },
    Random {
        mean_up: Duration,
        mean_down: Duration,
        random: Box<RandomStream>,
    },
}

impl Clockwork {
    /// `random` is called only for a schedule that draws from it.
    pub(super) fn new(
        schedule: &Schedule,
        pauses: &[(Instant, Instant)],
        random: impl FnOnce() -> RandomStream,
    ) -> Self {
        let rest = match schedule {
            Schedule::AlwaysUp => Rest::Listed(Vec::new()),
            Schedule::DownDuring(periods) => Rest::Listed(changes(periods)),
            Schedule::Alternating { up, down } => Rest::Alternating { up: *up, down: *down },
            Schedule::Random { mean_up, mean_down } => {
                Rest::Random { mean_up: *mean_up, mean_down: *mean_down, random: Box::new(random()) }
            }
        };
        let mut pauses: Vec<_> = pauses.iter().copied().filter(|(from, to)| from < to).collect();
        pauses.sort_unstable_by(|a, b| b.cmp(a));
        let mut clockwork = Self {
            up: true,
            next_change: Instant::ZERO,
            next_turn: Instant::ZERO,
            rest,
            pauses,
            paused_until: Instant::ZERO,
        };
        clockwork.next_turn = clockwork.change_after(Instant::ZERO);
        clockwork.look_ahead();
        clockwork
    }
    /// Applies the change at `next_change`.
    pub(super) fn turn(&mut self) -> Change {
        let change = if self.next_turn <= self.next_change {
            self.up = !self.up;
            self.next_turn = self.change_after(self.next_turn);
            Change::Turned
        } else {
            let until = self.pauses.pop().map_or(Instant::ZERO, |(_, until)| until);
            self.paused_until = self.paused_until.max(until);
            Change::Paused
        };
        self.look_ahead();
        change
    }
    fn look_ahead(&mut self) {
        let pause = self.pauses.last().map_or(Instant::NEVER, |(from, _)| *from);
        self.next_change = self.next_turn.min(pause);
    }
    fn change_after(&mut self, now: Instant) -> Instant {
        let least = Duration::from_nanos(1);
        match &mut self.rest {
            Rest::Listed(changes) => changes.pop().unwrap_or(Instant::NEVER),
            Rest::Alternating { up, down } => now + if self.up { *up } else { *down }.max(least),
            Rest::Random { mean_up, mean_down, random } => {
                let mean = if self.up { *mean_up } else { *mean_down };
                now + Duration::from_secs_f64(random.exponential(mean.as_secs_f64())).max(least)
            }
        }
    }
}

/// The times of changes, down first, in reverse order.
fn changes(periods: &[(Instant, Instant)]) -> Vec<Instant> {
    let mut sorted: Vec<_> = periods.iter().copied().filter(|(down, up)| down < up).collect();
    sorted.sort_unstable();
    let mut changes: Vec<Instant> = Vec::new();
    for (down, up) in sorted {
        match changes.last_mut() {
            Some(last_up) if *last_up >= down => *last_up = (*last_up).max(up),
            _ => changes.extend([down, up]),
        }
    }
    changes.reverse();
    changes
}
