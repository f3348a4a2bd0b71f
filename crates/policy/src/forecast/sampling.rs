//! Converts observations to the symbols of the hidden Markov models, one per time step.
//!
//! A step is centred on a multiple of `step` after the first observation, so that Hellos slightly early or late fall
//! into separate steps. All observations within a step make one quality and so one symbol. It is emitted at once, and
//! replaced by later observations in the step. A step without observations has no symbol, which differs from "bad".
//!
//! The quality is either of
//!
//! - `reception`: the share of what carried among all that was observed, step by step, smoothed:
//!   q <- q + gain (share - q), times 10,000; Hellos that came and frames that were delivered carry, Hellos that are missing
//!   and frames that were dropped do not;
//! - `if_quality`: the paper's counter ([`InterfaceQuality`]). Its events are an end host's: acknowledgement, loss, timeout.
//!   Here a Hello or a frame that was delivered counts as an acknowledgement, a frame that was dropped as a loss, and a
//!   Hello that is missing, known by its timer, as a timeout.

use super::Observation;
use super::quality::{BEST, InterfaceQuality, Symbol};
use crate::table::{Choice, Number, Reader, Seconds, SettingError};
use crate::time::{Duration, Instant};

/// The source of symbols.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Source {
    /// The smoothed share of received packets.
    Reception,
    /// The paper's counter.
    Counter,
}

const STEP: Seconds = Seconds(Number {
    name: "step",
    unit: "seconds",
    default: 1.0,
    range: 0.01..=60.0,
    summary: "Time that one transition of the model stands for; the interval of the Hellos",
});
const QUALITY: Choice<Source> = Choice {
    name: "quality",
    default: Source::Reception,
    words: &[("reception", Source::Reception), ("if_quality", Source::Counter)],
    summary: "Smoothed share of what was received, or the paper's counter of acknowledgements, losses and timeouts",
};
const GAIN: Number = Number {
    name: "gain",
    unit: "",
    default: 0.25,
    range: 0.01..=1.0,
    summary: "Weight of the latest step in the smoothed share of what was received",
};

/// Most missing Hellos of one report that count.
const MOST_MISSED: u16 = 64;

/// The result of an observation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Sample {
    /// Steps since the previous sample: 0 replaces it, 1 follows it; with more, all but the last were not observed.
    pub steps: u64,
    /// The symbol of the step.
    pub symbol: Symbol,
}

/// Converts the observations of one link.
#[derive(Clone, Debug)]
pub(super) struct Sampling {
    step: Duration,
    first: Option<Instant>,
    latest: Instant,
    index: u64,
    quality: Quality,
}

impl Sampling {
    /// Reads the settings; the default source is `source`.
    pub(super) fn read(reader: &mut Reader<'_>, source: Source) -> Result<Self, SettingError> {
        let step = reader.read(&STEP)?;
        let source = reader.read(&Choice { default: source, ..QUALITY })?;
        let gain = reader.read(&GAIN)?;
        let quality = match source {
            Source::Reception => Quality::Reception(Reception { gain, before: None, carried: 0, all: 0 }),
            Source::Counter => Quality::Counter(InterfaceQuality::default()),
        };
        Ok(Self { step, first: None, latest: Instant::ZERO, index: 0, quality })
    }

    /// Processes an observation and passes its samples, up to 64, to `take`.
    pub(super) fn observe(&mut self, now: Instant, observation: Observation, mut take: impl FnMut(Sample)) {
        let count = match observation {
            Observation::Missed { hellos } => hellos.min(MOST_MISSED),
            _ => 1,
        };
        let since = if self.first.is_some() { now.since(self.latest) } else { Duration::ZERO };
        for number in 1..=u64::from(count) {
            let at = now - since + (since * number) / u64::from(count);
            take(self.sample(at.max(self.latest), observation));
        }
    }

    fn sample(&mut self, at: Instant, observation: Observation) -> Sample {
        let new = self.first.is_none();
        self.first.get_or_insert(at);
        self.latest = at;
        let index = self.index_of(at);
        let steps = if new { 1 } else { index.saturating_sub(self.index) };
        self.index = self.index.max(index);
        Sample { steps, symbol: Symbol::of(self.quality.take(steps > 0, observation)) }
    }

    fn index_of(&self, at: Instant) -> u64 {
        let Some(first) = self.first else { return 0 };
        (at.since(first) + self.step / 2).as_nanos() / self.step.as_nanos().max(1)
    }

    /// Steps from the latest sample to `at`.
    pub(super) fn steps_until(&self, at: Instant) -> u64 {
        self.index_of(at).saturating_sub(self.index)
    }
}

#[derive(Clone, Debug)]
enum Quality {
    Reception(Reception),
    Counter(InterfaceQuality),
}

impl Quality {
    fn take(&mut self, new_step: bool, observation: Observation) -> u32 {
        match self {
            Self::Reception(reception) => reception.take(new_step, observation.carried() == Some(true)),
            Self::Counter(counter) => {
                match observation {
                    Observation::Heard { .. } | Observation::Transmitted { delivered: true } => {
                        counter.on_acknowledgement();
                    }
                    Observation::Transmitted { delivered: false } => counter.on_loss(),
                    Observation::Missed { .. } => counter.on_timeout(),
                }
                counter.get()
            }
        }
    }
}

/// Smoothed share of received packets. The latest step is separate, since it has not ended.
#[derive(Clone, Debug)]
struct Reception {
    gain: f64,
    before: Option<f64>,
    carried: u32,
    all: u32,
}

impl Reception {
    fn take(&mut self, new_step: bool, carried: bool) -> u32 {
        if new_step && self.all > 0 {
            self.before = Some(self.share());
            (self.carried, self.all) = (0, 0);
        }
        self.carried = self.carried.saturating_add(u32::from(carried));
        self.all = self.all.saturating_add(1);
        (self.share() * f64::from(BEST) + 0.5) as u32
    }

    fn share(&self) -> f64 {
        let latest = f64::from(self.carried) / f64::from(self.all.max(1));
        self.before.map_or(latest, |before| before + self.gain * (latest - before))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::Settings;

    fn sampling(settings: &Settings) -> Sampling {
        settings.read(|reader| Sampling::read(reader, Source::Reception)).expect("good settings")
    }

    fn samples(sampling: &mut Sampling, millis: u64, observation: Observation) -> Vec<(u64, Symbol)> {
        let mut taken = Vec::new();
        let at = Instant::ZERO + Duration::from_millis(millis);
        sampling.observe(at, observation, |sample| taken.push((sample.steps, sample.symbol)));
        taken
    }

    #[test]
    fn a_hello_a_little_early_or_late_has_a_step_of_its_own_and_a_second_one_replaces_the_symbol() {
        use Symbol::{Good, Moderate};
        let mut sampling = sampling(&Settings::new());
        assert_eq!(samples(&mut sampling, 10_000, Observation::HEARD), [(1, Good)]);
        assert_eq!(samples(&mut sampling, 10_960, Observation::HEARD), [(1, Good)]);
        assert_eq!(samples(&mut sampling, 12_040, Observation::MISSED), [(1, Moderate)]); // 0.75
        // One of two now: 1 + 0.25 (1/2 - 1) = 0.875.
        assert_eq!(samples(&mut sampling, 12_100, Observation::HEARD), [(0, Good)]);
        assert_eq!(sampling.steps_until(Instant::ZERO + Duration::from_millis(14_100)), 2);
        assert_eq!(samples(&mut sampling, 15_000, Observation::HEARD), [(3, Good)]);
    }

    #[test]
    fn missing_hellos_that_are_seen_by_a_gap_are_spread_over_it() {
        use Symbol::{Bad, Good, Moderate};
        let mut sampling = sampling(&Settings::new());
        samples(&mut sampling, 0, Observation::HEARD);
        // 1, 0.75, 0.5625, 0.421875: at 1, 2 and 3 s.
        let missed = samples(&mut sampling, 3000, Observation::Missed { hellos: 3 });
        assert_eq!(missed, [(1, Moderate), (1, Moderate), (1, Bad)]);
        assert_eq!(samples(&mut sampling, 4000, Observation::HEARD), [(1, Moderate)]); // 0.5664
        assert_eq!(samples(&mut sampling, 5000, Observation::Missed { hellos: 0 }), []);
        let long_ago = samples(&mut sampling, 70_000, Observation::Missed { hellos: u16::MAX });
        assert_eq!(long_ago.len(), 64);
        assert_eq!(long_ago.iter().map(|(steps, _)| steps).sum::<u64>(), 66);
        (0..10).for_each(|step| assert_ne!(samples(&mut sampling, 71_000 + 1000 * step, Observation::HEARD), []));
        assert_eq!(samples(&mut sampling, 81_000, Observation::HEARD), [(1, Good)]);
    }

    #[test]
    fn the_papers_counter_takes_missing_hellos_for_timeouts_and_lost_frames_for_losses() {
        let mut sampling = sampling(&Settings::new().with("quality", "if_quality"));
        for second in 0..4 {
            samples(&mut sampling, 1000 * second, Observation::MISSED);
        }
        (0..9).for_each(|_| drop(samples(&mut sampling, 4000, Observation::Transmitted { delivered: false })));
        // 10,000 - 4000 - 900 = 5100; one more loss makes 5000.
        assert_eq!(samples(&mut sampling, 4000, Observation::Transmitted { delivered: false }), [(0, Symbol::Bad)]);
        assert_eq!(samples(&mut sampling, 4000, Observation::HEARD), [(0, Symbol::Moderate)]); // 5001
    }

    #[test]
    fn time_that_runs_backwards_stands_still() {
        let mut sampling = sampling(&Settings::new());
        samples(&mut sampling, 5000, Observation::HEARD);
        assert_eq!(samples(&mut sampling, 1000, Observation::HEARD), [(0, Symbol::Good)]);
        assert_eq!(samples(&mut sampling, 6000, Observation::HEARD), [(1, Symbol::Good)]);
    }
}
