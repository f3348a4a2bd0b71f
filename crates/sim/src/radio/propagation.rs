//! Signal strength at a receiver: log-distance path loss, and spatially correlated shadowing.

use super::hearing::{Hears, Position};
use crate::random::RandomStream;

/// The log-distance path loss model with log-normal shadowing (Rappaport, "Wireless Communications", 4.9), and the
/// thresholds of a receiver. The default is a card of 15 dBm at 2.4 GHz, whose frames at 11 Mbit/s need -82 dBm, with
/// exponent 3: a mean range of 79 m.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct PathLoss {
    /// Power of the sender, antennas included, in dBm.
    pub transmit_power: f64,
    /// Loss in dB over the first metre.
    pub reference_loss: f64,
    /// Each factor of ten in distance costs ten times this in dB: 2 in free space, 2.7 to 5 in towns and forests.
    pub exponent: f64,
    /// Standard deviation of the shadowing in dB, 0 for none. Shadowing is limited to three times this.
    pub shadowing: f64,
    /// Distance in metres, travelled by one end, at which the correlation of the shadowing has fallen to 1/e
    /// (Gudmundson 1991).
    pub correlation_distance: f64,
    /// The shape of the Nakagami fading, drawn for each frame and receiver: 0 for none, 1 for Rayleigh's (no line of
    /// sight), more for milder. It is limited to 9 dB above the mean; at shape 1 one frame in 2,800 would exceed that.
    pub fading: u32,
    /// The weakest signal in dBm whose frames can be received.
    pub decode: f32,
    /// The weakest signal in dBm that interferes with other frames.
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
    /// The signal at a distance in metres without shadowing, in dBm. Distances below a metre count as a metre.
    pub(crate) fn mean_signal(&self, distance: f64) -> f64 {
        self.transmit_power - self.reference_loss - 10.0 * self.exponent * libm::log10(distance.max(1.0))
    }
    /// The distance in metres beyond which nothing is heard with any shadowing and fading.
    pub(super) fn limit(&self) -> f64 {
        let weakest = f64::from(self.decode.min(self.interfere).min(self.sense));
        let luck = 3.0 * self.shadowing + self.headroom();
        let budget = self.transmit_power - self.reference_loss - weakest + luck;
        libm::pow(10.0, budget / (10.0 * self.exponent.max(0.1))).clamp(1.0, 1e7)
    }
}

impl PathLoss {
    /// Greatest gain of fading over the mean in dB.
    fn headroom(&self) -> f64 {
        if self.fading > 0 { MOST_FADING } else { 0.0 }
    }
    /// Whether a signal of this mean can ever be heard.
    pub(super) fn is_ever_heard(&self, mean: f32) -> bool {
        f64::from(mean) + self.headroom() >= f64::from(self.decode.min(self.interfere).min(self.sense))
    }
    /// Fading of one frame at one receiver in dB: its power has a gamma distribution with mean 1.
    pub(super) fn fade(&self, random: &mut RandomStream) -> f32 {
        let sum: f64 = (0..self.fading).map(|_| random.exponential(1.0)).sum();
        let decibels = 10.0 * libm::log10((sum / f64::from(self.fading.max(1))).max(1e-9));
        decibels.min(MOST_FADING) as f32
    }
    /// How a signal of this strength is perceived.
    pub(super) fn hears(&self, signal: f32) -> Hears {
        Hears::of([self.decode, self.interfere, self.sense].map(|weakest| signal >= weakest))
    }
}

/// Limit of fading in dB.
const MOST_FADING: f64 = 9.0;

/// Number of waves in the shadowing field.
const WAVES: usize = 96;

/// A shadowing field over the positions of both ends: a sum of sinusoids (Wang, Tameh and Nix, "Joint shadowing process
/// in urban peer-to-peer radio channels", 2008), so that a pair of positions always has the same value. The correlation
/// decays exponentially with the distance that either end has travelled.
///
/// A wave's angle is the sum of the contributions of both ends, and cos(a + b) = cos a cos b - sin a sin b: sines and
/// cosines are computed when a station moves; a pair only needs products and sums.
#[derive(Clone, Debug)]
pub struct Shadowing {
    deviation: f64,
    /// Wave vectors in radians per metre for the positions of both ends, and the phase.
    waves: Vec<[f64; 5]>,
    /// By station, its contributions as the first end of a pair, and as the second.
    parts: Vec<[Part; 2]>,
}

/// The contribution of one end to the angle of each wave.
#[derive(Clone, Debug)]
struct Part {
    cosines: [f64; WAVES],
    sines: [f64; WAVES],
}

impl Part {
    fn of(angles: impl Iterator<Item = f64>) -> Self {
        let mut part = Self { cosines: [0.0; WAVES], sines: [0.0; WAVES] };
        for ((cosine, sine), angle) in part.cosines.iter_mut().zip(&mut part.sines).zip(angles) {
            (*sine, *cosine) = libm::sincos(angle);
        }
        part
    }
    /// The sum of the cosines of the combined angles.
    fn sum_with(&self, other: &Self) -> f64 {
        let cosines = self.cosines.iter().zip(&other.cosines);
        let sines = self.sines.iter().zip(&other.sines);
        cosines.zip(sines).map(|((a, b), (c, d))| a * b - c * d).sum()
    }
}

impl Shadowing {
    /// The field for a seed, `None` if the model has no shadowing.
    pub(super) fn new(path_loss: &PathLoss, seed: u64, name: &str) -> Option<Self> {
        if path_loss.shadowing <= 0.0 {
            return None;
        }
        let mut random = RandomStream::new(seed, &format!("{name}/shadowing"));
        let turn = 2.0 * std::f64::consts::PI;
        let mut vector = || {
            // An isotropic field with correlation exp(-d / D) has wave numbers k with P(K <= k) = 1 - (1 + k²
            // D²)^(-1/2).
            let rest = (1.0 - random.uniform()).max(1e-3);
            let number = libm::sqrt(1.0 / (rest * rest) - 1.0) / path_loss.correlation_distance.max(0.1);
            let direction = random.uniform() * turn;
            (number * libm::cos(direction), number * libm::sin(direction), random.uniform() * turn)
        };
        let wave = |_| {
            let ((ax, ay, phase), (bx, by, _)) = (vector(), vector());
            [ax, ay, bx, by, phase]
        };
        Some(Self { deviation: path_loss.shadowing, waves: (0..WAVES).map(wave).collect(), parts: Vec::new() })
    }
    /// Sets the position of a station; a new station must have the next number.
    pub(super) fn place(&mut self, station: u32, at: Position) {
        let first = Part::of(self.waves.iter().map(|[ax, ay, _, _, phase]| ax * at.x + ay * at.y + phase));
        let second = Part::of(self.waves.iter().map(|[_, _, bx, by, _]| bx * at.x + by * at.y));
        match self.parts.get_mut(station as usize) {
            Some(parts) => *parts = [first, second],
            None => self.parts.push([first, second]),
        }
    }
    /// The shadowing between the positions of two stations in dB; the order matters.
    pub(super) fn between(&self, first: u32, second: u32) -> f64 {
        let sum = self.parts[first as usize][0].sum_with(&self.parts[second as usize][1]);
        let normal = sum * libm::sqrt(2.0 / WAVES as f64);
        self.deviation * normal.clamp(-3.0, 3.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_products_add_up_to_the_cosines_of_the_sums() {
        let model = PathLoss { shadowing: 4.0, ..PathLoss::default() };
        let mut field = Shadowing::new(&model, 7, "here").expect("there is shadowing");
        let places = [(0.0, 0.0), (310.0, -20.5), (999.0, 421.25)].map(|(x, y)| Position { x, y });
        for (station, place) in places.iter().enumerate() {
            field.place(station as u32, *place);
        }
        field.place(1, Position { x: 12.5, y: 640.0 });
        let (a, b) = (places[0], Position { x: 12.5, y: 640.0 });
        let cosine = |[ax, ay, bx, by, phase]: &[f64; 5]| libm::cos(ax * a.x + ay * a.y + bx * b.x + by * b.y + phase);
        let sum: f64 = field.waves.iter().map(cosine).sum();
        let expected = 4.0 * (sum * libm::sqrt(2.0 / 96.0)).clamp(-3.0, 3.0);
        assert!((field.between(0, 1) - expected).abs() < 1e-9, "{} {expected}", field.between(0, 1));
        assert_ne!(field.between(0, 2), field.between(2, 0));
    }
}
