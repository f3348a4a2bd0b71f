//! Progress of a command's runs, with the remaining time.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// A progress bar over all experiments of a command.
#[derive(Debug)]
pub struct Progress(ProgressBar);

impl Progress {
    /// A bar of `units` units of work.
    pub fn new(units: u64) -> Self {
        let bar = ProgressBar::with_draw_target(Some(units), ProgressDrawTarget::stderr());
        if let Ok(style) = ProgressStyle::with_template("{msg} [{wide_bar}] {percent} %, {eta} left") {
            bar.set_style(style.progress_chars("=> "));
        }
        Self(bar)
    }

    /// Shows the name of the next experiment.
    pub fn begin(&self, name: &str) {
        self.0.set_message(name.to_owned());
    }

    /// Advances by `units`.
    pub fn done(&self, units: u64) {
        self.0.inc(units);
    }

    /// Prints a text above the bar.
    pub fn remark(&self, text: &str) {
        self.0.suspend(|| crate::console::remark(text));
    }

    /// Removes the bar.
    pub fn finish(&self) {
        self.0.finish_and_clear();
    }
}
