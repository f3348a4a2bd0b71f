//! Policies that are not in the tables: those of a program that uses the lab as a library.

use anabranch_mptcp::{ConnectionConfig, Factory};
use anabranch_policy::congestion::CongestionControl;
use anabranch_policy::path_manager::PathManager;
use anabranch_policy::scheduler::Scheduler;
use std::fmt;

/// Replaces the contender's policies where it has some; both ends of the measured connections use them.
#[derive(Clone, Default)]
pub struct OwnPolicies {
    /// Name in rows, as in `scheduler=mine`; runs with the same name and seed must be the same. Empty: there are none.
    pub name: String,
    pub scheduler: Option<Factory<dyn Scheduler>>,
    pub congestion: Option<Factory<dyn CongestionControl>>,
    pub path_manager: Option<Factory<dyn PathManager>>,
}

impl fmt::Debug for OwnPolicies {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "OwnPolicies({})", self.name)
    }
}

impl OwnPolicies {
    /// Replaces the policies of a connection.
    pub fn apply(&self, config: &mut ConnectionConfig) {
        if let Some(scheduler) = &self.scheduler {
            config.policies.scheduler = scheduler.clone();
        }
        if let Some(congestion) = &self.congestion {
            config.policies.congestion = congestion.clone();
        }
    }

    /// Its path manager, or else `other`.
    pub fn path_manager<E>(
        &self,
        other: impl FnOnce() -> Result<Box<dyn PathManager>, E>,
    ) -> Result<Box<dyn PathManager>, E> {
        self.path_manager.as_ref().map_or_else(other, |own| Ok(own()))
    }
}
