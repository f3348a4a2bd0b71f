//! Runs a scenario on all cores: every contender with every seed, and the points of the sweep.

mod data;
mod job;
mod pairwise;
mod plan;

pub use data::{Data, Done};
pub use job::path_sets;
pub use plan::{Plan, Seeds};

use crate::record::{Outcome, PolicyRuns, Record, SensitivityPoint, SweepPoint};
use crate::runner::Runner;
use crate::runs::{Keep, Origin};
use crate::scenario::model::Transfer;
use crate::scenario::{Document, Scenario};
use crate::simulation::{Extras, capacity, capture_name};
use crate::summary::combine;
use crate::{derived, quality};
use anabranch_settings::contender::{Contender, Route};
use anabranch_settings::diagnostic::Diagnostic;
use job::{Job, References, effort, jobs_of};
use plan::{choose_policies, shorten};
use std::collections::BTreeSet;
use std::ops::Range;
use std::time::Instant;

/// Which part a point belongs to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Part {
    Sweep,
    /// Index of the parameter.
    Sensitivity(usize),
}

/// The scenario with one value changed.
struct Point {
    part: Part,
    value: String,
    scenario: Scenario,
    seeds: Range<u64>,
    origin: Origin,
}

/// A validated experiment.
pub struct Experiment<'a> {
    plan: &'a Plan,
    scenario: Scenario,
    seeds: Range<u64>,
    origin: Origin,
    points: Vec<Point>,
}

impl<'a> Experiment<'a> {
    /// Parses the scenario and the points of its sweep and sensitivity.
    pub fn prepare(document: &Document, plan: &'a Plan) -> Result<Self, Diagnostic> {
        let mut scenario = document.scenario()?;
        choose_policies(&mut scenario, plan)?;
        shorten(&mut scenario, plan, false);
        let seeds = plan.seeds_in(&scenario);
        let count = (seeds.end - seeds.start) as u32;
        let mut points = Vec::new();
        if plan.sweep {
            points = sweep_points(document, &scenario, plan, count)?;
            points.extend(sensitivity_points(document, &scenario, plan, count)?);
        }
        let origin = plan.origin(document);
        let experiment = Self { plan, scenario, seeds, origin, points };
        if plan.extras.pcap.is_some() {
            experiment.check_captures()?;
        }
        Ok(experiment)
    }

    /// The scenario with its first contender.
    pub fn first(self) -> (Scenario, Contender) {
        let contender = self.scenario.policies.first().cloned().unwrap_or_else(Contender::plain);
        (self.scenario, contender)
    }

    /// Names of the contenders as `--policy` takes them.
    pub fn policies(&self) -> Vec<String> {
        self.scenario.policies.iter().map(|contender| contender.name.clone()).collect()
    }

    /// Cost, in units comparable between experiments.
    pub fn effort(&self) -> u64 {
        let of = |scenario: &Scenario, seeds: &Range<u64>| {
            let runs: usize = scenario.policies.iter().map(|contender| path_sets(scenario, contender).len()).sum();
            runs as u64 * (seeds.end - seeds.start) * effort(scenario)
        };
        let points: u64 = self.points.iter().map(|point| of(&point.scenario, &point.seeds)).sum();
        of(&self.scenario, &self.seeds) + points
    }

    /// Names of the files that [`Extras::pcap`] lets write, in the order of the policies.
    pub fn captures(&self) -> Vec<String> {
        let scenario = &self.scenario;
        let of = |contender: &Contender| {
            let name = |paths: &Vec<usize>| capture_name(scenario, contender, paths);
            path_sets(scenario, contender).iter().map(name).collect::<Vec<_>>()
        };
        scenario.policies.iter().flat_map(of).collect()
    }

    /// Each run has a file of its own: letters that a file name should not have become one and the same.
    fn check_captures(&self) -> Result<(), Diagnostic> {
        let mut seen = BTreeSet::new();
        match self.captures().into_iter().find(|name| !seen.insert(name.clone())) {
            None => Ok(()),
            Some(name) => Err(Diagnostic::plain(format!(
                "two captures would have the name {name}: rename a path or policy so that they differ in more than \
                 spaces and punctuation"
            ))),
        }
    }

    /// Executes all runs; rows go to `store` as they end. What was stopped is an error.
    ///
    /// # Errors
    /// A run cannot be executed, its row cannot be written, or it was stopped.
    pub fn run(self, runner: &Runner<'_>, store: Option<&dyn Keep>) -> Result<Outcome, Diagnostic> {
        let (begin, effort) = (Instant::now(), self.effort());
        let Self { plan, scenario, seeds, origin, points } = self;
        runner.progress.begin(&scenario.name, effort);
        let references = References::of(&scenario, &seeds, &plan.extras);
        let of_point = |point: &Point| {
            let same = capacity::same_reference(&scenario, &point.scenario);
            (!same).then(|| References::of(&point.scenario, &point.seeds, &plan.extras))
        };
        let of_points: Vec<Option<References>> = points.iter().map(of_point).collect();
        let quiet = Extras { pcap: None, ..plan.extras.clone() };
        let silent = Extras { curves: false, ..quiet.clone() };
        let mut jobs = jobs_of(&scenario, &seeds, &references, (&plan.extras, &quiet), &origin);
        for (point, own) in points.iter().zip(&of_points) {
            let references = own.as_ref().unwrap_or(&references);
            jobs.extend(jobs_of(&point.scenario, &point.seeds, references, (&silent, &silent), &point.origin));
        }
        let mut records = run_all(&jobs, runner, store)?.into_iter();

        let trace_hash = records.as_slice().iter().fold(0, |hash, record: &Record| combine(hash, record.trace_hash));
        let mut policies = collect(&scenario, &seeds, &mut records);
        pairwise::add(&scenario, &mut policies);
        let (mut sweep, mut sensitivity) = (Vec::new(), Vec::new());
        for point in &points {
            let (policies, value) = (collect(&point.scenario, &point.seeds, &mut records), point.value.clone());
            match point.part {
                Part::Sweep => sweep.push(SweepPoint { value, policies }),
                Part::Sensitivity(parameter) => sensitivity.push(SensitivityPoint { parameter, value, policies }),
            }
        }
        drop(jobs);
        let mut outcome = Outcome {
            scenario,
            quick: plan.quick,
            first_seed: seeds.start,
            policies,
            sweep,
            sensitivity,
            pictures: None,
            trace_hash,
            seconds: 0.0,
        };
        quality::add(&mut outcome);
        derived::add(&mut outcome);
        outcome.seconds = begin.elapsed().as_secs_f64();
        Ok(outcome)
    }
}

/// The scenario at each value of the sweep.
fn sweep_points(document: &Document, scenario: &Scenario, plan: &Plan, seeds: u32) -> Result<Vec<Point>, Diagnostic> {
    let Some(sweep) = &scenario.results.sweep else { return Ok(Vec::new()) };
    let values = if plan.quick { &sweep.quick } else { &sweep.values };
    let point = |value: &String| {
        let mut point = document.at(std::slice::from_ref(&sweep.key), value).scenario()?;
        // The swept value may belong to a policy or to the defaults.
        choose_policies(&mut point, plan)?;
        // All policies of the command line take part in the sweep.
        let all = sweep.policies.is_empty() || !plan.policies.is_empty();
        point.policies.retain(|contender| all || sweep.policies.iter().any(|name| contender.is_called(name)));
        shorten(&mut point, plan, true);
        Ok(Point {
            part: Part::Sweep,
            value: value.clone(),
            scenario: point,
            seeds: plan.seeds(sweep.seeds.min(seeds)),
            origin: plan.origin(document).at(vec![(sweep.key.clone(), value.clone())]),
        })
    };
    values.iter().map(point).collect()
}

/// The scenario at each value of each parameter of the sensitivity; none for a quick run.
fn sensitivity_points(
    document: &Document,
    scenario: &Scenario,
    plan: &Plan,
    seeds: u32,
) -> Result<Vec<Point>, Diagnostic> {
    let Some(sensitivity) = scenario.results.sensitivity.as_ref().filter(|_| !plan.quick && plan.policies.is_empty())
    else {
        return Ok(Vec::new());
    };
    let wanted = |contender: &Contender| {
        [&sensitivity.policy, &sensitivity.over].into_iter().any(|name| contender.is_called(name))
    };
    let mut points = Vec::new();
    for (at, parameter) in sensitivity.parameters.iter().enumerate() {
        for value in &parameter.values {
            let mut point = document.at(&parameter.keys, value).scenario()?;
            choose_policies(&mut point, plan)?;
            point.policies.retain(wanted);
            shorten(&mut point, plan, true);
            let seeds = plan.seeds(sensitivity.seeds.min(seeds));
            let grid = parameter.keys.iter().map(|key| (key.clone(), value.clone())).collect();
            let origin = plan.origin(document).at(grid);
            points.push(Point { part: Part::Sensitivity(at), value: value.clone(), scenario: point, seeds, origin });
        }
    }
    Ok(points)
}

fn run_all(jobs: &[Job<'_>], runner: &Runner<'_>, store: Option<&dyn Keep>) -> Result<Vec<Record>, Diagnostic> {
    let keep = |at: usize, record: &Record| store.map_or(Ok(()), |store| jobs[at].keep(store, record));
    let records = runner.all(jobs, &keep)?;
    let all = records.into_iter().collect::<Option<_>>();
    all.ok_or_else(|| Diagnostic::plain("ended before it was done"))
}

/// Groups records, which are in the order of [`jobs_of`], by contender.
fn collect(scenario: &Scenario, seeds: &Range<u64>, records: &mut impl Iterator<Item = Record>) -> Vec<PolicyRuns> {
    let runs = |contender: &Contender| {
        let sets = path_sets(scenario, contender);
        let mut candidates: Vec<(usize, PolicyRuns)> = Vec::new();
        for set in &sets {
            let records: Vec<Record> = records.by_ref().take((seeds.end - seeds.start) as usize).collect();
            let runs = PolicyRuns { contender: contender.clone(), best_path: None, records };
            candidates.push((set.first().copied().unwrap_or(0), runs));
        }
        // Any path that can carry a video carries all of it.
        let mean = |runs: &PolicyRuns, metric: &str| runs.estimate(metric).map_or(0.0, |estimate| estimate.mean);
        let worth = |runs: &PolicyRuns| match (&scenario.video, scenario.transfer) {
            (Some(_), _) => mean(runs, "decodable"),
            // With equal numbers in time, lower delay wins.
            (None, Transfer::None) => mean(runs, "datagrams_in_time") - 1e-6 * mean(runs, "datagram_delay"),
            (None, _) => mean(runs, "throughput"),
        };
        let best =
            candidates.into_iter().reduce(|best, next| if worth(&next.1) > worth(&best.1) { next } else { best });
        let (place, mut runs) = best.expect("each contender has at least one set of paths");
        if contender.route == Route::Best {
            runs.best_path = scenario.paths.get(place).map(|path| path.name.clone());
        }
        runs
    };
    scenario.policies.iter().map(runs).collect()
}
