//! Results of the calibration: means, deviations of the lab with confidence intervals, and the verdict.

use super::cases::{Case, Span, Stack};
use crate::table;
use anabranch_lab::statistics::{Estimate, median, quantile, readable, relative_change};
use serde::Serialize;

/// One stack on one case: goodputs in Mbit/s, in order of seed.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Comparison {
    /// Simulated.
    pub lab: Vec<f64>,
    /// Measured in real time.
    pub emulated: Vec<f64>,
    /// Longest stall in real time, seconds.
    pub pauses: Vec<f64>,
    /// Segments that Linux acknowledged on their subflow and then dropped as beyond the connection's receive window.
    pub discarded: Vec<u64>,
}

impl Comparison {
    /// Deviation of the lab from the emulated mean, as a share, with the interval over pairs of seeds.
    pub fn deviation(&self) -> Option<Estimate> {
        relative_change(&self.lab, &self.emulated)
    }
}

#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Row {
    pub case: Case,
    /// The Anabranch engine.
    pub ours: Option<Comparison>,
    /// Linux.
    pub kernel: Option<Comparison>,
}

impl Row {
    pub fn of(&self, stack: Stack) -> Option<&Comparison> {
        match stack {
            Stack::Ours => self.ours.as_ref(),
            Stack::Kernel => self.kernel.as_ref(),
        }
    }
}

#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Outcome {
    /// Phases of each run.
    pub span: Span,
    pub rows: Vec<Row>,
    /// Runs repeated because the machine was too busy.
    pub repeated: usize,
    /// Runs that failed in all attempts.
    pub given_up: usize,
    /// Why Linux was not measured, if so.
    pub no_kernel: Option<String>,
    /// Short runs of a few cases with one seed: too few to judge Linux, whose runs vary by more than the limit.
    pub quick: bool,
    /// Version of the running kernel.
    pub release: String,
    /// Wall-clock duration, seconds.
    pub seconds: f64,
}

/// Deviation of the lab over all cases.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Verdict {
    pub cases: usize,
    /// Median of the absolute deviations, as a share.
    pub median: f64,
    /// 90th percentile of the absolute deviations.
    pub nine_of_ten: f64,
    /// Limit of the median.
    pub median_limit: f64,
    /// Limit of the 90th percentile.
    pub nine_of_ten_limit: Option<f64>,
}

impl Verdict {
    /// Whether the deviations are within the limits.
    pub fn holds(&self) -> bool {
        self.median <= self.median_limit && self.nine_of_ten_limit.is_none_or(|limit| self.nine_of_ten <= limit)
    }

    /// The verdict in one sentence.
    pub fn sentence(&self) -> String {
        let percent = |share: f64| format!("{:.1} %", share * 100.0);
        let limit = self.nine_of_ten_limit.map_or(String::new(), |limit| format!(" (asked: {})", percent(limit)));
        format!(
            "{} cases, median deviation {} (asked: {}), nine of ten within {}{limit}: {}",
            self.cases,
            percent(self.median),
            percent(self.median_limit),
            percent(self.nine_of_ten),
            if self.holds() { "holds" } else { "does not hold" }
        )
    }
}

impl Outcome {
    /// Columns of [`Self::cells`]: mean goodputs in Mbit/s, half width of the emulated 95 % interval, and the lab's
    /// deviation with its interval.
    pub const HEAD: [&'static str; 11] =
        ["case", "buffer", "control", "lab", "ours", "± %", "off %", "lab", "Linux", "± %", "off %"];

    /// Verdict on one stack; none if it was not measured.
    pub fn verdict(&self, stack: Stack) -> Option<Verdict> {
        let deviation = |row: &Row| Some(row.of(stack)?.deviation()?.mean.abs());
        let deviations: Vec<f64> = self.rows.iter().filter_map(deviation).collect();
        let (median_limit, nine_of_ten_limit) = match stack {
            Stack::Ours => (0.05, Some(0.15)),
            Stack::Kernel => (0.10, None),
        };
        (!deviations.is_empty()).then(|| Verdict {
            cases: deviations.len(),
            median: median(&deviations),
            nine_of_ten: quantile(&deviations, 0.9),
            median_limit,
            nine_of_ten_limit,
        })
    }

    /// Whether all stacks are within the limits. One of which every run was abandoned is not; one that the host does not have is not
    /// judged.
    pub fn holds(&self) -> bool {
        let judged: &[Stack] = if self.quick { &[Stack::Ours] } else { &[Stack::Ours, Stack::Kernel] };
        let tried = |stack: &&Stack| self.rows.iter().any(|row| row.of(**stack).is_some());
        judged.iter().filter(tried).all(|stack| self.verdict(*stack).is_some_and(|verdict| verdict.holds()))
    }

    /// Remarks below the table, one sentence each.
    pub fn remarks(&self) -> Vec<String> {
        let mut remarks = Vec::new();
        for (stack, name) in [(Stack::Ours, "our stack"), (Stack::Kernel, "Linux")] {
            remarks.extend(self.judged(stack).map(|said| format!("{name}: {said}")));
        }
        remarks.extend(self.no_kernel.as_ref().map(|reason| format!("Linux was skipped: {reason}")));
        remarks.extend(self.pauses());
        remarks.push(format!(
            "{} runs were repeated because the machine was too busy to be on time, {} abandoned",
            self.repeated, self.given_up
        ));
        remarks
    }

    /// The verdict on a stack in one sentence; none if it was not tried.
    fn judged(&self, stack: Stack) -> Option<String> {
        self.rows.iter().find_map(|row| row.of(stack))?;
        let nothing = || "all runs were abandoned, nothing was compared".to_owned();
        let sentence = self.verdict(stack).map_or_else(nothing, |verdict| verdict.sentence());
        let unjudged = if self.quick && stack == Stack::Kernel { ", not judged with --quick" } else { "" };
        Some(sentence + unjudged)
    }

    /// Remark on the longest stalls, and on segments that Linux dropped after their acknowledgement.
    fn pauses(&self) -> Option<String> {
        let longest = |stack: Stack| {
            let runs = self.rows.iter().filter_map(move |row| row.of(stack)).flat_map(|runs| runs.pauses.iter());
            runs.copied().fold(0.0, f64::max)
        };
        let drops = |row: &&Row| row.kernel.as_ref().is_some_and(|runs| runs.discarded.iter().any(|count| *count > 0));
        self.verdict(Stack::Kernel)?;
        Some(format!(
            "the longest time without a byte: {:.2} s with our stack, {:.2} s with Linux; in {} cases Linux dropped data beyond the \
             connection's window that it had acknowledged on a subflow",
            longest(Stack::Ours),
            longest(Stack::Kernel),
            self.rows.iter().filter(drops).count()
        ))
    }

    /// The table for the terminal.
    pub fn table(&self) -> String {
        let rows: Vec<Vec<String>> = self.rows.iter().map(|row| self.cells(row)).collect();
        let networks = self.rows.iter().map(|row| format!("{}: {}\n", row.case.name, row.case.describe()));
        format!("{}\n{}", networks.collect::<String>(), table::render(&Self::HEAD, &rows))
    }

    /// Cells of a row, for [`Self::table`] and the report.
    pub fn cells(&self, row: &Row) -> Vec<String> {
        let case = &row.case;
        let mut cells = vec![case.name.clone(), case.buffer(), case.congestion.to_owned()];
        for stack in [Stack::Ours, Stack::Kernel] {
            cells.extend(row.of(stack).map_or_else(|| ["–"; 4].map(str::to_owned), four));
        }
        cells
    }
}

/// Lab, emulated, its interval in per cent, and the deviation with its interval.
fn four(comparison: &Comparison) -> [String; 4] {
    let mean = |values: &[f64]| Estimate::of(values).map_or("–".to_owned(), |estimate| readable(estimate.mean));
    let luck = Estimate::of(&comparison.emulated).filter(|e| e.half_width.is_finite() && e.mean > 0.0);
    let luck = luck.map_or("–".to_owned(), |estimate| format!("{:.1}", estimate.half_width / estimate.mean * 100.0));
    let deviation = comparison.deviation().map_or("–".to_owned(), |deviation| match deviation.half_width {
        width if width.is_finite() => format!("{:+.1} ± {:.1}", deviation.mean * 100.0, width * 100.0),
        _ => format!("{:+.1}", deviation.mean * 100.0),
    });
    [mean(&comparison.lab), mean(&comparison.emulated), luck, deviation]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(deviations: &[f64]) -> Outcome {
        let case = super::super::cases::all().remove(0);
        let row = |deviation: &f64| Row {
            case: case.clone(),
            ours: Some(Comparison {
                lab: vec![10.0 * (1.0 + deviation)],
                emulated: vec![10.0],
                pauses: vec![0.0],
                discarded: vec![0],
            }),
            kernel: None,
        };
        Outcome {
            span: Span { warm_up: 1.0, measured: 1.0 },
            rows: deviations.iter().map(row).collect(),
            repeated: 0,
            given_up: 0,
            no_kernel: None,
            quick: false,
            release: String::new(),
            seconds: 0.0,
        }
    }

    #[test]
    fn the_lab_is_trusted_if_the_median_is_within_five_and_nine_of_ten_within_fifteen_per_cent() {
        let good = [0.01, -0.02, 0.03, -0.04, 0.049, -0.06, 0.07, 0.08, -0.14, 0.9];
        // The middle two absolute values are 4.9 % and 6 %.
        assert!(!outcome(&good).holds());
        let better = [0.01, -0.02, 0.03, -0.04, 0.04, -0.05, 0.07, 0.08, -0.14, 0.9];
        assert!(outcome(&better).holds());
        let worse = [0.01, -0.02, 0.03, -0.04, 0.04, -0.05, 0.07, 0.08, -0.16, 0.9];
        assert!(!outcome(&worse).holds());
    }

    #[test]
    fn a_stack_whose_runs_were_all_abandoned_does_not_hold() {
        let mut abandoned = outcome(&[0.0, 0.0]);
        for row in &mut abandoned.rows {
            row.ours.as_mut().unwrap().emulated.clear();
        }
        assert!(!abandoned.holds());
        assert_eq!(abandoned.remarks()[0], "our stack: all runs were abandoned, nothing was compared");
        assert!(abandoned.rows.iter().all(|row| row.kernel.is_none()), "which is not judged");
    }
}
