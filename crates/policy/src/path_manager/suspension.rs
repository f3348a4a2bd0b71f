//! The suspended subflows of a connection; never all of them are suspended.
//!
//! Rules that all path managers that suspend subflows share; the papers have none of them:
//!
//! - a subflow is suspended only while another path stays active;
//! - when the last active subflow ends, the best suspended one is resumed at once: first those without an unanswered
//!   timeout, and of these the one with the highest rank;
//! - a suspended subflow is probed once per retransmission timeout, first one timeout after it was suspended, and not
//!   while data assigned to it waits to be sent, so that probes do not queue on a dead path;
//! - a subflow may be resumed only if it was measured since it was suspended: it has no unanswered timeout, and an
//!   acknowledgement made progress since the first probe.
//!
//! The engine's views take precedence: what they show differently (a dropped action, or a late one) is adopted.

use super::api::PathAction;
use crate::ids::{ConnectionId, SubflowId, SubflowMap};
use crate::time::Instant;
use crate::view::{ConnectionView, SubflowState, SubflowView};

#[derive(Clone, Copy, Debug)]
struct Aside {
    first_probe: Option<Instant>,
    next_probe: Instant,
}

#[derive(Clone, Copy, Debug, Default)]
struct Standing {
    aside: Option<Aside>,
    stale: bool,
    rank: f64,
}

/// The established subflows of a connection: active, or suspended.
#[derive(Clone, Debug, Default)]
pub struct Suspensions {
    standings: SubflowMap<Standing>,
}

impl Suspensions {
    /// A subflow is established, and active.
    pub(super) fn established(&mut self, id: SubflowId) {
        self.standings.insert(id, Standing::default());
    }

    /// A subflow ended.
    pub(super) fn closed(&mut self, connection: ConnectionId, id: SubflowId, actions: &mut Vec<PathAction>) {
        self.standings.remove(id);
        self.keep_one_active(connection, actions);
    }

    /// Adopts the state of the engine.
    pub(super) fn observe(
        &mut self,
        connection: &ConnectionView,
        subflows: &[SubflowView],
        actions: &mut Vec<PathAction>,
    ) {
        let established = |id| subflows.iter().any(|s| s.id == id && s.state == SubflowState::Established);
        self.standings.retain(established);
        for view in subflows.iter().filter(|view| view.state == SubflowState::Established) {
            let before = self.standings.get(view.id).copied().unwrap_or_default();
            let aside = Aside { first_probe: None, next_probe: connection.now + view.rto };
            let aside = view.suspended.then(|| before.aside.unwrap_or(aside));
            self.standings.insert(view.id, Standing { aside, stale: view.stale, ..before });
        }
        self.keep_one_active(connection.id, actions);
    }

    /// Sets the rank of a subflow; the highest is resumed when none is active.
    pub(super) fn set_rank(&mut self, id: SubflowId, rank: f64) {
        if let Some(standing) = self.standings.get_mut(id) {
            standing.rank = rank;
        }
    }

    pub(super) fn is_aside(&self, id: SubflowId) -> bool {
        self.standings.get(id).is_some_and(|standing| standing.aside.is_some())
    }

    /// The paths: established subflows that are no backups, unless we suspended them (in the kernel, by making them
    /// backups).
    pub(super) fn paths<'a>(&self, subflows: &'a [SubflowView]) -> impl Iterator<Item = &'a SubflowView> {
        let counts =
            |view: &&SubflowView| view.state == SubflowState::Established && (!view.backup || self.is_aside(view.id));
        subflows.iter().filter(counts)
    }

    /// Suspends a subflow, unless no other path would stay active; a backup does not count as one.
    pub(super) fn suspend(
        &mut self,
        connection: &ConnectionView,
        view: &SubflowView,
        subflows: &[SubflowView],
        actions: &mut Vec<PathAction>,
    ) {
        if !self.paths(subflows).any(|other| other.id != view.id && !self.is_aside(other.id)) {
            return;
        }
        let Some(standing) = self.standings.get_mut(view.id).filter(|standing| standing.aside.is_none()) else {
            return;
        };
        standing.aside = Some(Aside { first_probe: None, next_probe: connection.now + view.rto });
        actions.push(PathAction::Suspend { connection: connection.id, subflow: view.id });
    }

    /// Resumes a subflow.
    pub(super) fn resume(&mut self, connection: ConnectionId, id: SubflowId, actions: &mut Vec<PathAction>) {
        let Some(standing) = self.standings.get_mut(id).filter(|standing| standing.aside.is_some()) else { return };
        standing.aside = None;
        actions.push(PathAction::Resume { connection, subflow: id });
    }

    /// Probes the suspended subflows that are due.
    pub(super) fn probe(
        &mut self,
        now: Instant,
        connection: ConnectionId,
        subflows: &[SubflowView],
        actions: &mut Vec<PathAction>,
    ) {
        for view in subflows.iter().filter(|view| view.queued == 0) {
            let Some(aside) = self.standings.get_mut(view.id).and_then(|standing| standing.aside.as_mut()) else {
                continue;
            };
            if now >= aside.next_probe {
                aside.first_probe = aside.first_probe.or(Some(now));
                aside.next_probe = now + view.rto;
                actions.push(PathAction::Probe { connection, subflow: view.id });
            }
        }
    }

    /// Whether a suspended subflow was measured since, and answers.
    pub(super) fn is_fit(&self, view: &SubflowView) -> bool {
        let first_probe = self.standings.get(view.id).and_then(|standing| standing.aside?.first_probe);
        !view.stale && first_probe.is_some_and(|at| view.last_progress > at)
    }

    /// If every active subflow has an unanswered timeout and a suspended one has none, resumes that.
    pub(super) fn replace_dead(&mut self, connection: ConnectionId, actions: &mut Vec<PathAction>) {
        let active_is_dead = self.standings.values().filter(|s| s.aside.is_none()).all(|s| s.stale);
        if let Some((id, _)) = self.best_aside().filter(|(_, standing)| active_is_dead && !standing.stale) {
            self.resume(connection, id, actions);
        }
    }

    fn keep_one_active(&mut self, connection: ConnectionId, actions: &mut Vec<PathAction>) {
        if self.standings.values().all(|standing| standing.aside.is_some())
            && let Some((id, _)) = self.best_aside()
        {
            self.resume(connection, id, actions);
        }
    }

    /// Without an unanswered timeout first, then by rank, then the lower id.
    fn best_aside(&self) -> Option<(SubflowId, Standing)> {
        let aside = self.standings.iter().filter(|(_, standing)| standing.aside.is_some());
        let order = |(_, a): &(SubflowId, &Standing), (_, b): &(SubflowId, &Standing)| {
            a.stale.cmp(&b.stale).then(b.rank.total_cmp(&a.rank))
        };
        aside.min_by(order).map(|(id, standing)| (id, *standing))
    }
}
