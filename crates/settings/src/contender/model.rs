//! A contender: a combination of policies with settings of its connection and routes.

use super::datagram::datagram_default;
use super::steered::Steered;
use crate::connection::ConnectionSettings;
use anabranch_policy::combination::{Choice, Combination};
use anabranch_routing::lanes::LaneSettings;
use anabranch_routing::lsa_fullness::LsaFullness;

/// Name of the lab's default, [`Contender::anabranch`].
pub const LAB_DEFAULT: &str = "anabranch";

/// Default policies on real networks: the same, with a congestion control that is fair to others.
pub const ON_NETWORKS: &str = Combination::RECOMMENDED;

/// The scenario's paths that a contender uses.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Route {
    All,
    /// Names of the paths.
    Only(Vec<String>),
    /// The path with the highest mean throughput over all seeds, found by running each alone.
    Best,
}

/// How an ad-hoc network routes a contender's packets.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct MeshRoutes {
    /// LSAFullness of mobile routers; none: 1.
    pub fullness: Option<LsaFullness>,
    /// One of this many Hellos is full; none: 3.
    pub two_hop_refresh: Option<u16>,
    /// Whether mobile nodes count the transmissions that a link needs (ETX) instead of hops.
    pub etx: bool,
    /// Whether suspect links are flooded in LSAs instead of announced to neighbours only; mobile nodes only.
    pub flood_suspects: bool,
    /// Radios and next hops of the paths.
    pub lanes: LaneSettings,
    /// Whether the contender's forecaster selects next hops.
    pub predicted: bool,
}

/// A participant of a comparison.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Contender {
    /// Name in results: the scheme's, followed by @ and the baseline's, if any.
    pub name: String,
    /// Label in figures and tables.
    pub label: String,
    /// Name of the scheme in the scenario.
    pub scheme: String,
    /// Name of the baseline, if any.
    pub baseline: Option<String>,
    /// Whether it uses MPTCP; else plain TCP on one path.
    pub multipath: bool,
    pub route: Route,
    pub mesh: MeshRoutes,
    /// An oracle: links never lose its packets, as if it had not sent those that would be lost.
    pub oracle: bool,
    /// A daemon at one end that steers its connections.
    pub steered: Option<Steered>,
    /// Policies of both ends.
    pub policies: Combination,
    /// Policy for datagrams of programs, at both ends.
    pub datagram: Choice,
    /// Connection settings of its baseline that replace the engine's defaults; the scenario overrides them.
    pub defaults: ConnectionSettings,
    /// Its own connection settings, which override the scenario's.
    pub connection: ConnectionSettings,
}

impl Contender {
    /// MPTCP as this project recommends it (docs/default-policy.md).
    pub fn anabranch() -> Self {
        Self {
            name: LAB_DEFAULT.to_owned(),
            label: "Anabranch".to_owned(),
            scheme: LAB_DEFAULT.to_owned(),
            policies: Combination::anabranch(),
            ..Self::plain()
        }
    }

    /// MPTCP as papers compare with it: full mesh, lowest RTT first, LIA.
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
            steered: None,
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

    /// Contenders with a name of their own.
    pub fn ready() -> Vec<Self> {
        vec![Self::anabranch(), Self::plain(), Self::plain_tcp()]
    }

    /// Schemes of the recPR paper and its competitors ([`Combination::NAMED`]), beside the default of each family.
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

    /// Our interpretations of published schemes ([`Combination::READINGS`]).
    pub fn readings() -> Vec<Self> {
        Self::named(Combination::READINGS)
    }

    /// Whether `name` is its own name, or that of its scheme under any baseline.
    pub fn is_called(&self, name: &str) -> bool {
        self.name == name || self.scheme == name
    }

    /// Its connection settings in a scenario with the settings `of_scenario`.
    pub fn connection_in(&self, of_scenario: &ConnectionSettings) -> ConnectionSettings {
        self.connection.over(&of_scenario.over(&self.defaults))
    }
}
