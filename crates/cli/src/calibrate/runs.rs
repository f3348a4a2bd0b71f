//! Does all runs: in the lab on all cores, then in real time side by side, as many as the machine can carry on time.

use super::cases::{Case, Span, Stack};
use super::emulated::{self, Done, Trial};
use super::outcome::{Comparison, Outcome, Row};
use crate::diagnostic::Diagnostic;
use crate::lab::{self, Extras};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use rayon::prelude::*;
use std::sync::mpsc;
use std::thread;

/// Most that may be carried at once in real time, Mbit/s as the lab predicts it.
const AT_ONCE: f64 = 200.0;
/// Most runs at once.
const RUNS_AT_ONCE: usize = 24;
/// What a run costs beside its goodput, in the same measure.
const OVERHEAD: f64 = 4.0;
/// Times that a run is tried when the machine was too busy.
const TRIES: u32 = 4;
/// The share of packets that may leave the links more than a millisecond late.
const LATE_SHARE: f64 = 0.01;

/// What is to be done.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Where.
    pub cases: Vec<Case>,
    /// How long.
    pub span: Span,
    /// Runs of each, with seeds from 1.
    pub seeds: u32,
    /// Whether Linux takes part.
    pub kernel: bool,
}

/// One run, wherever.
#[derive(Clone, Copy, Debug)]
struct Job<'a> {
    trial: Trial<'a>,
    place: usize,
    /// Mbit/s in the lab.
    lab: f64,
    tries: u32,
}

impl Job<'_> {
    fn weight(&self) -> f64 {
        self.lab + OVERHEAD
    }
}

/// Does it.
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
        .map(|&(place, trial)| Ok(Job { trial, place, lab: in_the_lab(&trial)?, tries: 0 }))
        .collect::<Result<_, Diagnostic>>()?;
    let mut results = RealTime::default();
    results.run(jobs)?;
    Ok(results.outcome(plan))
}

/// Goodput in the lab, Mbit/s.
fn in_the_lab(trial: &Trial<'_>) -> Result<f64, Diagnostic> {
    let scenario = trial.case.scenario(trial.stack, trial.span)?;
    let paths: Vec<usize> = (0..scenario.paths.len()).collect();
    let record = lab::run(&scenario, &trial.case.contender(trial.stack), &paths, trial.seed, &Extras::default())?;
    Ok(record.metric("throughput").unwrap_or(0.0))
}

/// The runs in real time.
#[derive(Default)]
struct RealTime {
    done: Vec<(usize, Stack, u64, f64, Done)>,
    repeated: usize,
    given_up: usize,
}

impl RealTime {
    fn run(&mut self, mut waiting: Vec<Job<'_>>) -> Result<(), Diagnostic> {
        let bar = ProgressBar::with_draw_target(Some(waiting.len() as u64), ProgressDrawTarget::stderr());
        if let Ok(style) = ProgressStyle::with_template("{msg} [{wide_bar}] {pos}/{len} runs, {eta} left") {
            bar.set_style(style.progress_chars("=> "));
        }
        bar.set_message("in real time");
        // The heaviest last, where they can be taken from.
        waiting.sort_by(|a, b| a.lab.total_cmp(&b.lab));
        let (send, receive) = mpsc::channel();
        let (mut carried, mut running) = (0.0, 0);
        thread::scope(|scope| {
            loop {
                while let Some(job) = next(&mut waiting, carried, running) {
                    (carried, running) = (carried + job.weight(), running + 1);
                    let send = send.clone();
                    let work = move || send.send((job, emulated::run(&job.trial))).map_err(drop);
                    let started = thread::Builder::new().name("run".to_owned()).spawn_scoped(scope, work);
                    started.map_err(|error| Diagnostic::plain(format!("cannot start a thread: {error}")))?;
                }
                if running == 0 {
                    break;
                }
                let Ok((mut job, outcome)) = receive.recv() else { break };
                (carried, running) = (carried - job.weight(), running - 1);
                let name = format!("{} ({:?}, seed {})", job.trial.case.name, job.trial.stack, job.trial.seed);
                let done = outcome.map_err(|error| Diagnostic::plain(format!("{name}: {error}")))?;
                if on_time(&done) {
                    self.done.push((job.place, job.trial.stack, job.trial.seed, job.lab, done));
                    bar.inc(1);
                    continue;
                }
                job.tries += 1;
                if job.tries < TRIES {
                    self.repeated += 1;
                    waiting.push(job);
                } else {
                    self.given_up += 1;
                    bar.inc(1);
                }
            }
            Ok(())
        })?;
        bar.finish_and_clear();
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

/// The heaviest that the machine can carry beside what is under way; any if nothing is.
fn next<'a>(waiting: &mut Vec<Job<'a>>, carried: f64, running: usize) -> Option<Job<'a>> {
    if running >= RUNS_AT_ONCE {
        return None;
    }
    let fits = |job: &Job<'_>| running == 0 || carried + job.weight() <= AT_ONCE;
    let place = waiting.iter().rposition(fits)?;
    Some(waiting.remove(place))
}

/// Whether the machine was quick enough for a run to count.
fn on_time(done: &Done) -> bool {
    let report = &done.report;
    let refused: u64 = report.ports.iter().map(|port| port.not_taken).sum();
    refused == 0 && report.network.overruns == 0 && report.lateness.late_share() <= LATE_SHARE
}
