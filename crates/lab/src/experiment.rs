//! Runs a scenario on all cores: every contender with every seed, and the points of the sweep.

mod pairwise;

use crate::progress::Progress;
use crate::record::{Outcome, PolicyRuns, Record, SensitivityPoint, SweepPoint};
use crate::scenario::model::{Heading, Transfer};
use crate::scenario::{Document, Scenario, check_route};
use crate::simulation::capacity::{self, Reference};
use crate::simulation::{self, Extras};
use crate::summary::combine;
use crate::{derived, quality};
use anabranch_settings::baseline;
use anabranch_settings::contender::{Contender, Route, Surroundings, all_from_option, contenders, datagram_default};
use anabranch_settings::diagnostic::Diagnostic;
use rayon::prelude::*;
use std::path::Path;
use std::time::Instant;

/// Options of an experiment.
#[derive(Clone, Debug, Default)]
pub struct Plan {
    /// Contenders as named on the command line; empty: the scenario's.
    pub policies: Vec<String>,
    /// Baselines as named on the command line; empty: the scenario's.
    pub baselines: Vec<String>,
    /// Only the first scheme, if the command line names none.
    pub first_policy_only: bool,
    /// Runs per contender; none: the scenario's number.
    pub seeds: Option<u32>,
    /// The first seed; 0 stands for 1.
    pub first_seed: u64,
    /// Fewer seeds and points.
    pub quick: bool,
    /// Whether to run the sweep and the sensitivity too.
    pub sweep: bool,
    /// Captures and similar additions to a run.
    pub extras: Extras,
}

impl Plan {
    fn seeds(&self, count: u32) -> std::ops::Range<u64> {
        let first = self.first_seed.max(1);
        first..first + u64::from(count)
    }
}

/// One run: contender, paths and seed.
struct Job<'a> {
    scenario: &'a Scenario,
    contender: &'a Contender,
    /// Indices of the paths that it may use.
    paths: Vec<usize>,
    seed: u64,
    /// Results of the run without the transfer with the same seed.
    reference: Option<&'a Reference>,
    extras: &'a Extras,
}

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
    seeds: std::ops::Range<u64>,
}

/// A validated experiment.
pub struct Experiment<'a> {
    plan: &'a Plan,
    scenario: Scenario,
    seeds: std::ops::Range<u64>,
    points: Vec<Point>,
}

impl<'a> Experiment<'a> {
    /// Parses the scenario and the points of its sweep and sensitivity.
    pub fn prepare(document: &Document, plan: &'a Plan) -> Result<Self, Diagnostic> {
        let mut scenario = document.scenario()?;
        choose_policies(&mut scenario, plan)?;
        shorten(&mut scenario, plan, false);
        let count = plan.seeds.unwrap_or(if plan.quick { scenario.seeds.quick } else { scenario.seeds.all });
        let mut points = Vec::new();
        if plan.sweep {
            points = sweep_points(document, &scenario, plan, count)?;
            points.extend(sensitivity_points(document, &scenario, plan, count)?);
        }
        Ok(Self { plan, scenario, seeds: plan.seeds(count), points })
    }

    /// Cost, in units comparable between experiments.
    pub fn effort(&self) -> u64 {
        let of = |scenario: &Scenario, seeds: &std::ops::Range<u64>| {
            let runs: usize = scenario.policies.iter().map(|contender| path_sets(scenario, contender).len()).sum();
            runs as u64 * (seeds.end - seeds.start) * effort_of_run(scenario)
        };
        let points: u64 = self.points.iter().map(|point| of(&point.scenario, &point.seeds)).sum();
        of(&self.scenario, &self.seeds) + points
    }

    pub fn run(self, progress: &dyn Progress) -> Result<Outcome, Diagnostic> {
        let (begin, effort) = (Instant::now(), self.effort());
        let Self { plan, scenario, seeds, points } = self;
        progress.begin(&scenario.name, effort);
        let references = references_of(&scenario, &seeds, &plan.extras);
        let of_point = |point: &Point| {
            let same = capacity::same_reference(&scenario, &point.scenario);
            (!same).then(|| references_of(&point.scenario, &point.seeds, &plan.extras))
        };
        let of_points: Vec<Option<Vec<Reference>>> = points.iter().map(of_point).collect();
        let quiet = Extras { pcap: None, ..plan.extras.clone() };
        let silent = Extras { curves: false, ..quiet.clone() };
        let mut jobs = jobs_of(&scenario, &seeds, &references, (&plan.extras, &quiet));
        for (point, own) in points.iter().zip(&of_points) {
            let references = own.as_ref().unwrap_or(&references);
            jobs.extend(jobs_of(&point.scenario, &point.seeds, references, (&silent, &silent)));
        }
        let mut records = run_all(&jobs, progress)?.into_iter();

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

/// Cost of a run: simulated time, times the relative cost of a second compared with a few lightly loaded paths.
fn effort_of_run(scenario: &Scenario) -> u64 {
    let weight = match (&scenario.mesh, &scenario.moving) {
        (Some(_), _) => 10.0,
        (_, Some(moving)) => moving.nodes as f64 / 2.0,
        _ => 1.0,
    };
    (scenario.duration.as_secs_f64() * weight).ceil() as u64
}

/// Reduces the passes of a video for a quick run, and for points of a sweep or of the sensitivity.
fn shorten(scenario: &mut Scenario, plan: &Plan, point: bool) {
    let Some(video) = &mut scenario.video else { return };
    if point {
        video.repeats = video.repeats.min(video.sweep_repeats);
    }
    if plan.quick {
        video.repeats = video.repeats.min(video.quick_repeats);
    }
}

/// Replaces the scenario's baselines and contenders by those of the command line.
fn choose_policies(scenario: &mut Scenario, plan: &Plan) -> Result<(), Diagnostic> {
    if !plan.baselines.is_empty() {
        scenario.baselines.clear();
        for name in &plan.baselines {
            let wrong = |message: String| Diagnostic::option(&format!("--baseline {name}"), message);
            let found = baseline::find(name, Path::new("")).map_err(|error| wrong(error.message().to_owned()))?;
            if scenario.baselines.iter().any(|known| known.name == found.name) {
                return Err(wrong(format!("'{}' is named twice", found.name)));
            }
            scenario.baselines.push(found);
        }
        scenario.policies = contenders(&scenario.schemes, &scenario.baselines, &scenario.defaults);
    }
    if plan.policies.is_empty() {
        if plan.first_policy_only {
            let first = scenario.policies.first().map(|contender| contender.scheme.clone());
            scenario.policies.retain(|contender| Some(&contender.scheme) == first.as_ref());
        }
        let none = "no policy of the scenario is run under any of the baselines asked for";
        return if scenario.policies.is_empty() { Err(Diagnostic::plain(none)) } else { Ok(()) };
    }
    let names: Vec<&str> = scenario.paths.iter().map(|path| path.name.as_str()).collect();
    let around =
        Surroundings { schemes: &scenario.schemes, defaults: &scenario.defaults, baselines: &scenario.baselines };
    let mut chosen: Vec<Contender> = Vec::new();
    for text in &plan.policies {
        let wrong = |message: String| Diagnostic::option(&format!("--policy {text}"), message);
        for contender in all_from_option(text, &around).map_err(wrong)? {
            check_route(&contender, &names).map_err(wrong)?;
            if scenario.datagrams.is_empty() && contender.datagram != datagram_default() {
                return Err(wrong("a datagram policy decides nothing in a scenario without [[datagrams]]".to_owned()));
            }
            if chosen.iter().any(|known| known.name == contender.name) {
                return Err(wrong(format!("'{}' is named twice", contender.name)));
            }
            chosen.push(contender);
        }
    }
    scenario.policies = chosen;
    Ok(())
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
            points.push(Point { part: Part::Sensitivity(at), value: value.clone(), scenario: point, seeds });
        }
    }
    Ok(points)
}

/// Sets of paths on which a contender runs: one set, or each path alone to find the best.
fn path_sets(scenario: &Scenario, contender: &Contender) -> Vec<Vec<usize>> {
    let all = 0..scenario.paths.len();
    match &contender.route {
        Route::All => vec![all.collect()],
        Route::Best => all.map(|at| vec![at]).collect(),
        Route::Only(names) => {
            let place = |name: &String| scenario.paths.iter().position(|path| path.name == *name);
            vec![names.iter().filter_map(place).collect()]
        }
    }
}

/// Results of runs without the transfer in order of seed; none if the transfer is not greedy, or if its direction is
/// not that of cross traffic.
fn references_of(scenario: &Scenario, seeds: &std::ops::Range<u64>, extras: &Extras) -> Vec<Reference> {
    let bulk = matches!(scenario.transfer, Transfer::Endless | Transfer::Finite(_)) && extras.send.is_none();
    // Greedy cross traffic leaves no capacity to compare with.
    if !bulk
        || !scenario.beside.is_empty()
        || scenario.heading != Heading::Upload
        || scenario.mesh.is_some()
        || scenario.moving.is_some()
    {
        return Vec::new();
    }
    seeds.clone().into_par_iter().map(|seed| capacity::reference(scenario, seed)).collect()
}

/// All runs of a scenario; `extras` are those of the first seed and those of all others.
fn jobs_of<'a>(
    scenario: &'a Scenario,
    seeds: &std::ops::Range<u64>,
    references: &'a [Reference],
    extras: (&'a Extras, &'a Extras),
) -> Vec<Job<'a>> {
    let mut jobs = Vec::new();
    for contender in &scenario.policies {
        for paths in path_sets(scenario, contender) {
            for (at, seed) in seeds.clone().enumerate() {
                let extras = if at == 0 { extras.0 } else { extras.1 };
                let reference = references.get(at);
                jobs.push(Job { scenario, contender, paths: paths.clone(), seed, reference, extras });
            }
        }
    }
    jobs
}

fn run_all(jobs: &[Job<'_>], progress: &dyn Progress) -> Result<Vec<Record>, Diagnostic> {
    let run = |job: &Job<'_>| {
        let record = simulation::run(job.scenario, job.contender, &job.paths, job.seed, job.extras);
        progress.done(effort_of_run(job.scenario));
        let mut record = record?;
        if let Some(reference) = job.reference {
            reference.add_to(job.scenario, &mut record);
        }
        Ok(record)
    };
    jobs.par_iter().map(run).collect()
}

/// Groups records, which are in the order of [`jobs_of`], by contender.
fn collect(
    scenario: &Scenario,
    seeds: &std::ops::Range<u64>,
    records: &mut impl Iterator<Item = Record>,
) -> Vec<PolicyRuns> {
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
