//! Medians and ratios of what was measured in alternation.

/// The rates of each case, Gbit/s, by round.
pub struct Report {
    cases: Vec<(String, Vec<f64>)>,
}

impl Report {
    pub fn new<'a>(names: impl Iterator<Item = &'a str>) -> Self {
        Self { cases: names.map(|name| (name.to_owned(), Vec::new())).collect() }
    }

    pub fn add(&mut self, case: usize, rate: f64) {
        self.cases[case].1.push(rate);
    }

    /// Prints the median and the extremes of each case, and the median of its ratios to the case after it, round by round.
    pub fn print(&self) {
        for (at, (name, rates)) in self.cases.iter().enumerate() {
            let (low, middle, high) = spread(rates.clone());
            print!("  {name:48} {middle:6.2} Gbit/s ({low:.2} to {high:.2})");
            if let Some((_, others)) = self.cases.get(at + 1).filter(|(other, _)| other.starts_with("kernel to kernel"))
                && !name.starts_with("kernel to kernel")
            {
                let ratios = rates.iter().zip(others).map(|(ours, theirs)| ours / theirs).collect();
                let (low, middle, high) = spread(ratios);
                print!("   {middle:.2} of the next line ({low:.2} to {high:.2})");
            }
            println!();
        }
    }
}

/// Least, median, greatest.
fn spread(mut values: Vec<f64>) -> (f64, f64, f64) {
    values.sort_by(f64::total_cmp);
    let middle = (values[values.len() / 2] + values[(values.len() - 1) / 2]) / 2.0;
    (values[0], middle, values[values.len() - 1])
}
