//! Viterbi's most likely hidden states over the last symbols, with the paper's model: the forecast is the current
//! state.
//!
//! Every observation decodes the last `window` steps ([`Sampling`]) again from the model's start probabilities. The
//! paper does not give the number of observations; 10 is our choice. The forecast is 1 if the last state of the path is
//! connect, else 0, at every horizon: the path does not extend beyond the present. Before the first observation it is
//! 1/2.
//!
//! With the paper's numbers and a window of up to 10 this is, without exception, a rule on the last two symbols: good
//! is connect, bad is disconnect, moderate is disconnect only when the one before was bad. A test checks all sequences.

use super::hidden_markov::{MAX_WINDOW, Model, PAPER, State};
use super::quality::Symbol;
use super::sampling::{Sampling, Source};
use super::{LinkForecaster, Observation};
use crate::table::{Member, Number, Reader, SettingError};
use crate::time::{Duration, Instant};

/// The entry in [`super::TABLE`].
pub const MEMBER: Member<dyn LinkForecaster> = Member {
    name: "viterbi",
    summary: "Present state on the most likely path through the paper's hidden Markov model, decoded correctly",
    source: "Viterbi, IEEE Trans. Inf. Theory 13(2), 1967; model of Zhang, Zhao, Cheng, IEEE Access 8, 2020",
    build,
};

const WINDOW: Number = Number {
    name: "window",
    unit: "steps",
    default: 10.0,
    range: 1.0..=MAX_WINDOW as f64,
    summary: "How many of the last steps are decoded; the paper does not say",
};

fn build(reader: &mut Reader<'_>) -> Result<Box<dyn LinkForecaster>, SettingError> {
    Ok(Box::new(Viterbi::read(reader)?))
}

/// The last steps of a link, the latest of which may be replaced.
#[derive(Clone, Debug)]
pub(super) struct Window {
    sampling: Sampling,
    symbols: [Option<Symbol>; MAX_WINDOW],
    length: usize,
    most: usize,
}

impl Window {
    pub(super) fn read(reader: &mut Reader<'_>, source: Source) -> Result<Self, SettingError> {
        let most = reader.read(&WINDOW)? as usize;
        Ok(Self { sampling: Sampling::read(reader, source)?, symbols: [None; MAX_WINDOW], length: 0, most })
    }

    pub(super) fn observe(&mut self, now: Instant, observation: Observation) {
        let Self { sampling, symbols, length, most } = self;
        sampling.observe(now, observation, |sample| {
            for _ in 0..sample.steps.min(*most as u64) {
                if *length == *most {
                    symbols.copy_within(1..*most, 0);
                    *length -= 1;
                }
                symbols[*length] = None;
                *length += 1;
            }
            symbols[*length - 1] = Some(sample.symbol);
        });
    }

    pub(super) fn symbols(&self) -> &[Option<Symbol>] {
        &self.symbols[..self.length]
    }
}

/// Decodes a sliding window of steps.
#[derive(Clone, Debug)]
pub(super) struct Viterbi {
    model: Model,
    window: Window,
    state: Option<State>,
}

impl Viterbi {
    /// Reads the settings of `MEMBER`; the model is the paper's.
    pub fn read(reader: &mut Reader<'_>) -> Result<Self, SettingError> {
        Ok(Self { model: PAPER, window: Window::read(reader, Source::Reception)?, state: None })
    }
}

impl LinkForecaster for Viterbi {
    fn observe(&mut self, now: Instant, observation: Observation) {
        self.window.observe(now, observation);
        if !self.window.symbols().is_empty() {
            self.state = Some(self.model.viterbi(self.window.symbols()).last());
        }
    }
    fn probability_up(&self, _now: Instant, _horizon: Duration) -> f64 {
        certain(self.state)
    }
}

/// A decoded state as a probability.
pub(super) fn certain(state: Option<State>) -> f64 {
    match state {
        Some(State::Connect) => 1.0,
        Some(State::Disconnect) => 0.0,
        None => 0.5,
    }
}
