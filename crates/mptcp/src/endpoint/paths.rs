//! Passes notices from connections to the application and the path manager, and carries out the path manager's actions.

use super::state::{Endpoint, is_one_host};
use crate::connection::{Connection, Joining, Notice};
use crate::event::Event;
use anabranch_policy::ids::{AddressId, ConnectionId};
use anabranch_policy::path_manager::{CloseReason, PathAction, PathEvent};
use anabranch_policy::time::Instant;
use anabranch_policy::view::{ConnectionView, SubflowView};
use core::net::SocketAddr;

impl Endpoint {
    /// Opens a subflow for the path manager.
    pub(super) fn create_subflow(
        &mut self,
        now: Instant,
        id: ConnectionId,
        local: AddressId,
        remote: AddressId,
        backup: bool,
    ) -> bool {
        let ours = self.addresses.iter().find(|known| known.id == local).copied();
        let theirs = self.connections.get(id).filter(|c| c.may_join()).and_then(|c| c.remote_address(remote));
        let (Some(ours), Some(theirs)) = (ours, theirs) else { return false };
        // The peer may announce any address (RFC 9293, MUST-46), with any port.
        if ours.address.is_ipv4() != theirs.is_ipv4() || !is_one_host(theirs.ip()) || theirs.port() == 0 {
            return false;
        }
        let Some((port, last)) = self.free_port(now, ours.address, theirs) else { return false };
        let from = SocketAddr::new(ours.address, port);
        let joining = Joining {
            local: from,
            remote: theirs,
            local_address: local,
            remote_address: remote,
            initial: self.initial_sequence(now, from, theirs, last),
            nonce: self.random.next_u32(),
            backup,
        };
        let opened = self.connections.get_mut(id).and_then(|connection| connection.join(now, joining));
        if opened.is_some() {
            self.connections.add_route(from, theirs, id);
        }
        opened.is_some()
    }

    /// After any change of a connection: passes on its notices, queues it for output, and removes it if it has ended.
    pub(super) fn settle(&mut self, now: Instant, id: ConnectionId) {
        let Some(connection) = self.connections.get_mut(id) else { return };
        connection.sweep();
        // After most segments the only notice is that data is readable.
        let readable = connection.output.poll_readable(id);
        if connection.is_quiet() && !connection.output.has_trace() {
            if !core::mem::replace(&mut connection.output.listed, true) {
                self.ready.push_back(id);
            }
            readable.into_iter().for_each(|event| self.push_event(event));
            return;
        }
        readable.into_iter().for_each(|event| self.push_event(event));
        self.pass_on_notices(now, id);
        if !self.forget_if_over(now, id) {
            self.list(id);
        }
    }

    /// Removes a connection of which only subflows in TIME-WAIT are left and which the application has forgotten; keeps
    /// those subflows.
    pub(super) fn keep_time_wait(&mut self, now: Instant, id: ConnectionId) {
        let Some(connection) = self.connections.get_mut(id).filter(|connection| connection.is_in_time_wait()) else {
            return;
        };
        let time_wait = connection.keep_time_wait();
        connection.sweep();
        // Its routes are removed first.
        self.pass_on_notices(now, id);
        for time_wait in time_wait {
            self.counters.shortened_time_waits += u64::from(self.time_waits.insert(time_wait));
        }
    }

    /// Removes a connection that has nothing left to send or report. Returns whether it did.
    pub(super) fn forget_if_over(&mut self, now: Instant, id: ConnectionId) -> bool {
        let over = self.connections.get(id).is_some_and(Connection::is_over);
        if over {
            self.connections.remove(id);
            self.tell_path_manager(now, &PathEvent::ConnectionClosed { connection: id });
        }
        over
    }

    /// Passes on the notices of a connection, and carries out the path manager's reactions.
    pub(super) fn pass_on_notices(&mut self, now: Instant, id: ConnectionId) {
        while let Some(notice) = self.connections.get_mut(id).and_then(|connection| connection.output.poll_notice(id)) {
            match notice {
                Notice::Application(event) => {
                    if let Event::FellBack(_, cause) = event {
                        self.counters.fallbacks.count(cause);
                    }
                    self.push_event(event);
                }
                Notice::Attempt(attempt) => self.handle_attempt(now, id, attempt),
                other => {
                    self.pass_to_path_manager(now, id, other);
                    self.carry_out(now);
                }
            }
        }
    }

    fn pass_to_path_manager(&mut self, now: Instant, id: ConnectionId, notice: Notice) {
        match notice {
            Notice::Application(_) | Notice::Attempt(_) => {}
            Notice::Established => self.tell_established(now, id),
            Notice::SubflowEstablished(subflow) => {
                let identity = self.connections.get(id).and_then(|c| c.identities().find(|i| i.id == subflow)).copied();
                let Some(identity) = identity else { return };
                self.uplinks.answered(identity.local_address, identity.remote.ip(), None);
                if self.uplinks.is_backup(identity.local_address)
                    && let Some(connection) = self.connections.get_mut(id)
                {
                    connection.set_backup_from(identity.local_address, true);
                }
                let backup = self.connections.get(id).is_some_and(|c| c.is_backup(subflow));
                self.tell_path_manager(
                    now,
                    &PathEvent::SubflowEstablished {
                        connection: id,
                        subflow,
                        local: identity.local_address,
                        remote: identity.remote_address,
                        backup,
                    },
                );
            }
            Notice::SubflowClosed(identity, reason) => {
                self.connections.remove_route(identity.local, identity.remote);
                if reason == CloseReason::TimedOut {
                    self.uplinks.unanswered(now, identity.local_address);
                }
                self.tell_path_manager(
                    now,
                    &PathEvent::SubflowClosed {
                        connection: id,
                        subflow: identity.id,
                        local: identity.local_address,
                        remote: identity.remote_address,
                        reason,
                    },
                );
            }
            Notice::Priority(subflow, backup) => {
                self.tell_path_manager(now, &PathEvent::SubflowPriority { connection: id, subflow, backup });
            }
            Notice::AddressAnnounced(address, remote) => {
                self.tell_path_manager(now, &PathEvent::AddressAnnounced { connection: id, id: address, remote });
            }
            Notice::AddressRemoved(address) => {
                self.tell_path_manager(now, &PathEvent::AddressRemoved { connection: id, id: address });
            }
            Notice::Blocked(hole) => self.tell_with_views(now, id, |connection, subflows| {
                PathEvent::ReceiveBufferBlocked { connection, subflows, hole }
            }),
            Notice::ReceiverBlocked(hole) => self.tell_with_views(now, id, |connection, subflows| {
                PathEvent::ReceiverBlocked { connection, subflows, hole }
            }),
            Notice::SubflowTimeout(subflow) => self.tell_with_views(now, id, |connection, subflows| {
                PathEvent::SubflowTimeout { connection, subflows, subflow }
            }),
            Notice::Measure => {
                self.tell_with_views(now, id, |connection, subflows| PathEvent::Measured { connection, subflows });
            }
        }
    }

    fn tell_established(&mut self, now: Instant, id: ConnectionId) {
        let Some(connection) = self.connections.get(id) else { return };
        let initial = connection.initial_local();
        let local = connection.identities().find(|identity| identity.local.ip() == initial);
        let event = PathEvent::ConnectionEstablished {
            connection: id,
            role: connection.role(),
            local: local.map(|identity| identity.local_address).unwrap_or_default(),
            remote: connection.initial_remote(),
            remote_denies_joins: connection.remote_denies_joins(),
            handshake_rtt: connection.initial_rtt(),
        };
        self.tell_path_manager(now, &event);
    }

    fn tell_with_views(
        &mut self,
        now: Instant,
        id: ConnectionId,
        event: impl for<'a> FnOnce(&'a ConnectionView, &'a [SubflowView]) -> PathEvent<'a>,
    ) {
        let Some(connection) = self.connections.get(id) else { return };
        let view = connection.view(now);
        connection.subflow_views_with_delays(&mut self.workspace.views);
        self.workspace.views_of = None;
        self.path_manager.handle(now, &event(&view, &self.workspace.views), &mut self.path_actions);
    }

    pub(super) fn tell_path_manager(&mut self, now: Instant, event: &PathEvent<'_>) {
        self.path_manager.handle(now, event, &mut self.path_actions);
    }

    /// Carries out the path manager's actions. Failures are counted.
    pub(super) fn carry_out(&mut self, now: Instant) {
        let mut actions = core::mem::take(&mut self.path_actions);
        for action in actions.drain(..) {
            if !self.act(now, action) {
                self.counters.impossible_actions += 1;
            }
        }
        // None of these actions notifies the path manager at once: notices wait for the next round.
        self.path_actions = actions;
    }

    fn act(&mut self, now: Instant, action: PathAction) -> bool {
        let (id, done) = match action {
            PathAction::WakeAt(at) => {
                self.path_wake = at;
                return true;
            }
            PathAction::CreateSubflow { connection, local, remote, backup } => {
                let backup = backup || self.uplinks.is_backup(local);
                (connection, self.create_subflow(now, connection, local, remote, backup))
            }
            PathAction::Announce { connection, local } => {
                let address = self.addresses.iter().find(|known| known.id == local).map(|known| known.public);
                let announce = |c: &mut Connection| address.is_some_and(|address| c.announce(now, local, address));
                (connection, self.with(connection, announce))
            }
            PathAction::Remove { connection, local } => {
                (connection, self.with(connection, |c| c.withdraw_address(now, local)))
            }
            PathAction::CloseSubflow { connection, subflow } => {
                (connection, self.with(connection, |c| c.close_subflow(subflow)))
            }
            PathAction::SetBackup { connection, subflow, backup } => {
                (connection, self.with(connection, |c| c.set_backup(subflow, backup)))
            }
            PathAction::Suspend { connection, subflow } => (connection, self.with(connection, |c| c.suspend(subflow))),
            PathAction::Resume { connection, subflow } => (connection, self.with(connection, |c| c.resume(subflow))),
            PathAction::Probe { connection, subflow } => (connection, self.with(connection, |c| c.probe(subflow))),
        };
        self.list(id);
        done
    }

    /// Carries out an action of a path manager outside of this host, such as a daemon's. Returns false if it cannot be
    /// carried out, as with the host's own ([`anabranch_policy::path_manager::PathManager::handle`]).
    pub fn carry_out_action(&mut self, now: Instant, action: PathAction) -> bool {
        self.act(now, action)
    }

    fn with(&mut self, id: ConnectionId, act: impl FnOnce(&mut Connection) -> bool) -> bool {
        self.connections.get_mut(id).is_some_and(act)
    }
}
