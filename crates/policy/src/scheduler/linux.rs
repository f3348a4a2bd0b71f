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
//! where pacing is window over smoothed round trip, times 2 below half the slow-start threshold and times 1.2 above.
//!
//! The winner may queue beyond its congestion window, up to its send buffer. If that is full Linux waits, although
//! other subflows may have space; so do we. Neither RTT nor head-of-line blocking enters, there is no opportunistic
//! retransmission and no penalisation.
//!
//! The connection's send buffer is the sum of the subflows' and holds all that is not acknowledged at data level. So data that
//! waits for a hole on a slow subflow stops the fast ones, too: this is what Linux's aggregation is most often limited
//! by. The writing program, once it has filled the buffer, sleeps until a third of it is free.
//!
//! Reinjection: only when the connection's own retransmission timer runs out, and only to a subflow that holds
//! nothing itself; to a backup only when every regular one is stalled.
//!
//! Modelled, not copied bit by bit:
//! - a subflow's send buffer: the kernel expands it to twice the window in memory, and never shrinks it
//!   (`tcp_sndbuf_expand`), whenever the subflow has less to send than its window. It reckons 2304 bytes of memory for a
//!   segment of 1424 bytes, while what is in the buffer takes hardly more than its payload; so here it is `send_buffer` = 3.2
//!   windows of payload, a window being at least ten segments as in the kernel, and the buffer not above `largest_buffer`;
//! - staleness: the kernel counts intervals of its connection-level timer without progress (`stale_loss_cnt`, 4); here
//!   a subflow is stale after that many retransmission timeouts of its own without progress.

use super::candidates::excluded;
use super::{Chunk, ChunkKind, Decision, Needs, Reinjection, Scheduler};
use crate::ids::{SubflowId, SubflowMap};
use crate::table::{Number, Reader, SettingError, Settings};
use crate::time::Instant;
use crate::view::{ConnectionView, SubflowView};

/// Most bytes of a burst.
const BURST: u64 = 64 * 1024;
/// Bytes of a page fragment: the last one written may reach beyond the limit.
const PAGE: u64 = 32 * 1024;
/// Segments of the least window that a send buffer is made for.
const LEAST_WINDOW: u64 = 10;

const SEND_BUFFER: Number = Number {
    name: "send_buffer",
    unit: "congestion windows",
    default: 3.2,
    range: 1.0..=100.0,
    summary: "What a subflow may hold, queued and in flight, before the scheduler waits",
};
const LARGEST_BUFFER: Number = Number {
    name: "largest_buffer",
    unit: "bytes",
    default: 4_194_304.0,
    range: 4096.0..=1e9,
    summary: "Most that a subflow's send buffer grows to (`tcp_wmem`)",
};
const STALE_LOSS_CNT: Number = Number {
    name: "stale_loss_cnt",
    unit: "timeouts",
    default: 4.0,
    range: 1.0..=100.0,
    summary: "Retransmission timeouts in a row after which a subflow gets no new data",
};

/// State of a subflow.
#[derive(Clone, Copy, Debug)]
struct Record {
    /// Average pacing rate, bytes per second.
    average_rate: u64,
    /// When it last made progress, as far as we know.
    progress: Instant,
    /// Its timeouts at that time.
    timeouts: u32,
    /// Its send buffer, bytes of payload; it never shrinks.
    buffer: u64,
}

/// Settings of [`Linux`].
#[derive(Clone, Copy, Debug)]
pub struct LinuxSettings {
    /// Send buffer of a subflow, in congestion windows.
    pub send_buffer: f64,
    /// Most of it, bytes.
    pub largest_buffer: u64,
    /// Retransmission timeouts in a row after which a subflow gets no new data.
    pub stale_loss_cnt: u32,
}

impl LinuxSettings {
    fn read(reader: &mut Reader<'_>) -> Result<Self, SettingError> {
        Ok(Self {
            send_buffer: reader.read(&SEND_BUFFER)?,
            largest_buffer: reader.read(&LARGEST_BUFFER)? as u64,
            stale_loss_cnt: reader.read(&STALE_LOSS_CNT)? as u32,
        })
    }
}

impl Default for LinuxSettings {
    fn default() -> Self {
        Settings::new().read(Self::read).expect("the defaults are in their ranges")
    }
}

/// The scheduler `linux`.
#[derive(Debug)]
pub struct Linux {
    settings: LinuxSettings,
    records: SubflowMap<Record>,
    burst_on: Option<SubflowId>,
    burst_left: u64,
    /// Data up to here has found room in the connection's send buffer.
    written: u64,
}

impl Linux {
    pub fn new(settings: LinuxSettings) -> Self {
        Self { settings, records: SubflowMap::new(), burst_on: None, burst_left: 0, written: 0 }
    }

    pub fn build(reader: &mut Reader<'_>) -> Result<Box<dyn Scheduler>, SettingError> {
        Ok(Box::new(Self::new(LinuxSettings::read(reader)?)))
    }

    /// Records progress and new subflows.
    fn observe(&mut self, subflows: &[SubflowView]) {
        for subflow in subflows {
            let buffer = self.buffer(subflow);
            match self.records.get_mut(subflow.id) {
                Some(record) if record.progress < subflow.last_progress || !subflow.stale => {
                    record.progress = subflow.last_progress;
                    record.timeouts = subflow.counters.timeouts;
                }
                Some(_) => {}
                None => {
                    let average_rate = pacing_rate(subflow);
                    let progress = subflow.last_progress;
                    // The first timeout of a stale subflow that was never seen healthy happened before we looked.
                    let timeouts = subflow.counters.timeouts.saturating_sub(u32::from(subflow.stale));
                    self.records.insert(subflow.id, Record { average_rate, progress, timeouts, buffer });
                }
            }
            if let Some(record) = self.records.get_mut(subflow.id).filter(|_| held(subflow) < subflow.cwnd) {
                record.buffer = record.buffer.max(buffer);
            }
        }
    }

    /// The send buffer that belongs to a subflow's window.
    fn buffer(&self, subflow: &SubflowView) -> u64 {
        let window = subflow.cwnd.max(LEAST_WINDOW * u64::from(subflow.mss));
        ((window as f64 * self.settings.send_buffer) as u64).min(self.settings.largest_buffer)
    }

    /// Whether data from `data_seq` on has found room in the connection's send buffer.
    fn is_written(&mut self, connection: &ConnectionView, data_seq: u64, subflows: &[SubflowView]) -> bool {
        let buffers = subflows.iter().filter_map(|subflow| self.records.get(subflow.id));
        let limit: u64 = buffers.map(|record| record.buffer).sum();
        self.written = self.written.max(connection.data_una);
        let held = self.written - connection.data_una;
        // A sleeping writer is woken when what is free is half of what is held, and fills up page by page.
        if held <= limit / 3 * 2 {
            self.written += (limit - held).div_ceil(PAGE) * PAGE;
        }
        data_seq < self.written
    }

    fn active(&self, subflow: &SubflowView) -> bool {
        let in_a_row = self.records.get(subflow.id).map_or(0, |r| subflow.counters.timeouts.saturating_sub(r.timeouts));
        subflow.usable() && in_a_row < self.settings.stale_loss_cnt
    }

    fn has_space(&self, subflow: &SubflowView) -> bool {
        self.records.get(subflow.id).is_some_and(|record| held(subflow) < record.buffer)
    }

    /// Time to send what the subflow holds, in units of 2^-32 s.
    fn linger(&self, subflow: &SubflowView) -> u128 {
        match self.records.get(subflow.id).map_or(0, |record| record.average_rate) {
            0 => u128::MAX,
            rate => (u128::from(held(subflow)) << 32) / u128::from(rate),
        }
    }

    fn schedule_new(&mut self, connection: &ConnectionView, chunk: &Chunk, subflows: &[SubflowView]) -> Decision {
        if !self.is_written(connection, chunk.data_seq, subflows) {
            return Decision::Wait(None);
        }
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
            let now = pacing_rate(subflow);
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
        Decision::on(chosen)
    }
}

/// The rate that the kernel writes down for a subflow, bytes per second (`tcp_update_pacing_rate`).
fn pacing_rate(subflow: &SubflowView) -> u64 {
    let percent = if subflow.cwnd < subflow.ssthresh / 2 { 200 } else { 120 };
    subflow.rates.pacing.bytes_per_second().saturating_mul(percent) / 100
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

    fn needs(&self) -> Needs {
        Needs { reinjection: Reinjection::OnConnectionTimeout, ..Needs::default() }
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
    fn a_burst_ends_with_its_own_subflow_only() {
        let mut scheduler = Linux::new(LinuxSettings::default());
        scheduler.burst_on = Some(SubflowId(0));
        scheduler.on_subflow_removed(SubflowId(1));
        assert_eq!(scheduler.burst_on, Some(SubflowId(0)));
        scheduler.on_subflow_removed(SubflowId(0));
        assert_eq!(scheduler.burst_on, None);
    }

    #[test]
    fn the_pacing_rate_is_averaged_over_what_is_held_and_the_burst() {
        let mut scheduler = Linux::new(LinuxSettings { send_buffer: 100.0, ..LinuxSettings::default() });
        let mut paths = [subflow(0, 10)];
        paths[0].rates.pacing = Rate::from_bytes_per_second(1_000_000);
        paths[0].queued = 65_536;
        scheduler.observe(&paths);
        paths[0].rates.pacing = Rate::from_bytes_per_second(3_000_000);
        let chunk = Chunk { data_seq: 0, length: 1000, kind: ChunkKind::New, last_sent_on: None, time_left: None };
        assert_eq!(scheduler.schedule(&connection(0), &chunk, &paths), Decision::Send(SubflowId(0)));
        // Half the weight is the queue's at 1 MB/s, half the burst's at 3 MB/s, and of each 120 %.
        assert_eq!(scheduler.records.get(SubflowId(0)).unwrap().average_rate, 2_400_000);
    }
}
