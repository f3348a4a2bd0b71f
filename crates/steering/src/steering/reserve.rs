//! Addresses whose paths are for the time when no other works: backups in all connections.

use super::state::Steering;
use crate::connection::{Connection, is_established};
use crate::sample::{Endpoints, SubflowSample, Token};
use crate::status::Occasion;
use crate::subflow::Subflow;
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

    /// Subflows that are backups by our doing: for their role, or since the path manager wants nothing sent there.
    pub fn held_back(&self) -> BTreeSet<(Token, Endpoints)> {
        let by_us = |subflow: &&Subflow| {
            let is_backup = subflow.sample.as_ref().is_some_and(|sample| sample.backup_local);
            subflow.suspended || (is_backup && self.reserved.contains(&subflow.endpoints.local.ip()))
        };
        let of = |(token, known): (&Token, &Connection)| {
            known.subflows.iter().filter(by_us).map(|subflow| (*token, subflow.endpoints)).collect::<Vec<_>>()
        };
        self.connections.iter().flat_map(of).collect()
    }

    /// Takes over, before the first sample, the subflows that the machine before made backups. Nothing else would promote
    /// them again, so the first sample does, except those from reserved addresses.
    pub fn inherit(&mut self, held_back: BTreeSet<(Token, Endpoints)>) {
        self.inherited = held_back;
    }

    /// Makes a subflow from a reserved address a backup, if it is none, and one that was held back before none.
    pub(super) fn keep_role(&mut self, now: Instant, token: Token, id: SubflowId, sample: &SubflowSample) {
        let reserved = self.reserved.contains(&sample.endpoints.local.ip());
        let freed = !reserved && self.inherited.remove(&(token, sample.endpoints));
        let is_wrong = if reserved { !sample.backup_local } else { freed && sample.backup_local };
        if !is_wrong || !is_established(sample) {
            return;
        }
        let Some(known) = self.connections.get_mut(&token).filter(|known| known.told) else { return };
        let connection = known.id;
        let Some(subflow) = known.subflow_mut(id).filter(|subflow| subflow.next_role <= now) else { return };
        subflow.next_role = now + AGAIN;
        let _ = self.set_backup(now, Occasion::Role, connection, id, reserved);
    }
}
