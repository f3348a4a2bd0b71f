//! A contender: a combination of policies, with the settings of its connection and paths.

use super::datagram::datagram_default;
use crate::scenario::connection::ConnectionSettings;
use anabranch_policy::combination::{Choice, Combination};
use anabranch_routing::lanes::LaneSettings;
use anabranch_routing::lsa_fullness::LsaFullness;

/// What the lab calls the default: the name of [`Contender::anabranch`].
pub const RECOMMENDED: &str = "anabranch";

/// What a stack on a network runs under if nothing is said: the same, with a congestion control that leaves others their share.
pub const ON_NETWORKS: &str = Combination::RECOMMENDED;

/// Which of the scenario's paths a contender uses.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Route {
    /// All of them.
    All,
    /// These, by name.
    Only(Vec<String>),
    /// The one on which it has the highest mean throughput over all seeds, found by running each alone.
    Best,
}

/// How an ad-hoc network routes what a contender sends.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct MeshRoutes {
    /// What routers advertise among moving nodes; none: LSAFullness 1.
    pub fullness: Option<LsaFullness>,
    /// One of so many Hellos is full; none: 3.
    pub two_hop_refresh: Option<u16>,
    /// Whether suspect links are announced to all routers in LSAs, instead of to neighbours alone; moving nodes only.
    pub flood_suspects: bool,
    /// Which radios and which next hops the paths have.
    pub lanes: LaneSettings,
    /// Whether the contender's forecaster chooses among next hops.
    pub predicted: bool,
}

/// Who takes part.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Contender {
    /// Its name in results: the scheme's, and behind an @ the baseline's, if it is run under one.
    pub name: String,
    /// What figures and tables call it.
    pub label: String,
    /// The scheme, as the scenario names it.
    pub scheme: String,
    /// The baseline that it is run under, by name.
    pub baseline: Option<String>,
    /// Multipath TCP; else plain TCP on one path.
    pub multipath: bool,
    /// Which paths.
    pub route: Route,
    /// How an ad-hoc network routes what it sends.
    pub mesh: MeshRoutes,
    /// Links lose nothing of what it sends, as if it knew beforehand what they would lose and did not send that.
    pub oracle: bool,
    /// The policies of both ends.
    pub policies: Combination,
    /// Which paths carry datagrams of programs, at both ends.
    pub datagram: Choice,
    /// What its baseline says of the connection: in place of the engine's defaults, so that a scenario wins over it.
    pub defaults: ConnectionSettings,
    /// What it says of the connection itself, which wins over the scenario.
    pub connection: ConnectionSettings,
}

impl Contender {
    /// Multipath TCP as this project recommends it (docs/default-policy.md).
    pub fn anabranch() -> Self {
        Self {
            name: RECOMMENDED.to_owned(),
            label: "Anabranch".to_owned(),
            scheme: RECOMMENDED.to_owned(),
            policies: Combination::anabranch(),
            ..Self::plain()
        }
    }

    /// Multipath TCP as the papers compare against it: full mesh, lowest RTT first, coupled by LIA.
    pub fn plain() -> Self {
        Self {
            name: "plain".to_owned(),
            label: "plain MPTCP".to_owned(),
            scheme: "plain".to_owned(),
            baseline: None,
            multipath: true,
            route: Route::All,
            mesh: MeshRoutes::default(),
            oracle: false,
            policies: Combination::default(),
            datagram: datagram_default(),
            defaults: ConnectionSettings::default(),
            connection: ConnectionSettings::default(),
        }
    }

    /// Plain TCP (NewReno) on the best single path.
    pub fn plain_tcp() -> Self {
        Self {
            name: "plain_tcp".to_owned(),
            label: "TCP on the best path".to_owned(),
            scheme: "plain_tcp".to_owned(),
            multipath: false,
            route: Route::Best,
            policies: Combination { congestion: Choice::new("new_reno"), ..Combination::default() },
            ..Self::plain()
        }
    }

    /// Those that have a name of their own.
    pub fn ready() -> Vec<Self> {
        vec![Self::anabranch(), Self::plain(), Self::plain_tcp()]
    }

    /// Those of the recPR paper and its rivals ([`Combination::NAMED`]): of both ends, beside the default of each family.
    pub fn partially_reliable() -> Vec<Self> {
        Self::named(Combination::NAMED)
    }

    fn named(names: &[(&str, &str)]) -> Vec<Self> {
        let made = |(name, _): &(&str, &str)| {
            let (policies, name) = (Combination::named(name)?, (*name).to_owned());
            Some(Self { name: name.clone(), label: name.clone(), scheme: name, policies, ..Self::plain() })
        };
        names.iter().filter_map(made).collect()
    }

    /// Our readings of published schemes ([`Combination::READINGS`]).
    pub fn readings() -> Vec<Self> {
        Self::named(Combination::READINGS)
    }

    /// Whether `name` means it: its own name, or that of its scheme under any baseline.
    pub fn is_called(&self, name: &str) -> bool {
        self.name == name || self.scheme == name
    }

    /// All that is said of its connection in a scenario that says `of_scenario`.
    pub fn connection_in(&self, of_scenario: &ConnectionSettings) -> ConnectionSettings {
        self.connection.over(&of_scenario.over(&self.defaults))
    }
}
