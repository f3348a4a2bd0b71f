//! A combination of policies: one member of each family, with settings, and which paths it may use.

use crate::diagnostic::did_you_mean;
use anabranch_policy::congestion::CongestionControl;
use anabranch_policy::path_manager::PathManager;
use anabranch_policy::scheduler::Scheduler;
use anabranch_policy::table::{self, Member, Parameter, SettingError, Settings};
use anabranch_policy::{congestion, forecast, path_manager, reliability, scheduler};

/// A family of policies.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Family {
    /// How much may be in flight.
    Congestion,
    /// Which subflow carries what.
    Scheduler,
    /// Which subflows there are.
    PathManager,
    /// How likely a link is up.
    Forecast,
    /// What may be given up.
    Reliability,
}

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

fn infos<P: ?Sized>(members: &'static [Member<P>]) -> Vec<MemberInfo> {
    let info = |m: &Member<P>| MemberInfo {
        name: m.name,
        summary: m.summary,
        source: m.source,
        parameters: m.parameters,
    };
    members.iter().map(info).collect()
}

impl Family {
    /// All five.
    pub const ALL: [Self; 5] =
        [Self::Congestion, Self::Scheduler, Self::PathManager, Self::Forecast, Self::Reliability];

    /// Its key in a scenario and in `--policy`.
    pub const fn key(self) -> &'static str {
        match self {
            Self::Congestion => "congestion",
            Self::Scheduler => "scheduler",
            Self::PathManager => "path_manager",
            Self::Forecast => "forecast",
            Self::Reliability => "reliability",
        }
    }

    /// What it decides.
    pub const fn decides(self) -> &'static str {
        match self {
            Self::Congestion => "how much may be in flight on each subflow",
            Self::Scheduler => "which subflow carries the next chunk of data",
            Self::PathManager => "which subflows exist and which are active",
            Self::Forecast => "how likely a link is up at a horizon",
            Self::Reliability => "what may be given up, and when",
        }
    }

    /// Its members, from its table.
    pub fn members(self) -> Vec<MemberInfo> {
        match self {
            Self::Congestion => infos(congestion::TABLE),
            Self::Scheduler => infos(scheduler::TABLE),
            Self::PathManager => infos(path_manager::TABLE),
            Self::Forecast => infos(forecast::TABLE),
            Self::Reliability => infos(reliability::TABLE),
        }
    }

    /// Whether the member `choice` names can be made with its settings.
    fn check(self, choice: &Choice) -> Result<(), SettingError> {
        let (name, settings) = (&choice.name, &choice.settings);
        match self {
            Self::Congestion => table::build(congestion::TABLE, name, settings).map(drop),
            Self::Scheduler => table::build(scheduler::TABLE, name, settings).map(drop),
            Self::PathManager => table::build(path_manager::TABLE, name, settings).map(drop),
            Self::Forecast => table::build(forecast::TABLE, name, settings).map(drop),
            Self::Reliability => table::build(reliability::TABLE, name, settings).map(drop),
        }
    }
}

/// A member of a family with its settings.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Choice {
    /// The member.
    pub name: String,
    /// Its settings; the rest are at their defaults.
    pub settings: Settings,
}

impl Choice {
    /// A member at its defaults.
    pub fn new(name: &str) -> Self {
        Self { name: name.to_owned(), settings: Settings::new() }
    }

    /// `lm3 (rounding = up)`.
    pub fn describe(&self) -> String {
        let settings: Vec<String> = self.settings.iter().map(|(name, value)| format!("{name} = {value}")).collect();
        if settings.is_empty() { self.name.clone() } else { format!("{} ({})", self.name, settings.join(", ")) }
    }
}

/// Which of the scenario's paths a combination uses.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Route {
    /// All of them.
    All,
    /// These, by name.
    Only(Vec<String>),
    /// The one on which this combination has the highest mean throughput over all seeds, found by running each alone.
    Best,
}

/// One member of each family that a connection needs, and the paths it may use.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Combination {
    /// Its name in results.
    pub name: String,
    /// What figures and tables call it.
    pub label: String,
    /// Multipath TCP; else plain TCP on one path.
    pub multipath: bool,
    /// Which paths.
    pub route: Route,
    /// Path manager.
    pub path_manager: Choice,
    /// Scheduler.
    pub scheduler: Choice,
    /// Congestion control.
    pub congestion: Choice,
}

impl Combination {
    /// Multipath TCP as the papers compare against it: full mesh, lowest RTT first, coupled by LIA.
    pub fn plain() -> Self {
        Self {
            name: "plain".to_owned(),
            label: "plain MPTCP".to_owned(),
            multipath: true,
            route: Route::All,
            path_manager: Choice::new("full_mesh"),
            scheduler: Choice::new("lowest_rtt"),
            congestion: Choice::new("lia"),
        }
    }

    /// Plain TCP on the best single path.
    pub fn plain_tcp() -> Self {
        Self {
            name: "plain_tcp".to_owned(),
            label: "TCP on the best path".to_owned(),
            multipath: false,
            route: Route::Best,
            congestion: Choice::new("new_reno"),
            ..Self::plain()
        }
    }

    /// The choice for `family`; none for families that a connection has no place for yet.
    pub fn choice_mut(&mut self, family: Family) -> Option<&mut Choice> {
        match family {
            Family::Congestion => Some(&mut self.congestion),
            Family::Scheduler => Some(&mut self.scheduler),
            Family::PathManager => Some(&mut self.path_manager),
            Family::Forecast | Family::Reliability => None,
        }
    }

    /// What it is made of, for reports.
    pub fn describe(&self) -> String {
        let route = match &self.route {
            Route::All => String::new(),
            Route::Only(names) => format!(", on {}", names.join(" + ")),
            Route::Best => ", on the best path".to_owned(),
        };
        if self.multipath {
            let (manager, scheduler) = (self.path_manager.describe(), self.scheduler.describe());
            format!("MPTCP: {manager}, {scheduler}, {}{route}", self.congestion.describe())
        } else {
            format!("TCP: {}{route}", self.congestion.describe())
        }
    }

    /// Whether every member exists and takes its settings.
    pub fn check(&self) -> Result<(), String> {
        let choices = [
            (Family::PathManager, &self.path_manager),
            (Family::Scheduler, &self.scheduler),
            (Family::Congestion, &self.congestion),
        ];
        for (family, choice) in choices {
            check_choice(family, choice)?;
        }
        Ok(())
    }

    /// Makes the path manager.
    pub fn build_path_manager(&self) -> Result<Box<dyn PathManager>, SettingError> {
        table::build(path_manager::TABLE, &self.path_manager.name, &self.path_manager.settings)
    }

    /// Makes the scheduler.
    pub fn build_scheduler(&self) -> Result<Box<dyn Scheduler>, SettingError> {
        table::build(scheduler::TABLE, &self.scheduler.name, &self.scheduler.settings)
    }

    /// Makes the congestion control.
    pub fn build_congestion(&self) -> Result<Box<dyn CongestionControl>, SettingError> {
        table::build(congestion::TABLE, &self.congestion.name, &self.congestion.settings)
    }
}

/// Whether `choice` is a member of `family` and takes its settings; the message suggests what was meant.
pub fn check_choice(family: Family, choice: &Choice) -> Result<(), String> {
    let key = family.key();
    family.check(choice).map_err(|error| match &error {
        SettingError::UnknownMember { name, known } => {
            let members = family.members();
            let hint = did_you_mean(name, members.iter().map(|member| member.name));
            let known = if known.is_empty() { "none yet" } else { known.as_str() };
            format!("'{name}' is not a {key} policy: known are {known}{hint}")
        }
        SettingError::UnknownParameter { name, known } => {
            let hint = did_you_mean(name, known.split(", "));
            format!("{key} policy '{}' has no setting '{name}': known are {known}{hint}", choice.name)
        }
        SettingError::BadValue { .. } => format!("{key} policy '{}': {error}", choice.name),
    })
}

/// Understands one `--policy`: the name of a policy of the scenario, of a ready combination (`plain`, `plain_tcp`) or of
/// a member of any family, or a list such as `congestion=olia,scheduler=redundant,path_manager.rounding=up`.
/// What is not said is as in [`Combination::plain`].
pub fn from_option(text: &str, scenario: &[Combination]) -> Result<Combination, String> {
    let text = text.trim();
    let mut made = if text.contains('=') { from_list(text)? } else { from_name(text, scenario)? };
    if text.contains('=') && made.name.is_empty() {
        made.name = text.replace(',', "+");
        made.label = text.replace(',', ", ");
    }
    made.check()?;
    Ok(made)
}

fn from_name(name: &str, scenario: &[Combination]) -> Result<Combination, String> {
    let ready = [Combination::plain(), Combination::plain_tcp()];
    if let Some(found) = scenario.iter().chain(&ready).find(|known| known.name == name) {
        return Ok(found.clone());
    }
    for family in Family::ALL {
        if family.members().iter().any(|member| member.name == name) {
            let mut made = Combination { name: name.to_owned(), label: name.to_owned(), ..Combination::plain() };
            let Some(choice) = made.choice_mut(family) else {
                return Err(format!("'{name}' is a {} policy, which no connection uses yet", family.key()));
            };
            *choice = Choice::new(name);
            return Ok(made);
        }
    }
    let mut known: Vec<String> = scenario.iter().chain(&ready).map(|known| known.name.clone()).collect();
    known.extend(Family::ALL.iter().flat_map(|family| family.members()).map(|member| member.name.to_owned()));
    known.dedup();
    let hint = did_you_mean(name, known.iter().map(String::as_str));
    let hint = if hint.is_empty() { format!("; known are {}", known.join(", ")) } else { hint };
    Err(format!("unknown policy '{name}'{hint}"))
}

fn from_list(text: &str) -> Result<Combination, String> {
    let mut made = Combination { name: String::new(), label: String::new(), ..Combination::plain() };
    for part in text.split(',') {
        let Some((key, value)) = part.split_once('=') else {
            return Err(format!("'{part}' is not of the form family=member"));
        };
        let (key, value) = (key.trim(), value.trim());
        let (head, parameter) = key.split_once('.').map_or((key, None), |(head, tail)| (head, Some(tail)));
        match (head, parameter) {
            ("name", None) => (made.name, made.label) = (value.to_owned(), value.to_owned()),
            ("multipath", None) => made.multipath = value.parse().map_err(|_| "multipath is true or false".to_owned())?,
            ("paths", None) if value == "best" => made.route = Route::Best,
            ("paths", None) if value == "all" => made.route = Route::All,
            ("paths", None) => made.route = Route::Only(value.split('+').map(|name| name.trim().to_owned()).collect()),
            _ => choose(&mut made, head, parameter, value)?,
        }
    }
    Ok(made)
}

fn choose(made: &mut Combination, head: &str, parameter: Option<&str>, value: &str) -> Result<(), String> {
    let Some(family) = Family::ALL.into_iter().find(|family| family.key() == head) else {
        let known = Family::ALL.iter().map(|family| family.key()).chain(["paths", "multipath", "name"]);
        let hint = did_you_mean(head, known.clone());
        return Err(format!("'{head}' is not one of {}{hint}", known.collect::<Vec<_>>().join(", ")));
    };
    let Some(choice) = made.choice_mut(family) else {
        return Err(format!("no connection uses a {} policy yet", family.key()));
    };
    match parameter {
        None => choice.name = value.to_owned(),
        Some(parameter) => choice.settings.set(parameter, value),
    }
    Ok(())
}
