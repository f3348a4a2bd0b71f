//! Persistence: the link stays as last observed.
//!
//! The forecast is certain (1 after [`Observation::Heard`] and a frame that was delivered, 0 after
//! [`Observation::Missed`] and a frame that was dropped) and the same at every horizon; before the first observation it
//! is 1/2, because nothing is known. It is the baseline: a forecaster that is no better over a horizon has no skill
//! there.

use super::{LinkForecaster, Observation};
use crate::table::{Member, Reader, SettingError};
use crate::time::{Duration, Instant};

/// The entry in [`super::TABLE`].
pub const MEMBER: Member<dyn LinkForecaster> = Member {
    name: "persistence",
    summary: "The link will be as it was last seen.",
    source: "the usual reference forecast, as in meteorology",
    build,
};

fn build(_reader: &mut Reader<'_>) -> Result<Box<dyn LinkForecaster>, SettingError> {
    Ok(Box::new(Persistence::default()))
}

/// Remembers the last observation.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Persistence {
    carried: Option<bool>,
}

impl LinkForecaster for Persistence {
    fn observe(&mut self, _now: Instant, observation: Observation) {
        self.carried = observation.carried().or(self.carried);
    }
    fn probability_up(&self, _now: Instant, _horizon: Duration) -> f64 {
        match self.carried {
            Some(true) => 1.0,
            Some(false) => 0.0,
            None => 0.5,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_forecast_is_the_last_observation_at_every_horizon() {
        let mut forecaster = Persistence::default();
        let forecast = |forecaster: &Persistence| {
            [Duration::ZERO, Duration::from_secs(2), Duration::MAX]
                .map(|horizon| forecaster.probability_up(Instant::ZERO, horizon))
        };
        assert_eq!(forecast(&forecaster), [0.5; 3]);
        forecaster.observe(Instant::from_nanos(1), Observation::HEARD);
        assert_eq!(forecast(&forecaster), [1.0; 3]);
        forecaster.observe(Instant::from_nanos(2), Observation::HEARD);
        forecaster.observe(Instant::from_nanos(3), Observation::MISSED);
        assert_eq!(forecast(&forecaster), [0.0; 3]);
        forecaster.observe(Instant::from_nanos(4), Observation::heard_at(-70.0));
        assert_eq!(forecast(&forecaster), [1.0; 3]);
        forecaster.observe(Instant::from_nanos(5), Observation::Transmitted { delivered: false });
        assert_eq!(forecast(&forecaster), [0.0; 3]);
        forecaster.observe(Instant::from_nanos(6), Observation::Transmitted { delivered: true });
        forecaster.observe(Instant::from_nanos(7), Observation::Missed { hellos: 0 });
        assert_eq!(forecast(&forecaster), [1.0; 3]);
    }
}
