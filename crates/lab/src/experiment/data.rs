//! All combinations of a grid, contenders and seeds, as rows only: without figures, time series and verdicts.

use super::job::{Job, References, jobs_of};
use super::plan::{Plan, choose_policies, shorten};
use crate::journal::key;
use crate::runner::{Runner, Task};
use crate::runs::{Grid, Keep, Origin, Shard};
use crate::scenario::{Document, Scenario};
use crate::simulation::Extras;
use anabranch_settings::diagnostic::Diagnostic;
use std::ops::Range;

/// Combinations of the grid that are held in memory at once.
const AT_ONCE: usize = 64;

/// Runs of a document at all combinations of a grid; a shard of them.
#[derive(Clone, Debug)]
pub struct Data<'a> {
    pub document: &'a Document,
    pub plan: &'a Plan,
    pub grid: Grid,
    pub shard: Shard,
}

/// What became of the runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Done {
    /// Runs of the shard.
    pub runs: usize,
    /// Of these, runs whose rows were there already.
    pub known: usize,
    /// Of these, runs executed now.
    pub executed: usize,
}

impl Done {
    /// Whether all runs are there.
    pub fn is_complete(self) -> bool {
        self.known + self.executed == self.runs
    }
}

/// A run of which nothing but its row remains.
struct Kept<'a> {
    job: Job<'a>,
    store: &'a dyn Keep,
}

impl Task for Kept<'_> {
    type Done = ();

    fn cost(&self) -> u64 {
        self.job.cost()
    }

    fn name(&self) -> String {
        self.job.name()
    }

    fn run(&self) -> Result<(), Diagnostic> {
        self.job.keep(self.store, &self.job.run()?)
    }
}

/// The scenario at one combination.
struct Point {
    scenario: Scenario,
    seeds: Range<u64>,
    references: References,
    origin: Origin,
}

impl Data<'_> {
    /// Reads the scenario at all combinations, so that a mistake is told before the first run; gives the number of runs
    /// of all shards.
    ///
    /// # Errors
    /// The scenario is wrong at one of them, or an option sets a parameter of the grid.
    pub fn check(&self) -> Result<usize, Diagnostic> {
        self.grid.check_beside(&self.document.source.options)?;
        let extras = self.extras();
        self.grid
            .points()
            .into_iter()
            .try_fold(0, |runs, grid| Ok(runs + self.point(grid, &extras)?.jobs(&extras).len()))
    }

    /// Seeds and keys, as rows have them, of the runs of all shards.
    ///
    /// # Errors
    /// The scenario is wrong at one of the combinations.
    pub fn keys(&self) -> Result<Vec<(u64, String)>, Diagnostic> {
        let (extras, mut keys) = (self.extras(), Vec::new());
        for grid in self.grid.points() {
            keys.extend(self.point(grid, &extras)?.jobs(&extras).iter().map(|job| (job.seed, job.key())));
        }
        Ok(keys)
    }

    /// Those of all runs.
    fn extras(&self) -> Extras {
        let Extras { wire, own, .. } = self.plan.extras.clone();
        Extras { wire, own, ..Extras::default() }
    }

    /// Executes the runs of the shard that are not in the store, and appends their rows.
    ///
    /// # Errors
    /// A run cannot be executed, or its row cannot be written; rows that were written stay.
    pub fn run(&self, store: &dyn Keep, runner: &Runner<'_>) -> Result<Done, Diagnostic> {
        let plan = self.key();
        store.part(&plan, self.shard, false)?;
        let extras = self.extras();
        let (mut done, mut place) = (Done::default(), 0);
        for points in self.grid.points().chunks(AT_ONCE) {
            let points: Vec<Point> =
                points.iter().map(|grid| self.point(grid.clone(), &extras)).collect::<Result<_, _>>()?;
            let mut jobs: Vec<Job<'_>> = points.iter().flat_map(|point| point.jobs(&extras)).collect();
            let before = place;
            place += jobs.len();
            let mut at = before..place;
            jobs.retain(|_| at.next().is_some_and(|place| self.shard.has(place)));
            let all = jobs.len();
            jobs.retain(|job| !store.knows(&job.key()));
            done.runs += all;
            done.known += all - jobs.len();
            let cost = jobs.iter().map(Task::cost).sum();
            runner.progress.begin(&format!("{}, {} runs", points[0].scenario.name, jobs.len()), cost);
            let kept: Vec<Kept<'_>> = jobs.into_iter().map(|job| Kept { job, store }).collect();
            // Once it is stopped, the rest is only counted.
            done.executed += runner.all(&kept, &|_, ()| Ok(()))?.iter().flatten().count();
        }
        if done.is_complete() {
            store.part(&plan, self.shard, true)?;
        }
        Ok(done)
    }

    /// Hash of all shards together.
    fn key(&self) -> String {
        let Plan { policies, baselines, first_policy_only, seeds, first_seed, quick, sweep: _, extras: _ } = self.plan;
        let plan = format!("{policies:?} {baselines:?} {first_policy_only} {seeds:?} {first_seed:?} {quick}");
        let source = &self.document.source;
        key(&[&source.text, &format!("{:?}", source.options), &format!("{:?}", self.grid), &plan])
    }

    fn point(&self, grid: Vec<(String, String)>, extras: &Extras) -> Result<Point, Diagnostic> {
        let at = |document: Document, (key, value): &(String, String)| document.with(format!("{key}={value}"));
        let document = grid.iter().fold(self.document.clone(), at);
        let mut scenario = document.scenario().map_err(|error| error.of_grid(&grid))?;
        let names = scenario.results.metrics.iter().map(|own| &own.name);
        if let Some((key, _)) = names.clone().find_map(|name| grid.iter().find(|(key, _)| key == name)) {
            let message = format!("the scenario has a metric '{key}', which would have the parameter's column");
            return Err(Diagnostic::option(&format!("--grid {key}"), message));
        }
        choose_policies(&mut scenario, self.plan)?;
        shorten(&mut scenario, self.plan, false);
        let seeds = self.plan.seeds_in(&scenario);
        let references = References::of(&scenario, &seeds, extras);
        Ok(Point { scenario, seeds, references, origin: self.plan.origin(self.document).at(grid) })
    }
}

impl Point {
    fn jobs<'a>(&'a self, extras: &'a Extras) -> Vec<Job<'a>> {
        jobs_of(&self.scenario, &self.seeds, &self.references, (extras, extras), &self.origin)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::library::SCENARIOS;
    use crate::progress::Progress;
    use crate::runs::Memory;
    use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

    /// Stops everything after so many units of work.
    struct StopAfter<'a> {
        left: AtomicU64,
        stop: &'a AtomicBool,
    }

    impl Progress for StopAfter<'_> {
        fn begin(&self, _: &str, _: u64) {}

        fn done(&self, units: u64) {
            if self.left.fetch_sub(units, Ordering::Relaxed) <= units {
                self.stop.store(true, Ordering::Relaxed);
            }
        }

        fn remark(&self, _: &str) {}
    }

    #[test]
    fn a_parameter_of_the_grid_is_said_once_and_is_no_metric() {
        let known = SCENARIOS.iter().find(|known| known.name == "two_paths").unwrap();
        let plan = Plan::default();
        let told = |option: &str| {
            let document = known.document(&[option.to_owned()]);
            let grid = Grid::read(&["duration=\"3 s\"".to_owned()]).unwrap();
            let checked = Data { document: &document, plan: &plan, grid, shard: Shard::WHOLE }.check();
            checked.map_err(|error| error.message().to_owned())
        };
        assert_eq!(told("duration=4 s"), Err("--grid gives 'duration' values too: say once which it has".to_owned()));
        assert_eq!(told(" duration = 4 s").ok(), None);
        assert!(told("sample=1 s").is_ok());
        let metric =
            |name: &str| format!("metrics=[{{ name = \"{name}\", series = \"throughput\", window = \"1..2 s\" }}]");
        let column = "the scenario has a metric 'duration', which would have the parameter's column";
        assert_eq!(told(&metric("duration")), Err(column.to_owned()));
        assert!(told(&metric("early")).is_ok());
    }

    #[test]
    fn what_is_stopped_between_two_chunks_of_a_grid_is_not_complete() {
        let known = SCENARIOS.iter().find(|known| known.name == "two_paths").unwrap();
        let document = known.document(&["warm_up=\"0 s\"".to_owned(), "duration=\"1 s\"".to_owned()]);
        let values: Vec<String> = (0..AT_ONCE + 2).map(|value| format!("\"{value} ms\"")).collect();
        let grid = Grid::read(&[format!("paths.slow.links.0.delay={}", values.join(","))]).unwrap();
        let plan = Plan { policies: vec!["plain".to_owned()], seeds: Some(1), ..Plan::default() };
        let data = Data { document: &document, plan: &plan, grid, shard: Shard::WHOLE };
        let stop = AtomicBool::new(false);
        let progress = StopAfter { left: AtomicU64::new(AT_ONCE as u64), stop: &stop };
        let done = data.run(&Memory::default(), &Runner { jobs: 1, stop: &stop, progress: &progress }).unwrap();
        assert_eq!(done, Done { runs: AT_ONCE + 2, known: 0, executed: AT_ONCE });
        assert!(!done.is_complete());
    }
}
