//! A combination of policies: one member of each family, with its settings.
//!
//! It is written as a list such as `scheduler=redundant,congestion=cubic,congestion.beta=0.8`: `family=member` chooses
//! a member with default settings, `family.setting=value` changes a setting of the chosen member. Families not
//! mentioned have the defaults `lia`, `lowest_rtt`, `full_mesh`, `full` and `persistence`; or those of the combination
//! whose name comes first, as in `anabranch,congestion=bounded_cubic`.

use crate::table::{self, SettingError, Settings};
use crate::{CongestionControl, LinkForecaster, PathManager, Reliability, Scheduler};
use crate::{congestion, forecast, path_manager, reliability, scheduler};
use core::fmt;
use core::str::FromStr;

/// A family of policies.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Family {
    /// How much data may be in flight.
    Congestion,
    /// Which subflow carries the next chunk.
    Scheduler,
    /// Which subflows exist.
    PathManager,
    /// Which data may be abandoned.
    Reliability,
    /// How likely a link is up.
    Forecaster,
}

impl Family {
    pub const ALL: [Self; 5] =
        [Self::Congestion, Self::Scheduler, Self::PathManager, Self::Reliability, Self::Forecaster];

    /// Its name in a combination.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Congestion => "congestion",
            Self::Scheduler => "scheduler",
            Self::PathManager => "path_manager",
            Self::Reliability => "reliability",
            Self::Forecaster => "forecaster",
        }
    }

    /// The names of its members, in the order of its table.
    pub fn members(self) -> Vec<&'static str> {
        fn names<P: ?Sized>(table: &'static [table::Member<P>]) -> Vec<&'static str> {
            table.iter().map(|member| member.name).collect()
        }
        match self {
            Self::Congestion => names(congestion::TABLE),
            Self::Scheduler => names(scheduler::TABLE),
            Self::PathManager => names(path_manager::TABLE),
            Self::Reliability => names(reliability::TABLE),
            Self::Forecaster => names(forecast::TABLE),
        }
    }
}

impl fmt::Display for Family {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A member of a family by name, with its settings.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Choice {
    pub name: String,
    /// Settings that differ from the defaults.
    pub settings: Settings,
}

impl Choice {
    /// A member with default settings.
    pub fn new(name: &str) -> Self {
        Self { name: name.to_owned(), settings: Settings::new() }
    }
}

impl fmt::Display for Choice {
    /// `lm3 (rounding = up)`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)?;
        let mut settings = self.settings.iter().peekable();
        if settings.peek().is_none() {
            return Ok(());
        }
        let settings: Vec<String> = settings.map(|(name, value)| format!("{name} = {value}")).collect();
        write!(f, " ({})", settings.join(", "))
    }
}

/// Why a combination is invalid.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum CombinationError {
    /// The first word is not the name of a combination.
    #[error("unknown combination '{0}': known are {known}", known = Combination::names().join(", "))]
    UnknownCombination(String),
    /// A word without an equals sign, or with nothing on one side of it.
    #[error("'{0}' is not of the form family=member or family.setting=value")]
    NotAnAssignment(String),
    /// There is no such family.
    #[error("unknown family '{0}': known are congestion, scheduler, path_manager, reliability, forecaster")]
    UnknownFamily(String),
    /// A member or setting of a family is invalid.
    #[error("{family}: {error}")]
    Setting { family: Family, error: SettingError },
}

/// One member of each family.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Combination {
    pub congestion: Choice,
    pub scheduler: Choice,
    pub path_manager: Choice,
    pub reliability: Choice,
    pub forecaster: Choice,
}

impl Default for Combination {
    fn default() -> Self {
        Self {
            congestion: Choice::new("lia"),
            scheduler: Choice::new("lowest_rtt"),
            path_manager: Choice::new("full_mesh"),
            reliability: Choice::new("full"),
            forecaster: Choice::new("persistence"),
        }
    }
}

impl Combination {
    /// The default of a stack on a real network, as text: our own scheduler and path manager, with a congestion control
    /// that is fair to other connections.
    pub const RECOMMENDED: &str = "anabranch,congestion=bounded_cubic";

    /// [`Self::RECOMMENDED`].
    pub fn recommended() -> Self {
        Self { congestion: Choice::new("bounded_cubic"), ..Self::anabranch() }
    }

    /// Our own scheduler, path manager and congestion control.
    pub fn anabranch() -> Self {
        let own = Choice::new("anabranch");
        Self { congestion: own.clone(), scheduler: own.clone(), path_manager: own, ..Self::default() }
    }

    /// The combinations of the recPR paper and those that it compares with, by name, as differences from the default.
    pub const NAMED: &[(&str, &str)] = &[
        ("recpr", "path_manager=one_way_delay,reliability=spe"),
        ("recpr_subflow", "path_manager=one_way_delay,reliability=spe,reliability.level=subflow"),
        ("recpr_both_ends", "path_manager=one_way_delay,reliability=both_ends"),
        ("spe", "reliability=spe"),
        ("sme", "path_manager=one_way_delay"),
        ("pr_mptcp", "reliability=pr_mptcp"),
        ("mo_pr", "reliability=mo_pr"),
        ("too_late", "reliability=too_late"),
    ];

    /// Alternative readings of published schemes, by name, as differences from the default.
    pub const READINGS: &[(&str, &str)] = &[
        ("lm3_living", "path_manager=lm3,path_manager.dead_paths=last"),
        ("lm3_algorithm_1", "path_manager=lm3,path_manager.rounding=up,path_manager.counter_reset=never"),
        ("lm3_alternatives", "path_manager=lm3,path_manager.bounds=alternatives"),
        ("maps_own_history", "scheduler=maps,scheduler.maxima=own_history"),
        ("maps_measured_loss", "scheduler=maps,scheduler.loss=measured"),
    ];

    /// The combination of this name ([`Self::NAMED`], [`Self::READINGS`]), `anabranch`, or `plain`, the default of each
    /// family.
    pub fn named(name: &str) -> Option<Self> {
        match name {
            "anabranch" => return Some(Self::anabranch()),
            "plain" => return Some(Self::default()),
            _ => {}
        }
        let (_, words) = Self::NAMED.iter().chain(Self::READINGS).find(|(known, _)| *known == name)?;
        words.parse().ok()
    }

    /// The names that [`Self::named`] accepts.
    fn names() -> Vec<&'static str> {
        let others = Self::NAMED.iter().chain(Self::READINGS).map(|(name, _)| *name);
        ["anabranch", "plain"].into_iter().chain(others).collect()
    }

    /// The choice in a family.
    pub fn choice(&self, family: Family) -> &Choice {
        match family {
            Family::Congestion => &self.congestion,
            Family::Scheduler => &self.scheduler,
            Family::PathManager => &self.path_manager,
            Family::Reliability => &self.reliability,
            Family::Forecaster => &self.forecaster,
        }
    }

    /// The choice in a family.
    pub fn choice_mut(&mut self, family: Family) -> &mut Choice {
        match family {
            Family::Congestion => &mut self.congestion,
            Family::Scheduler => &mut self.scheduler,
            Family::PathManager => &mut self.path_manager,
            Family::Reliability => &mut self.reliability,
            Family::Forecaster => &mut self.forecaster,
        }
    }

    /// Applies `words`, separated by commas or white space: first members, which discard the settings of those they
    /// replace, then settings, both in their order. [`Self::check`] finds out whether members and settings exist. If a
    /// word cannot be parsed, nothing is changed.
    pub fn apply(&mut self, words: &str) -> Result<(), CombinationError> {
        let mut changed = self.clone();
        let words = words.split([',', ' ', '\t', '\n', '\r']).filter(|word| !word.is_empty());
        // A member has its own defaults: settings written before it would be lost.
        let (settings, members): (Vec<&str>, Vec<&str>) = words.partition(|word| is_setting(word));
        for word in members.into_iter().chain(settings) {
            changed.apply_word(word)?;
        }
        *self = changed;
        Ok(())
    }

    fn apply_word(&mut self, word: &str) -> Result<(), CombinationError> {
        let not_an_assignment = || CombinationError::NotAnAssignment(word.to_owned());
        let (key, value) = word.split_once('=').ok_or_else(not_an_assignment)?;
        let (family, setting) = match key.split_once('.') {
            None => (key, None),
            Some((family, setting)) => (family, Some(setting)),
        };
        if family.is_empty() || value.is_empty() || setting == Some("") {
            return Err(not_an_assignment());
        }
        let family = (Family::ALL.into_iter().find(|known| known.name() == family))
            .ok_or_else(|| CombinationError::UnknownFamily(family.to_owned()))?;
        let choice = self.choice_mut(family);
        match setting {
            None => *choice = Choice::new(value),
            Some(setting) => choice.settings.set(setting, value),
        }
        Ok(())
    }

    /// Whether each of the five can be built; the error is of the first that cannot. After a success the `build`
    /// functions do not fail.
    pub fn check(&self) -> Result<(), CombinationError> {
        self.build_congestion()?;
        self.build_scheduler()?;
        self.build_path_manager()?;
        self.build_reliability()?;
        self.build_forecaster()?;
        Ok(())
    }

    /// Builds the congestion control of a connection.
    pub fn build_congestion(&self) -> Result<Box<dyn CongestionControl>, CombinationError> {
        self.build(Family::Congestion, congestion::TABLE)
    }
    /// Builds the scheduler of a connection.
    pub fn build_scheduler(&self) -> Result<Box<dyn Scheduler>, CombinationError> {
        self.build(Family::Scheduler, scheduler::TABLE)
    }
    /// Builds the path manager of a host.
    pub fn build_path_manager(&self) -> Result<Box<dyn PathManager>, CombinationError> {
        self.build(Family::PathManager, path_manager::TABLE)
    }
    /// Builds the reliability policy of a connection.
    pub fn build_reliability(&self) -> Result<Box<dyn Reliability>, CombinationError> {
        self.build(Family::Reliability, reliability::TABLE)
    }
    /// Builds the forecaster of a link.
    pub fn build_forecaster(&self) -> Result<Box<dyn LinkForecaster>, CombinationError> {
        self.build(Family::Forecaster, forecast::TABLE)
    }

    fn build<P: ?Sized>(&self, family: Family, table: &'static [table::Member<P>]) -> Result<Box<P>, CombinationError> {
        let choice = self.choice(family);
        table::build(table, &choice.name, &choice.settings).map_err(|error| CombinationError::Setting { family, error })
    }
}

/// Whether a word is of the form `FAMILY.SETTING=VALUE`.
pub fn is_setting(word: &str) -> bool {
    word.split('=').next().is_some_and(|key| key.contains('.'))
}

impl FromStr for Combination {
    type Err = CombinationError;

    /// The combination that the first word names, or the default, changed by the other words, and checked.
    fn from_str(words: &str) -> Result<Self, CombinationError> {
        let (first, rest) = words.split_once(',').unwrap_or((words, ""));
        let name = first.trim();
        let (mut combination, changes) = if name.is_empty() || name.contains(['=', ' ']) {
            (Self::default(), words)
        } else {
            let unknown = || CombinationError::UnknownCombination(name.to_owned());
            (Self::named(name).ok_or_else(unknown)?, rest)
        };
        combination.apply(changes)?;
        combination.check()?;
        Ok(combination)
    }
}

impl fmt::Display for Combination {
    /// All five choices and their settings, in the syntax of [`Combination::apply`].
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, family) in Family::ALL.into_iter().enumerate() {
            let choice = self.choice(family);
            write!(f, "{}{family}={}", if index == 0 { "" } else { "," }, choice.name)?;
            for (setting, value) in choice.settings.iter() {
                write!(f, ",{family}.{setting}={value}")?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
