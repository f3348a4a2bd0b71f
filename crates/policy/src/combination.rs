//! A combination of policies: one member of each family, with its settings.
//!
//! In words it is a list such as `scheduler=redundant,congestion=cubic,congestion.beta=0.8`: `family=member` chooses a
//! member at its defaults, `family.setting=value` changes a setting of the member chosen. What is not said is at the
//! default: `lia`, `lowest_rtt`, `full_mesh`, `full` and `persistence`; or as in the combination whose name comes first, as in
//! `anabranch,congestion=bounded_cubic`.

use crate::table::{self, SettingError, Settings};
use crate::{CongestionControl, LinkForecaster, PathManager, Reliability, Scheduler};
use crate::{congestion, forecast, path_manager, reliability, scheduler};
use core::fmt;
use core::str::FromStr;

/// A family of policies.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Family {
    /// How much may be in flight.
    Congestion,
    /// Which subflow carries the next chunk.
    Scheduler,
    /// Which subflows there are.
    PathManager,
    /// What may be given up.
    Reliability,
    /// How likely a link is up.
    Forecaster,
}

impl Family {
    /// All five.
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
    /// The member.
    pub name: String,
    /// Its settings; the others are at their defaults.
    pub settings: Settings,
}

impl Choice {
    /// A member at its defaults.
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

/// Why a combination cannot be understood or made.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum CombinationError {
    /// The first word is the name of no combination.
    #[error("unknown combination '{0}': known are {known}", known = Combination::names().join(", "))]
    UnknownCombination(String),
    /// A word without an equals sign, or with nothing on one side of it.
    #[error("'{0}' is not of the form family=member or family.setting=value")]
    NotAnAssignment(String),
    /// There is no such family.
    #[error("unknown family '{0}': known are congestion, scheduler, path_manager, reliability, forecaster")]
    UnknownFamily(String),
    /// A family's member or setting is wrong.
    #[error("{family}: {error}")]
    Setting {
        /// The family.
        family: Family,
        /// What is wrong.
        error: SettingError,
    },
}

/// One member of each family.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Combination {
    /// Congestion control.
    pub congestion: Choice,
    /// Scheduler.
    pub scheduler: Choice,
    /// Path manager.
    pub path_manager: Choice,
    /// Reliability.
    pub reliability: Choice,
    /// Forecaster.
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
    /// In words, what a stack on a network runs under unless something else is said: our own scheduler and path manager, with a
    /// congestion control that leaves others their share of a link.
    pub const RECOMMENDED: &str = "anabranch,congestion=bounded_cubic";

    /// [`Self::RECOMMENDED`].
    pub fn recommended() -> Self {
        Self { congestion: Choice::new("bounded_cubic"), ..Self::anabranch() }
    }

    /// Our own scheduler, path manager and congestion control: what to use if there is no reason for another choice.
    pub fn anabranch() -> Self {
        let own = Choice::new("anabranch");
        Self { congestion: own.clone(), scheduler: own.clone(), path_manager: own, ..Self::default() }
    }

    /// The combinations of the recPR paper and its rivals, by name, and what each is beside the default.
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

    /// Readings of published schemes that are not their letter, by name, and what each is beside the default.
    pub const READINGS: &[(&str, &str)] = &[
        ("lm3_living", "path_manager=lm3,path_manager.dead_paths=last"),
        ("lm3_algorithm_1", "path_manager=lm3,path_manager.rounding=up,path_manager.counter_reset=never"),
        ("lm3_alternatives", "path_manager=lm3,path_manager.bounds=alternatives"),
        ("maps_own_history", "scheduler=maps,scheduler.maxima=own_history"),
        ("maps_measured_loss", "scheduler=maps,scheduler.loss=measured"),
    ];

    /// The combination of this name ([`Self::NAMED`], [`Self::READINGS`]), our own, or `plain`, the default of each family.
    pub fn named(name: &str) -> Option<Self> {
        match name {
            "anabranch" => return Some(Self::anabranch()),
            "plain" => return Some(Self::default()),
            _ => {}
        }
        let (_, words) = Self::NAMED.iter().chain(Self::READINGS).find(|(known, _)| *known == name)?;
        words.parse().ok()
    }

    /// The names that [`Self::named`] knows.
    fn names() -> Vec<&'static str> {
        let others = Self::NAMED.iter().chain(Self::READINGS).map(|(name, _)| *name);
        ["anabranch", "plain"].into_iter().chain(others).collect()
    }

    /// What is chosen in a family.
    pub fn choice(&self, family: Family) -> &Choice {
        match family {
            Family::Congestion => &self.congestion,
            Family::Scheduler => &self.scheduler,
            Family::PathManager => &self.path_manager,
            Family::Reliability => &self.reliability,
            Family::Forecaster => &self.forecaster,
        }
    }

    /// What is chosen in a family, to change.
    pub fn choice_mut(&mut self, family: Family) -> &mut Choice {
        match family {
            Family::Congestion => &mut self.congestion,
            Family::Scheduler => &mut self.scheduler,
            Family::PathManager => &mut self.path_manager,
            Family::Reliability => &mut self.reliability,
            Family::Forecaster => &mut self.forecaster,
        }
    }

    /// Changes what `words` say, separated by commas or white space, in their order: choosing a member puts its settings
    /// at their defaults. Whether members and settings exist is for [`Self::check`] to find out. When a word
    /// cannot be understood, nothing is changed.
    pub fn apply(&mut self, words: &str) -> Result<(), CombinationError> {
        let mut changed = self.clone();
        for word in words.split([',', ' ', '\t', '\n', '\r']).filter(|word| !word.is_empty()) {
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

    /// Whether each of the five can be made; the first that cannot is named. After a success the `build` functions
    /// do not fail.
    pub fn check(&self) -> Result<(), CombinationError> {
        self.build_congestion()?;
        self.build_scheduler()?;
        self.build_path_manager()?;
        self.build_reliability()?;
        self.build_forecaster()?;
        Ok(())
    }

    /// Makes the congestion control of one connection.
    pub fn build_congestion(&self) -> Result<Box<dyn CongestionControl>, CombinationError> {
        self.build(Family::Congestion, congestion::TABLE)
    }
    /// Makes the scheduler of one connection.
    pub fn build_scheduler(&self) -> Result<Box<dyn Scheduler>, CombinationError> {
        self.build(Family::Scheduler, scheduler::TABLE)
    }
    /// Makes the path manager of one host.
    pub fn build_path_manager(&self) -> Result<Box<dyn PathManager>, CombinationError> {
        self.build(Family::PathManager, path_manager::TABLE)
    }
    /// Makes the reliability policy of one connection.
    pub fn build_reliability(&self) -> Result<Box<dyn Reliability>, CombinationError> {
        self.build(Family::Reliability, reliability::TABLE)
    }
    /// Makes the forecaster of one link.
    pub fn build_forecaster(&self) -> Result<Box<dyn LinkForecaster>, CombinationError> {
        self.build(Family::Forecaster, forecast::TABLE)
    }

    fn build<P: ?Sized>(&self, family: Family, table: &'static [table::Member<P>]) -> Result<Box<P>, CombinationError> {
        let choice = self.choice(family);
        table::build(table, &choice.name, &choice.settings).map_err(|error| CombinationError::Setting { family, error })
    }
}

impl FromStr for Combination {
    type Err = CombinationError;

    /// The combination that the first word names, or else the default, changed by what the other words say, and checked.
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
    /// All five choices and their settings, in the words that [`Combination::apply`] understands.
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
