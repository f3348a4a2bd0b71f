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

    /// Reports an idle connection to congestion control and forgets the mappings of what arrived, or restarts the timer if
    /// a segment moved since.
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
            self.subflows.iter_mut().for_each(|subflow| subflow.mappings.remove_before(subflow.receiver.next));
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

    /// Whether our FIN waits for an answer to MP_FAIL, since nothing else tells the peer of the fallback.
    pub(super) fn withholds_fin(&self) -> bool {
        self.association.protocol == Protocol::Tcp
            && self.life.write_closed()
            && self.association.fallback.is_told_by_failure_alone()
    }

    /// Arms the timer of the data level: twice the longest timeout of the subflows, backed off. In plain TCP it is for
    /// MP_FAIL as long as the peer has not answered, and is not put off; or for a FIN that waits for that.
    pub(super) fn arm_data_retransmit(&mut self, now: Instant) {
        if self.association.protocol == Protocol::Tcp
            && self.association.fallback.unheard().is_some()
            && self.life.closed.is_none()
        {
            let withheld = self.withholds_fin();
            if withheld || !self.timers.runs(Timer::DataRetransmit) {
                let span = if withheld { self.config.survive_without_subflows } else { self.data_timeout() };
                self.timers.set(Timer::DataRetransmit, now + span);
            }
            return;
        }
        let outstanding = self.sender.una() < self.sender.data_nxt;
        let end_waits = self.life.write_closed() && !self.life.end_acknowledged() && self.sender.all_assigned();
        if self.association.protocol != Protocol::Multipath || !(outstanding || end_waits) || self.life.closed.is_some()
        {
            self.timers.stop(Timer::DataRetransmit);
            return;
        }
        let due = now + self.data_timeout();
        self.timers.set(Timer::DataRetransmit, due);
    }

    fn data_timeout(&self) -> Duration {
        let config = &self.config.tcp;
        let longest = self.subflows.iter().filter(|s| s.is_usable()).map(|s| s.rtt.base_rto(config)).max();
        let span = longest.unwrap_or(config.initial_rto) * 2 * (1 << self.timers.data_attempts.min(6));
        span.min(config.max_rto)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::ConnectionConfig;
    use crate::connection::tests::{config, connected};
    use anabranch_policy::ids::SubflowId;
    use bytes::Bytes;

    const NOW: Instant = Instant::from_nanos(5_000_000_000);

    #[test]
    fn the_wait_for_the_peers_fin_is_limited_in_fin_wait_2_alone() {
        let mut connection = connected(config(), 2);
        connection.subflow_mut(SubflowId(1)).unwrap().state = State::FinWait2;
        connection.limit_wait_for_fin(NOW);
        let limit = NOW + connection.config.tcp.fin_wait_2;
        let linger = |connection: &mut Connection, id: u32| {
            connection.subflow_mut(SubflowId(id)).unwrap().timers.at(SubflowTimer::Linger)
        };
        assert_eq!((linger(&mut connection, 0), linger(&mut connection, 1)), (Instant::NEVER, limit));
    }

    #[test]
    fn a_discarded_connection_waits_for_the_peers_end_as_long_as_for_a_fin() {
        let limit = |change: fn(&mut Connection)| {
            let mut connection = connected(config(), 1);
            connection.life.discard();
            connection.life.close_writing();
            connection.life.acknowledge_end();
            change(&mut connection);
            connection.limit_wait_for_end(NOW);
            let at = connection.timers.at(Timer::WithoutSubflows);
            (at != Instant::NEVER).then(|| at.since(NOW) == connection.config.tcp.fin_wait_2)
        };
        assert_eq!(limit(|_| {}), Some(true));
        assert_eq!(limit(|connection| connection.association.protocol = Protocol::Tcp), None);
        assert_eq!(limit(|connection| connection.life.closed = Some(crate::event::CloseCause::Finished)), None);
        let mut attached = connected(config(), 1);
        attached.life.acknowledge_end();
        attached.limit_wait_for_end(NOW);
        assert_eq!(attached.timers.at(Timer::WithoutSubflows), Instant::NEVER);
    }

    #[test]
    fn the_user_timeout_runs_while_something_written_waits_for_its_acknowledgement() {
        let second = Duration::from_secs(1);
        let runs = |timeout: Option<Duration>, change: fn(&mut Connection)| {
            let mut connection = connected(ConnectionConfig { user_timeout: timeout, ..config() }, 1);
            change(&mut connection);
            connection.watch_user_timeout(NOW);
            let first = connection.timers.at(Timer::User);
            connection.watch_user_timeout(NOW + Duration::from_millis(1));
            assert_eq!(connection.timers.at(Timer::User), first, "it is not put off");
            first
        };
        let write = |connection: &mut Connection| assert_eq!(connection.write(Bytes::from_static(b"data")), 4);
        assert_eq!(runs(Some(second), write), NOW + second);
        assert_eq!(runs(Some(second), |connection| assert!(connection.life.close_writing())), NOW + second);
        assert_eq!(runs(None, write), Instant::NEVER);
        assert_eq!(runs(Some(second), |_| {}), Instant::NEVER);
        let ended = |connection: &mut Connection| connection.life.acknowledge_end();
        assert_eq!(runs(Some(second), ended), Instant::NEVER);
    }

    #[test]
    fn the_data_level_waits_twice_the_longest_timeout_and_doubles_that_six_times() {
        let span = |attempts: u32, change: fn(&mut Connection)| {
            let mut connection = connected(config(), 2);
            for (id, millis) in [(0, 100), (1, 300)] {
                let rule = connection.config.tcp.rto;
                connection.subflow_mut(SubflowId(id)).unwrap().rtt.sample(Duration::from_millis(millis), rule);
            }
            assert_eq!(connection.write(Bytes::from_static(b"data")), 4);
            connection.sender.data_nxt = 4;
            connection.timers.data_attempts = attempts;
            change(&mut connection);
            connection.arm_data_retransmit(NOW);
            let at = connection.timers.at(Timer::DataRetransmit);
            (at != Instant::NEVER).then(|| at.since(NOW))
        };
        let millis = |millis: u64| Some(Duration::from_millis(millis));
        // 300 + 4 * 150 ms, twice; up to the limit of two minutes.
        assert_eq!((span(0, |_| {}), span(1, |_| {}), span(5, |_| {})), (millis(1_800), millis(3_600), millis(57_600)));
        assert_eq!((span(6, |_| {}), span(7, |_| {})), (millis(115_200), millis(115_200)));
        let suspended =
            |connection: &mut Connection| connection.subflow_mut(SubflowId(1)).unwrap().priority.suspended = true;
        assert_eq!(span(0, suspended), millis(600), "100 + 200 ms, twice");
        let acknowledged = |connection: &mut Connection| assert_eq!(connection.sender.buffer.acknowledge(4), 4);
        assert_eq!(span(0, acknowledged), None);
        let end_waits = |connection: &mut Connection| {
            connection.sender.buffer.acknowledge(4);
            connection.life.close_writing();
        };
        assert_eq!(span(0, end_waits), millis(1_800));
        assert_eq!(span(0, |connection| connection.association.protocol = Protocol::Tcp), None);
        assert_eq!(span(0, |connection| connection.life.closed = Some(crate::event::CloseCause::Finished)), None);
    }

    #[test]
    fn in_plain_tcp_the_data_level_waits_only_for_a_peer_that_has_not_heard_of_the_fallback_and_is_not_put_off() {
        let waits = |closed: bool, unheard: bool, ended: bool, announced: bool| {
            let mut connection = connected(config(), 1);
            connection.association.protocol = Protocol::Tcp;
            connection.life.closed = ended.then_some(crate::event::CloseCause::Finished);
            if closed {
                connection.life.close_writing();
            }
            if unheard {
                connection.association.fallback.fail(1);
            }
            if announced {
                connection.association.fallback.announce();
            }
            connection.arm_data_retransmit(NOW);
            let due = connection.timers.at(Timer::DataRetransmit);
            let put_off = Duration::from_millis(1);
            connection.arm_data_retransmit(NOW + put_off);
            let withheld = due == NOW + connection.config.survive_without_subflows;
            let again = if withheld { due + put_off } else { due };
            assert_eq!(connection.timers.at(Timer::DataRetransmit), again);
            (due == NOW + connection.data_timeout(), withheld)
        };
        for closed in [false, true] {
            assert_eq!(waits(closed, true, false, true), (true, false));
            assert_eq!(waits(closed, false, false, true), (false, false));
            assert_eq!(waits(closed, true, false, false), (!closed, closed), "a FIN is withheld");
            assert_eq!(waits(closed, true, true, true), (false, false));
        }
    }
}
