//! A hidden Markov model of the link that learns its parameters online.
//!
//! States and filter are those of [`super::Forward`]; nine symbols instead of three, level (good, moderate, bad) by
//! slope (falling, steady, rising), since three levels alone lose the trend. Transitions and emissions are re-estimated
//! at every step by online expectation maximisation (Cappé, J. Comput. Graph. Stat. 20(3), 2011; Mongillo and Deneve,
//! Neural Computation 20(7), 2008): the expected counts of transitions and emissions, given all symbols and the present
//! state k, follow recursively, older ones forgotten by `forget` per step:
//!
//! ```text
//! r(i | k) = phi(i) A_ik / sum_i' phi(i') A_i'k                                   phi: the filter one step before
//! T'(i, j; k) = forget sum_i' T(i, j; i') r(i' | k) + [j = k] r(i | k)
//! E'(i, m; k) = forget sum_i' E(i, m; i') r(i' | k) + [i = k, m = y]
//! A_ij ~ `prior` A0_ij + sum_k T(i, j; k) phi'(k)                                 B_im ~ likewise
//! ```
//!
//! with A0 the paper's, and B0 the paper's for the level times what a slope says of a state. These counts are a
//! Dirichlet prior; after it no probability is below 1e-3: without both, likelihood drives emissions to zero. Without
//! forgetting and with fixed parameters the counts are those of Baum and Welch, which a test verifies to 1e-9. States
//! keep their names: connect is the one that emits good levels more often; if the estimates cross, the two are
//! exchanged.
//!
//! The slope is that of the signal: the difference of two exponential means (gains 1/2 and 1/5), rising or falling
//! beyond 1 dB. A missing Hello counts as 3 dB below the faster mean. Without a reported strength, a Hello counts as 10
//! dB, a missing one as 0.

use super::hidden_markov::{Filter, Model, PAPER, STATES};
use super::sampling::{Sampling, Source};
use super::{LinkForecaster, Observation};
use crate::table::{Member, Number, Reader, SettingError};
use crate::time::{Duration, Instant};

/// The entry in [`super::TABLE`].
pub const MEMBER: Member<dyn LinkForecaster> = Member {
    name: "online",
    summary: "A hidden Markov model over level and slope that learns its numbers on line, carried to the horizon",
    source: "Cappé, J. Comput. Graph. Stat. 20(3), 2011; prior from Zhang, Zhao, Cheng, IEEE Access 8, 2020",
    build,
};

/// Level by slope.
pub(super) const SYMBOLS: usize = 9;
/// Minimum of each probability.
const FLOOR: f64 = 1e-3;
/// Prior probabilities of slopes: falling, steady, rising.
const SLOPES: [[f64; 3]; STATES] = [[0.2, 0.5, 0.3], [0.4, 0.45, 0.15]];
/// Most steps without observation that are processed individually.
const MOST_UNSEEN: u64 = 64;

const FORGET: Number = Number {
    name: "forget",
    unit: "",
    default: 0.99,
    range: 0.5..=1.0,
    summary: "How much of the counts is left after a step",
};
const PRIOR: Number = Number {
    name: "prior",
    unit: "steps",
    default: 20.0,
    range: 0.1..=10_000.0,
    summary: "How many steps the numbers beforehand count as, per state",
};

fn build(reader: &mut Reader<'_>) -> Result<Box<dyn LinkForecaster>, SettingError> {
    Ok(Box::new(Online::read(reader)?))
}

/// The prior model.
fn beforehand() -> Model<SYMBOLS> {
    let mut emission = [[0.0; SYMBOLS]; STATES];
    for (state, row) in emission.iter_mut().enumerate() {
        for (symbol, probability) in row.iter_mut().enumerate() {
            *probability = PAPER.emission[state][symbol / 3] * SLOPES[state][symbol % 3];
        }
    }
    Model { start: PAPER.start, transition: PAPER.transition, emission }
}

/// Expected counts, each given the current state (the first index).
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Counts<const M: usize> {
    /// Counts of each state as the first.
    first: [[f64; STATES]; STATES],
    transitions: [[[f64; STATES]; STATES]; STATES],
    emissions: [[[f64; M]; STATES]; STATES],
}

impl<const M: usize> Counts<M> {
    /// After the first symbol.
    fn begin(symbol: usize) -> Self {
        let mut counts = Self {
            first: [[0.0; STATES]; STATES],
            transitions: [[[0.0; STATES]; STATES]; STATES],
            emissions: [[[0.0; M]; STATES]; STATES],
        };
        for k in 0..STATES {
            counts.first[k][k] = 1.0;
            counts.emissions[k][k][symbol] = 1.0;
        }
        counts
    }

    /// Advances one step: `before` is the filter at the previous step, `symbol` that of the new step, if it was
    /// observed.
    fn take(&mut self, model: &Model<M>, before: [f64; STATES], symbol: Option<usize>, forget: f64) {
        let old = *self;
        for k in 0..STATES {
            let joint = [0, 1].map(|i| before[i] * model.transition[i][k]);
            let back = joint.map(|value| value / (joint[0] + joint[1]));
            for i in 0..STATES {
                self.first[k][i] = back[0] * old.first[0][i] + back[1] * old.first[1][i];
                for j in 0..STATES {
                    let kept = back[0] * old.transitions[0][i][j] + back[1] * old.transitions[1][i][j];
                    self.transitions[k][i][j] = forget * kept + if j == k { back[i] } else { 0.0 };
                }
                for m in 0..M {
                    let kept = back[0] * old.emissions[0][i][m] + back[1] * old.emissions[1][i][m];
                    self.emissions[k][i][m] = forget * kept;
                }
            }
            if let Some(symbol) = symbol {
                self.emissions[k][k][symbol] += 1.0;
            }
        }
    }

    /// The expected counts over the current state's distribution `now`: transitions and emissions.
    fn expected(&self, now: [f64; STATES]) -> ([[f64; STATES]; STATES], [[f64; M]; STATES]) {
        let mut transitions = [[0.0; STATES]; STATES];
        let mut emissions = [[0.0; M]; STATES];
        for (i, row) in transitions.iter_mut().enumerate() {
            for (j, count) in row.iter_mut().enumerate() {
                *count = now[0] * self.transitions[0][i][j] + now[1] * self.transitions[1][i][j];
            }
        }
        for (i, row) in emissions.iter_mut().enumerate() {
            for (m, count) in row.iter_mut().enumerate() {
                *count = now[0] * self.emissions[0][i][m] + now[1] * self.emissions[1][i][m];
            }
        }
        (transitions, emissions)
    }

    /// Exchanges the two states.
    fn exchange(&mut self) {
        self.first.swap(0, 1);
        self.transitions.swap(0, 1);
        self.emissions.swap(0, 1);
        for k in 0..STATES {
            self.first[k].swap(0, 1);
            self.transitions[k].swap(0, 1);
            self.transitions[k][0].swap(0, 1);
            self.transitions[k][1].swap(0, 1);
            self.emissions[k].swap(0, 1);
        }
    }
}

/// Normalised `prior` times `beforehand` plus `counts`, none below the floor.
fn shares<const N: usize>(beforehand: &[f64; N], prior: f64, counts: &[f64; N]) -> [f64; N] {
    let mut shares = *beforehand;
    let mut sum = 0.0;
    for (share, count) in shares.iter_mut().zip(counts) {
        *share = prior * *share + count;
        sum += *share;
    }
    let mut raised = 0.0;
    for share in &mut shares {
        *share = (*share / sum).max(FLOOR);
        raised += *share;
    }
    shares.map(|share| share / raised)
}

/// The trend of the signal.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
struct Slope {
    means: Option<(f64, f64)>,
    strength_known: bool,
}

impl Slope {
    fn take(&mut self, observation: Observation) {
        let signal = match observation {
            Observation::Heard { signal: Some(signal) } if (-200.0..=100.0).contains(&signal) => {
                Some(f64::from(signal))
            }
            _ => None,
        };
        if signal.is_some() && !self.strength_known {
            *self = Self { means: None, strength_known: true };
        }
        let carried = observation.carried().unwrap_or(true);
        let value = match (signal, self.means) {
            (Some(signal), _) => signal,
            (None, Some((fast, _))) if self.strength_known => fast - if carried { 0.0 } else { 3.0 },
            (None, _) => {
                if carried {
                    10.0
                } else {
                    0.0
                }
            }
        };
        let (fast, slow) = self.means.unwrap_or((value, value));
        self.means = Some((fast + 0.5 * (value - fast), slow + 0.2 * (value - slow)));
    }
    /// 0 falling, 1 steady, 2 rising.
    fn index(self) -> usize {
        match self.means {
            Some((fast, slow)) if fast - slow < -1.0 => 0,
            Some((fast, slow)) if fast - slow > 1.0 => 2,
            _ => 1,
        }
    }
}

/// The current step.
#[derive(Clone, Copy, Debug)]
struct Open {
    /// The filter at the previous step; `None` at the first.
    before: Option<[f64; STATES]>,
    symbol: usize,
}

/// Learns the model of one link.
#[derive(Clone, Debug)]
pub(super) struct Online {
    sampling: Sampling,
    slope: Slope,
    beforehand: Model<SYMBOLS>,
    filter: Filter<SYMBOLS>,
    counts: Option<Counts<SYMBOLS>>,
    open: Option<Open>,
    forget: f64,
    prior: f64,
}

impl Online {
    /// Reads the settings of `MEMBER`.
    pub fn read(reader: &mut Reader<'_>) -> Result<Self, SettingError> {
        let beforehand = beforehand();
        Ok(Self {
            sampling: Sampling::read(reader, Source::Reception)?,
            slope: Slope::default(),
            filter: Filter::new(beforehand),
            beforehand,
            counts: None,
            open: None,
            forget: reader.read(&FORGET)?,
            prior: reader.read(&PRIOR)?,
        })
    }

    /// Ends the step, and `unseen` more without observation.
    fn close(&mut self, unseen: u64) {
        let Some(open) = self.open.take() else { return };
        match (&mut self.counts, open.before) {
            (Some(counts), Some(before)) => counts.take(&self.filter.model, before, Some(open.symbol), self.forget),
            (counts, _) => *counts = Some(Counts::begin(open.symbol)),
        }
        let Some(counts) = &mut self.counts else { return };
        let mut now = self.filter.filtered;
        for _ in 0..unseen.min(MOST_UNSEEN) {
            counts.take(&self.filter.model, now, None, self.forget);
            now = self.filter.model.ahead(now, 1);
        }
        self.filter.filtered = self.filter.model.ahead(now, unseen.saturating_sub(MOST_UNSEEN));
        self.learn();
    }

    fn learn(&mut self) {
        let Some(counts) = &mut self.counts else { return };
        let (transitions, emissions) = counts.expected(self.filter.filtered);
        let model = &mut self.filter.model;
        for state in 0..STATES {
            model.transition[state] = shares(&self.beforehand.transition[state], self.prior, &transitions[state]);
            model.emission[state] = shares(&self.beforehand.emission[state], self.prior, &emissions[state]);
        }
        let good = |state: usize| model.emission[state][..3].iter().sum::<f64>();
        if good(0) < good(1) {
            model.transition.swap(0, 1);
            model.transition[0].swap(0, 1);
            model.transition[1].swap(0, 1);
            model.emission.swap(0, 1);
            self.filter.filtered.swap(0, 1);
            counts.exchange();
        }
    }
}

impl LinkForecaster for Online {
    fn observe(&mut self, now: Instant, observation: Observation) {
        let mut samples = [None; MOST_UNSEEN as usize];
        let mut count = 0;
        self.sampling.observe(now, observation, |sample| {
            samples[count] = Some(sample);
            count += 1;
        });
        for sample in samples.into_iter().take(count).flatten() {
            self.slope.take(observation);
            let symbol = 3 * sample.symbol as usize + self.slope.index();
            if sample.steps > 0 {
                self.close(sample.steps - 1);
                let before = self.counts.is_some().then_some(self.filter.filtered);
                self.open = Some(Open { before, symbol });
            } else if let Some(open) = &mut self.open {
                open.symbol = symbol;
            }
            self.filter.take(sample.steps.min(1), symbol);
        }
    }

    fn probability_up(&self, now: Instant, horizon: Duration) -> f64 {
        let steps = self.sampling.steps_until(now + horizon);
        self.filter.model.ahead(self.filter.filtered, steps)[0].clamp(0.0, 1.0)
    }
}

#[cfg(test)]
mod tests;
