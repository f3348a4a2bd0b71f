//! What a sweep found out: the scores of each policy, as a table and for machines.

use super::score::{Group, PointScore, Score};
use crate::table;
use serde::Serialize;
use std::collections::BTreeMap;

/// A policy on the design.
#[derive(Clone, Debug, Serialize)]
pub struct PolicyOutcome {
    /// Its name.
    pub name: String,
    /// What it is made of.
    pub made_of: String,
    /// By group.
    pub scores: BTreeMap<&'static str, Score>,
    /// Point by point.
    #[serde(skip)]
    pub points: Vec<PointScore>,
}

impl PolicyOutcome {
    /// From its points.
    pub fn new(name: &str, made_of: String, points: Vec<PointScore>) -> Self {
        let mut scores = BTreeMap::new();
        for group in Group::ALL {
            let of: Vec<&PointScore> = points.iter().filter(|point| group.has(point.class)).collect();
            scores.extend(Score::of(&of).map(|score| (group.name(), score)));
        }
        Self { name: name.to_owned(), made_of, scores, points }
    }
}

/// Everything.
#[derive(Clone, Debug, Serialize)]
pub struct Outcome {
    /// Seed of the design.
    pub seed: u32,
    /// The first point.
    pub first: u32,
    /// Points of each class.
    pub classes: BTreeMap<&'static str, usize>,
    /// The program that did the runs.
    pub program: String,
    /// Commit that it was built from.
    pub commit: String,
    /// One per policy.
    pub policies: Vec<PolicyOutcome>,
}

/// The columns of the table.
const HEAD: [&str; 13] = [
    "policy", "Ben", "no loss", "loss", "changing", "decile", "worst", "<0 %", "<-5 %", "regret %", "decile %", "",
    "points",
];

impl Outcome {
    /// Which points these are.
    fn heading(&self) -> String {
        let count: usize = self.classes.values().sum();
        let classes: Vec<String> = self.classes.iter().map(|(class, count)| format!("{count} {class}")).collect();
        let last = self.first as usize + count.saturating_sub(1);
        format!("design of seed {}, points {} to {last}: {}", self.seed, self.first, classes.join(", "))
    }

    /// One line per policy.
    pub fn table(&self) -> String {
        let rows: Vec<Vec<String>> = self.policies.iter().map(row).collect();
        let explained = "Ben: median aggregation benefit, 1 the sum of the paths, 0 the best of them, of all points and of three \
                         groups; its worst decile and worst;\nshare of points below the best path, and more than 5 % below; \
                         regret to the best known: median and worst decile.\n";
        format!("{}\n\n{}\n{explained}", self.heading(), table::render(&HEAD, &rows))
    }
}

fn row(policy: &PolicyOutcome) -> Vec<String> {
    let of = |group: Group| policy.scores.get(group.name());
    let median = |group: Group| of(group).map_or("–".to_owned(), |score| format!("{:.2}", score.benefit_median));
    let percent = |share: f64| format!("{:.1}", share * 100.0);
    let mut cells = vec![policy.name.clone(), median(Group::All), median(Group::NoLoss), median(Group::Lossy)];
    cells.push(median(Group::One(super::design::Class::Changing)));
    if let Some(score) = of(Group::All) {
        cells.push(format!("{:.2}", score.benefit_worst_decile));
        cells.push(format!("{:.2}", score.benefit_worst));
        cells.push(percent(score.below_single));
        cells.push(percent(score.far_below_single));
        cells.push(percent(score.regret_median));
        cells.push(percent(score.regret_worst_decile));
        cells.push(String::new());
        cells.push(score.points.to_string());
    }
    cells
}
