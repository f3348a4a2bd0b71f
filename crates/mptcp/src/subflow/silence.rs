//! When a subflow that acknowledges nothing is called silent.

use super::state::Subflow;
use super::timers::SubflowTimer;
use crate::config::TcpConfig;
use anabranch_policy::time::{Duration, Instant};

/// What a silence must last at least: one segment alone may be acknowledged late (RFC 9293, section 3.8.6.3; most
/// receivers wait for 40 ms).
const LEAST_SILENCE: Duration = Duration::from_millis(50);

impl Subflow {
    /// Starts the timer of silence, unless it runs. Who is silent already and gets something nevertheless, because all are, has
    /// it for as long again as the silence lasts: a moment that is over would have it go from one to the other at once, without end.
    pub fn watch_silence(&mut self, now: Instant, round_trips: f32, config: &TcpConfig) {
        if !self.timers.runs(SubflowTimer::Silence) && !self.scoreboard.is_idle() {
            let (since, longest) = (self.scoreboard.silent_since(), self.longest_silence(round_trips, config));
            let due = if self.liveness.silent { now + longest.max(now.since(since)) } else { since + longest };
            self.timers.set(SubflowTimer::Silence, due);
        }
    }

    /// The round trips that the scheduler allows, but not less than what RFC 6298 holds for possible.
    pub fn longest_silence(&self, round_trips: f32, config: &TcpConfig) -> Duration {
        let smoothed = self.rtt.smoothed();
        let usual = smoothed + (self.rtt.variation() * 4).max(LEAST_SILENCE);
        smoothed.mul_f64(f64::from(round_trips)).max(usual).min(self.rtt.base_rto(config).max(LEAST_SILENCE))
    }
}
