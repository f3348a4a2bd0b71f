//! Executes runs in real time in parallel, as many as the machine can carry on time, and repeats late ones.

use crate::console::remark;
use anabranch_emulate::Report;
use anabranch_settings::diagnostic::Diagnostic;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread;

/// Maximum total rate of concurrent runs, Mbit/s.
const AT_ONCE: f64 = 200.0;
/// Maximum number of concurrent runs.
const RUNS_AT_ONCE: usize = 24;
/// Overhead of a run beside its goodput, Mbit/s.
const OVERHEAD: f64 = 4.0;
/// Attempts per run if the machine is too busy.
const TRIES: u32 = 4;
/// Allowed share of packets that leave links more than 1 ms late.
const LATE_SHARE: f64 = 0.01;

pub trait RealTimeRun: Clone + Send {
    /// Its result.
    type Done: Send;
    /// Expected rate, Mbit/s.
    fn rate(&self) -> f64;
    /// For messages.
    fn name(&self) -> String;
    /// Executes it; blocks until its end.
    fn run(&self) -> Result<Self::Done, String>;
    /// Report of the links.
    fn report(done: &Self::Done) -> &Report;
}

/// Discarded runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Tally {
    /// Attempts discarded because the machine was too busy or the run failed.
    pub repeated: usize,
    /// Runs that failed in all attempts.
    pub given_up: usize,
}

/// Executes all runs and passes each that was on time to `keep`; starts no more when `stop` is set.
pub fn all<R: RealTimeRun>(
    runs: Vec<R>,
    stop: &AtomicBool,
    mut keep: impl FnMut(R, R::Done) -> Result<(), Diagnostic>,
) -> Result<Tally, Diagnostic> {
    let bar = ProgressBar::with_draw_target(Some(runs.len() as u64), ProgressDrawTarget::stderr());
    if let Ok(style) = ProgressStyle::with_template("{msg} [{wide_bar}] {pos}/{len} runs, {eta} left") {
        bar.set_style(style.progress_chars("=> "));
    }
    bar.set_message("in real time");
    let mut waiting: Vec<(R, u32)> = runs.into_iter().map(|run| (run, 0)).collect();
    // Heaviest last, since they are popped from the end.
    waiting.sort_by(|(a, _), (b, _)| a.rate().total_cmp(&b.rate()));
    let (send, receive) = mpsc::channel();
    let (mut carried, mut running, mut tally) = (0.0, 0, Tally::default());
    thread::scope(|scope| {
        loop {
            while !stop.load(Ordering::Relaxed)
                && let Some((run, tries)) = next(&mut waiting, carried, running)
            {
                (carried, running) = (carried + weight(&run), running + 1);
                let send = send.clone();
                let work = move || {
                    let outcome = run.run();
                    send.send((run, tries, outcome)).map_err(drop)
                };
                let started = thread::Builder::new().name("run".to_owned()).spawn_scoped(scope, work);
                started.map_err(|error| Diagnostic::plain(format!("cannot start a thread: {error}")))?;
            }
            if running == 0 {
                break;
            }
            let Ok((run, tries, outcome)) = receive.recv() else { break };
            (carried, running) = (carried - weight(&run), running - 1);
            let missing = match outcome {
                Ok(done) if on_time(R::report(&done)) => {
                    keep(run, done)?;
                    bar.inc(1);
                    continue;
                }
                Ok(_) => None,
                Err(error) => Some(format!("{}: {error}", run.name())),
            };
            match missing {
                // A connection reset by the kernel may succeed on another attempt.
                Some(error) if tries + 1 == TRIES => return Err(Diagnostic::plain(error)),
                Some(error) => remark(&format!("{error}; tried again")),
                None => {}
            }
            if tries + 1 < TRIES {
                tally.repeated += 1;
                waiting.push((run, tries + 1));
            } else {
                tally.given_up += 1;
                bar.inc(1);
            }
        }
        Ok(())
    })?;
    bar.finish_and_clear();
    Ok(tally)
}

fn weight<R: RealTimeRun>(run: &R) -> f64 {
    run.rate() + OVERHEAD
}

/// The heaviest run that fits beside the present load; any if there is none.
fn next<R: RealTimeRun>(waiting: &mut Vec<(R, u32)>, carried: f64, running: usize) -> Option<(R, u32)> {
    if running >= RUNS_AT_ONCE {
        return None;
    }
    let fits = |(run, _): &(R, u32)| running == 0 || carried + weight(run) <= AT_ONCE;
    let place = waiting.iter().rposition(fits)?;
    Some(waiting.remove(place))
}

/// Whether links were fast enough for a valid run.
fn on_time(report: &Report) -> bool {
    let refused: u64 = report.ports.iter().map(|port| port.not_taken).sum();
    let late = report.stopped.is_some() || report.lateness.late_share() > LATE_SHARE;
    refused == 0 && report.network.overruns == 0 && !late
}
