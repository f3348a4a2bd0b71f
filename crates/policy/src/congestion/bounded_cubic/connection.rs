//! The subflows of a connection: those with a common bottleneck together act as one CUBIC.

use super::rest::Path;
use crate::congestion::shared_bottleneck::SharedBottleneck;
use crate::congestion::uncoupled::{SinglePath, Uncoupled};
use crate::congestion::{Ack, CongestionControl, CongestionEvent, Lost, Start};
use crate::ids::SubflowId;
use crate::rate::Rate;
use crate::table::{Member, Reader, SettingError};
use crate::time::Instant;

/// The entry in [`crate::congestion::TABLE`].
pub const MEMBER: Member<dyn CongestionControl> = Member {
    name: "bounded_cubic",
    summary: "CUBIC beneath a model of the path: no queue where it is alone, no response to random loss",
    source: "RFC 9438, draft-ietf-ccwg-bbr",
    build,
};

fn build(_reader: &mut Reader<'_>) -> Result<Box<dyn CongestionControl>, SettingError> {
    Ok(Box::new(Connection::new()))
}

/// The subflows of a connection.
#[derive(Debug)]
struct Connection {
    each: Uncoupled<Path>,
    bottlenecks: SharedBottleneck,
}

impl Connection {
    /// Without subflows.
    fn new() -> Self {
        Self { each: Uncoupled::new(()), bottlenecks: SharedBottleneck::default() }
    }

    /// The share of `id` in the windows of all subflows with its bottleneck.
    fn share(&self, id: SubflowId, now: Instant) -> f64 {
        let beside = self.bottlenecks.beside(id).filter_map(|other| self.each.subflows.get(other)?.active());
        let others: u64 = beside.filter(|other| other.is_active(now)).map(|other| other.cubic.window()).sum();
        let own = self.each.subflows.get(id).and_then(Path::active).map_or(0, |subflow| subflow.cubic.window());
        own as f64 / (own + others).max(1) as f64
    }
}

impl CongestionControl for Connection {
    fn on_subflow_added(&mut self, id: SubflowId, start: Start) {
        self.each.on_subflow_added(id, start);
        match self.each.subflows.len() {
            // A single subflow has none to compare with.
            0 | 1 => {}
            2 => self.each.subflows.keys().for_each(|id| self.bottlenecks.add(id)),
            _ => self.bottlenecks.add(id),
        }
    }
    fn on_subflow_removed(&mut self, id: SubflowId) {
        self.each.on_subflow_removed(id);
        self.bottlenecks.remove(id);
    }
    fn on_ack(&mut self, id: SubflowId, ack: &Ack) {
        let several = self.each.subflows.len() > 1;
        let Some(path) = self.each.subflows.get_mut(id) else { return };
        path.wake(ack.now);
        let share = if several { self.share(id, ack.now) } else { 1.0 };
        let Some(subflow) = self.each.subflows.get_mut(id).map(|path| path.wake(ack.now)) else { return };
        let delayed = |rtt| !subflow.queue.is_slow() && subflow.queue.is_delayed(ack, rtt, subflow.mss);
        if several && let Some(rtt) = ack.rtt.filter(|rtt| !delayed(*rtt)) {
            self.bottlenecks.on_rtt(id, ack.now, rtt);
        }
        if subflow.acknowledge(ack, share) && several {
            for other in self.bottlenecks.beside(id) {
                // Done at its own next acknowledgement: a window changes only with its own subflow's events.
                let other = self.each.subflows.get_mut(other).and_then(Path::active_mut);
                other.into_iter().for_each(|subflow| subflow.reduction_due = true);
            }
        }
    }
    fn governs_recovery(&self) -> bool {
        self.each.governs_recovery()
    }
    fn on_lost(&mut self, id: SubflowId, lost: &Lost) {
        self.each.on_lost(id, lost);
    }
    fn on_congestion(&mut self, id: SubflowId, event: &CongestionEvent) {
        self.each.on_congestion(id, event);
    }
    fn on_spurious(&mut self, id: SubflowId, now: Instant) {
        self.each.on_spurious(id, now);
    }
    fn on_idle_restart(&mut self, id: SubflowId, window: u64) {
        self.each.on_idle_restart(id, window);
    }
    fn on_rest(&mut self) {
        self.each.subflows.iter_mut().for_each(|(_, path)| path.rest());
        self.bottlenecks.rest();
    }
    fn on_mss(&mut self, id: SubflowId, mss: u32) {
        self.each.on_mss(id, mss);
    }
    fn window(&self, id: SubflowId) -> u64 {
        self.each.window(id)
    }
    fn ssthresh(&self, id: SubflowId) -> u64 {
        self.each.ssthresh(id)
    }
    fn bandwidth(&self, id: SubflowId) -> Option<Rate> {
        self.each.bandwidth(id)
    }
    fn shares_bottleneck(&self, one: SubflowId, other: SubflowId) -> Option<bool> {
        self.bottlenecks.is_shared(one, other)
    }
    fn pacing_rate(&self, id: SubflowId) -> Option<Rate> {
        self.each.pacing_rate(id)
    }
}

#[cfg(test)]
mod tests {
    use super::super::BoundedCubic;
    use super::*;
    use crate::congestion::harness::{NOW, START, ack, timeout};
    use crate::time::Duration;

    const IDS: [SubflowId; 3] = [SubflowId(0), SubflowId(1), SubflowId(2)];

    fn connection(subflows: usize) -> Connection {
        let mut control = Connection::new();
        IDS.iter().take(subflows).for_each(|id| control.on_subflow_added(*id, START));
        control
    }

    #[test]
    fn a_single_subflow_is_controlled_as_by_itself() {
        let id = IDS[0];
        let (mut control, mut alone) = (connection(1), BoundedCubic::start(&(), START));
        let compare = |control: &Connection, alone: &BoundedCubic| {
            let subflow = control.each.subflows.get(id).and_then(Path::active).expect("active");
            assert_eq!(format!("{subflow:?}"), format!("{alone:?}"));
            assert_eq!((control.window(id), control.ssthresh(id)), (alone.window(), alone.ssthresh()));
            assert_eq!((control.bandwidth(id), control.pacing_rate(id)), (alone.bandwidth(), alone.pacing_rate()));
        };
        compare(&control, &alone);
        assert!(alone.pacing_rate().is_some_and(|rate| rate != Rate::ZERO));
        let mut delivered = 0;
        for round in 1..=20 {
            let bytes = alone.window();
            let ack = Ack {
                now: NOW + Duration::from_millis(10) * round,
                delivery_rate: Some(Rate::from_bits_per_second(8_000_000)),
                prior_delivered: Some(delivered),
                total_delivered: delivered + bytes,
                prior_in_flight: bytes,
                ..ack(bytes, 10)
            };
            delivered += bytes;
            control.on_ack(id, &ack);
            alone.on_ack(&ack);
            compare(&control, &alone);
        }
        assert!(alone.bandwidth().is_some());
        let now = NOW + Duration::from_millis(210);
        let (bytes, total_lost, prior_lost) = (1_000, 1_000, 0);
        let lost = Lost {
            now,
            bytes,
            total_lost,
            total_delivered: delivered,
            prior_lost,
            tx_in_flight: 10_000,
            app_limited: false,
        };
        let before = format!("{alone:?}");
        control.on_lost(id, &lost);
        alone.on_lost(&lost);
        assert_ne!(format!("{alone:?}"), before);
        compare(&control, &alone);
        let before = alone.window();
        control.on_congestion(id, &timeout(10_000));
        alone.on_congestion(&timeout(10_000));
        compare(&control, &alone);
        assert!(alone.window() < before);
        control.on_spurious(id, now);
        alone.on_spurious(now);
        compare(&control, &alone);
        assert_eq!(alone.window(), before);
        control.on_idle_restart(id, 5_000);
        alone.on_idle_restart(5_000);
        compare(&control, &alone);
        control.on_mss(id, 1_200);
        alone.on_mss(1_200);
        compare(&control, &alone);
        control.on_rest();
        assert!(control.each.subflows.get(id).and_then(Path::active).is_none());
    }

    #[test]
    fn a_share_is_that_in_the_windows_of_the_subflows_beside_that_are_active() {
        let mut control = Connection::new();
        for (id, initial_window) in [(IDS[0], 10_000), (IDS[1], 30_000)] {
            control.on_subflow_added(id, Start { initial_window, ..START });
        }
        let later = NOW + Duration::from_secs(2);
        assert_eq!((control.share(IDS[0], NOW), control.share(IDS[1], NOW)), (0.25, 0.75));
        assert_eq!(control.share(IDS[0], later), 1.0);
        control.bottlenecks.remove(IDS[1]);
        assert_eq!(control.share(IDS[0], NOW), 1.0);
    }

    #[test]
    fn a_third_subflow_is_taken_to_share_the_bottleneck_of_both() {
        let control = connection(3);
        let pairs = [(0, 1), (0, 2), (1, 2)];
        assert!(pairs.iter().all(|(one, other)| control.shares_bottleneck(IDS[*one], IDS[*other]) == Some(true)));
    }

    /// Whether two subflows are taken to share a bottleneck after ten seconds in which one has a queue of 50 ms and the other
    /// none, each acknowledgement for so many bytes, so many milliseconds after the one before.
    fn share_after_a_queue_on_one(bytes: u64, apart: u64) -> bool {
        let mut control = connection(2);
        for number in 0..10_000 / apart {
            let now = NOW + Duration::from_millis(apart) * number;
            control.on_ack(IDS[0], &Ack { now, ..ack(bytes, if number == 0 { 10 } else { 60 }) });
            control.on_ack(IDS[1], &Ack { now, ..ack(bytes, 10) });
        }
        control.shares_bottleneck(IDS[0], IDS[1]).expect("there are both")
    }

    #[test]
    fn a_queue_on_one_subflow_alone_shows_that_it_has_a_bottleneck_of_its_own() {
        assert!(!share_after_a_queue_on_one(2_000, 100));
        // A single segment may have waited for its acknowledgement at the receiver, ...
        assert!(share_after_a_queue_on_one(1_000, 100));
        // ... but not longer than since the acknowledgement before.
        assert!(!share_after_a_queue_on_one(1_000, 10));
    }

    #[test]
    fn a_subflow_without_congestion_does_not_reduce_the_others() {
        let mut control = connection(2);
        assert_eq!(control.shares_bottleneck(IDS[0], IDS[1]), Some(true));
        control.on_ack(IDS[0], &ack(1_000, 0));
        let other = control.each.subflows.get(IDS[1]).and_then(Path::active).expect("active");
        assert!(!other.reduction_due);
    }
}
