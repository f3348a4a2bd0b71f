//! Who takes part in a comparison: a combination of policies, multipath or plain TCP, and the paths it may use.

use crate::diagnostic::did_you_mean;
use anabranch_policy::combination::{Choice, Combination, CombinationError, Family};
use anabranch_policy::table::{Member, Parameter, SettingError};
use anabranch_policy::{congestion, forecast, path_manager, reliability, scheduler};
use anabranch_routing::lanes::LaneSettings;
use anabranch_routing::lsa_fullness::LsaFullness;

/// What a stack runs under if nothing is said: the name of [`Contender::anabranch`].
pub const RECOMMENDED: &str = "anabranch";

/// A member of a family, whatever it builds.
#[derive(Clone, Copy, Debug)]
pub struct MemberInfo {
    /// Its name.
    pub name: &'static str,
    /// One sentence.
    pub summary: &'static str,
    /// Where its rule is written down.
    pub source: &'static str,
    /// Its settings.
    pub parameters: &'static [Parameter],
}

/// The members of a family, from its table.
pub fn members(family: Family) -> Vec<MemberInfo> {
    fn infos<P: ?Sized>(table: &'static [Member<P>]) -> Vec<MemberInfo> {
        let info =
            |m: &Member<P>| MemberInfo { name: m.name, summary: m.summary, source: m.source, parameters: m.parameters };
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
    /// Its name in results.
    pub name: String,
    /// What figures and tables call it.
    pub label: String,
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
}

impl Contender {
    /// Multipath TCP as this project recommends it (docs/default-policy.md).
    pub fn anabranch() -> Self {
        Self {
            name: RECOMMENDED.to_owned(),
            label: "Anabranch".to_owned(),
            policies: Combination::anabranch(),
            ..Self::plain()
        }
    }

    /// Multipath TCP as the papers compare against it: full mesh, lowest RTT first, coupled by LIA.
    pub fn plain() -> Self {
        Self {
            name: "plain".to_owned(),
            label: "plain MPTCP".to_owned(),
            multipath: true,
            route: Route::All,
            mesh: MeshRoutes::default(),
            oracle: false,
            policies: Combination::default(),
        }
    }

    /// Plain TCP (NewReno) on the best single path.
    pub fn plain_tcp() -> Self {
        Self {
            name: "plain_tcp".to_owned(),
            label: "TCP on the best path".to_owned(),
            multipath: false,
            route: Route::Best,
            mesh: MeshRoutes::default(),
            oracle: false,
            policies: Combination { congestion: Choice::new("new_reno"), ..Combination::default() },
        }
    }

    /// Those that have a name of their own.
    pub fn ready() -> Vec<Self> {
        vec![Self::anabranch(), Self::plain(), Self::plain_tcp()]
    }

    /// Those of the recPR paper and its rivals ([`Combination::NAMED`]): of both ends, beside the default of each family.
    pub fn partially_reliable() -> Vec<Self> {
        let made = |(name, _): &(&str, &str)| {
            let policies = Combination::named(name)?;
            Some(Self { name: (*name).to_owned(), label: (*name).to_owned(), policies, ..Self::plain() })
        };
        Combination::NAMED.iter().filter_map(made).collect()
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
            let known = Family::ALL.iter().map(|family| family.name()).chain(["paths", "multipath", "name"]);
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

/// Understands one `--policy`: the name of a policy of the scenario, of a ready one (`plain`, `plain_tcp`) or of a member
/// of any family, or a list such as `congestion=olia,scheduler=redundant,path_manager=lm3,path_manager.rounding=up`, which
/// may begin with such a name: `anabranch,reliability=full`.
/// What is not said is as in [`Contender::plain`].
pub fn from_option(text: &str, scenario: &[Contender]) -> Result<Contender, String> {
    let text = text.trim();
    let made = if text.contains('=') { from_list(text, scenario)? } else { from_name(text, scenario)? };
    check(&made.policies)?;
    Ok(made)
}

fn from_name(name: &str, scenario: &[Contender]) -> Result<Contender, String> {
    let ready = [Contender::ready(), Contender::partially_reliable()].concat();
    if let Some(found) = scenario.iter().chain(&ready).find(|known| known.name == name) {
        return Ok(found.clone());
    }
    for family in Family::ALL {
        if family.members().contains(&name) {
            let mut made = Contender { name: name.to_owned(), label: name.to_owned(), ..Contender::plain() };
            *made.policies.choice_mut(family) = Choice::new(name);
            return Ok(made);
        }
    }
    let mut known: Vec<&str> = Vec::new();
    for name in scenario.iter().chain(&ready).map(|known| known.name.as_str()) {
        if !known.contains(&name) {
            known.push(name);
        }
    }
    for name in Family::ALL.into_iter().flat_map(Family::members) {
        if !known.contains(&name) {
            known.push(name);
        }
    }
    let hint = did_you_mean(name, known.iter().copied());
    let hint = if hint.is_empty() { format!("; known are {}", known.join(", ")) } else { hint };
    Err(format!("unknown policy '{name}'{hint}"))
}

fn from_list(text: &str, scenario: &[Contender]) -> Result<Contender, String> {
    let name = text.replace(',', "+");
    let mut parts = text.split(',').map(str::trim).filter(|part| !part.is_empty()).peekable();
    // What is changed may be named first.
    let from = parts.next_if(|part| !part.contains('='));
    let from = from.map_or(Ok(Contender::plain()), |base| from_name(base, scenario))?;
    let mut made = Contender { name, label: text.replace(',', ", "), ..from };
    for part in parts {
        match part.split_once('=') {
            Some(("name", value)) => (made.name, made.label) = (value.to_owned(), value.to_owned()),
            Some(("multipath", value)) => {
                made.multipath = value.parse().map_err(|_| "multipath is true or false".to_owned())?;
            }
            Some(("paths", "best")) => made.route = Route::Best,
            Some(("paths", "all")) => made.route = Route::All,
            Some(("paths", value)) => made.route = Route::Only(value.split('+').map(str::to_owned).collect()),
            _ => made.policies.apply(part).map_err(|error| explain(&made.policies, &error))?,
        }
    }
    Ok(made)
}
