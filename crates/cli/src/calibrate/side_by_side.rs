//! Does runs in real time side by side, as many as the machine can carry on time, and repeats those that were late.

use crate::console::remark;
use crate::diagnostic::Diagnostic;
use anabranch_emulate::Report;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread;

/// Most that may be carried at once in real time, Mbit/s.
const AT_ONCE: f64 = 200.0;
/// Most runs at once.
const RUNS_AT_ONCE: usize = 24;
/// What a run costs beside its goodput, in the same measure.
const OVERHEAD: f64 = 4.0;
/// Times that a run is tried when the machine was too busy.
const TRIES: u32 = 4;
/// The share of packets that may leave the links more than a millisecond late.
const LATE_SHARE: f64 = 0.01;

/// A run in real time.
pub trait RealTimeRun: Clone + Send {
    /// What it returns.
    type Done: Send;
    /// What it is expected to carry, Mbit/s.
    fn rate(&self) -> f64;
    /// For messages.
    fn name(&self) -> String;
    /// Does it; blocks as long as it lasts.
    fn run(&self) -> Result<Self::Done, String>;
    /// What the links did meanwhile.
    fn report(done: &Self::Done) -> &Report;
}

/// Runs that did not count.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Tally {
    /// Those that were thrown away because the machine was too busy, or that failed, and were repeated.
    pub repeated: usize,
    /// Those that could not be measured within the tries.
    pub given_up: usize,
}

/// Does them all, and hands each that was on time to `keep`; begins no more when `stop` is set.
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
    // The heaviest last, where they can be taken from.
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
                // A kernel that resets a connection may do better next time.
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

/// The heaviest that the machine can carry beside what is under way; any if nothing is.
fn next<R: RealTimeRun>(waiting: &mut Vec<(R, u32)>, carried: f64, running: usize) -> Option<(R, u32)> {
    if running >= RUNS_AT_ONCE {
        return None;
    }
    let fits = |(run, _): &(R, u32)| running == 0 || carried + weight(run) <= AT_ONCE;
    let place = waiting.iter().rposition(fits)?;
    Some(waiting.remove(place))
}

/// Whether the machine was quick enough for a run to count.
fn on_time(report: &Report) -> bool {
    let refused: u64 = report.ports.iter().map(|port| port.not_taken).sum();
    refused == 0 && report.network.overruns == 0 && report.lateness.late_share() <= LATE_SHARE
}
