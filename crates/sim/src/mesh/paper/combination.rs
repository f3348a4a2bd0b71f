//! The combinations of protocols that the paper compares (section V-B-1), by its names.
//!
//! | letters | stand for |
//! |---|---|
//! | TM | TCP over plain routes, all next hops of equal cost |
//! | MF.M, MP.M | MPTCP over full path, part path |
//! | m, x | four virtual interfaces on one radio, four radios |
//! | MMF.M | the next hops are those that the hidden Markov model predicts as connected |
//! | PM... | subflows only on the two fastest interfaces, paired by subnet, QoE scheduling |
//! | 100, 200, 300 | least retransmission timeout in milliseconds; the others have Linux's 200 |
//!
//! Decisions. "Standard MPTCP" pairs all addresses (`full_mesh`): 16 subflows of four lanes; "improved MPTCP" those of one
//! subnet, and schedules by the quality of interfaces. Congestion control is LIA in all of them, as in the kernel that the
//! authors ported, and CUBIC for TCP. Part path follows table 3 ([`LanePolicy::Spread`]); appendix C is
//! [`Combination::literal_lanes`].

use anabranch_mptcp::ConnectionConfig;
use anabranch_mptcp::config::Policies;
use anabranch_policy::combination::{Choice, Combination as PolicyCombination};
use anabranch_policy::path_manager::PathManager;
use anabranch_policy::time::Duration;
use anabranch_routing::config::Forecast;
use anabranch_routing::lanes::{LaneAddresses, LaneInterfaces, LanePolicy, LaneSettings, PathMode};
use anabranch_routing::next_hops::{ForecastUse, SoftUse};

/// Number of lanes of a node.
pub const LANES: usize = 4;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Subflows {
    /// None but the first: plain TCP.
    One,
    FullMesh,
    /// Pairs of one subnet: equation 6.
    SameSubnet,
    /// Pairs of one subnet, and all whose source is on the first subnet: the paper's pseudo-code.
    PseudoCode,
}

impl Subflows {
    fn path_manager(self) -> &'static str {
        match self {
            Self::One | Self::FullMesh => "path_manager=full_mesh,path_manager.subflows=15",
            Self::SameSubnet => "path_manager=same_subnet,path_manager.subflows=15",
            Self::PseudoCode => "path_manager=same_subnet,path_manager.reading=pseudo_code,path_manager.subflows=15",
        }
    }
}

/// A combination of protocols, the paper's or any other.
#[derive(Clone, Debug)]
pub struct Combination {
    pub name: String,
    /// Number of lanes in use.
    pub lanes: usize,
    /// The radios and next hops of the lanes.
    pub routes: LaneSettings,
    /// Whether routers choose among next hops by the policies' forecaster.
    pub predicted: bool,
    /// Both hosts' policies.
    pub policies: PolicyCombination,
    /// Both ends' settings, without the policies.
    pub connection: ConnectionConfig,
}

/// The differences between the paper's combinations.
#[derive(Clone, Copy)]
struct Published {
    name: &'static str,
    lanes: usize,
    routes: LaneSettings,
    predicted: bool,
    subflows: Subflows,
    scheduler: &'static str,
    congestion: &'static str,
    minimum_timeout: Duration,
}

const FULL: LaneSettings = LaneSettings {
    paths: PathMode::Full,
    policy: LanePolicy::Spread,
    interfaces: LaneInterfaces::Real,
    addresses: LaneAddresses::HostPrefixes,
};
const PART: LaneSettings = LaneSettings { paths: PathMode::Part, ..FULL };
/// Standard MPTCP on four radios, over all next hops.
const STANDARD: Published = Published {
    name: "MFxM",
    lanes: LANES,
    routes: FULL,
    predicted: false,
    subflows: Subflows::FullMesh,
    scheduler: "lowest_rtt",
    congestion: "lia",
    minimum_timeout: Duration::from_millis(200),
};
const PREDICTED: Published = Published { name: "MMFxM", predicted: true, ..STANDARD };
const IMPROVED: Published =
    Published { name: "PMMFxM", lanes: 2, subflows: Subflows::SameSubnet, scheduler: "qoe", ..PREDICTED };

/// A link is either used or not.
const THE_MODEL_S_WORD: SoftUse =
    SoftUse { trust: 0.5, suspect: 0.5, exclude: 0.5, readmit: 0.5, hold: 0, trusted_weight: 1 };

/// In the order of the paper; the last three are those of its figure 24.
const PUBLISHED: [Published; 11] = [
    Published { name: "TM", lanes: 1, subflows: Subflows::One, congestion: "cubic", ..STANDARD },
    Published { name: "MFm", routes: LaneSettings { interfaces: LaneInterfaces::Virtual, ..FULL }, ..STANDARD },
    STANDARD,
    Published { name: "MPxM", routes: PART, ..STANDARD },
    PREDICTED,
    Published { name: "MMPxM", routes: PART, ..PREDICTED },
    IMPROVED,
    Published { name: "PMMPxM", routes: PART, ..IMPROVED },
    Published { name: "PMMFxM100", minimum_timeout: Duration::from_millis(100), ..IMPROVED },
    Published { name: "PMMFxM200", minimum_timeout: Duration::from_millis(200), ..IMPROVED },
    Published { name: "PMMFxM300", minimum_timeout: Duration::from_millis(300), ..IMPROVED },
];

/// The paper's combinations, in its order.
pub fn all() -> Vec<Combination> {
    PUBLISHED.iter().map(Published::combination).collect()
}

impl Published {
    fn combination(&self) -> Combination {
        let mut policies = PolicyCombination { forecaster: Choice::new("viterbi"), ..PolicyCombination::default() };
        let (congestion, scheduler) = (self.congestion, self.scheduler);
        let words = format!("congestion={congestion},scheduler={scheduler},{}", self.subflows.path_manager());
        policies.apply(&words).expect("the paper's policies are in the tables");
        let factories = Policies::of(&policies).expect("the paper's policies are in the tables");
        let mut connection = ConnectionConfig::new(factories);
        connection.multipath = self.subflows != Subflows::One;
        connection.max_subflows = LANES * LANES;
        connection.tcp.min_rto = self.minimum_timeout;
        Combination {
            name: self.name.to_owned(),
            lanes: self.lanes,
            routes: self.routes,
            predicted: self.predicted,
            policies,
            connection,
        }
    }
}

impl Combination {
    /// The paper's combination of this name.
    pub fn named(name: &str) -> Option<Self> {
        PUBLISHED.iter().find(|published| published.name == name).map(Published::combination)
    }
    /// The paper's combination of this name with other subflows.
    pub fn with_subflows(name: &str, subflows: Subflows) -> Option<Self> {
        let published = PUBLISHED.iter().find(|published| published.name == name)?;
        Some(Published { subflows, ..*published }.combination())
    }
    /// The same with appendix C's rule for the lanes of part path.
    #[must_use]
    pub fn literal_lanes(mut self) -> Self {
        self.routes.policy = LanePolicy::Paper;
        self
    }
    /// The path manager of one of the hosts.
    ///
    /// # Errors
    /// If a policy does not exist, as text.
    pub fn path_manager(&self) -> Result<Box<dyn PathManager>, String> {
        self.policies.build_path_manager().map_err(|error| error.to_string())
    }
    /// How a router chooses among next hops by forecasts, if it does: every 2 s, as the paper queries its model for
    /// whether the link is connected. The answer is followed, but a route keeps its last next hop.
    ///
    /// # Errors
    /// If there is no such forecaster, as text.
    pub fn forecast(&self) -> Result<Option<Forecast>, String> {
        if !self.predicted {
            return Ok(None);
        }
        let chosen = Forecast::chosen(&self.policies.forecaster).map_err(|error| error.to_string())?;
        Ok(Some(Forecast { usage: ForecastUse::Soft(THE_MODEL_S_WORD), period: Duration::from_secs(2), ..chosen }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_combination_can_be_made_and_has_its_own_name() {
        for combination in all() {
            combination.path_manager().unwrap();
            assert_eq!(Combination::named(&combination.name).unwrap().policies, combination.policies);
        }
        let names: std::collections::BTreeSet<String> = all().into_iter().map(|combination| combination.name).collect();
        assert_eq!(names.len(), 11);
    }
}
