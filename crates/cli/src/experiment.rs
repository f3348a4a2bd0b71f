//! Runs a scenario: every contender on every seed, and the points of the sweep, on all cores.

use crate::contender::{Contender, Route};
use crate::diagnostic::Diagnostic;
use crate::lab::capacity::{self, Reference};
use crate::lab::{self, Extras};
use crate::quality;
use crate::record::{Outcome, PolicyRuns, Record, SweepPoint};
use crate::scenario::model::{Heading, Transfer};
use crate::scenario::{Document, Scenario, check_route};
use crate::summary::combine;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use rayon::prelude::*;
use std::time::Instant;

/// How an experiment is run.
#[derive(Clone, Debug, Default)]
pub struct Plan {
    /// Contenders as the command line names them; the scenario's own if empty.
    pub policies: Vec<String>,
    /// Only the first contender, if the command line names none.
    pub first_policy_only: bool,
    /// Runs per contender, if the command line says so.
    pub seeds: Option<u32>,
    /// Fewer seeds and points.
    pub quick: bool,
    /// Run the sweep too.
    pub sweep: bool,
    /// What goes beside a run.
    pub extras: Extras,
}

/// One run to be done: of which contender, on which paths, with which seed.
struct Job<'a> {
    scenario: &'a Scenario,
    contender: &'a Contender,
    /// Places of the paths it may use.
    paths: Vec<usize>,
    seed: u64,
    /// What the same seed leaves free without the transfer.
    reference: Option<&'a Reference>,
    extras: &'a Extras,
}

/// Runs everything that `document` and `plan` ask for.
pub fn run(document: &Document, plan: &Plan) -> Result<Outcome, Diagnostic> {
    let begin = Instant::now();
    let mut scenario = document.scenario()?;
    choose_policies(&mut scenario, plan)?;
    shorten(&mut scenario, plan);
    let seeds = plan.seeds.unwrap_or(if plan.quick { scenario.quick_seeds } else { scenario.seeds });
    let points = if plan.sweep { sweep_points(document, &scenario, plan, seeds)? } else { Vec::new() };

    let references = references_of(&scenario, seeds, &plan.extras);
    let of_point = |(_, point, seeds): &(String, Scenario, u32)| {
        let same = capacity::same_reference(&scenario, point);
        (!same).then(|| references_of(point, *seeds, &plan.extras))
    };
    let of_points: Vec<Option<Vec<Reference>>> = points.iter().map(of_point).collect();
    let mut jobs = jobs_of(&scenario, seeds, &references, &plan.extras);
    let quiet = Extras { pcap: None, curves: false, ..plan.extras.clone() };
    for ((_, point, seeds), own) in points.iter().zip(&of_points) {
        jobs.extend(jobs_of(point, *seeds, own.as_ref().unwrap_or(&references), &quiet));
    }
    let mut records = run_all(&scenario.name, &jobs)?.into_iter();

    let trace_hash = records.as_slice().iter().fold(0, |hash, record: &Record| combine(hash, record.trace_hash));
    let policies = collect(&scenario, seeds, &mut records);
    let sweep = points
        .iter()
        .map(|(value, point, seeds)| SweepPoint {
            value: value.clone(),
            policies: collect(point, *seeds, &mut records),
        })
        .collect();
    drop(jobs);
    let mut outcome =
        Outcome { scenario, quick: plan.quick, policies, sweep, pictures: None, trace_hash, seconds: 0.0 };
    quality::add(&mut outcome);
    outcome.seconds = begin.elapsed().as_secs_f64();
    Ok(outcome)
}

/// A quick run has fewer passes of a video.
fn shorten(scenario: &mut Scenario, plan: &Plan) {
    if let Some(video) = scenario.video.as_mut().filter(|_| plan.quick) {
        video.repeats = video.quick_repeats;
    }
}

/// Replaces the scenario's contenders by those of the command line.
fn choose_policies(scenario: &mut Scenario, plan: &Plan) -> Result<(), Diagnostic> {
    if plan.policies.is_empty() {
        if plan.first_policy_only {
            scenario.policies.truncate(1);
        }
        return Ok(());
    }
    let names: Vec<&str> = scenario.paths.iter().map(|path| path.name.as_str()).collect();
    let mut chosen: Vec<Contender> = Vec::new();
    for text in &plan.policies {
        let wrong = |message: String| Diagnostic::option(&format!("--policy {text}"), message);
        let contender = crate::contender::from_option(text, &scenario.policies).map_err(wrong)?;
        check_route(&contender, &names).map_err(wrong)?;
        if chosen.iter().any(|known| known.name == contender.name) {
            return Err(wrong(format!("'{}' is named twice", contender.name)));
        }
        chosen.push(contender);
    }
    scenario.policies = chosen;
    Ok(())
}

/// The scenario at each value of the sweep.
fn sweep_points(
    document: &Document,
    scenario: &Scenario,
    plan: &Plan,
    seeds: u32,
) -> Result<Vec<(String, Scenario, u32)>, Diagnostic> {
    let Some(sweep) = &scenario.sweep else { return Ok(Vec::new()) };
    let values = if plan.quick { &sweep.quick } else { &sweep.values };
    let point = |value: &String| {
        let mut point = document.with(format!("{}={value}", sweep.key)).scenario()?;
        // Policies of the command line are all meant to be swept.
        let wanted = |contender: &&Contender| {
            sweep.policies.is_empty() || !plan.policies.is_empty() || sweep.policies.contains(&contender.name)
        };
        shorten(&mut point, plan);
        point.policies = scenario.policies.iter().filter(wanted).cloned().collect();
        Ok((value.clone(), point, sweep.seeds.min(seeds)))
    };
    values.iter().map(point).collect()
}

/// The sets of paths on which a contender runs: one set, or each path alone to find the best.
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

/// What each seed leaves free, first the first; nothing if what is carried does not try to use all there is, or goes the
/// other way than the cross traffic.
fn references_of(scenario: &Scenario, seeds: u32, extras: &Extras) -> Vec<Reference> {
    let bulk = matches!(scenario.transfer, Transfer::Endless | Transfer::Finite(_)) && extras.send.is_none();
    if !bulk || scenario.heading != Heading::Upload || scenario.mesh.is_some() || scenario.moving.is_some() {
        return Vec::new();
    }
    (1..=u64::from(seeds)).into_par_iter().map(|seed| capacity::reference(scenario, seed)).collect()
}

fn jobs_of<'a>(scenario: &'a Scenario, seeds: u32, references: &'a [Reference], extras: &'a Extras) -> Vec<Job<'a>> {
    let mut jobs = Vec::new();
    for contender in &scenario.policies {
        for paths in path_sets(scenario, contender) {
            for seed in 1..=u64::from(seeds) {
                let reference = references.get(seed as usize - 1);
                jobs.push(Job { scenario, contender, paths: paths.clone(), seed, reference, extras });
            }
        }
    }
    jobs
}

fn run_all(name: &str, jobs: &[Job<'_>]) -> Result<Vec<Record>, Diagnostic> {
    let bar = ProgressBar::with_draw_target(Some(jobs.len() as u64), ProgressDrawTarget::stderr());
    if let Ok(style) = ProgressStyle::with_template("{msg} [{wide_bar}] {pos}/{len} runs, {eta} left") {
        bar.set_style(style.progress_chars("=> "));
    }
    bar.set_message(name.to_owned());
    let run = |job: &Job<'_>| {
        let record = lab::run(job.scenario, job.contender, &job.paths, job.seed, job.extras);
        bar.inc(1);
        let mut record = record?;
        if let Some(reference) = job.reference {
            reference.add_to(job.scenario, &mut record);
        }
        Ok(record)
    };
    let records = jobs.par_iter().map(run).collect();
    bar.finish_and_clear();
    records
}

/// Sorts the records, which come in the order of [`jobs_of`], by contender.
fn collect(scenario: &Scenario, seeds: u32, records: &mut impl Iterator<Item = Record>) -> Vec<PolicyRuns> {
    let runs = |contender: &Contender| {
        let sets = path_sets(scenario, contender);
        let mut candidates: Vec<(usize, PolicyRuns)> = Vec::new();
        for set in &sets {
            let records: Vec<Record> = records.by_ref().take(seeds as usize).collect();
            let runs = PolicyRuns { contender: contender.clone(), best_path: None, records };
            candidates.push((set.first().copied().unwrap_or(0), runs));
        }
        // All of a video passes on any path that carries it at all.
        let metric = if scenario.video.is_some() { "decodable" } else { "throughput" };
        let worth = |runs: &PolicyRuns| runs.estimate(metric).map_or(0.0, |estimate| estimate.mean);
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
