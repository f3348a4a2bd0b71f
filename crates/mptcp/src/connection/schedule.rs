//! Which data goes to which subflow next: new data, data to be sent again, and what a closed window calls for.

use super::association::Protocol;
use super::output::{Notice, Workspace};
use super::reinjections::ReinjectedRange;
use super::scheduling::Blocked;
use super::state::Connection;
use crate::event::{SendKind, TraceRecord};
use crate::subflow::Subflow;
use anabranch_policy::congestion::{Congestion, CongestionEvent};
use anabranch_policy::ids::SubflowId;
use anabranch_policy::scheduler::{Chunk, ChunkKind, Decision, Hole};
use anabranch_policy::time::Instant;

impl Connection {
    /// Gives one more segment's worth of data to a subflow. Gives false if nothing can be given now.
    pub(super) fn assign(&mut self, now: Instant, workspace: &mut Workspace) -> bool {
        let una = self.sender.una();
        let waiting = !self.sender.all_assigned();
        let mut again = None;
        if !self.sender.reinjections.ranges.is_empty() {
            workspace.refused.clear();
            again = self.next_again(una, &workspace.refused);
        }
        let shares = self.duplicates() && una < self.sender.data_nxt;
        if !waiting && again.is_none() && !self.scheduling.scheduler.redundant() && !shares {
            return false;
        }
        if self.association.protocol == Protocol::Negotiating || self.life.closed.is_some() {
            return false;
        }
        if self.association.protocol == Protocol::Tcp {
            return waiting && self.assign_to_only(now);
        }
        self.subflow_views(&mut workspace.views);
        while let Some((at, stretch)) = again {
            if self.assign_again(now, at, stretch, workspace) {
                return true;
            }
            // What only a subflow without room may take does not keep back what others can.
            workspace.refused.push(stretch.last_sent_on);
            again = self.next_again(una, &workspace.refused);
        }
        if self.scheduling.scheduler.redundant() && self.assign_redundantly(workspace) {
            return true;
        }
        if shares && waiting && self.shares_first(now, workspace) && self.assign_shared(now, workspace) {
            return true;
        }
        if waiting && self.assign_new(now, workspace) {
            return true;
        }
        let nothing_new = !waiting || self.sender.window_left() == 0 || self.scheduling.blocked.is_some();
        shares && nothing_new && (self.assign_shared(now, workspace) || self.assign_twice(now, workspace))
    }

    /// The next stretch to be sent again, of those that none of `refused` sent last.
    fn next_again(&mut self, una: u64, refused: &[SubflowId]) -> Option<(usize, ReinjectedRange)> {
        loop {
            let subflows = &self.subflows;
            let can_take = |last: SubflowId| {
                !refused.contains(&last) && subflows.iter().any(|subflow| subflow.is_usable() && subflow.id() != last)
            };
            let (at, stretch) = self.sender.reinjections.first(una, can_take)?;
            let Some(end) = self.withdrawn_until(stretch.start) else { return Some((at, stretch)) };
            self.sender.reinjections.advance(at, end.min(stretch.end));
        }
    }

    /// Plain TCP has one subflow and nothing to choose.
    fn assign_to_only(&mut self, now: Instant) -> bool {
        let Some(subflow) = self.subflows.first() else { return false };
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
        self.give(id, self.sender.data_nxt, length as usize, SendKind::New)
    }

    /// Data that another subflow failed to deliver comes before new data.
    fn assign_again(&mut self, now: Instant, at: usize, stretch: ReinjectedRange, workspace: &mut Workspace) -> bool {
        let others = |s: &Subflow| s.is_usable() && s.id() != stretch.last_sent_on;
        let mss = self.subflows.iter().filter(|s| others(s)).map(|s| s.mss).max().unwrap_or(0);
        let length = self.useful_length(stretch.start, (stretch.end - stretch.start).min(u64::from(mss))) as u32;
        let chunk = Chunk {
            data_seq: stretch.start,
            length,
            kind: ChunkKind::Reinjection,
            last_sent_on: Some(stretch.last_sent_on),
            time_left: self.time_left(now, stretch.start),
        };
        let view = self.view(now);
        match self.scheduling.scheduler.schedule(&view, &chunk, &workspace.views) {
            Decision::Send(id) if id != stretch.last_sent_on => {
                let Some(mss) = self.subflow_mut(id).filter(|s| s.is_usable()).map(|s| s.mss) else { return false };
                let length = length.min(mss);
                self.sender.reinjections.advance(at, stretch.start + u64::from(length));
                self.give(id, stretch.start, length as usize, SendKind::Reinjection)
            }
            Decision::Send(_) => false,
            Decision::Wait(until) => {
                self.timers.schedule = until.unwrap_or(Instant::NEVER).max(now);
                false
            }
        }
    }

    /// Every subflow walks the unacknowledged stream itself (ReMP): one that has room and is behind catches up.
    fn assign_redundantly(&mut self, workspace: &Workspace) -> bool {
        let una = self.sender.una();
        for view in &workspace.views {
            if !view.usable() || !view.has_room() {
                continue;
            }
            let Some(subflow) = self.subflows.iter().find(|subflow| subflow.id() == view.id) else { continue };
            let (mut from, mss) = (subflow.cursor.max(una), u64::from(subflow.mss));
            while let Some(end) = self.withdrawn_until(from) {
                from = end;
            }
            self.subflow_mut(view.id).into_iter().for_each(|subflow| subflow.cursor = from);
            if from < self.sender.data_nxt {
                let length = self.useful_length(from, (self.sender.data_nxt - from).min(mss));
                return self.give(view.id, from, length as usize, SendKind::Duplicate);
            }
        }
        false
    }

    fn assign_new(&mut self, now: Instant, workspace: &mut Workspace) -> bool {
        let Some(mss) = self.subflows.iter().filter(|s| s.is_usable()).map(|s| s.mss).max() else { return false };
        let Some(length) = self.next_length(mss) else {
            self.consider_blocked(now, mss, workspace);
            return false;
        };
        self.scheduling.blocked = None;
        if let Some(id) = self.probing_subflow() {
            return self.give_new(now, id, length);
        }
        let data_seq = self.sender.data_nxt;
        let time_left = self.time_left(now, data_seq);
        let chunk = Chunk { data_seq, length: length as u32, kind: ChunkKind::New, last_sent_on: None, time_left };
        let view = self.view(now);
        match self.scheduling.scheduler.schedule(&view, &chunk, &workspace.views) {
            // Something else comes next then.
            Decision::Send(_) if self.withdraws_next(now, length, &workspace.views) => true,
            Decision::Send(id) => self.give_new(now, id, length),
            Decision::Wait(until) => {
                self.timers.schedule = until.unwrap_or(Instant::NEVER).max(now);
                false
            }
        }
    }

    fn give_new(&mut self, now: Instant, id: SubflowId, length: u64) -> bool {
        let Some(mss) = self.subflow_mut(id).filter(|s| s.is_usable()).map(|s| s.mss) else { return false };
        if let Some(length) = self.probe_length(now, id) {
            return self.give(id, self.sender.data_nxt, length as usize, SendKind::New);
        }
        let length = length.min(u64::from(mss));
        match self.place_in_train(id) {
            Some(place) => self.give_in_train(id, length, place),
            None => self.give(id, self.sender.data_nxt, length as usize, SendKind::New),
        }
    }

    /// Whether the closed window is a blocked receive buffer: a usable subflow has room, and bytes beyond the left edge
    /// have arrived, so that the peer waits for a hole.
    fn consider_blocked(&mut self, now: Instant, mss: u32, workspace: &mut Workspace) {
        let una = self.sender.una();
        let room = workspace.views.iter().any(|view| view.usable() && view.has_room());
        let shut = self.sender.window_left() < u64::from(mss);
        if !room || !shut || self.sender.delivered_end <= una {
            self.scheduling.blocked = None;
            self.timers.blocked = Instant::NEVER;
            return;
        }
        let round_trip = self.round_trip();
        let blocked = match self.scheduling.blocked {
            Some(blocked) => blocked,
            None => {
                self.announce_blocked(una);
                self.timers.blocked = now + round_trip;
                Blocked::new(now + round_trip, una, self.find_holder(una))
            }
        };
        self.scheduling.blocked = Some(blocked);
        self.relieve(now, una, workspace);
    }

    fn announce_blocked(&mut self, hole: u64) {
        self.stats.blocked_episodes += 1;
        self.output.notices.push_back(Notice::Blocked(hole));
        self.output.record(TraceRecord::Blocked { connection: self.id, hole });
    }

    /// An episode that outlasts the largest round trip counts again.
    pub(super) fn handle_blocked_timeout(&mut self, now: Instant) {
        self.timers.blocked = Instant::NEVER;
        let round_trip = self.round_trip();
        let hole = self.sender.una();
        if let Some(blocked) = self.scheduling.blocked.as_mut().filter(|blocked| blocked.repeat_at <= now) {
            blocked.repeat_at = now + round_trip;
            self.timers.blocked = now + round_trip;
            self.announce_blocked(hole);
        }
    }

    /// Asks the scheduler what to do about the hole.
    fn relieve(&mut self, now: Instant, una: u64, workspace: &Workspace) {
        let Some(mut blocked) = self.scheduling.blocked else { return };
        if blocked.hole != una {
            blocked = Blocked::new(blocked.repeat_at, una, self.find_holder(una));
            self.scheduling.blocked = Some(blocked);
        }
        let Some(culprit) = blocked.culprit else { return };
        let length = blocked.length;
        let hole = Hole { data_seq: una, length: length as u32, culprit };
        let view = self.view(now);
        let relief = self.scheduling.scheduler.on_window_blocked(&view, &hole, &workspace.views);
        let early = self.reinjects_early();
        if let Some(id) = relief.retransmit_on.filter(|id| early && *id != culprit)
            && let Some(mss) = self.subflow_mut(id).filter(|s| s.is_usable()).map(|s| s.mss)
        {
            let length = self.useful_length(una, length.min(u64::from(mss)));
            self.give(id, una, length as usize, SendKind::Duplicate);
        }
        if let Some(id) = relief.penalise
            && let Some(in_flight) = self.subflow_mut(id).map(|subflow| subflow.pipe())
        {
            let event = CongestionEvent { now, cause: Congestion::Penalty, in_flight, lost: 0, repeated: false };
            self.congestion.on_congestion(id, &event);
        }
    }
}
