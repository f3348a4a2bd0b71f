//! How far the runs of a command are, and how long they will take yet.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// A bar on the terminal, over all experiments of a command.
#[derive(Debug)]
pub struct Progress(ProgressBar);

impl Progress {
    /// A bar of so many units of work.
    pub fn new(units: u64) -> Self {
        let bar = ProgressBar::with_draw_target(Some(units), ProgressDrawTarget::stderr());
        if let Ok(style) = ProgressStyle::with_template("{msg} [{wide_bar}] {percent} %, {eta} left") {
            bar.set_style(style.progress_chars("=> "));
        }
        Self(bar)
    }

    /// The next experiment begins.
    pub fn begin(&self, name: &str) {
        self.0.set_message(name.to_owned());
    }

    /// So many units are done.
    pub fn done(&self, units: u64) {
        self.0.inc(units);
    }

    /// Says something above the bar.
    pub fn remark(&self, text: &str) {
        self.0.suspend(|| crate::console::remark(text));
    }

    /// Takes the bar away.
    pub fn finish(&self) {
        self.0.finish_and_clear();
    }
}
