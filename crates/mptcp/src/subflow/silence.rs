//! When a subflow that acknowledges nothing is called silent.

use super::state::Subflow;
use super::timers::SubflowTimer;
use crate::config::TcpConfig;
use anabranch_policy::time::{Duration, Instant};

/// What a silence must last at least: one segment alone may be acknowledged late (RFC 9293, section 3.8.6.3; most
/// receivers wait for 40 ms).
const LEAST_SILENCE: Duration = Duration::from_millis(50);
/// What it must last at least by the quickest path's clock: shorter pauses are handovers of radio links.
const LEAST_BY_QUICKEST: Duration = Duration::from_millis(500);

/// How long a silence is too long.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    /// Smoothed round trips, as the scheduler says.
    pub round_trips: f32,
    /// The least smoothed round trip of the connection's paths.
    pub quickest: Duration,
}

impl Subflow {
    /// Starts the timer of silence, unless it runs. Who is silent already and gets something nevertheless, because all are, has
    /// it for as long again as the silence lasts: a moment that is over would have it go from one to the other at once, without end.
    pub fn watch_silence(&mut self, now: Instant, patience: Patience, config: &TcpConfig) {
        if !self.timers.runs(SubflowTimer::Silence) && !self.scoreboard.is_idle() {
            let (since, due) = (self.scoreboard.silent_since(), self.silence_ends(patience, config));
            let again = now + due.since(since).max(now.since(since));
            self.timers.set(SubflowTimer::Silence, if self.liveness.silent { again } else { due });
        }
    }

    /// When the silence is too long, if it goes on: after the round trips that the scheduler allows, but not less than what RFC 6298
    /// holds for possible. A path whose queue makes its round trips long is judged by the quickest path's, once the oldest of what it
    /// holds is late too: it has delivered all the time until then.
    pub fn silence_ends(&self, patience: Patience, config: &TcpConfig) -> Instant {
        let since = self.scoreboard.silent_since();
        let smoothed = self.rtt.smoothed();
        let usual = smoothed + (self.rtt.variation() * 4).max(LEAST_SILENCE);
        let times = f64::from(patience.round_trips);
        let own = smoothed.mul_f64(times).max(usual).min(self.rtt.base_rto(config).max(LEAST_SILENCE));
        let quickest = patience.quickest.mul_f64(times).max(self.rtt.variation() * 4).max(LEAST_BY_QUICKEST);
        let late = self.scoreboard.oldest_sent_at().map_or(since, |sent_at| sent_at + usual);
        (since + own).min((since + quickest).max(late))
    }
}
