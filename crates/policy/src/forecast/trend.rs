//! The trend of the signal: its level and slope, extrapolated as for two nodes that pass each other, with missing
//! Hellos as evidence that it was too weak.
//!
//! The state of a link is a Gaussian over (L, S, X, R): the signal level in dB due to distance, its slope in dB per
//! second, the shadowing by obstacles, and the required level, at which every second packet is received. A packet is
//! received if its own signal, L + X + N(0, `fading`^2), reaches R; only then its strength is observed. So (Tobin 1958;
//! as a Kalman filter: Allik, Miller, Piovoso and Zurakowski, IEEE TCST 24(1), 2016):
//!
//! ```text
//! heard at z          z = L + X + N(0, fading^2), and R <= z
//! heard               Phi((L + X - R) / fading)
//! missed              e + (1 - e) Phi((R - L - X) / fading)            e: lost for another reason (`collisions`)
//! transmitted         as heard or missed, with less required: it was tried several times
//! ```
//!
//! Factors that are not Gaussian are approximated by matching mean and variance (assumed density filtering: Maybeck
//! 1982). L, X and R are only known against each other, so a link whose receiver reports no strength is tracked as
//! well.
//!
//! Two nodes on straight courses with relative speed v, in ranges per second, have a squared distance q = e^l, in
//! squared ranges, that is quadratic in time. With L - R = -k l, k = 6.5 dB (path loss exponent 3), and g = dl/dt = -S
//! / k:
//!
//! ```text
//! l(t) = l + ln a          g(t) = (g + 2 c t) / a          a = 1 + g t + c t^2, c = v^2 e^-l (at least g^2 / 4: 1)
//! ```
//!
//! 1: no distance is below that of a straight course; a slope too steep for v means a higher speed. So an approaching
//! node will depart again, the sooner the faster it is. Turns add noise to the slope; the shadow is forgotten over
//! `shadow_time` (Gudmundson 1991), and its variance is `shadowing`^2. A link is up at a horizon if L + X > R then:
//!
//! ```text
//! P(up at t + h) = Phi((E[L'] + E[X'] - E[R]) / sqrt(var(L' + X' - R)))
//! ```
//!
//! The speed of a pair is unknown: four filters run in parallel, for pairs that stand, walk and drive, and for open
//! ground ([`PACES`]). They are averaged with weights learned online from the likelihood of the observations,
//! forgetting by `forget` (Raftery, Karny and Ettler, Technometrics 52(1), 2010). R is learnt as well. A new neighbour
//! is assumed to be weak and approaching ([`FIRST`]).

use super::{LinkForecaster, Observation};
use crate::table::{Member, Number, Reader, SettingError};
use crate::time::{Duration, Instant};

/// The entry in [`super::TABLE`].
pub const MEMBER: Member<dyn LinkForecaster> = Member {
    name: "trend",
    summary: "Level and slope of the signal, filtered, against the level that reception takes, carried to the horizon",
    source: "ours; after Allik et al., IEEE TCST 24(1), 2016, and Raftery, Karny and Ettler, Technometrics 52(1), 2010",
    build,
};

/// The motion of two nodes that pass each other.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Pace {
    /// Relative speed in ranges per second.
    speed: f64,
    /// The effect of turns on the slope: standard deviation in dB per second after one second.
    turns: f64,
    /// The duration of a shadow in seconds.
    shadow_time: f64,
    /// The depth of shadows relative to the setting.
    shadow_depth: f64,
}

impl Pace {
    /// For a speed in ranges per second. Turns are as frequent as legs are short relative to the range, a shadow is
    /// half a range wide: both were tuned on the development seeds of `docs/measurements/forecasters.md`.
    const fn new(speed: f64, turns: f64, shadow_depth: f64) -> Self {
        Self { speed, turns, shadow_time: 0.45 / speed, shadow_depth }
    }
}

/// Pairs that stand or stroll, walk or cycle, and drive among obstacles; and any in the open.
const PACES: [Pace; 4] =
    [Pace::new(0.02, 0.028, 1.0), Pace::new(0.08, 0.226, 1.0), Pace::new(0.25, 1.25, 1.0), Pace::new(0.12, 0.4, 0.2)];
/// Number of parallel models.
const MODELS: usize = PACES.len();
/// The state's dimensions: level, slope, shadow, required level.
const STATES: usize = 4;
/// dB per unit of the squared distance's logarithm: 5 n / ln 10 for an exponent n of 3.
const KAPPA: f64 = 6.514;
/// The prior of a link before its first packet: the level below the required one in dB, the slope in dB per second for
/// a speed of one range per second, and the deviations of both.
const FIRST: First =
    First { below: 3.0, below_deviation: 5.0, nearing: 8.0, nearing_deviation: 4.0, required_deviation: 4.0 };
/// How much weaker, in dB, the signal may be for a frame that is retried.
const TRIED_AGAIN: f64 = 4.0;
/// Most missing Hellos of one report that count.
const MOST_MISSED: u16 = 64;
/// The longest extrapolation, in seconds.
const LONGEST: f64 = 600.0;

struct First {
    below: f64,
    below_deviation: f64,
    nearing: f64,
    nearing_deviation: f64,
    required_deviation: f64,
}

const REQUIRED: Number = Number {
    name: "required",
    unit: "dBm",
    default: -82.0,
    range: -150.0..=0.0,
    summary: "Signal at which every second packet is thought to be received before more is learnt, give or take 4 dB",
};
const SHADOWING: Number = Number {
    name: "shadowing",
    unit: "dB",
    default: 6.0,
    range: 0.0..=20.0,
    summary: "Standard deviation of the shadow over a link",
};
const FADING: Number = Number {
    name: "fading",
    unit: "dB",
    default: 2.0,
    range: 0.5..=10.0,
    summary: "Standard deviation of a packet's signal around the level",
};
const COLLISIONS: Number = Number {
    name: "collisions",
    unit: "",
    default: 0.03,
    range: 0.001..=0.5,
    summary: "Share of packets that are lost however strong the signal",
};
const FORGET: Number = Number {
    name: "forget",
    unit: "",
    default: 0.9,
    range: 0.5..=1.0,
    summary: "How much of the evidence for a pace is left after an observation",
};

fn build(reader: &mut Reader<'_>) -> Result<Box<dyn LinkForecaster>, SettingError> {
    Ok(Box::new(Trend::read(reader)?))
}

/// Density of the standard normal distribution.
fn density(x: f64) -> f64 {
    libm::exp(-0.5 * x * x) * 0.398_942_280_401_432_7
}

/// Cumulative standard normal distribution.
fn distribution(x: f64) -> f64 {
    0.5 * libm::erfc(-x * core::f64::consts::FRAC_1_SQRT_2)
}

/// The logarithm of the squared distance, its rate, and the derivatives of their next values.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Passing {
    /// The increment of l, and the new g.
    step: f64,
    rate: f64,
    /// Derivatives of l' and g' with respect to l and g.
    jacobian: [[f64; 2]; 2],
}

/// Two nodes that pass each other at `speed`, after `seconds`.
fn passing(l: f64, g: f64, speed: f64, seconds: f64) -> Passing {
    let t = seconds;
    // Below e^-3 of the range the distance does not matter.
    let c = (speed * speed * libm::exp(-l.clamp(-6.0, 6.0))).max(0.26 * g * g);
    let a = 1.0 + g * t + c * t * t;
    let rate = (g + 2.0 * c * t) / a;
    let bend = c * t * t / a;
    Passing {
        step: libm::log(a),
        rate,
        jacobian: [[1.0 - bend, t / a], [rate * bend - 2.0 * c * t / a, (1.0 - rate * t) / a]],
    }
}

/// Level, slope, shadow and required level of one link, as a Gaussian.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Filter {
    mean: [f64; STATES],
    variance: [[f64; STATES]; STATES],
}

impl Filter {
    fn first(required: f64, shadowing: f64, pace: &Pace) -> Self {
        let deviations = [
            FIRST.below_deviation,
            FIRST.nearing_deviation * pace.speed,
            shadowing * pace.shadow_depth,
            FIRST.required_deviation,
        ]
        .map(|deviation| deviation * deviation);
        let mut variance = [[0.0; STATES]; STATES];
        (0..STATES).for_each(|i| variance[i][i] = deviations[i]);
        Self { mean: [required - FIRST.below, FIRST.nearing * pace.speed, 0.0, required], variance }
    }

    /// The state after `seconds`.
    fn ahead(&self, seconds: f64, pace: &Pace, shadowing: f64) -> Self {
        let [level, slope, shadow, required] = self.mean;
        let Passing { step, rate, jacobian: [[ll, lg], [gl, gg]] } =
            passing((required - level) / KAPPA, -slope / KAPPA, pace.speed, seconds);
        let shadowing = shadowing * pace.shadow_depth;
        let stays = libm::exp(-seconds / pace.shadow_time);
        let mean = [level - KAPPA * step, -KAPPA * rate, stays * shadow, required];
        // F V F' with F = (ll lg 0 1-ll; gl gg 0 -gl; 0 0 stays 0; 0 0 0 1).
        let next = |[level, slope, shadow, required]: [f64; STATES]| {
            let lead = ll * level + lg * slope + (1.0 - ll) * required;
            [lead, gl * (level - required) + gg * slope, stays * shadow, required]
        };
        let half = self.variance.map(next);
        let column = |i: usize| next([half[0][i], half[1][i], half[2][i], half[3][i]]);
        let mut variance = [column(0), column(1), column(2), column(3)];
        // White noise on the slope's rate, limited to the length of a leg.
        let (q, t) = (pace.turns * pace.turns, seconds.min(10.0));
        variance[0][0] += q * t * t * t / 3.0;
        variance[0][1] += q * t * t / 2.0;
        variance[1][0] += q * t * t / 2.0;
        variance[1][1] += q * t;
        variance[2][2] += shadowing * shadowing * (1.0 - stays * stays);
        Self { mean, variance }
    }

    /// Updates the state by a likelihood of a . state, whose logarithm has these derivatives at the state's mean.
    fn shift(&mut self, a: [f64; STATES], first: f64, second: f64) {
        let gain = [0, 1, 2, 3].map(|i| (0..STATES).map(|j| self.variance[i][j] * a[j]).sum::<f64>());
        for i in 0..STATES {
            self.mean[i] += gain[i] * first;
            for j in 0..STATES {
                self.variance[i][j] += gain[i] * gain[j] * second;
            }
        }
    }

    /// Mean and variance of a . state.
    fn along(&self, a: [f64; STATES]) -> (f64, f64) {
        let mean = (0..STATES).map(|i| a[i] * self.mean[i]).sum();
        let variance: f64 =
            (0..STATES).map(|i| (0..STATES).map(|j| a[i] * a[j] * self.variance[i][j]).sum::<f64>()).sum();
        (mean, variance.max(0.0))
    }

    /// Processes a measurement of level and shadow; returns its likelihood.
    fn measure(&mut self, signal: f64, fading: f64) -> f64 {
        let (mean, spread) = self.along([1.0, 0.0, 1.0, 0.0]);
        let variance = spread + fading * fading;
        self.shift([1.0, 0.0, 1.0, 0.0], (signal - mean) / variance, -1.0 / variance);
        let deviation = libm::sqrt(variance);
        density((signal - mean) / deviation) / deviation
    }

    /// Processes a factor floor + (1 - floor) Phi((a . state + offset) / noise); returns its mean.
    fn judge(&mut self, a: [f64; STATES], offset: f64, noise: f64, floor: f64) -> f64 {
        let (mean, spread) = self.along(a);
        let deviation = libm::sqrt(spread + noise * noise);
        let u = (mean + offset) / deviation;
        let sum = floor + (1.0 - floor) * distribution(u);
        let first = (1.0 - floor) * density(u) / (deviation * sum);
        self.shift(a, first, -u * first / deviation - first * first);
        sum
    }

    /// Probability that level and shadow exceed the required level.
    fn probability_up(&self) -> f64 {
        let (mean, variance) = self.along(MARGIN);
        distribution(mean / libm::sqrt(variance.max(1e-6)))
    }
}

/// The margin above the required level.
const MARGIN: [f64; STATES] = [1.0, 0.0, 1.0, -1.0];
const LACK: [f64; STATES] = [-1.0, 0.0, -1.0, 1.0];
/// A packet was received: the required level is below its signal.
const BELOW: [f64; STATES] = [0.0, 0.0, 0.0, -1.0];

/// Tracks the signal of one link.
#[derive(Clone, Debug)]
pub(super) struct Trend {
    fading: f64,
    shadowing: f64,
    collisions: f64,
    forget: f64,
    latest: Option<Instant>,
    filters: [Filter; MODELS],
    weights: [f64; MODELS],
}

impl Trend {
    /// Reads the settings of `MEMBER`.
    pub fn read(reader: &mut Reader<'_>) -> Result<Self, SettingError> {
        let required = reader.read(&REQUIRED)?;
        let shadowing = reader.read(&SHADOWING)?;
        Ok(Self {
            fading: reader.read(&FADING)?,
            shadowing,
            collisions: reader.read(&COLLISIONS)?,
            forget: reader.read(&FORGET)?,
            latest: None,
            filters: PACES.map(|pace| Filter::first(required, shadowing, &pace)),
            weights: [1.0 / MODELS as f64; MODELS],
        })
    }

    fn advance(&mut self, now: Instant) {
        let seconds = self.latest.map_or(0.0, |latest| now.since(latest).as_secs_f64().min(LONGEST));
        if seconds > 0.0 {
            for (filter, pace) in self.filters.iter_mut().zip(&PACES) {
                *filter = filter.ahead(seconds, pace, self.shadowing);
            }
        }
        self.latest = self.latest.max(Some(now));
    }

    fn take(&mut self, observation: Observation) {
        let (fading, collisions) = (self.fading, self.collisions);
        for (filter, weight) in self.filters.iter_mut().zip(&mut self.weights) {
            let likelihood = match observation {
                Observation::Heard { signal: Some(signal) } if (-200.0..=100.0).contains(&signal) => {
                    let signal = f64::from(signal);
                    let likelihood = filter.measure(signal, fading);
                    filter.judge(BELOW, signal, 1.0, 0.01);
                    likelihood
                }
                Observation::Heard { .. } => filter.judge(MARGIN, 0.0, fading, 1e-3),
                Observation::Missed { .. } => filter.judge(LACK, 0.0, fading, collisions),
                Observation::Transmitted { delivered: true } => filter.judge(MARGIN, TRIED_AGAIN, fading, 1e-3),
                Observation::Transmitted { delivered: false } => filter.judge(LACK, -TRIED_AGAIN, fading, collisions),
            };
            *weight = libm::pow(*weight, self.forget) * likelihood.max(1e-12);
        }
        let sum: f64 = self.weights.iter().sum();
        for weight in &mut self.weights {
            *weight = (*weight / sum).max(1e-3);
        }
    }
}

impl LinkForecaster for Trend {
    fn observe(&mut self, now: Instant, observation: Observation) {
        let count = match observation {
            Observation::Missed { hellos } => u64::from(hellos.min(MOST_MISSED)),
            _ => 1,
        };
        let since = self.latest.map_or(Duration::ZERO, |latest| now.since(latest));
        for number in 1..=count {
            self.advance(now - since + (since * number) / count);
            self.take(observation);
        }
    }

    fn probability_up(&self, now: Instant, horizon: Duration) -> f64 {
        let Some(latest) = self.latest else { return 0.5 };
        let seconds = (now + horizon).since(latest).as_secs_f64().min(LONGEST);
        let (mut sum, mut total) = (0.0, 0.0);
        for ((filter, pace), weight) in self.filters.iter().zip(&PACES).zip(self.weights) {
            sum += weight * filter.ahead(seconds, pace, self.shadowing).probability_up();
            total += weight;
        }
        (sum / total).clamp(0.0, 1.0)
    }
}

#[cfg(test)]
mod tests;
