//! The end of the handshake: the segment size is fixed.

use super::delivery::LossReport;
use super::state::Subflow;
use crate::config::TcpConfig;
use anabranch_policy::congestion::{CongestionControl, Start};
use anabranch_policy::time::Instant;

/// What determines the segment size.
#[derive(Clone, Copy, Debug)]
pub struct Setup<'a> {
    pub config: &'a TcpConfig,
    /// Option space that MPTCP uses on data segments, in bytes.
    pub mptcp_option_space: u32,
}

impl Subflow {
    /// Fixes the segment size and initializes congestion control at the end of the handshake.
    pub fn establish(&mut self, now: Instant, congestion: &mut dyn CongestionControl, setup: &Setup<'_>) {
        let stamps = if self.negotiated.timestamps { 12 } else { 0 };
        self.mss = self.segment_room(setup.config).saturating_sub(stamps + setup.mptcp_option_space).max(1);
        // A lost SYN or SYN/ACK may be due to congestion (RFC 5681, section 3.1).
        let lost = self.rtt.handshake_was_lost();
        let segments = if lost { 1 } else { u64::from(setup.config.initial_window) };
        let initial_window = segments * u64::from(self.mss);
        let start = Start { now, mss: self.mss, initial_window, smoothed_rtt: self.rtt.smoothed() };
        congestion.on_subflow_added(self.id(), start);
        self.scoreboard.losses = LossReport::new(congestion.governs_recovery());
        self.liveness.last_progress = now;
        self.timers.arm_keepalive(now, setup.config);
    }
}
