//! Detects a blocked receive buffer: the peer's window is closed, and a hole at its left edge keeps it closed.

use super::output::Notice;
use super::scheduling::Blocked;
use super::state::Connection;
use super::timer_table::Timer;
use crate::event::{SendKind, TraceRecord};
use anabranch_policy::congestion::{Congestion, CongestionEvent};
use anabranch_policy::scheduler::{Hole, Relief};
use anabranch_policy::time::Instant;
use anabranch_policy::view::SubflowView;

impl Connection {
    /// Reports a blocked receive buffer: the window is closed, a usable subflow has congestion window left, and bytes
    /// beyond the left edge have arrived, so the peer waits for a hole.
    pub(super) fn consider_blocked(&mut self, now: Instant, mss: u32, views: &[SubflowView]) -> Option<Hole> {
        let una = self.sender.una();
        let room = views.iter().any(|view| view.usable() && view.has_room());
        let shut = self.sender.window_left() < u64::from(mss);
        if !room || !shut || self.sender.delivered_end <= una {
            self.scheduling.blocked = None;
            self.timers.stop(Timer::Blocked);
            return None;
        }
        let round_trip = self.round_trip();
        let blocked = match self.scheduling.blocked {
            Some(blocked) => blocked,
            None => {
                self.announce_blocked(una);
                self.timers.set(Timer::Blocked, now + round_trip);
                Blocked::new(now + round_trip, una, self.find_sender(una))
            }
        };
        self.scheduling.blocked = Some(blocked);
        self.hole(una)
    }

    fn announce_blocked(&mut self, hole: u64) {
        self.stats.blocked_episodes = self.stats.blocked_episodes.saturating_add(1);
        self.output.tell(Notice::Blocked(hole));
        self.output.record(TraceRecord::Blocked { connection: self.id, hole });
    }

    /// Repeats the report of an episode that outlasts the largest round trip.
    pub(super) fn handle_blocked_timeout(&mut self, now: Instant) {
        self.timers.stop(Timer::Blocked);
        let round_trip = self.round_trip();
        let hole = self.sender.una();
        if let Some(blocked) = self.scheduling.blocked.as_mut().filter(|blocked| blocked.repeat_at <= now) {
            blocked.repeat_at = now + round_trip;
            self.timers.set(Timer::Blocked, now + round_trip);
            self.announce_blocked(hole);
        }
    }

    /// The hole that keeps the window closed, and the subflow that carries its data, if there is one.
    fn hole(&mut self, una: u64) -> Option<Hole> {
        let mut blocked = self.scheduling.blocked?;
        if blocked.hole != una {
            blocked = Blocked::new(blocked.repeat_at, una, self.find_sender(una));
            self.scheduling.blocked = Some(blocked);
        }
        Some(Hole { data_seq: una, length: blocked.length as u32, culprit: blocked.culprit? })
    }

    /// Carries out the scheduler's reaction to the hole.
    pub(super) fn relieve(&mut self, now: Instant, relief: Relief) {
        let Some((blocked, culprit)) = self.scheduling.blocked.and_then(|blocked| Some((blocked, blocked.culprit?)))
        else {
            return;
        };
        let una = self.sender.una();
        if let Some(id) = relief.retransmit_on.filter(|id| self.reinjects_early() && *id != culprit)
            && let Some(mss) = self.subflow_mut(id).filter(|s| s.is_usable()).map(|s| s.mss)
        {
            let length = self.useful_length(una, blocked.length.min(u64::from(mss)));
            self.put(id, una, length as usize, SendKind::Duplicate);
        }
        if let Some(id) = relief.penalise
            && let Some(in_flight) = self.subflow_mut(id).map(|subflow| subflow.pipe())
        {
            let (cause, repeated, uncounted) = (Congestion::Penalty, false, false);
            let event = CongestionEvent { now, cause, in_flight, lost: 0, repeated, uncounted };
            self.congestion.on_congestion(id, &event);
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::connection::state::Connection;
    use crate::connection::tests::{config, connected};
    use crate::connection::timer_table::Timer;
    use anabranch_policy::time::{Duration, Instant};
    use bytes::Bytes;

    #[test]
    fn an_episode_is_told_of_once_in_a_round_trip() {
        let at = |millis: u64| Instant::from_nanos(millis * 1_000_000);
        let mut connection = connected(config(), 1);
        let handle = connection.subflows.first_handle().unwrap();
        let rule = connection.config.tcp.rto;
        connection.subflows[handle].rtt.sample(Duration::from_millis(100), rule);
        assert_eq!(connection.write(Bytes::from(vec![0; 20_000])), 20_000);
        connection.sender.delivered_end = 1_000; // behind a hole
        let mut views = Vec::new();
        connection.subflow_views(&mut views);
        connection.consider_blocked(at(1_000), 1_000, &views);
        connection.consider_blocked(at(1_050), 1_000, &views);
        let state = |connection: &Connection| {
            let blocked = connection.scheduling.blocked.unwrap();
            (connection.stats.blocked_episodes, blocked.repeat_at, connection.timers.at(Timer::Blocked))
        };
        assert_eq!(state(&connection), (1, at(1_100), at(1_100)));
        connection.handle_blocked_timeout(at(1_100));
        assert_eq!(state(&connection), (2, at(1_200), at(1_200)));
    }

    #[test]
    fn a_hole_that_moved_has_another_culprit() {
        use crate::connection::scheduling::Blocked;
        use crate::event::SendKind;
        use anabranch_policy::ids::SubflowId;
        let mut connection = connected(config(), 2);
        assert_eq!(connection.write(Bytes::from(vec![0; 3_000])), 3_000);
        for (id, at) in [(0, 0), (1, 1_000)] {
            let handle = connection.subflows.handle_of(SubflowId(id)).unwrap();
            assert!(connection.put_on(handle, at, 1_000, SendKind::New));
        }
        connection.scheduling.blocked = Some(Blocked::new(Instant::ZERO, 0, Some((SubflowId(0), 700))));
        let hole = |connection: &mut Connection, una: u64| {
            connection.hole(una).map(|hole| (hole.data_seq, hole.length, hole.culprit.0))
        };
        assert_eq!(hole(&mut connection, 0), Some((0, 700, 0)), "as it was found");
        assert_eq!(hole(&mut connection, 1_200), Some((1_200, 800, 1)));
        assert_eq!(hole(&mut connection, 2_500), None, "nobody carries it");
    }
}
