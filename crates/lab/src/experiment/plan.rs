//! What of a scenario is run: policies, baselines and seeds.

use crate::runs::Origin;
use crate::scenario::{Document, Scenario, check_route};
use crate::simulation::Extras;
use anabranch_settings::baseline;
use anabranch_settings::contender::{Contender, Surroundings, all_from_option, contenders, datagram_default};
use anabranch_settings::diagnostic::Diagnostic;
use std::ops::Range;
use std::path::Path;
use std::str::FromStr;

/// Options of an experiment.
#[derive(Clone, Debug, Default)]
pub struct Plan {
    /// Contenders as named on the command line; empty: the scenario's.
    pub policies: Vec<String>,
    /// Baselines as named on the command line; empty: the scenario's.
    pub baselines: Vec<String>,
    /// Only the first scheme, if the command line names none.
    pub first_policy_only: bool,
    /// Runs per contender; none: the scenario's number.
    pub seeds: Option<u32>,
    /// The first seed; none: 1.
    pub first_seed: Option<u64>,
    /// Fewer seeds and points.
    pub quick: bool,
    /// Whether to run the sweep and the sensitivity too.
    pub sweep: bool,
    /// Captures and similar additions to a run.
    pub extras: Extras,
}

impl Plan {
    /// So many seeds.
    pub fn seeds(&self, count: u32) -> Range<u64> {
        let first = self.first_seed.unwrap_or(1);
        first..first + u64::from(count)
    }

    /// Where the runs of a document come from.
    pub fn origin(&self, document: &Document) -> Origin {
        Origin::of(document, self.quick, &self.extras.own.name)
    }

    /// The seeds in a scenario.
    pub fn seeds_in(&self, scenario: &Scenario) -> Range<u64> {
        self.seeds(self.seeds.unwrap_or(if self.quick { scenario.seeds.quick } else { scenario.seeds.all }))
    }
}

/// Reduces the passes of a video for a quick run, and for points of a sweep or of the sensitivity.
pub fn shorten(scenario: &mut Scenario, plan: &Plan, point: bool) {
    let Some(video) = &mut scenario.video else { return };
    if point {
        video.repeats = video.repeats.min(video.sweep_repeats);
    }
    if plan.quick {
        video.repeats = video.repeats.min(video.quick_repeats);
    }
}

/// Replaces the scenario's baselines and contenders by those of the command line.
pub fn choose_policies(scenario: &mut Scenario, plan: &Plan) -> Result<(), Diagnostic> {
    if !plan.baselines.is_empty() {
        scenario.baselines.clear();
        for name in &plan.baselines {
            let wrong = |message: String| Diagnostic::option(&format!("--baseline {name}"), message);
            let found = baseline::find(name, Path::new("")).map_err(|error| wrong(error.message().to_owned()))?;
            if scenario.baselines.iter().any(|known| known.name == found.name) {
                return Err(wrong(format!("'{}' is named twice", found.name)));
            }
            scenario.baselines.push(found);
        }
        scenario.policies = contenders(&scenario.schemes, &scenario.baselines, &scenario.defaults);
    }
    if plan.policies.is_empty() {
        if plan.first_policy_only {
            let first = scenario.policies.first().map(|contender| contender.scheme.clone());
            scenario.policies.retain(|contender| Some(&contender.scheme) == first.as_ref());
        }
        let none = "no policy of the scenario is run under any of the baselines asked for";
        return if scenario.policies.is_empty() { Err(Diagnostic::plain(none)) } else { Ok(()) };
    }
    let names: Vec<&str> = scenario.paths.iter().map(|path| path.name.as_str()).collect();
    let around =
        Surroundings { schemes: &scenario.schemes, defaults: &scenario.defaults, baselines: &scenario.baselines };
    let mut chosen: Vec<Contender> = Vec::new();
    for text in &plan.policies {
        let wrong = |message: String| Diagnostic::option(&format!("--policy {text}"), message);
        for contender in all_from_option(text, &around).map_err(wrong)? {
            check_route(&contender, &names).map_err(wrong)?;
            if scenario.datagrams.is_empty() && contender.datagram != datagram_default() {
                return Err(wrong("a datagram policy decides nothing in a scenario without [[datagrams]]".to_owned()));
            }
            if chosen.iter().any(|known| known.name == contender.name) {
                return Err(wrong(format!("'{}' is named twice", contender.name)));
            }
            chosen.push(contender);
        }
    }
    scenario.policies = chosen;
    Ok(())
}

/// Seeds as a user writes them: `10` for the first ten, or `11..20` for the eleventh to the twentieth.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Seeds {
    /// None if only their number is given.
    pub first: Option<u64>,
    /// From 1.
    pub count: u32,
}

/// Most seeds at once.
const MOST_SEEDS: u64 = 100_000;
/// Highest seed.
const LAST_SEED: u64 = 1_000_000_000;

impl FromStr for Seeds {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let number = |text: &str| text.trim().parse::<u64>().ok().filter(|seed| (1..=LAST_SEED).contains(seed));
        let count = |count: u64| u32::try_from(count).ok().filter(|_| (1..=MOST_SEEDS).contains(&count));
        let seeds = match text.split_once("..") {
            None => number(text).and_then(count).map(|count| Self { first: None, count }),
            Some((first, last)) => number(first).zip(number(last)).and_then(|(first, last)| {
                Some(Self { first: Some(first), count: count((last + 1).checked_sub(first)?)? })
            }),
        };
        seeds.ok_or_else(|| format!("write their number, 1 to {MOST_SEEDS}, or the first and the last, as in 11..20"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeds_are_a_number_or_the_first_and_the_last() {
        assert_eq!("10".parse(), Ok(Seeds { first: None, count: 10 }));
        assert_eq!("11..20".parse(), Ok(Seeds { first: Some(11), count: 10 }));
        assert_eq!("7..7".parse(), Ok(Seeds { first: Some(7), count: 1 }));
        for wrong in ["0", "", "..", "5..", "..5", "5..4", "0..4", "1..100001", "x", "-1", "1..=3"] {
            assert!(wrong.parse::<Seeds>().is_err(), "{wrong}");
        }
    }
}
