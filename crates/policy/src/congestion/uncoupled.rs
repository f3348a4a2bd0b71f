//! Applies a single-path algorithm to each subflow of a connection separately.
//!
//! A connection of n subflows over one bottleneck then takes n times the share of a TCP connection there; RFC 6356,
//! section 2, explains why that is unwanted on the Internet.

use super::{Ack, CongestionControl, CongestionEvent, Lost, Sent, Start};
use crate::ids::{SubflowId, SubflowMap};
use crate::rate::Rate;
use crate::time::Instant;

/// Congestion control of a single subflow; the methods are those of [`CongestionControl`].
pub trait SinglePath: Send {
    type Settings: Clone + Send;
    /// [`CongestionControl::governs_recovery`].
    const GOVERNS_RECOVERY: bool = false;
    /// The subflow begins.
    fn start(settings: &Self::Settings, start: Start) -> Self;
    /// A segment was sent.
    fn on_sent(&mut self, _sent: &Sent) {}
    /// A segment was marked lost.
    fn on_lost(&mut self, _lost: &Lost) {}
    /// Data was acknowledged.
    fn on_ack(&mut self, ack: &Ack);
    /// The network is congested.
    fn on_congestion(&mut self, event: &CongestionEvent);
    /// A recovery has ended.
    fn on_recovery_end(&mut self, now: Instant);
    /// The last congestion event was spurious.
    fn on_spurious(&mut self, now: Instant);
    /// The subflow was idle.
    fn on_idle_restart(&mut self, window: u64);
    /// The segment size changed.
    fn on_mss(&mut self, mss: u32);
    /// The congestion window, bytes.
    fn window(&self) -> u64;
    /// The slow-start threshold, bytes.
    fn ssthresh(&self) -> u64;
    /// The bandwidth of the path by the algorithm's model, if it has one.
    fn bandwidth(&self) -> Option<Rate> {
        None
    }
    /// The pacing rate, if it has one.
    fn pacing_rate(&self) -> Option<Rate> {
        None
    }
}

/// One single-path algorithm per subflow. A call for an unknown subflow does nothing; its window is 0.
#[derive(Debug)]
pub struct Uncoupled<A: SinglePath> {
    settings: A::Settings,
    pub(super) subflows: SubflowMap<A>,
}

impl<A: SinglePath> Uncoupled<A> {
    pub fn new(settings: A::Settings) -> Self {
        Self { settings, subflows: SubflowMap::new() }
    }
}

impl<A: SinglePath> CongestionControl for Uncoupled<A> {
    fn on_subflow_added(&mut self, id: SubflowId, start: Start) {
        self.subflows.insert(id, A::start(&self.settings, start));
    }
    fn on_subflow_removed(&mut self, id: SubflowId) {
        self.subflows.remove(id);
    }
    fn on_sent(&mut self, id: SubflowId, sent: &Sent) {
        if let Some(subflow) = self.subflows.get_mut(id) {
            subflow.on_sent(sent);
        }
    }
    fn governs_recovery(&self) -> bool {
        A::GOVERNS_RECOVERY
    }
    fn on_lost(&mut self, id: SubflowId, lost: &Lost) {
        if let Some(subflow) = self.subflows.get_mut(id) {
            subflow.on_lost(lost);
        }
    }
    fn on_ack(&mut self, id: SubflowId, ack: &Ack) {
        if let Some(subflow) = self.subflows.get_mut(id) {
            subflow.on_ack(ack);
        }
    }
    fn on_congestion(&mut self, id: SubflowId, event: &CongestionEvent) {
        if let Some(subflow) = self.subflows.get_mut(id) {
            subflow.on_congestion(event);
        }
    }
    fn on_recovery_end(&mut self, id: SubflowId, now: Instant) {
        if let Some(subflow) = self.subflows.get_mut(id) {
            subflow.on_recovery_end(now);
        }
    }
    fn on_spurious(&mut self, id: SubflowId, now: Instant) {
        if let Some(subflow) = self.subflows.get_mut(id) {
            subflow.on_spurious(now);
        }
    }
    fn on_idle_restart(&mut self, id: SubflowId, window: u64) {
        if let Some(subflow) = self.subflows.get_mut(id) {
            subflow.on_idle_restart(window);
        }
    }
    fn on_mss(&mut self, id: SubflowId, mss: u32) {
        if let Some(subflow) = self.subflows.get_mut(id) {
            subflow.on_mss(mss);
        }
    }
    fn window(&self, id: SubflowId) -> u64 {
        self.subflows.get(id).map_or(0, A::window)
    }
    fn ssthresh(&self, id: SubflowId) -> u64 {
        self.subflows.get(id).map_or(0, A::ssthresh)
    }
    fn bandwidth(&self, id: SubflowId) -> Option<Rate> {
        self.subflows.get(id)?.bandwidth()
    }
    fn pacing_rate(&self, id: SubflowId) -> Option<Rate> {
        self.subflows.get(id).and_then(A::pacing_rate)
    }
}
