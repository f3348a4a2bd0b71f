//! Connections and subflows begin and end, and the path manager is told.

use super::state::Steering;
use crate::connection::{Connection, SubflowChange};
use crate::sample::{Endpoints, Token};
use crate::status::Occasion;
use anabranch_policy::ids::{AddressId, ConnectionId, SubflowId};
use anabranch_policy::path_manager::{CloseReason, PathEvent, Role};
use anabranch_policy::time::{Duration, Instant};

impl Steering {
    /// Begins to follow a connection. Returns whether it does.
    pub(super) fn open(&mut self, now: Instant, token: Token, role: Role, initial: Endpoints) -> bool {
        if self.connections.len() >= self.settings.most_connections {
            self.counters.ignored_connections += 1;
            return false;
        }
        let id = ConnectionId(self.next_connection);
        self.next_connection += 1;
        self.connections.insert(token, Connection::new(id, role, initial));
        self.tokens.insert(id, token);
        self.add_subflow(now, token, initial, 0);
        true
    }

    /// Tells the path manager of a connection, once.
    pub(super) fn establish(&mut self, now: Instant, token: Token, remote_denies_joins: bool) {
        let Some(known) = self.connections.get_mut(&token) else { return };
        if core::mem::replace(&mut known.told, true) {
            return;
        }
        let (connection, role, remote) = (known.id, known.role, known.initial.remote);
        let first = known.subflows.iter().find(|subflow| subflow.endpoints == known.initial);
        let (first, local) = first.map_or((None, AddressId(0)), |subflow| (Some(subflow.id), subflow.local));
        let announced: Vec<_> = known.remotes.iter().map(|(id, remote)| (AddressId(*id), *remote)).collect();
        let handshake_rtt = Duration::ZERO; // the event comes without it
        let event =
            PathEvent::ConnectionEstablished { connection, role, local, remote, remote_denies_joins, handshake_rtt };
        self.tell(now, Occasion::Change, &event);
        if let Some(first) = first {
            self.establish_subflow(now, token, first, false);
        }
        for (id, remote) in announced {
            self.tell(now, Occasion::Change, &PathEvent::AddressAnnounced { connection, id, remote });
        }
    }

    /// Forgets a connection. Returns whether it was known.
    pub(super) fn close(&mut self, now: Instant, token: Token) -> bool {
        let Some(known) = self.connections.remove(&token) else { return false };
        self.tokens.remove(&known.id);
        if known.told && !known.fallback {
            self.tell(now, Occasion::Change, &PathEvent::ConnectionClosed { connection: known.id });
        }
        true
    }

    pub(super) fn add_subflow(
        &mut self,
        now: Instant,
        token: Token,
        endpoints: Endpoints,
        remote_id: u8,
    ) -> Option<SubflowId> {
        let local = self.addresses.id(endpoints.local.ip());
        let known = self.connections.get_mut(&token)?;
        let added = local.and_then(|local| known.add(now, endpoints, local, remote_id)).map(|subflow| subflow.id);
        self.counters.ignored_subflows += u64::from(added.is_none());
        added
    }

    /// Tells the path manager of a subflow, once.
    pub(super) fn establish_subflow(&mut self, now: Instant, token: Token, id: SubflowId, backup: bool) {
        let Some(known) = self.connections.get_mut(&token).filter(|known| known.told) else { return };
        let Some(subflow) = known.subflow_mut(id) else { return };
        if core::mem::replace(&mut subflow.told, true) {
            return;
        }
        let (local, remote) = (subflow.local, subflow.remote);
        known.estimator.restart();
        self.pass_on(now, token, SubflowChange::Established { id, local, remote, backup });
    }

    pub(super) fn pass_on(&mut self, now: Instant, token: Token, change: SubflowChange) {
        let Some(known) = self.connections.get_mut(&token).filter(|known| known.told) else { return };
        let connection = known.id;
        match change {
            SubflowChange::Established { id, local, remote, backup } => {
                let event = PathEvent::SubflowEstablished { connection, subflow: id, local, remote, backup };
                self.tell(now, Occasion::Change, &event);
            }
            SubflowChange::Closed { id, local, remote, reason } => {
                known.estimator.restart();
                let up = self.addresses.address(local).is_some_and(|address| self.addresses.is_up(address));
                let reason = if up || reason == CloseReason::Normal { reason } else { CloseReason::AddressGone };
                let event = PathEvent::SubflowClosed { connection, subflow: id, local, remote, reason };
                self.tell(now, Occasion::Change, &event);
            }
            SubflowChange::TimedOut(subflow) => {
                let (view, subflows) = (known.view(now, false, false), known.subflow_views(now));
                let event = PathEvent::SubflowTimeout { connection: &view, subflows: &subflows, subflow };
                self.tell(now, Occasion::Timeout, &event);
            }
        }
    }
}
