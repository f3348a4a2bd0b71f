//! Verdicts: one per claim, with a cell for each baseline.

use crate::statistics::Estimate;
use serde::{Deserialize, Serialize};

/// Agreement of a measured with a published value.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Agreement {
    /// The published number is within the claim's tolerance or in the interval; an order holds and is as large as the
    /// paper's words imply.
    Reproduced,
    /// The direction agrees but the size does not; a number agrees within a factor of two.
    InPart,
    /// The interval includes both no effect and the published one: more runs are needed.
    Undecided,
    /// The direction is opposite, or the largest possible effect is less than half of the published one.
    Not,
    NotMeasured,
}

impl Agreement {
    /// Short text for tables.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Reproduced => "reproduced",
            Self::InPart => "in part",
            Self::Undecided => "undecided",
            Self::Not => "not reproduced",
            Self::NotMeasured => "not measured",
        }
    }
}

/// A claim compared with the runs on one baseline.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Cell {
    /// The baseline; none if the scenario has none.
    pub baseline: Option<String>,
    pub agreement: Agreement,
    /// The measured side with unit and interval.
    pub measured: String,
    /// The measured value: a share for a change, else in the metric's unit.
    pub estimate: Option<Estimate>,
    /// Both sides in a sentence without its full stop.
    pub sentence: String,
}

/// A claim compared with the runs.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Verdict {
    /// The figure or table of the paper.
    pub figure: String,
    /// The comparison: "mean throughput, LM3 against MPTCP".
    pub subject: String,
    /// The published side with unit.
    pub published: String,
    /// Source in the paper, in its words.
    pub note: String,
    /// Explanation of a deviation.
    pub reading: String,
    /// One per baseline.
    pub cells: Vec<Cell>,
}

impl Verdict {
    /// The best agreement over the baselines, in this order: reproduced, in part, undecided, not.
    pub fn best(&self) -> Agreement {
        let order = [Agreement::Reproduced, Agreement::InPart, Agreement::Undecided, Agreement::Not];
        let found = order.into_iter().find(|known| self.cells.iter().any(|cell| cell.agreement == *known));
        found.unwrap_or(Agreement::NotMeasured)
    }

    /// The verdict over all baselines: "reproduced", "in part", "reproduced only on papers_simulator".
    pub fn overall(&self) -> String {
        let best = self.best();
        let on: Vec<&str> = (self.cells.iter().filter(|cell| cell.agreement == best))
            .filter_map(|cell| cell.baseline.as_deref())
            .collect();
        let everywhere = on.len() == self.cells.len() || on.is_empty();
        match best {
            Agreement::Reproduced | Agreement::InPart if !everywhere => {
                format!("{} only on {}", best.word(), on.join(" and "))
            }
            _ => best.word().to_owned(),
        }
    }
}

/// Number of claims by best verdict, in the order of [`Agreement`].
pub fn count<'a>(verdicts: impl IntoIterator<Item = &'a Verdict>) -> Vec<(Agreement, usize)> {
    let all = [Agreement::Reproduced, Agreement::InPart, Agreement::Undecided, Agreement::Not, Agreement::NotMeasured];
    let mut counted: Vec<(Agreement, usize)> = all.into_iter().map(|agreement| (agreement, 0)).collect();
    for verdict in verdicts {
        let best = verdict.best();
        counted.iter_mut().filter(|(known, _)| *known == best).for_each(|(_, count)| *count += 1);
    }
    counted.retain(|(_, count)| *count > 0);
    counted
}

/// Verdicts for tests, here and of reports.
#[doc(hidden)]
pub mod samples {
    use super::{Agreement, Cell, Verdict};

    /// A verdict on these baselines; without any, on one without a name.
    pub fn verdict(cells: &[(&str, Agreement)]) -> Verdict {
        let cell = |(baseline, agreement): &(&str, Agreement)| Cell {
            baseline: (!baseline.is_empty()).then(|| (*baseline).to_owned()),
            agreement: *agreement,
            measured: "+8.4 % [+1.8, +15.1]".to_owned(),
            estimate: None,
            sentence: String::new(),
        };
        Verdict {
            figure: "figure 12".to_owned(),
            subject: "mean throughput, LM³ against MPTCP".to_owned(),
            published: "+27.97 %".to_owned(),
            note: String::new(),
            reading: String::new(),
            cells: cells.iter().map(cell).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::samples::verdict;
    use super::*;

    #[test]
    fn what_holds_on_one_baseline_only_is_said_of_that_one_alone() {
        use Agreement::{InPart, Not, NotMeasured, Reproduced, Undecided};
        let overall = |cells: &[(&str, Agreement)]| verdict(cells).overall();
        assert_eq!(overall(&[("a", Reproduced), ("b", Not), ("c", InPart)]), "reproduced only on a");
        assert_eq!(overall(&[("a", InPart), ("b", InPart), ("c", Not)]), "in part only on a and b");
        assert_eq!(overall(&[("a", Reproduced), ("b", Reproduced)]), "reproduced");
        assert_eq!(overall(&[("a", Not), ("b", Undecided)]), "undecided");
        assert_eq!(overall(&[("", Reproduced)]), "reproduced");
        assert_eq!(overall(&[("", NotMeasured)]), "not measured");
    }

    #[test]
    fn claims_are_counted_by_their_best_verdict() {
        use Agreement::{InPart, Not, Reproduced};
        let verdicts = [verdict(&[("a", Not), ("b", InPart)]), verdict(&[("a", Not)]), verdict(&[("a", InPart)])];
        assert_eq!(count(&verdicts), [(InPart, 2), (Not, 1)]);
        assert_eq!(count(&[verdict(&[("", Reproduced)])]), [(Reproduced, 1)]);
    }
}
