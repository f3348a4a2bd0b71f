//! Executes all runs: in the lab on all cores, then in real time.

use super::cases::{Case, Span, Stack};
use super::emulated::{self, Done, Trial};
use super::outcome::{Comparison, Outcome, Row};
use super::side_by_side::{self, RealTimeRun};
use anabranch_emulate::Report;
use anabranch_lab::simulation::{self, Extras};
use anabranch_settings::diagnostic::Diagnostic;
use rayon::prelude::*;
use std::sync::atomic::AtomicBool;

/// The runs to execute.
#[derive(Clone, Debug)]
pub struct Plan {
    pub cases: Vec<Case>,
    pub span: Span,
    /// Runs per case, with seeds from 1.
    pub seeds: u32,
    /// Whether to measure Linux.
    pub kernel: bool,
}

/// A run in real time.
#[derive(Clone, Copy, Debug)]
struct Job<'a> {
    trial: Trial<'a>,
    place: usize,
    /// Goodput in the lab, Mbit/s.
    lab: f64,
}

impl RealTimeRun for Job<'_> {
    type Done = Done;

    fn rate(&self) -> f64 {
        self.lab
    }

    fn name(&self) -> String {
        format!("{} ({:?}, seed {})", self.trial.case.name, self.trial.stack, self.trial.seed)
    }

    fn run(&self) -> Result<Done, String> {
        emulated::run(&self.trial)
    }

    fn report(done: &Done) -> &Report {
        &done.report
    }
}

pub fn all(plan: &Plan) -> Result<Outcome, Diagnostic> {
    let stacks: &[Stack] = if plan.kernel { &[Stack::Ours, Stack::Kernel] } else { &[Stack::Ours] };
    let mut trials = Vec::new();
    for (place, case) in plan.cases.iter().enumerate() {
        for &stack in stacks {
            trials
                .extend((1..=u64::from(plan.seeds)).map(|seed| (place, Trial { case, stack, seed, span: plan.span })));
        }
    }
    let jobs: Vec<Job<'_>> = trials
        .par_iter()
        .map(|&(place, trial)| Ok(Job { trial, place, lab: in_the_lab(&trial)? }))
        .collect::<Result<_, Diagnostic>>()?;
    let mut results = RealTime::default();
    results.run(jobs)?;
    Ok(results.outcome(plan))
}

/// Goodput in the lab, Mbit/s.
fn in_the_lab(trial: &Trial<'_>) -> Result<f64, Diagnostic> {
    let scenario = trial.case.scenario(trial.stack, trial.span)?;
    let paths: Vec<usize> = (0..scenario.paths.len()).collect();
    let record =
        simulation::run(&scenario, &trial.case.contender(trial.stack), &paths, trial.seed, &Extras::default())?;
    Ok(record.metric("throughput").unwrap_or(0.0))
}

/// Results of the runs in real time.
#[derive(Default)]
struct RealTime {
    done: Vec<(usize, Stack, u64, f64, Done)>,
    repeated: usize,
    given_up: usize,
}

impl RealTime {
    fn run(&mut self, jobs: Vec<Job<'_>>) -> Result<(), Diagnostic> {
        let tally = side_by_side::all(jobs, &AtomicBool::new(false), |job, done| {
            self.done.push((job.place, job.trial.stack, job.trial.seed, job.lab, done));
            Ok(())
        })?;
        (self.repeated, self.given_up) = (tally.repeated, tally.given_up);
        Ok(())
    }

    fn outcome(mut self, plan: &Plan) -> Outcome {
        self.done.sort_by_key(|(place, stack, seed, _, _)| (*place, *stack, *seed));
        let comparison = |place: usize, stack: Stack| {
            let of = self.done.iter().filter(|(p, s, ..)| (*p, *s) == (place, stack));
            let of: Vec<(f64, &Done)> = of.map(|(_, _, _, lab, done)| (*lab, done)).collect();
            (!of.is_empty()).then(|| Comparison {
                lab: of.iter().map(|(lab, _)| *lab).collect(),
                emulated: of.iter().map(|(_, done)| done.reading.goodput).collect(),
                pauses: of.iter().map(|(_, done)| done.reading.pause).collect(),
                discarded: of.iter().map(|(_, done)| done.discarded).collect(),
            })
        };
        let row = |(place, case): (usize, &Case)| Row {
            case: case.clone(),
            ours: comparison(place, Stack::Ours),
            kernel: comparison(place, Stack::Kernel),
        };
        let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
        Outcome {
            span: plan.span,
            rows: plan.cases.iter().enumerate().map(row).collect(),
            repeated: self.repeated,
            given_up: self.given_up,
            no_kernel: None,
            quick: false,
            release: release.trim().to_owned(),
            seconds: 0.0,
        }
    }
}
