//! Progress of a command's runs, with the remaining time.

use anabranch_lab::experiment::{Experiment, Plan};
use anabranch_lab::progress::Progress;
use anabranch_lab::record::Outcome;
use anabranch_lab::runner::{Runner, processors};
use anabranch_lab::runs::Keep;
use anabranch_lab::scenario::Document;
use anabranch_settings::diagnostic::Diagnostic;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::sync::atomic::AtomicBool;

/// A progress bar over all experiments of a command.
#[derive(Debug)]
pub struct Bar(ProgressBar);

/// Runs all experiments of `document` and `plan` behind a bar; rows go to `store`.
pub fn run(document: &Document, plan: &Plan, store: Option<&dyn Keep>) -> Result<Outcome, Diagnostic> {
    let experiment = Experiment::prepare(document, plan)?;
    let bar = Bar::new(experiment.effort());
    let outcome = bar.run(experiment, store);
    bar.finish();
    outcome
}

impl Bar {
    /// A bar of `units` units of work, of more if a batch that begins has more.
    pub fn new(units: u64) -> Self {
        let bar = ProgressBar::with_draw_target(Some(units), ProgressDrawTarget::stderr());
        if let Ok(style) = ProgressStyle::with_template("{msg} [{wide_bar}] {percent} %, {eta} left") {
            bar.set_style(style.progress_chars("=> "));
        }
        Self(bar)
    }

    /// Runs an experiment on all processors.
    pub fn run(&self, experiment: Experiment<'_>, store: Option<&dyn Keep>) -> Result<Outcome, Diagnostic> {
        let stop = AtomicBool::new(false);
        experiment.run(&Runner { jobs: processors(), stop: &stop, progress: self }, store)
    }

    /// Removes the bar.
    pub fn finish(&self) {
        self.0.finish_and_clear();
    }
}

impl Progress for Bar {
    fn begin(&self, name: &str, units: u64) {
        let end = self.0.position() + units;
        if self.0.length().is_none_or(|length| length < end) {
            self.0.set_length(end);
        }
        self.0.set_message(name.to_owned());
    }

    fn done(&self, units: u64) {
        self.0.inc(units);
    }

    /// Above the bar.
    fn remark(&self, text: &str) {
        self.0.suspend(|| crate::console::remark(text));
    }
}
