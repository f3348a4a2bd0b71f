//! Who takes part in a comparison: a combination of policies, multipath or plain TCP, and the paths it may use.

mod option;
mod scheme;

pub use option::{Surroundings, all_from_option, from_option};
pub use scheme::{Choices, Scheme, contenders};

use crate::diagnostic::did_you_mean;
use crate::scenario::connection::ConnectionSettings;
use anabranch_policy::combination::{Choice, Combination, CombinationError, Family};
use anabranch_policy::table::{Member, Parameter, SettingError};
use anabranch_policy::{congestion, forecast, path_manager, reliability, scheduler};
use anabranch_routing::lanes::LaneSettings;
use anabranch_routing::lsa_fullness::LsaFullness;

/// What a stack runs under if nothing is said: the name of [`Contender::anabranch`].
pub const RECOMMENDED: &str = "anabranch";

/// A member of a family, whatever it builds.
#[derive(Clone, Debug)]
pub struct MemberInfo {
    /// Its name.
    pub name: &'static str,
    /// One sentence.
    pub summary: &'static str,
    /// Where its rule is written down.
    pub source: &'static str,
    /// Its settings.
    pub parameters: Vec<Parameter>,
}

/// The members of a family, from its table.
pub fn members(family: Family) -> Vec<MemberInfo> {
    fn infos<P: ?Sized>(table: &'static [Member<P>]) -> Vec<MemberInfo> {
        let info = |member: &Member<P>| MemberInfo {
            name: member.name,
            summary: member.summary,
            source: member.source,
            parameters: member.parameters(),
        };
        table.iter().map(info).collect()
    }
    match family {
        Family::Congestion => infos(congestion::TABLE),
        Family::Scheduler => infos(scheduler::TABLE),
        Family::PathManager => infos(path_manager::TABLE),
        Family::Reliability => infos(reliability::TABLE),
        Family::Forecaster => infos(forecast::TABLE),
    }
}

/// What a family decides.
pub const fn decides(family: Family) -> &'static str {
    match family {
        Family::Congestion => "how much may be in flight on each subflow",
        Family::Scheduler => "which subflow carries the next chunk of data",
        Family::PathManager => "which subflows exist and which are active",
        Family::Reliability => "what may be given up, and when",
        Family::Forecaster => "how likely a link is up at a horizon",
    }
}

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
    /// Whether all routers are told which links the forecaster doubts, instead of neighbours alone; moving nodes only.
    pub flood_doubts: bool,
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

/// Whether every member exists and takes its settings; the message suggests what was meant.
pub fn check(policies: &Combination) -> Result<(), String> {
    policies.check().map_err(|error| explain(policies, &error))
}

fn explain(policies: &Combination, error: &CombinationError) -> String {
    match error {
        CombinationError::NotAnAssignment(_) => error.to_string(),
        CombinationError::UnknownFamily(name) => {
            let known =
                Family::ALL.iter().map(|family| family.name()).chain(["connection", "paths", "multipath", "name"]);
            format!(
                "'{name}' is not one of {}{}",
                known.clone().collect::<Vec<_>>().join(", "),
                did_you_mean(name, known)
            )
        }
        CombinationError::Setting { family, error } => match error {
            SettingError::UnknownMember { name, known } => {
                format!("'{name}' is not a {family} policy: known are {known}{}", did_you_mean(name, family.members()))
            }
            SettingError::UnknownParameter { name, known } => {
                let hint = did_you_mean(name, known.split(", "));
                let member = &policies.choice(*family).name;
                format!("{family} policy '{member}' has no setting '{name}': known are {known}{hint}")
            }
            SettingError::BadValue { .. } => format!("{family} policy '{}': {error}", policies.choice(*family).name),
        },
    }
}
