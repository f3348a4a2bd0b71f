//! Turns actions of the path manager into commands.

use super::state::Steering;
use crate::attempts::is_long;
use crate::command::Command;
use crate::connection::Connection;
use crate::sample::{Endpoints, SubflowSample, TcpState, Token};
use crate::settings::Control;
use crate::status::{Decision, Occasion, Why};
use crate::subflow::Subflow;
use anabranch_policy::ids::{AddressId, ConnectionId, SubflowId};
use anabranch_policy::path_manager::{PathAction, PathEvent};
use anabranch_policy::time::Instant;
use core::net::IpAddr;

/// Most commands that wait to be taken.
const MOST_COMMANDS: usize = 65_536;
/// Decisions that are remembered.
const MOST_DECISIONS: usize = 1_024;

/// Most actions of a connection that are postponed.
const MOST_POSTPONED: usize = 256;

/// A subflow between two addresses.
#[derive(Clone, Copy, Debug)]
enum Joined {
    /// Established, or about to be.
    Here,
    /// Its next SYN is far away: a path that works again is joined sooner by a new attempt.
    Unanswered(Endpoints),
}

impl Steering {
    /// A time of [`Steering::poll_timeout`] has come.
    pub fn handle_timeout(&mut self, now: Instant) {
        if self.wake.is_some_and(|at| at <= now) {
            self.wake = None;
            self.tell(now, Occasion::Wake, &PathEvent::Wake);
        }
        self.end_lifts(now);
    }

    /// Tells the path manager, and turns its actions into commands.
    pub(super) fn tell(&mut self, now: Instant, occasion: Occasion, event: &PathEvent<'_>) {
        let mut actions = core::mem::take(&mut self.actions);
        self.manager.handle(now, event, &mut actions);
        for action in actions.drain(..) {
            if !self.act(now, occasion, action) {
                self.counters.impossible_actions += 1;
            }
        }
        self.actions = actions;
    }

    /// Returns whether the action can be carried out.
    pub(super) fn act(&mut self, now: Instant, occasion: Occasion, action: PathAction) -> bool {
        let done = match action {
            PathAction::WakeAt(at) => {
                self.wake = Some(at);
                Some(())
            }
            PathAction::Suspend { connection, subflow } => self.suspend(now, occasion, connection, subflow),
            PathAction::Resume { connection, subflow } => self.resume(now, occasion, connection, subflow),
            PathAction::SetBackup { connection, subflow, backup } => {
                self.set_backup(now, occasion, connection, subflow, backup)
            }
            PathAction::Probe { connection, subflow } => self.lift(now, connection, subflow),
            PathAction::Announce { connection, .. } | PathAction::CreateSubflow { connection, .. }
                if self.is_closing(connection) =>
            {
                Some(())
            }
            PathAction::Announce { connection, local } | PathAction::CreateSubflow { connection, local, .. }
                if self.postpone(connection, local, action) =>
            {
                Some(())
            }
            PathAction::Announce { connection, local } => self.announce(now, occasion, connection, local),
            PathAction::Remove { connection, local } => self.withdraw(now, occasion, connection, local),
            PathAction::CloseSubflow { connection, subflow } => {
                self.command(now, occasion, connection, |token, known| {
                    let endpoints = known.subflow(subflow)?.endpoints;
                    Some(Command::DestroySubflow { token, endpoints })
                })
            }
            PathAction::CreateSubflow { connection, local, remote, backup } => {
                let address = self.addresses.address(local);
                match address.and_then(|address| self.joined(connection, address, remote)) {
                    Some(Joined::Here) => return true,
                    Some(Joined::Unanswered(endpoints)) => {
                        let _ = self.give_up(now, occasion, connection, endpoints);
                    }
                    None => {}
                }
                let reserved = address.is_some_and(|address| self.reserved.contains(&address));
                self.command(now, occasion, connection, |token, known| {
                    let remote = known.remote(remote)?;
                    let backup = backup || reserved;
                    Some(Command::CreateSubflow { token, local: address?, local_id: local.0, remote, backup })
                })
            }
        };
        done.is_some()
    }

    fn announce(&mut self, now: Instant, occasion: Occasion, connection: ConnectionId, local: AddressId) -> Option<()> {
        let address = self.addresses.address(local)?;
        self.command(now, occasion, connection, |token, _| {
            Some(Command::Announce { token, address, local_id: local.0 })
        })?;
        let known = self.connections.get_mut(self.tokens.get(&connection)?)?;
        known.announced.insert(local);
        Some(())
    }

    /// Withdraws an address, by each identifier that the peer has of it. The kernel refuses others.
    fn withdraw(&mut self, now: Instant, occasion: Occasion, connection: ConnectionId, local: AddressId) -> Option<()> {
        let known = self.connections.get_mut(self.tokens.get(&connection)?)?;
        let identifiers = known.identifiers(local);
        known.announced.remove(&local);
        for local_id in identifiers {
            self.command(now, occasion, connection, |token, _| Some(Command::Remove { token, local_id }))?;
        }
        Some(())
    }

    /// Whether an action is of no use now, as its address is deprecated, its path is there by another address, or the
    /// connection takes no addresses of its family. Then it is kept: the path manager asks once.
    fn postpone(&mut self, connection: ConnectionId, local: AddressId, action: PathAction) -> bool {
        let later = self.addresses.is_deprecated(local)
            || self.is_same_path(connection, local)
            || self.is_of_another_family(connection, local);
        let known = self.tokens.get(&connection).and_then(|token| self.connections.get_mut(token));
        if let Some(known) = known {
            known.postponed.retain(|kept| *kept != action);
            if later && known.postponed.len() < MOST_POSTPONED {
                known.postponed.push(action);
            }
        }
        later
    }

    /// Addresses changed: does what was postponed, where it is of use now.
    pub(super) fn reconsider_all(&mut self, now: Instant) {
        let due: Vec<_> = self.connections.values_mut().flat_map(Connection::take_postponed).collect();
        self.do_postponed(now, due);
    }

    /// The same of a connection of which a subflow ended.
    pub(super) fn reconsider(&mut self, now: Instant, token: Token) {
        let due = self.connections.get_mut(&token).map(Connection::take_postponed).unwrap_or_default();
        self.do_postponed(now, due);
    }

    fn do_postponed(&mut self, now: Instant, due: Vec<PathAction>) {
        for action in due {
            let local = match action {
                PathAction::Announce { local, .. } | PathAction::CreateSubflow { local, .. } => local,
                _ => continue,
            };
            // The path manager asks again when an address that is gone comes back.
            if self.addresses.address(local).is_some_and(|address| self.addresses.is_up(address)) {
                let _ = self.act(now, Occasion::Change, action);
            }
        }
    }

    /// The kernel refuses further subflows of a connection that ends.
    fn is_closing(&self, connection: ConnectionId) -> bool {
        let known = self.tokens.get(&connection).and_then(|token| self.connections.get(token));
        known.is_some_and(|known| known.closing)
    }

    /// The kernel refuses IPv6 where the program's socket is one of IPv4.
    fn is_of_another_family(&self, connection: ConnectionId, local: AddressId) -> bool {
        let known = self.tokens.get(&connection).and_then(|token| self.connections.get(token));
        let address = self.addresses.address(local).map(|address| address.to_canonical());
        known.is_some_and(|known| !known.takes_ipv6) && address.is_some_and(|address| address.is_ipv6())
    }

    fn is_same_path(&self, connection: ConnectionId, local: AddressId) -> bool {
        let known = self.tokens.get(&connection).and_then(|token| self.connections.get(token));
        known.is_some_and(|known| {
            let replaces = |subflow: &Subflow| self.addresses.is_replacement(local, subflow.endpoints.local.ip());
            self.addresses.is_same_path(local, known.initial.local.ip()) || known.subflows.iter().any(replaces)
        })
    }

    /// The subflow between two addresses: an adopted connection's, one that the kernel opened, or an attempt.
    fn joined(&self, connection: ConnectionId, local: IpAddr, remote: AddressId) -> Option<Joined> {
        let known = self.connections.get(self.tokens.get(&connection)?)?;
        let remote = known.remote(remote)?;
        let between = |subflow: &&Subflow| subflow.endpoints.local.ip() == local && subflow.endpoints.remote == remote;
        let mut all = known.subflows.iter().filter(between).filter_map(|subflow| {
            let Some(sample) = &subflow.sample else { return Some(Joined::Here) };
            match sample.state {
                TcpState::Closing => None,
                TcpState::Opening if is_long(sample.rto) => Some(Joined::Unanswered(subflow.endpoints)),
                TcpState::Opening | TcpState::Established => Some(Joined::Here),
            }
        });
        let first = all.next();
        all.find(|joined| matches!(joined, Joined::Here)).or(first)
    }

    /// Ends an attempt that another follows.
    fn give_up(
        &mut self,
        now: Instant,
        occasion: Occasion,
        connection: ConnectionId,
        endpoints: Endpoints,
    ) -> Option<()> {
        self.command(now, occasion, connection, |token, _| Some(Command::DestroySubflow { token, endpoints }))?;
        self.connections.get_mut(self.tokens.get(&connection)?)?.give_up(endpoints);
        Some(())
    }

    /// Replaces an attempt of ours whose next SYN is far away.
    pub(super) fn renew(&mut self, now: Instant, token: Token, sample: &SubflowSample) -> Option<()> {
        let known = self.connections.get(&token).filter(|known| sample.state == TcpState::Opening && !known.closing)?;
        let (connection, endpoints, occasion) = (known.id, sample.endpoints, Occasion::Unanswered);
        let backup = known.attempts.is_late(now, endpoints, sample.rto)?;
        let (local, remote) = (endpoints.local.ip(), endpoints.remote);
        let id = known.find(endpoints).and_then(|id| known.subflow(id)).filter(|subflow| !subflow.told)?.local;
        self.give_up(now, occasion, connection, endpoints)?;
        let backup = backup || self.reserved.contains(&local);
        self.command(now, occasion, connection, |token, _| {
            Some(Command::CreateSubflow { token, local, local_id: id.0, remote, backup })
        })
    }

    /// Gives a command that opens or closes something.
    pub(super) fn command(
        &mut self,
        now: Instant,
        occasion: Occasion,
        connection: ConnectionId,
        command: impl FnOnce(Token, &Connection) -> Option<Command>,
    ) -> Option<()> {
        let token = *self.tokens.get(&connection)?;
        let known = self.connections.get(&token).filter(|_| self.settings.control == Control::Subflows)?;
        let command = command(token, known)?;
        self.push(now, occasion, token, command);
        Some(())
    }

    pub(super) fn suspend(
        &mut self,
        now: Instant,
        occasion: Occasion,
        connection: ConnectionId,
        id: SubflowId,
    ) -> Option<()> {
        let pause = self.settings.probe_pause;
        let subflow = self.subflow(connection, id).filter(|subflow| !subflow.suspended)?;
        subflow.suspended = true;
        subflow.lifted_until = None;
        (subflow.next_lift, subflow.lift_pause) = (now + pause, pause);
        self.set_backup(now, occasion, connection, id, true)
    }

    pub(super) fn resume(
        &mut self,
        now: Instant,
        occasion: Occasion,
        connection: ConnectionId,
        id: SubflowId,
    ) -> Option<()> {
        let subflow = self.subflow(connection, id).filter(|subflow| subflow.suspended)?;
        subflow.suspended = false;
        subflow.lifted_until = None;
        self.set_backup(now, occasion, connection, id, false)
    }

    /// Measures a suspended subflow. The kernel has no probe, and a backup carries nothing while another path works, so
    /// the demotion is lifted for an interval, or a round trip if that is longer. This costs something if the path is
    /// a bad one, so it is done rarely. A path with data that is not acknowledged measures itself.
    pub(super) fn lift(&mut self, now: Instant, connection: ConnectionId, id: SubflowId) -> Option<()> {
        let (interval, longest) = (self.settings.interval, self.settings.longest_probe_pause);
        let subflow = self.subflow(connection, id).filter(|subflow| subflow.suspended)?;
        let sample = subflow.sample.as_ref()?;
        if subflow.lifted_until.is_some() || now < subflow.next_lift || sample.segments.unacked > 0 {
            return Some(());
        }
        let until = now + interval.max(sample.rtt);
        subflow.lifted_until = Some(until);
        subflow.lift_pause = (subflow.lift_pause * 2).min(longest);
        subflow.next_lift = until + subflow.lift_pause;
        self.set_backup(now, Occasion::Probe, connection, id, false)
    }

    pub(super) fn end_lifts(&mut self, now: Instant) {
        let mut over = Vec::new();
        for known in self.connections.values_mut() {
            for subflow in &mut known.subflows {
                if subflow.lifted_until.is_some_and(|until| until <= now) {
                    subflow.lifted_until = None;
                    over.push((known.id, subflow.id));
                }
            }
        }
        for (connection, subflow) in over {
            // It may have ended since.
            let _ = self.set_backup(now, Occasion::Probe, connection, subflow, true);
        }
    }

    pub(super) fn set_backup(
        &mut self,
        now: Instant,
        occasion: Occasion,
        connection: ConnectionId,
        id: SubflowId,
        backup: bool,
    ) -> Option<()> {
        let token = *self.tokens.get(&connection)?;
        let known = self.connections.get_mut(&token)?;
        let endpoints = known.subflow(id)?.endpoints;
        if !backup && self.reserved.contains(&endpoints.local.ip()) {
            return Some(());
        }
        if occasion != Occasion::Probe {
            known.estimator.restart();
        }
        self.push(now, occasion, token, Command::SetBackup { token, endpoints, backup });
        Some(())
    }

    pub(super) fn subflow(&mut self, connection: ConnectionId, id: SubflowId) -> Option<&mut Subflow> {
        let token = self.tokens.get(&connection)?;
        self.connections.get_mut(token)?.subflow_mut(id)
    }

    pub(super) fn push(&mut self, at: Instant, occasion: Occasion, token: Token, command: Command) {
        if self.commands.len() >= MOST_COMMANDS {
            self.counters.dropped_commands += 1;
            return;
        }
        self.commands.push_back(command);
        if self.decisions.len() == MOST_DECISIONS {
            self.decisions.pop_front();
        }
        let known = self.connections.get(&token);
        let why = known.map_or(Why { occasion, ..Why::default() }, |known| Why {
            occasion,
            blocked: known.estimator.blocked(),
            busy_share: known.estimator.busy_share(),
            goodput: known.goodput,
            silence: about(known, &command).and_then(|subflow| subflow.silence(at)),
        });
        self.decisions.push_back(Decision { at, command, why, outcome: None });
    }
}

/// The subflow that a command ends or changes, or that another is to replace.
fn about<'a>(known: &'a Connection, command: &Command) -> Option<&'a Subflow> {
    let is_it = |subflow: &&Subflow| match *command {
        Command::SetBackup { endpoints, .. } | Command::DestroySubflow { endpoints, .. } => {
            subflow.endpoints == endpoints
        }
        Command::CreateSubflow { local, remote, .. } => {
            subflow.endpoints.local.ip() == local && subflow.endpoints.remote == remote
        }
        Command::Announce { .. } | Command::Remove { .. } => false,
    };
    known.subflows.iter().find(is_it)
}
