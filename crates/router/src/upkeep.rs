//! Keeps the kernel's routes and rules as the routers want them, whatever other programs do.

use super::RouteError;
use super::daemon::RouteDaemon;
use super::ground::Network;
use super::kernel::Table;
use anabranch_policy::time::{Duration, Instant};
use std::collections::BTreeSet;

/// Delay before a retry of changes that the kernel refused.
const RETRY: Duration = Duration::from_secs(1);

/// Delay of a look at the kernel's tables after another program changed them, so that a burst of changes needs one.
const CALM: Duration = Duration::from_millis(200);

/// Least time between two reports of such changes.
const QUIET: Duration = Duration::from_secs(10);

impl RouteDaemon {
    /// Another program has changed routes or rules.
    pub(super) fn rerouted(&mut self) {
        self.repair.due = self.repair.due.min(self.clock.now() + CALM);
    }

    /// Sets routes and rules again that another program has removed or changed.
    pub(super) fn repair(&mut self, now: Instant) -> Result<(), RouteError> {
        self.repair.due = Instant::NEVER;
        let failed = || RouteError::system("read the routing tables");
        let rules = self.kernel.repair_rules().map_err(failed())?;
        let lost = self.kernel.refresh().map_err(failed())?;
        let routes = if lost.is_empty() { 0 } else { self.apply(now, &lost) };
        self.counters.kernel.restored += rules;
        if rules + routes > 0 && now >= self.repair.tell_from {
            self.repair.tell_from = now + QUIET;
            let table = self.config.table;
            if let Some(tell) = &mut self.tell {
                tell(&format!(
                    "another program removed or changed {routes} routes and {rules} rules of table {table}: they are set again"
                ));
            }
        }
        Ok(())
    }

    /// Updates the kernel's table. Returns how many of the routes that were `lost` it has again.
    pub(super) fn apply(&mut self, now: Instant, lost: &BTreeSet<Network>) -> u64 {
        let mut wanted = Table::new();
        self.instances
            .iter()
            .for_each(|instance| instance.add_to(&mut wanted, &self.config.lane_settings, &self.ports, &self.ground));
        let applied = self.kernel.apply(&wanted, lost);
        self.apply_at = if applied.refused > 0 { now + RETRY } else { Instant::NEVER };
        self.counters.kernel.set += applied.set;
        self.counters.kernel.removed += applied.removed;
        self.counters.kernel.refused += applied.refused;
        self.counters.kernel.restored += applied.restored;
        applied.restored
    }
}
