//! ProbeRTT: half a bandwidth-delay product for a short while, to see the round trip without a queue (section 5.3.4), and
//! what happens after a pause of the sender (section 5.4).

use super::probe_bw::AckPhase;
use super::{Ack, Bbr, Sent, State};
use crate::time::{Duration, Instant};

/// How long little is in flight at least (ProbeRTTDuration).
const DURATION: Duration = Duration::from_millis(200);

/// The course of a ProbeRTT.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ProbeRtt {
    /// When it may end; none until little enough is in flight.
    done_at: Option<Instant>,
    round_done: bool,
    /// What is sent while this much had been delivered (first, last) shows our restraint, not the network.
    held_down: Option<(u64, u64)>,
}

impl ProbeRtt {
    /// Whether a segment was sent within or shortly after a ProbeRTT, by what had been delivered when it was.
    pub(super) fn held_down(&self, prior_delivered: Option<u64>) -> bool {
        match (self.held_down, prior_delivered) {
            (Some((first, last)), Some(prior)) => (first..=last).contains(&prior),
            _ => false,
        }
    }
}

impl Bbr {
    /// CheckProbeRTT.
    pub(super) fn check_probe_rtt(&mut self, ack: &Ack, expired: bool) {
        if self.state != State::ProbeRtt && expired && !self.idle_restart {
            self.save_window();
            self.state = State::ProbeRtt;
            self.probe_rtt = ProbeRtt { held_down: Some((ack.total_delivered, 0)), ..ProbeRtt::default() };
            self.cycle.ack_phase = AckPhase::ProbeStopping;
            self.rounds.restart(ack.total_delivered);
        }
        if self.state == State::ProbeRtt {
            self.handle_probe_rtt(ack);
        }
        if ack.delivered > 0 {
            self.idle_restart = false;
        }
    }

    /// HandleProbeRTT.
    fn handle_probe_rtt(&mut self, ack: &Ack) {
        let first = self.probe_rtt.held_down.map_or(ack.total_delivered, |(first, _)| first);
        self.probe_rtt.held_down = Some((first, ack.total_delivered.saturating_add(ack.in_flight)));
        if self.probe_rtt.done_at.is_none() {
            if ack.in_flight <= self.probe_rtt_window() {
                self.probe_rtt.done_at = Some(ack.now + DURATION);
                self.probe_rtt.round_done = false;
                self.rounds.restart(ack.total_delivered);
            }
            return;
        }
        self.probe_rtt.round_done |= self.rounds.is_start();
        if self.probe_rtt.round_done {
            self.check_probe_rtt_done(ack.now, ack.total_delivered);
        }
    }

    /// CheckProbeRTTDone, with ExitProbeRTT.
    fn check_probe_rtt_done(&mut self, now: Instant, total_delivered: u64) {
        if self.probe_rtt.done_at.is_none_or(|done_at| now <= done_at) {
            return;
        }
        self.min_rtt.probed(now);
        self.restore_window();
        self.reset_short_term();
        if self.full_pipe.reached {
            self.start_down(now, total_delivered);
            self.start_cruise();
        } else {
            self.enter_startup();
        }
    }

    /// HandleRestartFromIdle.
    pub(super) fn handle_restart_from_idle(&mut self, sent: &Sent) {
        if sent.in_flight > sent.bytes || !sent.app_limited {
            return;
        }
        self.idle_restart = true;
        self.extra_acked_since = sent.now;
        if self.state.is_probe_bw() {
            self.set_pacing_rate(1.0);
        } else if self.state == State::ProbeRtt {
            self.check_probe_rtt_done(sent.now, sent.total_delivered);
        }
    }
}
