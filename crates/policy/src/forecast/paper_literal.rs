//! The paper's forecast with its pseudo-code as printed, including its faults, only to reproduce the paper.
//!
//! Procedure `hmm_predict` (Appendix A, lines 21 to 49) with the paper's model, over a sliding window of steps, on the
//! paper's counter `if_quality` ([`super::InterfaceQuality`]). Its faults are listed at [`Model::viterbi_as_printed`];
//! of all 88,572 sequences of one to ten symbols it ends in another state than Viterbi's algorithm for 3,280, and
//! begins in another for 29,523. Two more faults are in the idea, not the code:
//!
//! - it "predicts the connection state of the next-hops after 2 seconds" (line 22) by the last state of the path, which is
//!   the present; so the forecast is the same at every horizon;
//! - its observation is an end host's counter for an interface, here at least one per link ([`super::sampling`] says
//!   what counts as what). `quality = reception` has the observation that the text of section III-C allows as well, the
//!   packet loss rate.
//!
//! The forecast is 1 for connect and 0 for disconnect, 1/2 before the first observation. `window` is our choice, the paper
//! does not say; `step` is the paper's second "sleep 1 s" of two.
//!
//! [`Model::viterbi_as_printed`]: super::Model::viterbi_as_printed

use super::hidden_markov::{PAPER, State};
use super::sampling::Source;
use super::viterbi::{Window, certain};
use super::{LinkForecaster, Observation};
use crate::table::{Member, Reader, SettingError};
use crate::time::{Duration, Instant};

/// The entry in [`super::TABLE`].
pub const MEMBER: Member<dyn LinkForecaster> = Member {
    name: "paper_literal",
    summary: "The paper's pseudo-code for its hidden Markov model as printed, with its faults",
    source: "Zhang, Zhao, Cheng, IEEE Access 8, 2020, Appendix A",
    build,
};

fn build(reader: &mut Reader<'_>) -> Result<Box<dyn LinkForecaster>, SettingError> {
    Ok(Box::new(PaperLiteral::read(reader)?))
}

/// Runs the pseudo-code over a sliding window of steps.
#[derive(Clone, Debug)]
pub struct PaperLiteral {
    window: Window,
    state: Option<State>,
}

impl PaperLiteral {
    /// Reads the settings of `MEMBER`.
    pub fn read(reader: &mut Reader<'_>) -> Result<Self, SettingError> {
        Ok(Self { window: Window::read(reader, Source::Counter)?, state: None })
    }
}

impl LinkForecaster for PaperLiteral {
    fn observe(&mut self, now: Instant, observation: Observation) {
        self.window.observe(now, observation);
        if !self.window.symbols().is_empty() {
            self.state = Some(PAPER.viterbi_as_printed(self.window.symbols()).last());
        }
    }
    fn probability_up(&self, _now: Instant, _horizon: Duration) -> f64 {
        certain(self.state)
    }
}
