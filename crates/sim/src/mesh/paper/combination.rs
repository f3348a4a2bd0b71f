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

/// Lanes of a node.
pub const LANES: usize = 4;

/// Which pairs of addresses have a subflow.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Subflows {
    /// None but the first: plain TCP.
    One,
    /// All pairs.
    FullMesh,
    /// Pairs of one subnet: equation 6.
    SameSubnet,
    /// These, and all whose source is on the first subnet: the paper's pseudo-code.
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

/// A combination of protocols: one of the paper's, or any other.
#[derive(Clone, Debug)]
pub struct Combination {
    /// Its name.
    pub name: String,
    /// Lanes in use, from the first.
    pub lanes: usize,
    /// Which radios and next hops the lanes have.
    pub routes: LaneSettings,
    /// The forecaster of the policies chooses among next hops, where routers run.
    pub predicted: bool,
    /// Both hosts' policies.
    pub policies: PolicyCombination,
    /// Both ends' settings; their policies are those above.
    pub connection: ConnectionConfig,
}

/// What the paper's combinations differ in.
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

/// A link counts or does not.
const THE_MODEL_S_WORD: SoftUse =
    SoftUse { trust: 0.5, suspect: 0.5, exclude: 0.5, readmit: 0.5, hold: 0, trusted_weight: 1 };

/// All of them, in the order of the paper; the last three are those of its figure 24.
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
    /// The paper's of this name.
    pub fn named(name: &str) -> Option<Self> {
        PUBLISHED.iter().find(|published| published.name == name).map(Published::combination)
    }
    /// The paper's of this name with other subflows.
    pub fn with_subflows(name: &str, subflows: Subflows) -> Option<Self> {
        let published = PUBLISHED.iter().find(|published| published.name == name)?;
        Some(Published { subflows, ..*published }.combination())
    }
    /// The same, with appendix C's rule for the lanes of part path.
    #[must_use]
    pub fn literal_lanes(mut self) -> Self {
        self.routes.policy = LanePolicy::Paper;
        self
    }
    /// A path manager for one of the hosts.
    ///
    /// # Errors
    /// When a policy does not exist: the text says which.
    pub fn path_manager(&self) -> Result<Box<dyn PathManager>, String> {
        self.policies.build_path_manager().map_err(|error| error.to_string())
    }
    /// How a router chooses among next hops, if it does by forecasts: asked as the paper asks its model, every 2 s, whether
    /// the link is connected. What the model says is done, but a route keeps its last next hop.
    ///
    /// # Errors
    /// When there is no such forecaster: the text says so.
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
