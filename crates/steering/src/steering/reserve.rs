//! Addresses whose paths are for the time when no other works: backups in all connections.

use super::state::Steering;
use crate::connection::is_established;
use crate::sample::{SubflowSample, Token};
use crate::status::Occasion;
use anabranch_policy::ids::SubflowId;
use anabranch_policy::time::{Duration, Instant};
use core::net::IpAddr;
use std::collections::BTreeSet;

/// Pause between two commands that make a subflow what its role wants: the first is refused if it comes too early.
const AGAIN: Duration = Duration::from_secs(1);

impl Steering {
    /// Subflows from these addresses are backups from now on, whatever the path manager says. Those from addresses that
    /// are not reserved any more are used, unless the path manager has suspended them.
    pub fn reserve(&mut self, now: Instant, addresses: BTreeSet<IpAddr>) {
        if addresses == self.reserved {
            return;
        }
        let before = core::mem::replace(&mut self.reserved, addresses);
        let freed: Vec<IpAddr> = before.difference(&self.reserved).copied().collect();
        let mut over = Vec::new();
        for known in self.connections.values_mut().filter(|known| known.told && !known.fallback) {
            for subflow in &mut known.subflows {
                subflow.next_role = now;
                if freed.contains(&subflow.endpoints.local.ip()) && !subflow.suspended {
                    over.push((known.id, subflow.id));
                }
            }
        }
        for (connection, subflow) in over {
            let _ = self.set_backup(now, Occasion::Role, connection, subflow, false);
        }
    }

    /// Makes a subflow from a reserved address a backup, if it is none.
    pub(super) fn keep_role(&mut self, now: Instant, token: Token, id: SubflowId, sample: &SubflowSample) {
        let reserved = self.reserved.contains(&sample.endpoints.local.ip());
        if !reserved || sample.backup_local || !is_established(sample) {
            return;
        }
        let Some(known) = self.connections.get_mut(&token).filter(|known| known.told) else { return };
        let connection = known.id;
        let Some(subflow) = known.subflow_mut(id).filter(|subflow| subflow.next_role <= now) else { return };
        subflow.next_role = now + AGAIN;
        let _ = self.set_backup(now, Occasion::Role, connection, id, true);
    }
}
