//! Medians and ratios of what was measured in alternation.

use crate::transfer::Rate;

/// What cases are compared with: the one that follows.
const REFERENCE: &str = "kernel to kernel";

/// The rates of each case, by round.
pub struct Report {
    cases: Vec<(String, Vec<Rate>)>,
}

impl Report {
    pub fn new<'a>(names: impl Iterator<Item = &'a str>) -> Self {
        Self { cases: names.map(|name| (name.to_owned(), Vec::new())).collect() }
    }

    pub fn add(&mut self, case: usize, rate: Rate) {
        self.cases[case].1.push(rate);
    }

    /// Prints the median and the extremes of each case, and of the ratios of ours to the kernel's, round by round.
    pub fn print(&self) {
        println!("  {:46}  {:^20}  {:^28}", "", "Gbit/s", "Gbit per second of core 0");
        for (name, rates) in &self.cases {
            let [clock, core] = both(rates.iter().copied()).map(|spread| spread.map(|value| format!("{value:.2}")));
            println!(
                "  {name:46}  {:>6} ({:>5} - {:>5})  {:>6} ({:>5} - {:>5})",
                clock[1], clock[0], clock[2], core[1], core[0], core[2]
            );
        }
        for pair in self.cases.windows(2) {
            let [(name, rates), (other, others)] = pair else { continue };
            if name.starts_with(REFERENCE) || !other.starts_with(REFERENCE) {
                continue;
            }
            let ratio = |(ours, theirs): (&Rate, &Rate)| Rate {
                by_clock: ours.by_clock / theirs.by_clock,
                by_core: ours.by_core / theirs.by_core,
            };
            let [clock, core] =
                both(rates.iter().zip(others).map(ratio)).map(|spread| spread.map(|value| format!("{value:.2}")));
            let name = format!("{name}, of {}", REFERENCE);
            println!(
                "  {name:46}  {:>6} ({:>5} - {:>5})  {:>6} ({:>5} - {:>5})",
                clock[1], clock[0], clock[2], core[1], core[0], core[2]
            );
        }
    }
}

/// The spread by clock and by core.
fn both(rates: impl Iterator<Item = Rate>) -> [[f64; 3]; 2] {
    let (clock, core) = rates.map(|rate| (rate.by_clock, rate.by_core)).unzip();
    [spread(clock), spread(core)]
}

/// Least, median, greatest.
fn spread(mut values: Vec<f64>) -> [f64; 3] {
    values.sort_by(f64::total_cmp);
    let middle = (values[values.len() / 2] + values[(values.len() - 1) / 2]) / 2.0;
    [values[0], middle, values[values.len() - 1]]
}
