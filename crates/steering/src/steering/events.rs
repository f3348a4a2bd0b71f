//! Takes what happens between two samples.

use super::state::Steering;
use crate::command::Command;
use crate::event::Event;
use crate::sample::{Endpoints, Token};
use crate::settings::Control;
use crate::status::{Decision, Occasion};
use crate::subflow::Subflow;
use anabranch_policy::ids::AddressId;
use anabranch_policy::path_manager::{CloseReason, PathEvent, Role};
use anabranch_policy::time::Instant;

impl Steering {
    /// Something happened.
    pub fn handle_event(&mut self, now: Instant, event: &Event) {
        match *event {
            Event::AddressUp { address, interface } => {
                if let Some(id) = self.addresses.raise(address, interface) {
                    self.tell(now, Occasion::Change, &PathEvent::AddressUp { id, address });
                }
                self.reconsider_all(now);
            }
            Event::AddressDown { address } => {
                if let Some(id) = self.addresses.lower(address) {
                    self.tell(now, Occasion::Change, &PathEvent::AddressDown { id });
                    self.close_all_from(now, id);
                    self.connections.values_mut().for_each(|known| known.attempts.forget(address));
                    self.reconsider_all(now);
                }
            }
            Event::AddressDeprecated { address } => {
                self.addresses.deprecate(address);
                self.reconsider_all(now);
            }
            Event::Created { token, endpoints, server } => {
                self.begin(now, token, endpoints, role(server));
            }
            Event::Established { token, endpoints, server, remote_denies_joins } => {
                if self.begin(now, token, endpoints, role(server)) {
                    self.establish(now, token, remote_denies_joins);
                }
            }
            Event::Closed { token } => {
                self.ended.insert(token);
                if !self.close(now, token) {
                    self.counters.unmatched_events += 1;
                }
            }
            Event::Overrun => {
                self.counters.overruns += 1;
                self.overrun = true;
                self.unannounced = None;
            }
            _ => self.handle_subflow_event(now, event),
        }
    }

    pub(super) fn handle_subflow_event(&mut self, now: Instant, event: &Event) {
        let (Event::Announced { token, .. }
        | Event::Removed { token, .. }
        | Event::SubflowEstablished { token, .. }
        | Event::SubflowClosed { token, .. }
        | Event::SubflowPriority { token, .. }) = *event
        else {
            return;
        };
        let Some(connection) = self.connections.get_mut(&token) else {
            self.counters.unmatched_events += 1;
            return;
        };
        let id = connection.id;
        match *event {
            Event::Announced { remote_id, mut remote, .. } => {
                if remote.port() == 0 {
                    remote.set_port(connection.initial.remote.port());
                }
                if connection.announce(remote_id, remote) && connection.told {
                    let event = PathEvent::AddressAnnounced { connection: id, id: AddressId(remote_id), remote };
                    self.tell(now, Occasion::Change, &event);
                }
            }
            Event::Removed { remote_id, .. } => {
                let event = PathEvent::AddressRemoved { connection: id, id: AddressId(remote_id) };
                if connection.remotes.remove(&remote_id).is_some() && connection.told {
                    self.tell(now, Occasion::Change, &event);
                }
            }
            Event::SubflowEstablished { endpoints, remote_id, backup, .. } => {
                let known = connection.find(endpoints);
                connection.attempts.succeed(endpoints);
                if let Some(subflow) = known.or_else(|| self.add_subflow(now, token, endpoints, remote_id)) {
                    self.establish_subflow(now, token, subflow, backup);
                }
            }
            Event::SubflowClosed { endpoints, error, .. } => self.close_subflow(now, token, endpoints, error),
            Event::SubflowPriority { endpoints, backup, .. } => match connection.find(endpoints) {
                Some(subflow) => {
                    let event = PathEvent::SubflowPriority { connection: id, subflow, backup };
                    self.tell(now, Occasion::Change, &event);
                }
                None => self.counters.unmatched_events += 1,
            },
            _ => {}
        }
    }
}

impl Steering {
    /// A connection is announced. The first sample may have shown it before, and its subflows are not to be opened twice. Returns
    /// whether it is followed.
    fn begin(&mut self, now: Instant, token: Token, initial: Endpoints, role: Role) -> bool {
        self.ended.remove(&token);
        if self.connections.get(&token).is_some_and(|known| known.initial == initial) {
            return true;
        }
        self.close(now, token);
        self.open(now, token, role, initial)
    }

    fn close_subflow(&mut self, now: Instant, token: Token, endpoints: Endpoints, error: u32) {
        let Some(known) = self.connections.get_mut(&token) else { return };
        if known.attempts.was_given_up(endpoints) {
            return;
        }
        let mut subflow = known.find_closed(endpoints);
        // One that was refused at once is in no sample.
        let attempt = if subflow.is_none() { known.attempts.end(endpoints) } else { None };
        if let Some(attempt) = attempt {
            subflow = self.add_subflow(now, token, attempt, 0);
        }
        let Some(known) = self.connections.get(&token) else { return };
        let closed = subflow.and_then(|subflow| known.subflow(subflow)).map(|closed| closed.endpoints);
        let reason = reason(error, closed.is_some_and(|endpoints| self.has_closed(endpoints)));
        let known = self.connections.get_mut(&token);
        match subflow.zip(known).and_then(|(subflow, known)| known.remove(now, subflow, reason)) {
            Some(change) => {
                self.pass_on(now, token, change);
                self.reconsider(now, token);
            }
            None => self.counters.unmatched_events += 1,
        }
    }

    /// Closes the subflows from an address that is gone, so that what they hold is reinjected at once. The kernel would
    /// retransmit it until its timeouts are spent. A connection without another subflow keeps its last.
    fn close_all_from(&mut self, now: Instant, id: AddressId) {
        if self.settings.control != Control::Subflows {
            return;
        }
        let mut closed = Vec::new();
        for (token, known) in self.connections.iter().filter(|(_, known)| known.told && !known.fallback) {
            let (gone, left): (Vec<&Subflow>, Vec<&Subflow>) = known.subflows.iter().partition(|s| s.local == id);
            if left.iter().any(|subflow| subflow.told) {
                closed.extend(gone.iter().map(|subflow| (*token, subflow.endpoints)));
            }
        }
        for (token, endpoints) in closed {
            self.push(now, Occasion::Change, token, Command::DestroySubflow { token, endpoints });
        }
    }

    /// Whether we asked for the end of a subflow.
    fn has_closed(&self, wanted: Endpoints) -> bool {
        let asked = |decision: &Decision| matches!(decision.command, Command::DestroySubflow { endpoints, .. } if endpoints == wanted);
        self.decisions.iter().any(asked)
    }
}

fn role(server: bool) -> Role {
    if server { Role::Server } else { Role::Client }
}

/// Why a subflow ended, by the errno of its socket. Without an error it is the kernel's doing or the peer's, which may
/// have withdrawn the address, and then has said so before; otherwise nobody in the kernel would open it again.
fn reason(error: u32, by_us: bool) -> CloseReason {
    const ENETUNREACH: u32 = 101;
    const ETIMEDOUT: u32 = 110;
    const EHOSTUNREACH: u32 = 113;
    match error {
        0 if by_us => CloseReason::Normal,
        ETIMEDOUT | EHOSTUNREACH | ENETUNREACH => CloseReason::TimedOut,
        _ => CloseReason::Reset,
    }
}
