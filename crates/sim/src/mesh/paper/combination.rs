//! The combinations of protocols that the paper compares (section V-B-1), by its names.
//!
//! | letters | stand for |
//! |---|---|
//! | TM | TCP over plain routes, all next hops of equal cost |
//! | MF.M, MP.M | MPTCP over full path, part path |
//! | m, x | four virtual interfaces on one radio, four radios |
//! | MMF.M | the next hops are those that the hidden Markov model gives out as connected |
//! | PM... | subflows only on the two fastest interfaces, paired by subnet, QoE scheduling |
//! | 100, 200, 300 | least retransmission timeout in milliseconds; the others have Linux's 200 |
//!
//! Decisions. "Standard MPTCP" pairs all addresses (`full_mesh`): 16 subflows of four lanes; "improved MPTCP" those of one
//! subnet, and schedules by the quality of interfaces. Congestion control is LIA in all of them, as in the kernel that the
//! authors ported, and CUBIC for TCP. Part path follows table 3 ([`LanePolicy::Spread`]); appendix C is
//! [`Combination::literal_lanes`].

use super::network::LANES;
use anabranch_mptcp::ConnectionConfig;
use anabranch_mptcp::config::Policies;
use anabranch_policy::combination::Combination as PolicyCombination;
use anabranch_policy::path_manager::PathManager;
use anabranch_policy::time::Duration;
use anabranch_routing::lanes::{LaneAddresses, LaneInterfaces, LanePolicy, LaneSettings, PathMode};

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

/// A combination of protocols.
#[derive(Clone, PartialEq, Debug)]
pub struct Combination {
    /// The paper's name for it.
    pub name: &'static str,
    /// Lanes in use, from the first.
    pub lanes: usize,
    /// Which radios and next hops the lanes have.
    pub routes: LaneSettings,
    /// The hidden Markov model chooses among next hops, where routers run.
    pub markov: bool,
    /// Which pairs of addresses have a subflow.
    pub subflows: Subflows,
    /// The scheduler, by its name in the table.
    pub scheduler: &'static str,
    /// The congestion control, by its name in the table.
    pub congestion: &'static str,
    /// Least retransmission timeout.
    pub minimum_timeout: Duration,
}

const FULL: LaneSettings = LaneSettings {
    paths: PathMode::Full,
    policy: LanePolicy::Spread,
    interfaces: LaneInterfaces::Real,
    addresses: LaneAddresses::HostPrefixes,
};
const PART: LaneSettings = LaneSettings { paths: PathMode::Part, ..FULL };
/// Standard MPTCP on four radios, over all next hops.
const STANDARD: Combination = Combination {
    name: "MFxM",
    lanes: LANES,
    routes: FULL,
    markov: false,
    subflows: Subflows::FullMesh,
    scheduler: "lowest_rtt",
    congestion: "lia",
    minimum_timeout: Duration::from_millis(200),
};
const PREDICTED: Combination = Combination { name: "MMFxM", markov: true, ..STANDARD };
const IMPROVED: Combination =
    Combination { name: "PMMFxM", lanes: 2, subflows: Subflows::SameSubnet, scheduler: "qoe", ..PREDICTED };

/// All of them, in the order of the paper; the last three are those of its figure 24.
pub const ALL: [Combination; 11] = [
    Combination { name: "TM", lanes: 1, subflows: Subflows::One, congestion: "cubic", ..STANDARD },
    Combination { name: "MFm", routes: LaneSettings { interfaces: LaneInterfaces::Virtual, ..FULL }, ..STANDARD },
    STANDARD,
    Combination { name: "MPxM", routes: PART, ..STANDARD },
    PREDICTED,
    Combination { name: "MMPxM", routes: PART, ..PREDICTED },
    IMPROVED,
    Combination { name: "PMMPxM", routes: PART, ..IMPROVED },
    Combination { name: "PMMFxM100", minimum_timeout: Duration::from_millis(100), ..IMPROVED },
    Combination { name: "PMMFxM200", minimum_timeout: Duration::from_millis(200), ..IMPROVED },
    Combination { name: "PMMFxM300", minimum_timeout: Duration::from_millis(300), ..IMPROVED },
];

impl Combination {
    /// The one of this name.
    pub fn named(name: &str) -> Option<Self> {
        ALL.into_iter().find(|combination| combination.name == name)
    }
    /// The same, with appendix C's rule for the lanes of part path.
    #[must_use]
    pub fn literal_lanes(mut self) -> Self {
        self.routes.policy = LanePolicy::Paper;
        self
    }
    fn policies(&self) -> Result<PolicyCombination, String> {
        let mut policies = PolicyCombination::default();
        let (congestion, scheduler) = (self.congestion, self.scheduler);
        let words = format!("congestion={congestion},scheduler={scheduler},{}", self.subflows.path_manager());
        policies.apply(&words).map_err(|error| error.to_string())?;
        Ok(policies)
    }
    /// A path manager for one of the hosts.
    ///
    /// # Errors
    /// When a policy does not exist: the text says which.
    pub fn path_manager(&self) -> Result<Box<dyn PathManager>, String> {
        self.policies()?.build_path_manager().map_err(|error| error.to_string())
    }
    /// The settings of the connection.
    ///
    /// # Errors
    /// When a policy does not exist: the text says which.
    pub fn connection(&self) -> Result<ConnectionConfig, String> {
        let policies = Policies::of(&self.policies()?).map_err(|error| error.to_string())?;
        let mut config = ConnectionConfig::new(policies);
        config.multipath = self.subflows != Subflows::One;
        config.max_subflows = LANES * LANES;
        config.tcp.min_rto = self.minimum_timeout;
        Ok(config)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_combination_can_be_made_and_has_its_own_name() {
        for combination in &ALL {
            combination.connection().unwrap();
            combination.path_manager().unwrap();
            assert_eq!(Combination::named(combination.name).as_ref(), Some(combination));
        }
    }
}
