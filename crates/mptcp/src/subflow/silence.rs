//! Detection of a silent subflow: one on which nothing is acknowledged for too long.

use super::state::Subflow;
use super::timers::SubflowTimer;
use crate::config::TcpConfig;
use anabranch_policy::time::{Duration, Instant};

/// Minimum silence: a single segment may be acknowledged late (RFC 9293, section 3.8.6.3; most receivers wait for 40
/// ms).
const LEAST_SILENCE: Duration = Duration::from_millis(50);
/// Minimum silence if measured by the fastest path: shorter pauses are handovers of radio links.
const LEAST_BY_QUICKEST: Duration = Duration::from_millis(500);

/// The limit of a silence.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    /// Smoothed round trips, as the scheduler says.
    pub round_trips: f32,
    /// Minimum smoothed round trip of the connection's paths.
    pub quickest: Duration,
}

impl Subflow {
    /// Starts the timer of silence, unless it runs. A subflow that is already silent, and gets data because all
    /// subflows are, has the same limit again from now on: a limit in the past would move the data from one subflow to
    /// the other for ever.
    pub fn watch_silence(&mut self, now: Instant, patience: Patience, config: &TcpConfig) {
        if !self.timers.runs(SubflowTimer::Silence) && !self.scoreboard.is_idle() {
            let (since, due) = (self.scoreboard.silent_since(), self.silence_ends(patience, config));
            let again = now + due.since(since).max(now.since(since));
            self.timers.set(SubflowTimer::Silence, if self.liveness.silent { again } else { due });
        }
    }

    /// When the silence will exceed its limit: after the round trips that the scheduler allows, but not before the
    /// timeout of RFC 6298. A path whose own queue makes its round trips long is judged by the fastest path instead,
    /// once its oldest segment is late too, since until then it has delivered.
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
