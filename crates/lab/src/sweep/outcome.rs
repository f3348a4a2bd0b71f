//! Results of a sweep: the scores of each policy, as a table and as JSON.

use super::point::Class;
use super::point_score::PointScore;
use super::score::{Group, Score};
use serde::Serialize;
use std::collections::BTreeMap;

/// Results of a policy on the design.
#[derive(Clone, Debug, Serialize)]
pub struct PolicyOutcome {
    pub name: String,
    /// Description of its parts.
    pub made_of: String,
    /// By group.
    pub scores: BTreeMap<&'static str, Score>,
    #[serde(skip)]
    pub points: Vec<PointScore>,
}

impl PolicyOutcome {
    /// Aggregation benefits on the points of a group.
    pub fn benefits(&self, group: Group) -> Vec<f64> {
        self.points.iter().filter(|point| group.has(point.class)).map(|point| point.benefit).collect()
    }

    /// Ratios of the 99th percentile of delay to TCP's, on all points with messages.
    pub fn delay_ratios(&self) -> Vec<f64> {
        self.points.iter().filter_map(|point| point.delay).map(|delay| delay.p99 / delay.tcp).collect()
    }

    /// Computes the scores from the points.
    pub fn new(name: &str, made_of: String, points: Vec<PointScore>) -> Self {
        let mut scores = BTreeMap::new();
        for group in Group::ALL {
            let of: Vec<&PointScore> = points.iter().filter(|point| group.has(point.class)).collect();
            scores.extend(Score::of(&of).map(|score| (group.name(), score)));
        }
        Self { name: name.to_owned(), made_of, scores, points }
    }
}

/// All results.
#[derive(Clone, Debug, Serialize)]
pub struct Outcome {
    /// Seed of the design.
    pub seed: u32,
    /// Index of the first point.
    pub first: u32,
    /// Number of points by class.
    pub classes: BTreeMap<&'static str, usize>,
    /// Build of the program.
    pub program: String,
    /// Commit of the program.
    pub commit: String,
    pub policies: Vec<PolicyOutcome>,
}

/// Columns of the table.
pub const HEAD: [&str; 15] = [
    "policy", "Ben", "no loss", "loss", "changing", "decile", "worst", "<0 %", "<-2 %", "<-5 %", "regret %", "decile",
    "p99 ms", "x TCP", "decile",
];

impl Outcome {
    /// Description of the points.
    pub fn heading(&self) -> String {
        let count: usize = self.classes.values().sum();
        let classes: Vec<String> = self.classes.iter().map(|(class, count)| format!("{count} {class}")).collect();
        let last = self.first as usize + count.saturating_sub(1);
        let design = if self.classes.contains_key(Class::Crowd.name()) { "second design" } else { "design" };
        format!("{design} of seed {}, points {} to {last}: {}", self.seed, self.first, classes.join(", "))
    }
}

/// Columns of the table of stalls, delays and competing traffic.
pub const CONDUCT_HEAD: [&str; 15] = [
    "policy",
    "worse %",
    "stall %",
    "longest s",
    "delay %",
    "x TCP",
    "decile",
    "lost %",
    "x TCP",
    "Jain",
    "decile",
    "others",
    "decile",
    "<0.8 %",
    "own",
];

/// Explanation of these columns.
pub const CONDUCT_EXPLAINED: &str = "\
worse: share of points on which goodput, stall or delay is worse than TCP's on its best path; stall: the longest is more than
0.5 s longer, and the longest of all; delay: that of 95 % of the data is more than 1.25 times TCP's, its ratio to TCP's, median
and worst decile. lost: packets dropped by queues, median, and the sum of all points over TCP's. Jain: index among the
connections of a crowd, median and worst decile. others: what TCP of others keeps of its fair share, mean and worst decile,
and the share of points on which it keeps less than 0.8; own: what the policy has of its own.";

/// Explanation of the columns.
pub const EXPLAINED: &str = "\
Ben: aggregation benefit, 1 the sum of the paths, 0 the best of them: median of all points and of those without loss, with
loss, and that change; worst decile and worst. <0, <-2, <-5: share of points below the best single path, more than 2 % below
(of which the headers of MPTCP take 1.9) and more than 5 %.
regret: what is missing to the best known, median and worst decile. p99: delay that 99 % of the messages at half load do not
exceed, median, and its ratio to that of TCP on its best path, median and worst decile.";

impl PolicyOutcome {
    /// Line of the table of stalls, delays and competing traffic; none if not measured.
    pub fn conduct(&self, group: Group) -> Option<Vec<String>> {
        let conduct = self.scores.get(group.name())?.conduct.as_ref()?;
        let percent = |share: f64| format!("{:.1}", share * 100.0);
        let two = |value: f64| format!("{value:.2}");
        let none = || "–".to_owned();
        let mut cells = vec![self.name.clone(), percent(conduct.worse), percent(conduct.longer_stall)];
        cells.extend([two(conduct.longest_stall), percent(conduct.longer_delay)]);
        cells.extend([conduct.delay_median, conduct.delay_worst_decile, conduct.loss_median].map(two));
        cells.push(conduct.loss_ratio.map_or_else(none, two));
        match conduct.crowd {
            Some(crowd) => {
                cells.extend([crowd.jain_median, crowd.jain_worst_decile].map(|index| format!("{index:.3}")))
            }
            None => cells.extend([none(), none()]),
        }
        match conduct.others {
            Some(others) => {
                cells.extend([others.share_mean, others.share_worst_decile].map(two));
                cells.extend([percent(others.harmed), two(others.own_mean)]);
            }
            None => cells.extend([none(), none(), none(), none()]),
        }
        Some(cells)
    }

    /// Shares of their fair share that competitors keep, on all points with competitors.
    pub fn shares_of_others(&self) -> Vec<f64> {
        self.points.iter().filter_map(|point| point.measured.get("others_share").copied()).collect()
    }

    /// Line of the table for a group; it includes medians of other groups.
    pub fn cells(&self, group: Group) -> Vec<String> {
        let of = |group: Group| self.scores.get(group.name());
        let median = |group: Group| of(group).map_or("–".to_owned(), |score| format!("{:.2}", score.benefit_median));
        let percent = |share: f64| format!("{:.1}", share * 100.0);
        let mut cells = vec![self.name.clone(), median(group)];
        cells.extend([Group::NoLoss, Group::Lossy, Group::One(Class::Changing)].map(median));
        let Some(score) = of(group) else { return cells };
        cells.extend([score.benefit_worst_decile, score.benefit_worst].map(|benefit| format!("{benefit:.2}")));
        cells.extend([score.below_single, score.well_below_single, score.far_below_single].map(percent));
        cells.extend([score.regret_median, score.regret_worst_decile].map(percent));
        match &score.messages {
            None => cells.extend(["–"; 3].map(str::to_owned)),
            Some(messages) => {
                cells.push(format!("{:.0}", messages.p99_median));
                cells.extend([messages.ratio_median, messages.ratio_worst_decile].map(|ratio| format!("{ratio:.2}")));
            }
        }
        cells
    }
}
