//! What a deadline counts from: the time of each message, or that of the first message of its group.
//!
//! The definition of [`super`] is the same for both; only the play-out time differs. Under [`DeadlineOf::Group`] all
//! messages of a group have that of its first, so that the latency applies to the group as a whole, as in the recPR
//! paper (section V.A: "the end-to-end transmission delay constraint specified for each GoP is set equal to the showing
//! duration (e.g., 500 ms)"). The last frame of a group of nine at 30 per second, which is produced 267 ms after the
//! first, then has 233 ms of 500.

use crate::time::Duration;

/// What a deadline applies to.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum DeadlineOf {
    /// Each frame.
    #[default]
    Frame,
    /// Each group of pictures: its frames share one.
    Group,
}

/// How long data may take, and from when on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Deadline {
    pub latency: Duration,
    pub of: DeadlineOf,
}

impl Deadline {
    /// The play-out time of a frame that is produced at `frame`, in a group whose first frame is produced at `group`:
    /// the value in the header of its message, and for [`super::PlayOutClock`].
    ///
    /// ```
    /// use anabranch_policy::Duration;
    /// use anabranch_policy::reliability::{Deadline, DeadlineOf};
    ///
    /// let millis = Duration::from_millis;
    /// let deadline = Deadline { latency: millis(500), of: DeadlineOf::Group };
    /// assert_eq!(deadline.play_out(millis(1_267), millis(1_000)), millis(1_000));
    /// assert_eq!(deadline.lifetime(millis(1_267), millis(1_000)), millis(233));
    /// ```
    pub const fn play_out(&self, frame: Duration, group: Duration) -> Duration {
        match self.of {
            DeadlineOf::Frame => frame,
            DeadlineOf::Group => group,
        }
    }

    /// For how long after it was written it is useful, by the sender's clock; zero if its time is over then.
    pub fn lifetime(&self, frame: Duration, group: Duration) -> Duration {
        Duration::from_nanos((self.play_out(frame, group) + self.latency).as_nanos().saturating_sub(frame.as_nanos()))
    }
}

/// A deadline for each frame.
impl From<Duration> for Deadline {
    fn from(latency: Duration) -> Self {
        Self { latency, of: DeadlineOf::Frame }
    }
}

#[cfg(test)]
mod tests {
    use super::super::PlayOutClock;
    use super::*;
    use crate::time::Instant;

    fn millis(value: u64) -> Duration {
        Duration::from_millis(value)
    }

    #[test]
    fn frames_of_a_group_are_all_due_when_its_first_is() {
        let of_group = Deadline { latency: millis(500), of: DeadlineOf::Group };
        let mut clock = PlayOutClock::new(of_group.latency);
        // Nine frames, one each 33 ms, delay 40 ms: the first sets the base.
        let due: Vec<Option<Instant>> = (0..9)
            .map(|index| {
                let at = millis(33 * index);
                let play_out = of_group.play_out(at, millis(0));
                clock.observe(Instant::ZERO + at + millis(40), play_out);
                clock.at(play_out)
            })
            .collect();
        assert_eq!(due, vec![Some(Instant::ZERO + millis(540)); 9]);
        let lifetimes = [0, 264].map(|at| of_group.lifetime(millis(at), millis(0)).as_millis());
        assert_eq!(lifetimes, [500, 236]);
        // The times at sender and receiver differ by the delay of the fastest path.
        assert_eq!(
            Instant::ZERO + millis(264) + of_group.lifetime(millis(264), millis(0)),
            Instant::ZERO + millis(500)
        );
    }

    #[test]
    fn a_frame_with_a_deadline_of_its_own_has_all_of_the_latency_and_one_behind_its_groups_has_none() {
        let own = Deadline::from(millis(300));
        assert_eq!(
            (own.play_out(millis(99), millis(0)), own.lifetime(millis(99), millis(0))),
            (millis(99), millis(300))
        );
        let short = Deadline { latency: millis(100), of: DeadlineOf::Group };
        assert_eq!(short.lifetime(millis(264), millis(0)), Duration::ZERO);
    }
}
