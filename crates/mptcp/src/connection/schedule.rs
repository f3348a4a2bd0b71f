//! Asks the scheduler what to send next, and carries out its answer.

use super::association::Protocol;
use super::opportunity::Opportunity;
use super::output::Workspace;
use super::scheduling::Absent;
use super::state::Connection;
use crate::event::SendKind;
use anabranch_policy::ids::SubflowId;
use anabranch_policy::scheduler::{Answer, Outstanding};
use anabranch_policy::time::Instant;

impl Connection {
    /// Assigns one segment's worth of data. Returns false if nothing can be sent now.
    #[inline(always)]
    pub(super) fn assign(&mut self, now: Instant, workspace: &mut Workspace) -> bool {
        if self.life.closed.is_some() {
            return false;
        }
        match self.association.protocol {
            Protocol::Tcp => !self.sender.all_assigned() && self.assign_to_only(now),
            Protocol::Multipath => self.has_work() && self.assign_as_scheduled(now, workspace),
            Protocol::Negotiating => false,
        }
    }

    #[inline(never)]
    fn assign_as_scheduled(&mut self, now: Instant, workspace: &mut Workspace) -> bool {
        let view = self.view(now);
        // The scheduler looks at the rest of the connection while it decides.
        let mut scheduler = core::mem::replace(&mut self.scheduling.scheduler, Box::new(Absent));
        let mut opportunity = Opportunity::new(self, now, workspace);
        let views = opportunity.views;
        let answer = scheduler.next(&view, &mut opportunity, views);
        let (again, unsent) = (opportunity.again, opportunity.unsent);
        self.scheduling.scheduler = scheduler;
        self.forget_reports();
        match (answer, again, unsent) {
            (Answer::New(id), _, Some((length, false))) => {
                // If the data is withdrawn, something else comes next.
                self.withdraws_next(now, length, &workspace.views) || self.put_new(now, id, length)
            }
            (Answer::New(id), _, Some((length, true))) => self.put_new(now, id, length),
            (Answer::Again(id), Some((at, range, length)), _) => self.put_again(id, at, range.start, length),
            (Answer::Copy(outstanding, id), ..) => self.put_copy(id, &outstanding),
            (Answer::CatchUp(id), ..) => self.catch_up(id),
            (Answer::New(_) | Answer::Again(_) | Answer::Wait, ..) => false,
        }
    }

    /// Whether there is anything to decide.
    fn has_work(&self) -> bool {
        let needs = &self.scheduling.needs;
        !self.sender.all_assigned()
            || !self.sender.reinjections.ranges.is_empty()
            || self.has_reports()
            || needs.whole_stream
            || (self.duplicates() && self.sender.una() < self.sender.data_nxt)
    }

    /// Plain TCP has one subflow and no choice.
    #[inline(never)]
    fn assign_to_only(&mut self, now: Instant) -> bool {
        let Some(handle) = self.subflows.first_handle() else { return false };
        let subflow = &self.subflows[handle];
        if !subflow.is_usable() {
            return false;
        }
        let window = subflow.window(&*self.congestion, &self.config.tcp);
        let used = subflow.pipe() + subflow.scoreboard.queued() + subflow.scoreboard.lost();
        let probe = subflow.due.probe && subflow.scoreboard.queued() == 0;
        let mss = subflow.mss;
        let id = subflow.id();
        let Some(length) = self.next_length(mss) else { return false };
        if used + length > window && used > 0 && !probe {
            return false;
        }
        let length = self.probe_length(now, id).unwrap_or(length);
        self.put_on(handle, self.sender.data_nxt, length as usize, SendKind::New)
    }

    fn put_new(&mut self, now: Instant, id: SubflowId, length: u64) -> bool {
        let Some(mss) = self.subflow_mut(id).filter(|s| s.is_usable()).map(|s| s.mss) else { return false };
        if let Some(length) = self.probe_length(now, id) {
            return self.put(id, self.sender.data_nxt, length as usize, SendKind::New);
        }
        let length = length.min(u64::from(mss));
        match self.place_under_mapping(id) {
            Some(place) => self.put_under_mapping(id, length, place),
            None => self.put(id, self.sender.data_nxt, length as usize, SendKind::New),
        }
    }

    fn put_again(&mut self, id: SubflowId, at: usize, start: u64, length: u32) -> bool {
        let Some(mss) = self.subflow_mut(id).filter(|s| s.is_usable()).map(|s| s.mss) else { return false };
        let length = length.min(mss);
        self.sender.reinjections.advance(at, start + u64::from(length));
        self.put(id, start, length as usize, SendKind::Reinjection)
    }

    fn put_copy(&mut self, id: SubflowId, outstanding: &Outstanding) -> bool {
        if id == outstanding.sender {
            let length = self.useful_length(outstanding.data_seq, u64::from(outstanding.length));
            return self.put(id, outstanding.data_seq, length as usize, SendKind::Duplicate);
        }
        self.subflow_mut(id).is_some_and(|subflow| subflow.is_usable()) && self.share(id, outstanding)
    }

    fn catch_up(&mut self, id: SubflowId) -> bool {
        let Some((from, length)) = self.behind(id) else { return false };
        self.put(id, from, length as usize, SendKind::Duplicate)
    }
}
