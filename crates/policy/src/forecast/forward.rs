//! The paper's hidden Markov model as a filter, extrapolated to the horizon.
//!
//! The scaled forward recursion keeps the probability of each state now, given all symbols up to now:
//!
//! ```text
//! alpha_t(i) = sum_k alpha_t-1(k) A_ki B_i(y_t), scaled to sum to 1
//! P(connect at t + h) = (alpha_t A^h)(connect)
//! ```
//!
//! with h the steps from the latest symbol to `now + horizon`, rounded to whole ones. Steps without an observation only
//! multiply by A. Before the first observation the forecast is the model's start probability, 0.65.
//!
//! With the paper's numbers the forecast one step ahead is 0.4 + 0.3 P(connect now), from 0.4 to 0.7, and at a threshold of
//! 1/2 it is, for all 88,572 sequences of one to ten symbols, the rule "the last symbol is not bad".

use super::hidden_markov::{Filter, PAPER};
use super::sampling::{Sampling, Source};
use super::{LinkForecaster, Observation};
use crate::table::{Member, Reader, SettingError};
use crate::time::{Duration, Instant};

/// The entry in [`super::TABLE`].
pub const MEMBER: Member<dyn LinkForecaster> = Member {
    name: "forward",
    summary: "The paper's hidden Markov model as a forward filter, carried to the horizon",
    source: "Rabiner, Proc. IEEE 77(2), 1989, section III; model of Zhang, Zhao, Cheng, IEEE Access 8, 2020",
    build,
};

fn build(reader: &mut Reader<'_>) -> Result<Box<dyn LinkForecaster>, SettingError> {
    Ok(Box::new(Forward::read(reader)?))
}

/// The forward filter of one link.
#[derive(Clone, Debug)]
pub struct Forward {
    sampling: Sampling,
    filter: Filter,
}

impl Forward {
    /// Reads the settings of `MEMBER`; the model is the paper's.
    pub fn read(reader: &mut Reader<'_>) -> Result<Self, SettingError> {
        Ok(Self { sampling: Sampling::read(reader, Source::Reception)?, filter: Filter::new(PAPER) })
    }
}

impl LinkForecaster for Forward {
    fn observe(&mut self, now: Instant, observation: Observation) {
        let Self { sampling, filter } = self;
        sampling.observe(now, observation, |sample| {
            filter.take(sample.steps, sample.symbol as usize);
        });
    }
    fn probability_up(&self, now: Instant, horizon: Duration) -> f64 {
        let steps = self.sampling.steps_until(now + horizon);
        self.filter.model.ahead(self.filter.filtered, steps)[0]
    }
}
