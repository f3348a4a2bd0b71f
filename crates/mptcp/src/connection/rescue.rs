//! Data that is outstanding on one subflow and sent on another too: because the scheduler wants it there earlier, or
//! because the first is silent.

use super::reinjections::Extent;
use super::{Connection, Protocol, Workspace};
use crate::config::TcpConfig;
use crate::event::SendKind;
use crate::subflow::Subflow;
use crate::subflow::scoreboard::Fate;
use anabranch_policy::ids::SubflowId;
use anabranch_policy::scheduler::{Outstanding, Reinjection};
use anabranch_policy::time::{Duration, Instant};

/// What a silence must last at least: one segment alone may be acknowledged late (RFC 9293, section 3.8.6.3; most
/// receivers wait for 40 ms).
const LEAST_SILENCE: Duration = Duration::from_millis(50);

impl Subflow {
    /// Starts the timer of silence, unless it runs. Who is silent already and gets something nevertheless, because all are, has
    /// it for as long again as the silence lasts: a moment that is over would have it go from one to the other at once, without end.
    pub(super) fn watch_silence(&mut self, now: Instant, round_trips: f32, config: &TcpConfig) {
        if self.timers.silence == Instant::NEVER && !self.scoreboard.is_idle() {
            let (since, longest) = (self.scoreboard.silent_since(), self.longest_silence(round_trips, config));
            self.timers.silence = if self.silent { now + longest.max(now.since(since)) } else { since + longest };
        }
    }

    /// The round trips that the scheduler allows, but not less than what RFC 6298 holds for possible.
    fn longest_silence(&self, round_trips: f32, config: &TcpConfig) -> Duration {
        let smoothed = self.rtt.smoothed();
        let usual = smoothed + (self.rtt.variation() * 4).max(LEAST_SILENCE);
        smoothed.mul_f64(f64::from(round_trips)).max(usual).min(self.rtt.base_rto(config).max(LEAST_SILENCE))
    }
}

impl Connection {
    /// When what a subflow has outstanding goes on another.
    pub(super) fn reinjection(&self) -> Reinjection {
        self.config.data_reinjection.unwrap_or_else(|| self.scheduling.scheduler.reinjection())
    }

    /// Whether anything that a subflow has outstanding may go on another before the connection's timer runs out.
    pub(super) fn reinjects_early(&self) -> bool {
        let told_to_wait = self.config.data_reinjection == Some(Reinjection::OnConnectionTimeout);
        !told_to_wait && self.reinjection() != Reinjection::Never
    }

    /// Whether the scheduler is asked what goes out a second time ([`anabranch_policy::scheduler::Scheduler::duplicates`]).
    pub(super) fn duplicates(&self) -> bool {
        self.scheduling.scheduler.duplicates() && self.reinjects_early()
    }

    /// Whether what is outstanding at `data_seq` is left to a subflow that has it, is open and is used.
    pub(super) fn is_left_to_its_subflow(&self, data_seq: u64) -> bool {
        let holds = |s: &Subflow| s.is_usable() && s.scoreboard.holds(data_seq).is_some();
        self.reinjection() == Reinjection::Never && self.subflows.iter().any(holds)
    }

    /// The timer of silence ran out: if nothing was acknowledged since, what the subflow has outstanding goes elsewhere.
    pub(super) fn handle_silence(&mut self, now: Instant, index: usize) {
        let Some(subflow) = self.subflows.get_mut(index) else { return };
        subflow.timers.silence = Instant::NEVER;
        if subflow.scoreboard.is_idle() || self.association.protocol != Protocol::Multipath {
            return;
        }
        let deadline =
            subflow.scoreboard.silent_since() + subflow.longest_silence(self.scheduling.silence, &self.config.tcp);
        if now < deadline {
            subflow.timers.silence = deadline;
            return;
        }
        subflow.silent = true;
        self.take_back_queued(index);
        if self.reinjects_early() {
            self.reinject_outstanding(index, Extent::All);
        }
    }

    /// Whether the scheduler wants what is outstanding sent elsewhere before new data.
    pub(super) fn shares_first(&mut self, now: Instant, workspace: &Workspace) -> bool {
        let view = self.view(now);
        self.scheduling.scheduler.duplicates_first(&view, &workspace.views)
    }

    /// Asks the scheduler whether a subflow should also send what another has outstanding; that of the lowest data
    /// sequence first.
    pub(super) fn assign_shared(&mut self, now: Instant, workspace: &Workspace) -> bool {
        let una = self.sender.una();
        let mut after = None;
        while let Some(outstanding) = self.next_outstanding(una, after) {
            let view = self.view(now);
            if let Some(id) = self.scheduling.scheduler.duplicate(&view, &outstanding, &workspace.views)
                && id != outstanding.holder
                && self.subflow_mut(id).is_some_and(|subflow| subflow.is_usable())
            {
                return self.share(id, &outstanding);
            }
            after = Some(outstanding.data_seq);
        }
        false
    }

    /// Of what each subflow has outstanding and shares with nobody the oldest; of these the one with the lowest data
    /// sequence beyond `after`.
    fn next_outstanding(&mut self, una: u64, after: Option<u64>) -> Option<Outstanding> {
        let oldest = self.subflows.iter_mut().filter_map(|subflow| {
            let holder = subflow.id();
            let record = subflow.scoreboard.next_unshared(una)?;
            let length = record.payload.len() as u32;
            let lost = record.fate == Fate::Lost || record.retransmitted;
            Some(Outstanding { data_seq: record.data_seq, length, holder, sent_at: record.sent_at, lost })
        });
        oldest.filter(|found| after.is_none_or(|after| found.data_seq > after)).min_by_key(|found| found.data_seq)
    }

    fn share(&mut self, id: SubflowId, outstanding: &Outstanding) -> bool {
        let una = self.sender.una();
        let Some(mss) = self.subflow_mut(id).map(|subflow| subflow.mss) else { return false };
        if let Some(holder) = self.subflow_mut(outstanding.holder)
            && let Some(record) = holder.scoreboard.next_unshared(una)
        {
            record.reinjected = true;
        }
        let length = self.useful_length(outstanding.data_seq, u64::from(outstanding.length.min(mss)));
        // A segment without a mapping of its own holds more than one with; the rest goes as well.
        let (start, end) = (outstanding.data_seq, outstanding.data_seq + u64::from(outstanding.length));
        self.reinject_stretch(start + length, end, outstanding.holder);
        // Of what begins withdrawn nothing goes here; what follows waits to be sent again.
        length == 0 || self.give(id, start, length as usize, SendKind::Duplicate)
    }
}
