//! Results of the runs in real time: aggregation benefit of Anabranch and of the kernel's MPTCP, per point and in
//! total.

use super::trial::Goodput;
use super::who::Who;
use crate::calibrate::side_by_side::Tally;
use crate::table;
use anabranch_lab::statistics::{median, quantile};
use anabranch_lab::sweep::point::{Class, Point};
use anabranch_lab::sweep::point_score::benefit;
use anabranch_lab::sweep::score::Group;
use serde::Serialize;

/// Result of one stack on a point.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Carried {
    /// Mbit/s in the measured span.
    pub goodput: f64,
    pub benefit: f64,
    /// Mbit/s from the first SYN to the end of the span.
    pub from_first_syn: f64,
}

/// Results on a point.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Row {
    /// Index of the point in the design.
    pub point: u32,
    pub class: Class,
    /// Description of the network.
    pub network: String,
    /// Goodput of the kernel's TCP on each path, Mbit/s.
    pub singles: Vec<f64>,
    /// Anabranch.
    pub ours: Carried,
    /// The kernel's MPTCP.
    pub kernel: Carried,
    /// The kernel's MPTCP with BBR, if available.
    pub kernel_bbr: Option<Carried>,
}

/// Result of one stack over all points.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Summary {
    /// Name of the stack.
    pub name: String,
    /// Number of points.
    pub points: usize,
    /// Aggregation benefit: median.
    pub median: f64,
    /// Median over points without loss.
    pub median_no_loss: Option<f64>,
    /// Median over points with loss.
    pub median_lossy: Option<f64>,
    /// 10th percentile.
    pub worst_decile: f64,
    /// Minimum.
    pub worst: f64,
    /// Share of points below the best single path.
    pub below_single: f64,
    /// Share of points more than 5 % below it.
    pub far_below_single: f64,
}

/// All results.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Rivals {
    /// Policy of Anabranch.
    pub policy: String,
    /// Commit of the program.
    pub commit: String,
    /// Version of the running kernel.
    pub release: String,
    /// Load averages of the machine over 1 and 15 minutes, at the end.
    pub load: String,
    /// Runs repeated because the machine was too busy.
    pub repeated: usize,
    /// Failed runs; their points are not in the table.
    pub given_up: usize,
    /// Anabranch, the kernel, and the kernel with BBR if available.
    pub summaries: Vec<Summary>,
    /// Points on which Anabranch has the higher goodput.
    pub ahead: usize,
    /// Points on which its goodput is more than 5 % below the kernel's; and of these, those on which it also carried
    /// less from the first SYN on.
    pub behind: [usize; 2],
    pub rows: Vec<Row>,
}

/// Columns of the summary table.
pub const HEAD: [&str; 9] = ["", "points", "median", "no loss", "loss", "worst decile", "worst", "<0 %", "<-5 %"];
/// Columns of the table of points.
const POINTS: [&str; 13] =
    ["point", "TCP", "", "", "ours", "Ben", "from SYN", "kernel", "Ben", "from SYN", "with BBR", "Ben", "from SYN"];
/// The same of the CSV file.
const CSV: &str = "point,class,tcp_mbit_s,ours_mbit_s,ours_benefit,ours_from_first_syn,kernel_mbit_s,kernel_benefit,\
                   kernel_from_first_syn,kernel_bbr_mbit_s,kernel_bbr_benefit,kernel_bbr_from_first_syn";
/// A goodput below this share of the kernel's is behind it.
const BEHIND: f64 = 0.95;

impl Rivals {
    /// Computes it from goodputs in Mbit/s; points with missing runs are left out.
    pub fn new(policy: &str, points: &[Point], goodput: impl Fn(u32, Who) -> Option<Goodput>, tally: Tally) -> Self {
        let row = |point: &Point| {
            let of = |who| goodput(point.number, who);
            let single = |path| of(Who::Tcp(path)).map(|tcp| tcp.measured);
            let singles: Vec<f64> = (0..point.paths.len()).map(single).collect::<Option<_>>()?;
            let result = |of: Goodput| Carried {
                goodput: of.measured,
                benefit: benefit(of.measured, &singles),
                from_first_syn: of.from_first_syn,
            };
            let (ours, kernel) = (result(of(Who::Ours)?), result(of(Who::Kernel)?));
            let kernel_bbr = of(Who::KernelBbr).map(result);
            let network = point.describe();
            Some(Row { point: point.number, class: point.class, network, ours, kernel, kernel_bbr, singles })
        };
        let rows: Vec<Row> = points.iter().filter_map(row).collect();
        let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default().trim().to_owned();
        Self {
            policy: policy.to_owned(),
            commit: anabranch_lab::build::commit(),
            release: read("/proc/sys/kernel/osrelease"),
            load: read("/proc/loadavg"),
            repeated: tally.repeated,
            given_up: tally.given_up,
            summaries: [
                Summary::new(policy, &rows, |row| Some(row.ours)),
                Summary::new("kernel", &rows, |row| Some(row.kernel)),
                Summary::new("kernel_bbr", &rows, |row| row.kernel_bbr),
            ]
            .into_iter()
            .flatten()
            .collect(),
            ahead: rows.iter().filter(|row| row.ours.goodput > row.kernel.goodput).count(),
            behind: [Row::is_behind, |row: &Row| row.is_behind() && row.is_behind_from_first_syn()]
                .map(|counts| rows.iter().filter(|row| counts(row)).count()),
            rows,
        }
    }

    /// Description of the measurement in one sentence.
    pub fn heading(&self) -> String {
        format!(
            "{} points in real time, Linux {} as receiver, load {}; {} runs repeated because the machine was too busy, {} \
             abandoned; ours ahead on {}, more than 5 % behind the kernel on {} (from the first SYN on {} of these)",
            self.rows.len(),
            self.release,
            self.load,
            self.repeated,
            self.given_up,
            self.ahead,
            self.behind[0],
            self.behind[1]
        )
    }

    /// The table for the terminal.
    pub fn table(&self) -> String {
        let lines = |row: &Row| format!("{:4} {}: {}\n", row.point, row.class.name(), row.network);
        let networks: String = self.rows.iter().map(lines).collect();
        let points: Vec<Vec<String>> = self.rows.iter().map(Row::cells).collect();
        format!(
            "{}\n\n{networks}\n{}\n{}\n",
            self.heading(),
            table::render(&POINTS, &points),
            table::render(&HEAD, &self.cells())
        )
    }

    /// A line per point, with a header.
    pub fn csv(&self) -> String {
        self.rows.iter().fold(format!("{CSV}\n"), |text, row| {
            let class = row.class.name();
            format!("{text}{},{class},{},{}\n", row.point, row.of_each_path(), row.carried().join(","))
        })
    }

    /// Cells of the summary table.
    pub fn cells(&self) -> Vec<Vec<String>> {
        self.summaries.iter().map(Summary::cells).collect()
    }
}

impl Row {
    fn is_behind(&self) -> bool {
        self.ours.goodput < self.kernel.goodput * BEHIND
    }

    fn is_behind_from_first_syn(&self) -> bool {
        self.ours.from_first_syn < self.kernel.from_first_syn * BEHIND
    }

    /// Goodput of TCP on each path.
    pub fn of_each_path(&self) -> String {
        let singles: Vec<String> = self.singles.iter().map(|rate| format!("{rate:.2}")).collect();
        singles.join(" + ")
    }

    fn cells(&self) -> Vec<String> {
        let mut cells = vec![self.point.to_string()];
        cells.extend((0..3).map(|path| self.singles.get(path).map_or(String::new(), |rate| format!("{rate:.2}"))));
        cells.extend(self.carried());
        cells
    }

    /// Goodput, benefit, and goodput from the first SYN on of each stack; empty cells for a stack that was not run.
    pub fn carried(&self) -> Vec<String> {
        let cells = |of: Carried| {
            [format!("{:.2}", of.goodput), format!("{:+.2}", of.benefit), format!("{:.2}", of.from_first_syn)]
        };
        let all = [Some(self.ours), Some(self.kernel), self.kernel_bbr];
        all.into_iter().flat_map(|carried| carried.map_or_else(Default::default, cells)).collect()
    }
}

impl Summary {
    /// None if there are no points.
    fn new(name: &str, rows: &[Row], of: impl Fn(&Row) -> Option<Carried>) -> Option<Self> {
        let benefits = |group: Group| -> Vec<f64> {
            let rows = rows.iter().filter(|row| group.has(row.class));
            rows.filter_map(|row| of(row).map(|carried| carried.benefit)).collect()
        };
        let all = benefits(Group::All);
        let below = |limit: f64| all.iter().filter(|benefit| **benefit < limit).count() as f64 / all.len() as f64;
        let median_of = |group: Group| Some(benefits(group)).filter(|some| !some.is_empty()).map(|some| median(&some));
        Some(Self {
            name: name.to_owned(),
            points: all.len(),
            median: median_of(Group::All)?,
            median_no_loss: median_of(Group::NoLoss),
            median_lossy: median_of(Group::Lossy),
            worst_decile: quantile(&all, 0.1),
            worst: all.iter().copied().fold(f64::INFINITY, f64::min),
            below_single: below(0.0),
            far_below_single: below(-0.05),
        })
    }

    fn cells(&self) -> Vec<String> {
        let benefit = |benefit: Option<f64>| benefit.map_or("–".to_owned(), |benefit| format!("{benefit:+.2}"));
        let mut cells = vec![self.name.clone(), self.points.to_string()];
        cells.extend([Some(self.median), self.median_no_loss, self.median_lossy].map(benefit));
        cells.extend([Some(self.worst_decile), Some(self.worst)].map(benefit));
        cells.extend([self.below_single, self.far_below_single].map(|share| format!("{:.1}", share * 100.0)));
        cells
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sweep::rivals::draw;

    #[test]
    fn benefits_are_those_of_the_kernels_tcp_on_each_path_and_a_point_with_a_gap_is_left_out() {
        let points = draw::points(1, 2, 2);
        let goodput = |number: u32, who: Who| {
            let measured = match who {
                // TCP has 6 and 2 Mbit/s, and nothing on further paths: Anabranch (7 - 6) / 2, the kernel (3 - 6) / 6.
                Who::Tcp(0) => Some(6.0),
                Who::Tcp(1) => Some(2.0),
                Who::Tcp(_) => Some(0.0),
                Who::Ours => Some(7.0),
                Who::Kernel => (number == points[0].number).then_some(3.0),
                Who::KernelBbr => None,
            };
            measured.map(|measured| Goodput { measured, from_first_syn: measured / 2.0 })
        };
        let outcome = Rivals::new("anabranch", &points, goodput, Tally::default());
        assert_eq!((outcome.rows.len(), outcome.ahead), (1, 1));
        assert_eq!((outcome.rows[0].ours.benefit, outcome.rows[0].kernel.benefit), (0.5, -0.5));
        let worst: Vec<f64> = outcome.summaries.iter().map(|summary| summary.worst_decile).collect();
        assert_eq!(worst, [0.5, -0.5]);
        assert_eq!(outcome.summaries[1].far_below_single, 1.0);
        let csv = outcome.csv();
        let line = csv.lines().nth(1).expect("a point");
        assert!(line.ends_with(",7.00,+0.50,3.50,3.00,-0.50,1.50,,,"), "{csv}");
        assert_eq!(line.split(',').count(), csv.split('\n').next().expect("a header").split(',').count());
    }

    /// A point on which the kernel has a goodput of 10 Mbit/s, and of 4 from the first SYN on.
    fn behind(measured: f64, from_first_syn: f64) -> [usize; 2] {
        let goodput = |_: u32, who: Who| match who {
            Who::Ours => Some(Goodput { measured, from_first_syn }),
            _ => Some(Goodput { measured: 10.0, from_first_syn: 4.0 }),
        };
        Rivals::new("anabranch", &draw::points(1, 0, 1), goodput, Tally::default()).behind
    }

    #[test]
    fn a_point_5_percent_below_the_kernel_is_counted_also_from_the_first_syn_on() {
        assert_eq!([behind(9.6, 1.0), behind(9.4, 3.9), behind(9.4, 3.7)], [[0, 0], [1, 0], [1, 1]]);
    }
}
