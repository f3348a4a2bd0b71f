//! Takes samples, and compares them with what is known.

use super::state::Steering;
use crate::connection::{SubflowChange, guess_role, is_established};
use crate::estimator::Blocked;
use crate::sample::{ConnectionSample, HostSample, SubflowSample, TcpState, Token};
use crate::status::Occasion;
use anabranch_policy::path_manager::{CloseReason, PathEvent};
use anabranch_policy::time::{Duration, Instant};
use std::collections::BTreeSet;

impl Steering {
    /// All connections were sampled.
    pub fn handle_sample(&mut self, sample: &HostSample) {
        let now = sample.at;
        let all = core::mem::take(&mut self.overrun);
        let mut unannounced = BTreeSet::new();
        for connection in &sample.connections {
            if self.ended.contains(&connection.token) && !connection.has_data() {
                self.close(now, connection.token);
            } else if self.may_be_announced(connection.token) {
                unannounced.insert(connection.token);
            } else {
                self.handle_connection(now, connection, all);
            }
        }
        self.unannounced = Some(unannounced);
        self.inherited.clear();
        self.ended.retain(|token| sample.has(*token));
        let absent = self.connections.iter_mut().filter(|(token, _)| !sample.has(**token));
        let over: Vec<Token> = absent.filter_map(|(token, known)| known.is_missed(all).then_some(*token)).collect();
        for token in over {
            self.close(now, token);
        }
        let connections = &self.connections;
        self.addresses.forget(|id| connections.values().any(|c| c.subflows.iter().any(|s| s.local == id)));
        self.handle_timeout(now);
    }

    /// Whether this connection is new in this sample, and its event yet to come. The kernel lists a connection before
    /// it says so, and refuses to open subflows of one that has just begun.
    fn may_be_announced(&self, token: Token) -> bool {
        let before = |seen: &BTreeSet<Token>| !seen.contains(&token);
        !self.connections.contains_key(&token) && self.unannounced.as_ref().is_some_and(before)
    }

    pub(super) fn handle_connection(&mut self, now: Instant, sample: &ConnectionSample, all: bool) {
        if self.connections.get(&sample.token).is_some_and(|known| known.was_replaced_by(sample)) {
            self.counters.reused += 1;
            self.close(now, sample.token);
        }
        if !self.connections.contains_key(&sample.token) && !self.adopt(now, sample) {
            return;
        }
        let Some(known) = self.connections.get_mut(&sample.token) else { return };
        (known.missing, known.closing) = (0, sample.closing);
        if sample.fallback || known.fallback {
            known.count(now, sample);
            if !core::mem::replace(&mut known.fallback, true) && known.told {
                let event = PathEvent::ConnectionClosed { connection: known.id };
                self.tell(now, Occasion::Change, &event);
            }
            return;
        }
        let takes_ipv6 = known.takes_ipv6 || sample.subflows.iter().any(|subflow| subflow.owner.ipv6);
        let reconsiders = takes_ipv6 && !core::mem::replace(&mut known.takes_ipv6, takes_ipv6);
        for change in known.miss(now, sample, all) {
            self.pass_on(now, sample.token, change);
        }
        // An event that says so may have been lost.
        let established = sample.subflows.iter().any(is_established);
        let untold =
            self.connections.get(&sample.token).is_some_and(|known| !known.told && known.span(now) > Duration::ZERO);
        if established && untold {
            self.establish(now, sample.token, false);
        }
        if reconsiders {
            self.reconsider(now, sample.token);
        }
        for subflow in &sample.subflows {
            self.handle_subflow(now, sample.token, subflow);
        }
        self.judge(now, sample);
    }

    /// Takes up a connection that began unseen. Returns whether it is followed.
    pub(super) fn adopt(&mut self, now: Instant, sample: &ConnectionSample) -> bool {
        // Closed before we could hear of that, or not accepted yet.
        if sample.is_orphaned() && !sample.has_data() {
            return false;
        }
        let Some(initial) = sample.initial() else { return false };
        if !self.open(now, sample.token, guess_role(sample), initial) {
            return false;
        }
        // One that its program has closed was known before.
        let adopted = !self.ended.contains(&sample.token);
        self.counters.adopted += u64::from(adopted);
        if let Some(known) = self.connections.get_mut(&sample.token) {
            (known.adopted, known.closing) = (adopted, sample.closing);
        }
        if sample.subflows.iter().any(is_established) && !sample.fallback {
            // The path manager would open again what is there.
            for subflow in &sample.subflows {
                let known = self.connections.get(&sample.token);
                if known.is_some_and(|known| known.find(subflow.endpoints).is_none()) {
                    self.add_subflow(now, sample.token, subflow.endpoints, subflow.remote_id);
                }
            }
            self.establish(now, sample.token, false);
        }
        true
    }

    pub(super) fn handle_subflow(&mut self, now: Instant, token: Token, sample: &SubflowSample) {
        let Some(known) = self.connections.get_mut(&token) else { return };
        let span = known.span(now);
        let mut id = known.find(sample.endpoints);
        let replaced = id.filter(|id| known.subflow(*id).is_some_and(|subflow| subflow.was_replaced_by(sample)));
        if let Some(change) = replaced.and_then(|id| known.remove(now, id, CloseReason::Reset)) {
            self.counters.reused += 1;
            self.pass_on(now, token, change);
            id = None;
        }
        // The socket of a subflow that has ended stays until its FIN is acknowledged, on a dead path for minutes.
        if id.is_none() && sample.state == TcpState::Closing {
            return;
        }
        let id = id.or_else(|| self.add_subflow(now, token, sample.endpoints, sample.remote_id));
        let (Some(id), Some(known)) = (id, self.connections.get_mut(&token)) else { return };
        let Some(subflow) = known.subflow_mut(id) else { return };
        let timed_out = subflow.observe(now, span, sample.clone());
        if is_established(sample) {
            known.attempts.succeed(sample.endpoints);
            self.establish_subflow(now, token, id, sample.backup_local || sample.backup_remote);
        }
        self.keep_role(now, token, id, sample);
        if self.renew(now, token, sample).is_some() {
            return;
        }
        if timed_out {
            self.pass_on(now, token, SubflowChange::TimedOut(id));
        }
    }

    /// Measures for the path manager, if it is due and anything moves.
    pub(super) fn judge(&mut self, now: Instant, sample: &ConnectionSample) {
        let Some(known) = self.connections.get_mut(&sample.token) else { return };
        let before = known.estimator.blocked();
        if !known.observe(now, sample) || !known.told {
            return;
        }
        let blocked = known.estimator.blocked();
        let subflows = known.subflow_views(now);
        let connection = known.view(now, blocked == Blocked::ReceiveWindow, blocked == Blocked::SendBuffer);
        let measured = self.measured_every.filter(|_| now >= known.next_measured);
        if let Some(every) = measured {
            known.next_measured = now + every;
        }
        let longest = subflows.iter().map(|view| view.smoothed_rtt).max().unwrap_or_default();
        let shut = blocked == Blocked::ReceiveWindow && (before != blocked || now >= known.next_blocked);
        if shut {
            known.next_blocked = now + longest;
        }
        if measured.is_some() {
            let event = PathEvent::Measured { connection: &connection, subflows: &subflows };
            self.tell(now, Occasion::Measured, &event);
        }
        if shut {
            let hole = connection.data_una;
            let event = PathEvent::ReceiveBufferBlocked { connection: &connection, subflows: &subflows, hole };
            self.tell(now, Occasion::ReceiveWindowBlocked, &event);
        }
    }
}
