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
        // A single subflow has none to compare with.
        if self.each.subflows.len() == 2 {
            self.each.subflows.keys().for_each(|id| self.bottlenecks.add(id));
        } else if self.each.subflows.len() > 2 {
            self.bottlenecks.add(id);
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
        let delayed = |rtt| !subflow.queue.is_slow() && subflow.queue.is_delayed(rtt, ack.delivered, subflow.mss);
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
    use super::*;
    use crate::congestion::harness::{START, ack};

    #[test]
    fn a_subflow_without_congestion_does_not_reduce_the_others() {
        let mut control = Connection::new();
        let ids = [SubflowId(0), SubflowId(1)];
        ids.iter().for_each(|id| control.on_subflow_added(*id, START));
        assert_eq!(control.shares_bottleneck(ids[0], ids[1]), Some(true));
        control.on_ack(ids[0], &ack(1_000, 0));
        let other = control.each.subflows.get(ids[1]).and_then(Path::active).expect("active");
        assert!(!other.reduction_due);
    }
}
