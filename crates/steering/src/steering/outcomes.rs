//! Takes what became of commands.

use super::state::Steering;
use crate::command::{Command, Outcome};
use crate::connection::SubflowChange;
use crate::status::Decision;
use anabranch_policy::ids::AddressId;
use anabranch_policy::path_manager::CloseReason;
use anabranch_policy::time::Instant;

impl Steering {
    /// A command was carried out, or not.
    pub fn handle_outcome(&mut self, now: Instant, command: Command, outcome: Outcome) {
        let waits = |decision: &&mut Decision| decision.command == command && decision.outcome.is_none();
        if let Some(decision) = self.decisions.iter_mut().find(waits) {
            decision.outcome = Some(outcome);
        }
        if outcome == Outcome::Done {
            if let Command::CreateSubflow { token, local, remote, backup, .. } = command
                && let Some(known) = self.connections.get_mut(&token)
            {
                known.attempts.begin(now, local, remote, backup && !self.reserved.contains(&local));
            }
            return;
        }
        self.counters.refused += 1;
        match command {
            // What the path manager thinks is suspended is not: its next view says so.
            Command::SetBackup { token, endpoints, backup } => {
                let known = self.connections.get_mut(&token);
                let refused = known.and_then(|known| known.subflows.iter_mut().find(|s| s.endpoints == endpoints));
                if let Some(subflow) = refused.filter(|_| backup) {
                    subflow.suspended = false;
                }
            }
            Command::CreateSubflow { token, local, remote, .. } => {
                let local = self.addresses.id(local);
                let (Some(known), Some(local)) = (self.connections.get_mut(&token), local) else { return };
                let by_address = known.remotes.iter().find(|(_, known)| **known == remote);
                let remote = by_address.map_or(AddressId(0), |(id, _)| AddressId(*id));
                let id = known.allot_subflow();
                let again = outcome != Outcome::Unsupported;
                let reason = if again { CloseReason::TimedOut } else { CloseReason::ProtocolError };
                self.pass_on(now, token, SubflowChange::Closed { id, local, remote, reason });
            }
            Command::Announce { .. } | Command::Remove { .. } | Command::DestroySubflow { .. } => {}
        }
    }
}
