//! The scheduler's view of what can be sent at an opportunity ([`Work`]), computed on demand.

use super::output::Workspace;
use super::reinjections::ReinjectedRange;
use super::state::Connection;
use super::timer_table::Timer;
use crate::subflow::Subflow;
use anabranch_policy::ids::SubflowId;
use anabranch_policy::scheduler::{Chunk, ChunkKind, Outstanding, Relief, Unsent, Work};
use anabranch_policy::time::{Duration, Instant};
use anabranch_policy::view::SubflowView;

/// An opportunity to send.
pub(super) struct Opportunity<'a> {
    pub connection: &'a mut Connection,
    pub now: Instant,
    pub views: &'a [SubflowView],
    /// Subflows for whose data the scheduler has no other subflow at present.
    refused: &'a mut Vec<SubflowId>,
    /// The range to be reinjected that was computed last: its index, and the length to send.
    pub again: Option<(usize, ReinjectedRange, u32)>,
    /// New data that was computed: its length, and whether it needs no decision.
    pub unsent: Option<(u64, bool)>,
    /// Outstanding data may be duplicated.
    shares: bool,
}

impl<'a> Opportunity<'a> {
    /// Nothing is computed yet. `views` are the present views of all subflows.
    pub fn new(connection: &'a mut Connection, now: Instant, workspace: &'a mut Workspace) -> Self {
        connection.refresh_views(workspace);
        let Workspace { views, refused, .. } = workspace;
        refused.clear();
        let shares = connection.duplicates() && connection.sender.una() < connection.sender.data_nxt;
        Self { connection, now, views, refused, again: None, unsent: None, shares }
    }
}

impl Work for Opportunity<'_> {
    fn again(&mut self) -> Option<Chunk> {
        if self.connection.sender.reinjections.ranges.is_empty() {
            return None;
        }
        if let Some((_, refused, _)) = self.again.take() {
            self.refused.push(refused.last_sent_on);
        }
        let (at, range) = self.connection.next_again(self.refused)?;
        let others = |s: &&Subflow| s.is_usable() && s.id() != range.last_sent_on;
        let mss = self.connection.subflows.iter().filter(others).map(|s| s.mss).max().unwrap_or(0);
        let length = (range.end - range.start).min(u64::from(mss));
        let length = self.connection.useful_length(range.start, length) as u32;
        let length = self.connection.length_again(range.last_sent_on, length);
        self.again = Some((at, range, length));
        Some(Chunk {
            data_seq: range.start,
            length,
            kind: ChunkKind::Reinjection,
            last_sent_on: Some(range.last_sent_on),
            time_left: self.connection.time_left(self.now, range.start),
        })
    }

    fn has_unsent(&self) -> bool {
        !self.connection.sender.all_assigned()
    }

    fn unsent(&mut self) -> Unsent {
        // Most have the same size: whether they are usable is asked of those that would change it.
        let larger =
            |most, view: &SubflowView| if Some(view.mss) > most && view.usable() { Some(view.mss) } else { most };
        let Some(mss) = self.views.iter().fold(None, larger) else { return Unsent::Nothing };
        let Some(length) = self.connection.next_length(mss) else {
            let hole = self.connection.consider_blocked(self.now, mss, self.views);
            return hole.map_or(Unsent::Nothing, Unsent::Blocked);
        };
        self.connection.scheduling.blocked = None;
        let probing = self.connection.probing_subflow();
        self.unsent = Some((length, probing.is_some()));
        if let Some(id) = probing {
            return Unsent::Probe(id);
        }
        let data_seq = self.connection.sender.data_nxt;
        let time_left = self.connection.time_left(self.now, data_seq);
        Unsent::Chunk(Chunk { data_seq, length: length as u32, kind: ChunkKind::New, last_sent_on: None, time_left })
    }

    fn is_shut(&self) -> bool {
        !self.has_unsent() || self.connection.sender.window_left() == 0 || self.connection.scheduling.blocked.is_some()
    }

    fn outstanding(&mut self, after: Option<u64>) -> Option<Outstanding> {
        if !self.shares {
            return None;
        }
        let una = self.connection.sender.una();
        self.connection.next_outstanding(una, after)
    }

    fn recent(&mut self) -> Option<(Outstanding, Duration)> {
        if !self.shares {
            return None;
        }
        self.connection.next_recent(self.now)
    }

    fn missing(&self) -> bool {
        self.connection.has_reports()
    }

    fn repair_missing(&mut self) {
        self.connection.reinject_missing();
    }

    fn is_behind(&mut self, subflow: SubflowId) -> bool {
        self.connection.behind(subflow).is_some()
    }

    fn relieve(&mut self, relief: Relief) {
        self.connection.relieve(self.now, relief);
    }

    fn wait(&mut self, until: Option<Instant>) {
        self.connection.timers.set(Timer::Schedule, until.unwrap_or(Instant::NEVER).max(self.now));
    }
}
