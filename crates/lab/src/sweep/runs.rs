//! Executes runs that are not in the results file yet, the longest first, on all cores.

use super::cast::Entrant;
use super::journal::{Journal, Line};
use super::network::{Load, MESSAGE};
use super::point::Point;
use crate::journal::{key, program};
use crate::runner::{self, Runner};
use crate::simulation::{self, Extras};
use anabranch_settings::diagnostic::Diagnostic;
use std::collections::BTreeMap;

/// Seed of all runs. Random streams of a path also derive from its name, which includes the point.
const SEED: u64 = 1;

/// Metrics kept of a run.
pub const MEASURED: [&str; 19] = [
    "throughput",
    "delay",
    "peak_out_of_order_dsn",
    "blocked_episodes",
    "timeouts",
    "retransmitted",
    "reinjected",
    "duplicated",
    "dropped_queue",
    "longest_stall",
    "delay_p95",
    "loss_caused",
    "jain",
    "least_share",
    "own_share",
    "others_share",
    "messages",
    "message_delay",
    "message_delay_p99",
];

#[derive(Clone, Debug)]
pub struct Task<'a> {
    pub point: &'a Point,
    pub entrant: &'a Entrant,
    /// Indices of the paths that it may use.
    pub paths: Vec<usize>,
    pub load: Load,
}

impl Task<'_> {
    /// Key of the run in the results file.
    pub fn key(&self) -> String {
        let paths: Vec<String> = self.paths.iter().map(usize::to_string).collect();
        let text = self.point.text(self.entrant.ends, self.load);
        key(&[&text, &self.entrant.fingerprint(), &paths.join(","), &SEED.to_string()])
    }
}

impl runner::Task for Task<'_> {
    type Done = BTreeMap<String, f64>;

    /// Proportional to the expected number of packets.
    fn cost(&self) -> u64 {
        let span = self.load.span(self.point);
        let rate: f64 = match self.load {
            Load::Bulk => {
                self.paths.iter().filter_map(|place| self.point.paths.get(*place)).map(|path| path.rate).sum()
            }
            Load::Messages { interval, .. } => MESSAGE * 8e-6 / interval,
        };
        (rate * (span.warm_up + span.counted)) as u64 + 1
    }

    fn name(&self) -> String {
        format!("point {}, {}", self.point.number, self.entrant.name())
    }

    fn run(&self) -> Result<Self::Done, Diagnostic> {
        self.measure(&Extras::default())
    }
}

impl Task<'_> {
    /// Executes it, with the policies of `extras` in place of the entrant's where there are some.
    ///
    /// # Errors
    /// The scenario cannot be run.
    pub fn measure(&self, extras: &Extras) -> Result<BTreeMap<String, f64>, Diagnostic> {
        use runner::Task as _;
        let fail = |error: Diagnostic| Diagnostic::plain(format!("{}: {}", self.name(), error.message()));
        let scenario = self.point.scenario(self.entrant, self.load).map_err(fail)?;
        let record = simulation::run(&scenario, &self.entrant.contender, &self.paths, SEED, extras).map_err(fail)?;
        let measured = |name: &&str| Some(((*name).to_owned(), record.metric(name)?));
        Ok(MEASURED.iter().filter_map(measured).filter(|(_, value)| value.is_finite()).collect())
    }
}

/// Result of a batch of runs.
#[derive(Clone, PartialEq, Debug)]
pub struct Batch {
    /// Results in the order of the tasks; none for runs that were not executed.
    lines: Vec<Option<Line>>,
}

impl Batch {
    /// Of results in the order of the tasks.
    pub fn of(lines: Vec<Option<Line>>) -> Self {
        Self { lines }
    }

    /// Results of all runs, if complete.
    pub fn complete(self) -> Option<Vec<Line>> {
        self.lines.into_iter().collect()
    }
}

/// Executes the tasks that are not in the results file yet, which progress calls `what`.
///
/// # Errors
/// A run cannot be executed, or its results cannot be written.
pub fn all(tasks: &[Task<'_>], journal: &Journal, runner: &Runner<'_>, what: &str) -> Result<Batch, Diagnostic> {
    let keys: Vec<String> = tasks.iter().map(Task::key).collect();
    let mut lines: Vec<Option<Line>> = keys.iter().map(|key| journal.find(key).cloned()).collect();
    let open: Vec<usize> = (0..tasks.len()).filter(|place| lines[*place].is_none()).collect();
    if !tasks.is_empty() {
        let (all, known) = (tasks.len(), tasks.len() - open.len());
        runner.progress.remark(&format!("{what}: {all} runs, of which {known} are there already"));
    }
    let wanted: Vec<Task<'_>> = open.iter().map(|place| tasks[*place].clone()).collect();
    let cost = wanted.iter().map(runner::Task::cost).sum();
    runner.progress.begin(&format!("{what}, {} runs", open.len()), cost);
    let line = |at: usize, measured: &BTreeMap<String, f64>| {
        let (task, key) = (&wanted[at], keys[open[at]].clone());
        let (program, policy) = (program().to_owned(), task.entrant.name().to_owned());
        let (point, paths, measured) = (task.point.number, task.paths.clone(), measured.clone());
        Line { key, program, point, policy, paths, measured }
    };
    let done = runner.all(&wanted, &|at, measured| journal.append(&line(at, measured)))?;
    for (at, measured) in done.iter().enumerate() {
        lines[open[at]] = measured.as_ref().map(|measured| line(at, measured));
    }
    Ok(Batch { lines })
}
