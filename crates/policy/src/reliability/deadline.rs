//! What a deadline counts from: the time of each message itself, or that of the first of its group.
//!
//! The definition of [`super`] is the same in both; what differs is the play-out time that goes into it. Under
//! [`DeadlineOf::Group`] all messages of a group have that of its first, so that the group as a whole has the latency, as the
//! recPR paper has it (section V.A: "the end-to-end transmission delay constraint specified for each GoP is set equal to the
//! showing duration (e.g., 500 ms)"). The last frame of a group of nine at 30 a second, which is there 267 ms after the first,
//! has 233 ms of 500 then.

use crate::time::Duration;

/// What has a deadline of its own.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum DeadlineOf {
    /// Each frame.
    #[default]
    Frame,
    /// Each group of pictures: its frames share one.
    Group,
}

/// How long what is sent may take, and from when on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Deadline {
    /// The latency of the play-out.
    pub latency: Duration,
    /// What it counts for.
    pub of: DeadlineOf,
}

impl Deadline {
    /// The play-out time of a frame that is there at `frame`, in a group whose first is there at `group`: what the header of its
    /// message says, and what goes into [`super::PlayOutClock`].
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

    /// How long after it was written it is of use to a sender, which goes by its own clock; nothing if its time is over when
    /// it is there.
    pub fn lifetime(&self, frame: Duration, group: Duration) -> Duration {
        Duration::from_nanos((self.play_out(frame, group) + self.latency).as_nanos().saturating_sub(frame.as_nanos()))
    }
}

/// Each frame by itself.
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
        // Nine frames, one each 33 ms, 40 ms under way: the first sets the base.
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
        // The sender's and the receiver's word differ by the way of the quickest.
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
