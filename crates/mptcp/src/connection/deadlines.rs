//! Starts the timers of the connection.

use super::association::Protocol;
use super::state::Connection;
use super::timer_table::Timer;
use crate::subflow::State;
use crate::subflow::timers::SubflowTimer;
use anabranch_policy::time::{Duration, Instant};

/// After this time without a segment in either direction, congestion control may drop state that it can measure again.
const REST_AFTER: Duration = Duration::from_secs(60);

impl Connection {
    /// Starts the timer that detects an idle connection, after an event for congestion control.
    #[inline]
    pub(super) fn watch_rest(&mut self, now: Instant) {
        if !self.timers.runs(Timer::Rest) {
            self.timers.set(Timer::Rest, now + REST_AFTER);
        }
    }

    /// Reports an idle connection to congestion control, or restarts the timer if a segment moved since.
    pub(super) fn rest_if_nothing_moves(&mut self, now: Instant) {
        let outstanding = self.subflows.iter().any(|subflow| !subflow.scoreboard.is_idle());
        let last = self.subflows.iter().map(|subflow| subflow.last_moved()).max().unwrap_or(Instant::ZERO);
        if outstanding {
            self.timers.set(Timer::Rest, now + REST_AFTER);
        } else if last + REST_AFTER > now {
            self.timers.set(Timer::Rest, last + REST_AFTER);
        } else {
            self.timers.stop(Timer::Rest);
            self.congestion.on_rest();
        }
    }

    /// A connection that the application discarded waits for the peer's DATA_FIN as long as for a FIN.
    pub(super) fn limit_wait_for_end(&mut self, now: Instant) {
        let only_waits = self.life.discarded() && self.life.end_acknowledged() && self.life.closed.is_none();
        if only_waits && self.association.protocol == Protocol::Multipath {
            let end = now + self.config.tcp.fin_wait_2;
            self.timers.set_by(Timer::WithoutSubflows, end);
        }
    }

    /// Limits the wait if only the peer's FIN is missing. Ours may have been acknowledged while the peer's stream was
    /// incomplete, or still needed.
    pub(super) fn limit_wait_for_fin(&mut self, now: Instant) {
        let end = now + self.config.tcp.fin_wait_2;
        for subflow in self.subflows.iter_mut().filter(|subflow| subflow.state == State::FinWait2) {
            subflow.timers.set_by(SubflowTimer::Linger, end);
        }
    }

    /// Pauses the measurements of a connection on which nothing moves or waits.
    pub(super) fn rest_or_measure_again(&mut self, now: Instant) {
        let moved = (self.stats.segments_sent + self.stats.segments_received) as u32;
        self.timers.stop(Timer::Measure);
        if self.sender.una() < self.sender.buffer.end() || moved != self.measurement.moved {
            self.arm_measurement(now);
        }
        self.measurement.moved = moved.max(1);
    }

    /// Resumes measurements.
    pub(super) fn wake_measurement(&mut self, now: Instant) {
        let rests = !self.timers.runs(Timer::Measure) && self.measurement.moved > 0;
        if rests && self.association.protocol == Protocol::Multipath && self.life.closed.is_none() {
            self.arm_measurement(now);
        }
    }

    pub(super) fn arm_measurement(&mut self, now: Instant) {
        let due = match self.measurement.every {
            Duration::ZERO => Instant::NEVER,
            Duration::MAX => now + self.round_trip(),
            interval => now + interval,
        };
        self.timers.set(Timer::Measure, due);
    }

    /// The earliest deadline that is of no subflow.
    fn own_timeout(&self) -> Instant {
        let watch = self.measurement.watch.as_ref().map_or(Instant::NEVER, |watch| watch.repeat_at);
        self.timers.next().min(watch)
    }

    /// The earliest deadline.
    pub fn next_timeout(&self) -> Instant {
        self.subflows
            .iter()
            .fold(self.own_timeout(), |least, s| least.min(s.next_timeout()).min(s.acknowledgement_deadline()))
    }

    /// The earliest deadline, if it is earlier than the one armed at the endpoint; it counts as armed from now on.
    pub fn next_to_arm(&mut self) -> Option<Instant> {
        // Of a subflow that has not changed since, the endpoint knows a deadline as early as its own, unless that has come.
        let all = self.output.armed == Instant::NEVER || self.subflows.are_few();
        let due = if all { self.next_timeout() } else { self.own_timeout().min(self.subflows.earliest_deadline()) };
        let earlier = due < self.output.armed;
        self.output.armed = self.output.armed.min(due);
        debug_assert!(self.output.armed <= self.next_timeout(), "a deadline was not noticed");
        earlier.then_some(due)
    }

    /// Starts the user timeout, unless it runs, if anything waits for an acknowledgement at data level (RFC 5482; RFC
    /// 9293, section 3.8.3). To be called when nothing more can be sent. Progress stops it.
    pub(super) fn watch_user_timeout(&mut self, now: Instant) {
        let Some(timeout) = self.config.user_timeout else { return };
        let end_waits = self.life.write_closed() && !self.life.end_acknowledged();
        if self.life.closed.is_some() || !(end_waits || self.sender.una() < self.sender.buffer.end()) {
            self.timers.stop(Timer::User);
        } else if !self.timers.runs(Timer::User) {
            self.timers.set(Timer::User, now + timeout);
        }
    }

    /// Starts the peer timeout, unless it runs: the answer to something sent is late.
    pub(super) fn watch_peer(&mut self, now: Instant) {
        let Some(timeout) = self.config.peer_timeout else { return };
        if !self.timers.runs(Timer::Peer) {
            self.timers.set(Timer::Peer, now + timeout);
        }
    }

    /// Arms the timer of the data level: twice the longest timeout of the subflows, backed off. In plain TCP it is for
    /// a FIN that waits until the peer knows of our fallback.
    pub(super) fn arm_data_retransmit(&mut self, now: Instant) {
        if self.association.protocol == Protocol::Tcp
            && self.life.write_closed()
            && self.association.fallback.unheard().is_some()
        {
            self.timers.set(Timer::DataRetransmit, now + self.config.survive_without_subflows);
            return;
        }
        let outstanding = self.sender.una() < self.sender.data_nxt;
        let end_waits = self.life.write_closed() && !self.life.end_acknowledged() && self.sender.all_assigned();
        if self.association.protocol != Protocol::Multipath || !(outstanding || end_waits) || self.life.closed.is_some()
        {
            self.timers.stop(Timer::DataRetransmit);
            return;
        }
        let config = &self.config.tcp;
        let longest = self.subflows.iter().filter(|s| s.is_usable()).map(|s| s.rtt.base_rto(config)).max();
        let span = longest.unwrap_or(config.initial_rto) * 2 * (1 << self.timers.data_attempts.min(6));
        self.timers.set(Timer::DataRetransmit, now + span.min(config.max_rto));
    }
}
