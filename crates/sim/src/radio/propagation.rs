//! How strong a signal arrives: path loss by the logarithm of the distance, and shadowing that is alike in places that
//! are near each other.

use super::hearing::{Hears, Position};
use crate::random::RandomStream;

/// The log-distance path loss model with log-normal shadowing (Rappaport, "Wireless Communications", 4.9), and what a
/// receiver makes of the signal. The default is a card of 15 dBm at 2.4 GHz, whose frames at 11 Mbit/s need -82 dBm, in
/// a place with exponent 3: a mean reach of 79 m.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct PathLoss {
    /// Power of the sender, antennas included, in dBm.
    pub transmit_power: f64,
    /// Loss in dB over the first metre.
    pub reference_loss: f64,
    /// Each tenfold distance costs ten times this in dB: 2 in free space, 2.7 to 5 in towns and forests.
    pub exponent: f64,
    /// Standard deviation of the shadowing in dB, 0 for none. It is cut off at three times this.
    pub shadowing: f64,
    /// At this distance in metres, travelled by one end, the correlation of the shadowing has fallen to 1/e
    /// (Gudmundson 1991).
    pub correlation_distance: f64,
    /// The shape of the Nakagami fading that each frame has anew at each receiver: 0 for none, 1 for Rayleigh's (no line
    /// of sight), more for milder. It is cut off at 9 dB above the mean; at shape 1 one frame in 2,800 would be above.
    pub fading: u32,
    /// The weakest signal in dBm whose frames can be received.
    pub decode: f32,
    /// The weakest signal in dBm that disturbs other frames.
    pub interfere: f32,
    /// The weakest signal in dBm that makes the channel busy.
    pub sense: f32,
}

impl Default for PathLoss {
    fn default() -> Self {
        Self {
            transmit_power: 15.0,
            reference_loss: 40.0,
            exponent: 3.0,
            shadowing: 0.0,
            correlation_distance: 20.0,
            fading: 0,
            decode: -82.0,
            interfere: -92.0,
            sense: -92.0,
        }
    }
}

impl PathLoss {
    /// The strength of the signal at a distance in metres, without shadowing, in dBm. Within the first metre it is as
    /// at one.
    pub fn mean_signal(&self, distance: f64) -> f64 {
        self.transmit_power - self.reference_loss - 10.0 * self.exponent * libm::log10(distance.max(1.0))
    }
    /// The distance in metres beyond which nothing is heard however lucky the place.
    pub(super) fn limit(&self) -> f64 {
        let weakest = f64::from(self.decode.min(self.interfere).min(self.sense));
        let luck = 3.0 * self.shadowing + self.headroom();
        let budget = self.transmit_power - self.reference_loss - weakest + luck;
        libm::pow(10.0, budget / (10.0 * self.exponent.max(0.1))).clamp(1.0, 1e7)
    }
}

impl PathLoss {
    /// How far in dB fading may lift a signal above its mean.
    fn headroom(&self) -> f64 {
        if self.fading > 0 { MOST_FADING } else { 0.0 }
    }
    /// Whether a signal of this mean is ever heard.
    pub(super) fn is_ever_heard(&self, mean: f32) -> bool {
        f64::from(mean) + self.headroom() >= f64::from(self.decode.min(self.interfere).min(self.sense))
    }
    /// What fading adds to one frame at one receiver, in dB: its power has a gamma distribution with mean 1.
    pub(super) fn fade(&self, random: &mut RandomStream) -> f32 {
        let sum: f64 = (0..self.fading).map(|_| random.exponential(1.0)).sum();
        let decibels = 10.0 * libm::log10((sum / f64::from(self.fading.max(1))).max(1e-9));
        decibels.min(MOST_FADING) as f32
    }
    /// What is heard of a signal of this strength.
    pub(super) fn hears(&self, signal: f32) -> Hears {
        Hears::of([self.decode, self.interfere, self.sense].map(|weakest| signal >= weakest))
    }
}

/// Where fading is cut off, dB.
const MOST_FADING: f64 = 9.0;

/// Waves that the field of shadows is made of.
const WAVES: usize = 96;

/// A field of shadows over the places of both ends: a sum of sinusoids (Wang, Tameh and Nix, "Joint shadowing process in
/// urban peer-to-peer radio channels", 2008), so that it needs no memory and a pair of places has one value for ever.
/// The correlation falls with the exponential of the distance that either end has travelled.
#[derive(Clone, Debug)]
pub struct Shadowing {
    deviation: f64,
    /// Wave vectors in radians per metre for the places of both ends, and the phase.
    waves: Vec<[f64; 5]>,
}

impl Shadowing {
    /// The field of a seed, none if the model has no shadowing.
    pub(super) fn new(path_loss: &PathLoss, seed: u64, name: &str) -> Option<Self> {
        if path_loss.shadowing <= 0.0 {
            return None;
        }
        let mut random = RandomStream::new(seed, &format!("{name}/shadowing"));
        let turn = 2.0 * std::f64::consts::PI;
        let mut vector = || {
            // An isotropic field with correlation exp(-d / D) has wave numbers k with P(K <= k) = 1 - (1 + k² D²)^(-1/2).
            let rest = (1.0 - random.uniform()).max(1e-3);
            let number = libm::sqrt(1.0 / (rest * rest) - 1.0) / path_loss.correlation_distance.max(0.1);
            let direction = random.uniform() * turn;
            (number * libm::cos(direction), number * libm::sin(direction), random.uniform() * turn)
        };
        let wave = |_| {
            let ((ax, ay, phase), (bx, by, _)) = (vector(), vector());
            [ax, ay, bx, by, phase]
        };
        Some(Self { deviation: path_loss.shadowing, waves: (0..WAVES).map(wave).collect() })
    }
    /// The shadow between two places in dB; the order of the places matters.
    pub(super) fn between(&self, a: Position, b: Position) -> f64 {
        let sum: f64 = self
            .waves
            .iter()
            .map(|[ax, ay, bx, by, phase]| libm::cos(ax * a.x + ay * a.y + bx * b.x + by * b.y + phase))
            .sum();
        let normal = sum * libm::sqrt(2.0 / WAVES as f64);
        self.deviation * normal.clamp(-3.0, 3.0)
    }
}
