//! Compares all forecasters over several seeds.

use super::measures::{Interval, Measure, Score, interval};
use super::run::{Contender, run};
use super::setting::Setting;
use crate::mobility::MobilityError;
use anabranch_policy::forecast;
use anabranch_policy::table::{self, Settings};

#[derive(Clone, PartialEq, Debug)]
pub struct Row {
    pub name: String,
    /// Each of [`Measure::ALL`]: mean over seeds.
    pub means: [Interval; 4],
    /// Differences to `persistence` on the same seeds.
    pub differences: [Interval; 4],
    /// One per seed.
    pub scores: Vec<Score>,
}

impl Row {
    /// Whether it is better than `persistence` in a measure, with a 95 % interval of the difference that excludes 0.
    pub fn beats_persistence(&self, measure: Measure) -> bool {
        let Interval { mean, half_width } = self.differences[measure as usize];
        if measure.more_is_better() { mean > half_width } else { -mean > half_width }
    }
}

/// All members of the family at their defaults, `persistence` first, and the paper's pseudo-code applied to the loss
/// rate.
pub fn contenders() -> Vec<Contender> {
    let contender = |name: &'static str, title: &str, settings: Settings| Contender {
        name: title.to_owned(),
        make: Box::new(move || {
            table::build(forecast::TABLE, name, &settings).expect("a member of the table with settings of its own")
        }),
    };
    let mut all = vec![contender("persistence", "persistence", Settings::new())];
    for member in forecast::TABLE.iter().filter(|member| member.name != "persistence") {
        all.push(contender(member.name, member.name, Settings::new()));
        if member.name == "paper_literal" {
            let settings = Settings::new().with("quality", "reception");
            all.push(contender(member.name, "paper_literal, quality = reception", settings));
        }
    }
    all
}

/// Runs all contenders on all seeds, and compares them with the first. The last row is the oracle.
pub fn compare(
    setting: &Setting,
    contenders: &[Contender],
    seeds: impl IntoIterator<Item = u64>,
) -> Result<Vec<Row>, MobilityError> {
    let mut scores: Vec<Vec<Score>> = vec![Vec::new(); contenders.len() + 1];
    for seed in seeds {
        for (scores, links) in scores.iter_mut().zip(run(setting, contenders, seed)?) {
            scores.push(Score::of(&links));
        }
    }
    let first = scores.first().cloned().unwrap_or_default();
    let names = contenders.iter().map(|contender| contender.name.clone()).chain(["oracle".to_owned()]);
    let row = |(name, scores): (String, Vec<Score>)| {
        let means =
            Measure::ALL.map(|measure| interval(&scores.iter().map(|score| score.value(measure)).collect::<Vec<_>>()));
        let differences = Measure::ALL.map(|measure| {
            let difference = |(one, other): (&Score, &Score)| one.value(measure) - other.value(measure);
            interval(&scores.iter().zip(&first).map(difference).collect::<Vec<_>>())
        });
        Row { name, means, differences, scores }
    };
    Ok(names.zip(scores).map(row).collect())
}
