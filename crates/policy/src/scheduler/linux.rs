//! A replica of upstream Linux's default MPTCP scheduler (since 5.13), for calibrating the lab.
//!
//! New data, when no burst is under way: of the active subflows the one with the least
//!
//! ```text
//! linger = Q / a        Q bytes held by the subflow (queued and in flight), a average pacing rate
//! ```
//!
//! Regular subflows first; backups only when no regular one is active. The winner gets a burst of
//! B = min(64 KiB, what is left of the send window), and its average pacing rate becomes
//!
//! ```text
//! a <- (a Q + pacing B) / (Q + B)
//! ```
//!
//! The winner may queue beyond its congestion window, up to its send buffer. If that is full Linux waits, although
//! other subflows may have space; so do we. Neither RTT nor head-of-line blocking enters, there is no opportunistic
//! retransmission and no penalisation.
//!
//! Reinjection: only when the connection's own retransmission timer runs out, and only to a subflow that holds
//! nothing itself; to a backup only when every regular one is stalled.
//!
//! Modelled, not copied bit by bit:
//! - the send buffer: the kernel autotunes it to twice the window in memory (`tcp_sndbuf_expand`); here it is
//!   `send_buffer` windows of payload, a window being at least ten segments as in the kernel;
//! - staleness: the kernel counts intervals of its connection-level timer without progress (`stale_loss_cnt`, 4); here
//!   a subflow is stale after that many retransmission timeouts of its own without progress.

use super::candidates::excluded;
use super::{Chunk, ChunkKind, Decision, Reinjection, Scheduler};
use crate::ids::{SubflowId, SubflowMap};
use crate::table::{Parameter, SettingError, Settings};
use crate::time::Instant;
use crate::view::{ConnectionView, SubflowView};

/// Most bytes of a burst.
const BURST: u64 = 64 * 1024;
/// Segments of the least window that a send buffer is made for.
const LEAST_WINDOW: u64 = 10;

/// The settings of [`Linux`].
pub const PARAMETERS: &[Parameter] = &[
    Parameter {
        name: "send_buffer",
        default: "2",
        values: "congestion windows, 1 to 100",
        summary: "What a subflow may hold, queued and in flight, before the scheduler waits",
    },
    Parameter {
        name: "stale_loss_cnt",
        default: "4",
        values: "timeouts, 1 to 100",
        summary: "Retransmission timeouts in a row after which a subflow gets no new data",
    },
];

/// What is remembered of a subflow.
#[derive(Clone, Copy, Debug)]
struct Record {
    /// Average pacing rate, bytes per second.
    average_rate: u64,
    /// When it last made progress, as far as we know.
    progress: Instant,
    /// Its timeouts at that time.
    timeouts: u32,
}

/// The scheduler `linux`.
#[derive(Debug)]
pub struct Linux {
    send_buffer: f64,
    stale_loss_cnt: u32,
    records: SubflowMap<Record>,
    burst_on: Option<SubflowId>,
    burst_left: u64,
}

impl Linux {
    /// Makes one; `send_buffer` in congestion windows, `stale_loss_cnt` in timeouts in a row.
    pub fn new(send_buffer: f64, stale_loss_cnt: u32) -> Self {
        Self { send_buffer, stale_loss_cnt, records: SubflowMap::new(), burst_on: None, burst_left: 0 }
    }

    /// Makes one from [`PARAMETERS`].
    pub fn build(settings: &Settings) -> Result<Box<dyn Scheduler>, SettingError> {
        let send_buffer = settings.number("send_buffer", 2.0, 1.0..=100.0)?;
        let stale_loss_cnt = settings.number("stale_loss_cnt", 4.0, 1.0..=100.0)?;
        Ok(Box::new(Self::new(send_buffer, stale_loss_cnt as u32)))
    }

    /// Takes note of progress and of subflows that are new.
    fn observe(&mut self, subflows: &[SubflowView]) {
        for subflow in subflows {
            match self.records.get_mut(subflow.id) {
                Some(record) if record.progress < subflow.last_progress || !subflow.stale => {
                    record.progress = subflow.last_progress;
                    record.timeouts = subflow.timeouts;
                }
                Some(_) => {}
                None => {
                    let average_rate = subflow.pacing_rate.bytes_per_second();
                    let progress = subflow.last_progress;
                    // The first timeout of a stale subflow that was never seen healthy happened before we looked.
                    let timeouts = subflow.timeouts.saturating_sub(u32::from(subflow.stale));
                    self.records.insert(subflow.id, Record { average_rate, progress, timeouts });
                }
            }
        }
    }

    fn active(&self, subflow: &SubflowView) -> bool {
        let in_a_row = self.records.get(subflow.id).map_or(0, |r| subflow.timeouts.saturating_sub(r.timeouts));
        subflow.usable() && in_a_row < self.stale_loss_cnt
    }

    fn has_space(&self, subflow: &SubflowView) -> bool {
        let window = subflow.cwnd.max(LEAST_WINDOW * u64::from(subflow.mss));
        held(subflow) < (window as f64 * self.send_buffer) as u64
    }

    /// Time to send what the subflow holds, in units of 2^-32 s.
    fn linger(&self, subflow: &SubflowView) -> u128 {
        match self.records.get(subflow.id).map_or(0, |record| record.average_rate) {
            0 => u128::MAX,
            rate => (u128::from(held(subflow)) << 32) / u128::from(rate),
        }
    }

    fn schedule_new(&mut self, connection: &ConnectionView, chunk: &Chunk, subflows: &[SubflowView]) -> Decision {
        let bursting = subflows
            .iter()
            .find(|subflow| Some(subflow.id) == self.burst_on && self.burst_left > 0)
            .filter(|subflow| self.active(subflow) && self.has_space(subflow));
        if let Some(subflow) = bursting {
            self.burst_left = self.burst_left.saturating_sub(u64::from(chunk.length.min(subflow.mss)));
            return Decision::Send(subflow.id);
        }
        self.burst_on = None;
        let chosen = subflows
            .iter()
            .filter(|subflow| self.active(subflow))
            .min_by_key(|subflow| (subflow.backup, self.linger(subflow)))
            .filter(|subflow| self.has_space(subflow));
        let Some(subflow) = chosen else { return Decision::Wait(None) };
        let burst = BURST.min(connection.window_left);
        let held = held(subflow);
        if let Some(record) = self.records.get_mut(subflow.id).filter(|_| burst > 0) {
            let now = subflow.pacing_rate.bytes_per_second();
            let sum = u128::from(record.average_rate) * u128::from(held) + u128::from(now) * u128::from(burst);
            record.average_rate = u64::try_from(sum / u128::from(held + burst)).unwrap_or(u64::MAX);
        }
        self.burst_on = Some(subflow.id);
        self.burst_left = burst.saturating_sub(u64::from(chunk.length.min(subflow.mss)));
        Decision::Send(subflow.id)
    }

    fn reinject(&self, chunk: &Chunk, subflows: &[SubflowView]) -> Decision {
        let regulars_stall = subflows.iter().filter(|s| s.usable() && !s.backup).all(|s| s.stale);
        let chosen = subflows
            .iter()
            .filter(|subflow| Some(subflow.id) != excluded(chunk) && self.active(subflow))
            .filter(|subflow| !subflow.stale && held(subflow) == 0)
            .filter(|subflow| !subflow.backup || regulars_stall)
            .min_by_key(|subflow| subflow.backup);
        chosen.map_or(Decision::Wait(None), |subflow| Decision::Send(subflow.id))
    }
}

/// What the subflow holds, bytes.
fn held(subflow: &SubflowView) -> u64 {
    subflow.in_flight + subflow.queued
}

impl Scheduler for Linux {
    fn schedule(&mut self, connection: &ConnectionView, chunk: &Chunk, subflows: &[SubflowView]) -> Decision {
        self.observe(subflows);
        match chunk.kind {
            ChunkKind::New => self.schedule_new(connection, chunk, subflows),
            ChunkKind::Reinjection => self.reinject(chunk, subflows),
        }
    }

    fn reinjection(&self) -> Reinjection {
        Reinjection::OnConnectionTimeout
    }

    fn on_subflow_removed(&mut self, id: SubflowId) {
        self.records.remove(id);
        if self.burst_on == Some(id) {
            self.burst_on = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{connection, subflow};
    use super::*;
    use crate::rate::Rate;

    #[test]
    fn the_pacing_rate_is_averaged_over_what_is_held_and_the_burst() {
        let mut scheduler = Linux::new(100.0, 4);
        let mut paths = [subflow(0, 10)];
        paths[0].pacing_rate = Rate::from_bytes_per_second(1_000_000);
        paths[0].queued = 65_536;
        scheduler.observe(&paths);
        paths[0].pacing_rate = Rate::from_bytes_per_second(3_000_000);
        let chunk = Chunk { data_seq: 0, length: 1000, kind: ChunkKind::New, last_sent_on: None };
        assert_eq!(scheduler.schedule(&connection(0), &chunk, &paths), Decision::Send(SubflowId(0)));
        // Half the weight is the queue's at 1 MB/s, half the burst's at 3 MB/s.
        assert_eq!(scheduler.records.get(SubflowId(0)).unwrap().average_rate, 2_000_000);
    }
}
