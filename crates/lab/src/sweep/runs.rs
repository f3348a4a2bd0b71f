//! Executes runs that are not in the results file yet, the longest first, on all cores.

use super::cast::Entrant;
use super::journal::{Journal, Line, key};
use super::network::{Load, MESSAGE};
use super::point::Point;
use crate::progress::Progress;
use crate::simulation::{self, Extras};
use anabranch_settings::diagnostic::Diagnostic;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

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

    /// Cost, proportional to the expected number of packets.
    fn cost(&self) -> f64 {
        let span = self.load.span(self.point);
        let rate = match self.load {
            Load::Bulk => {
                self.paths.iter().filter_map(|place| self.point.paths.get(*place)).map(|path| path.rate).sum()
            }
            Load::Messages { interval, .. } => MESSAGE * 8e-6 / interval,
        };
        rate * (span.warm_up + span.counted)
    }

    fn name(&self) -> String {
        format!("point {}, {}", self.point.number, self.entrant.name())
    }

    fn run(&self) -> Result<BTreeMap<String, f64>, Diagnostic> {
        let fail = |error: Diagnostic| Diagnostic::plain(format!("{}: {}", self.name(), error.message()));
        let scenario = self.point.scenario(self.entrant, self.load).map_err(fail)?;
        let run = || simulation::run(&scenario, &self.entrant.contender, &self.paths, SEED, &Extras::default());
        let record = catch_unwind(AssertUnwindSafe(run))
            .unwrap_or_else(|_| Err(Diagnostic::plain("the program has a fault, see above")))
            .map_err(fail)?;
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
    /// Results of all runs, if complete.
    pub fn complete(self) -> Option<Vec<Line>> {
        self.lines.into_iter().collect()
    }
}

/// Executes tasks, telling `progress` their name; when `stop` is set, ends after the present runs.
pub fn all(
    tasks: &[Task<'_>],
    journal: &Journal,
    jobs: usize,
    stop: &AtomicBool,
    (what, progress): (&str, &dyn Progress),
) -> Result<Batch, Diagnostic> {
    let keys: Vec<String> = tasks.iter().map(Task::key).collect();
    let mut lines: Vec<Option<Line>> = keys.iter().map(|key| journal.find(key).cloned()).collect();
    let mut open: Vec<usize> = (0..tasks.len()).filter(|place| lines[*place].is_none()).collect();
    // A stable sort keeps the runs of a point together.
    open.sort_by(|a, b| tasks[*b].cost().total_cmp(&tasks[*a].cost()));
    if !tasks.is_empty() {
        let (all, known) = (tasks.len(), tasks.len() - open.len());
        progress.remark(&format!("{what}: {all} runs, of which {known} are there already"));
    }
    let units = |place: &usize| tasks[*place].cost() as u64 + 1;
    progress.begin(&format!("{what}, {} runs", open.len()), open.iter().map(units).sum());
    let (next, done) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let work = || {
        while let Some(place) = open.get(next.fetch_add(1, Ordering::Relaxed)).copied() {
            if stop.load(Ordering::Relaxed) {
                break;
            }
            let task = &tasks[place];
            let line = task.run().and_then(|measured| {
                let (program, policy) = (journal.program().to_owned(), task.entrant.name().to_owned());
                let paths = task.paths.clone();
                let line =
                    Line { key: keys[place].clone(), program, point: task.point.number, policy, paths, measured };
                journal.append(&line).map(|()| line)
            });
            progress.done(units(&place));
            if line.is_err() {
                stop.store(true, Ordering::Relaxed);
            }
            done.lock().unwrap_or_else(PoisonError::into_inner).push((place, line));
        }
    };
    thread::scope(|scope| {
        for _ in 1..jobs.min(open.len()) {
            scope.spawn(work);
        }
        work();
    });
    let finished = done.into_inner().unwrap_or_else(PoisonError::into_inner);
    for (place, line) in finished {
        lines[place] = Some(line?);
    }
    Ok(Batch { lines })
}
