//! Fading: the signal strength of a packet around its mean, and the probability of reception.

use crate::random::RandomStream;

/// Nakagami fading: a packet's power is its mean times a gamma distributed factor of mean 1. Shape 1 is Rayleigh's, no line
/// of sight; 3 is about Rice's with a line of sight and a factor K of 4 (Nakagami 1960; Simon and Alouini, "Digital
/// Communication over Fading Channels", 2.2).
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Fading {
    /// The shape, an integer from 1.
    pub shape: u32,
    /// The weakest signal in dBm that can be received.
    pub sensitivity: f64,
}

impl Fading {
    /// A packet's gain over the mean in dB.
    pub(super) fn draw(&self, random: &mut RandomStream) -> f64 {
        let shape = self.shape.max(1);
        let power: f64 = (0..shape).map(|_| random.exponential(1.0)).sum::<f64>() / f64::from(shape);
        10.0 * libm::log10(power.max(1e-12))
    }

    /// The share of packets received at a mean signal in dBm: P(gain >= x) = exp(-m x) sum over k < m of (m x)^k / k!,
    /// where x is the required gain.
    pub(crate) fn reception_ratio(&self, mean: f64) -> f64 {
        let shape = self.shape.max(1);
        let needed = f64::from(shape) * libm::pow(10.0, (self.sensitivity - mean) / 10.0);
        let (mut term, mut sum) = (1.0, 1.0);
        for k in 1..shape {
            term *= needed / f64::from(k);
            sum += term;
        }
        libm::exp(-needed) * sum
    }
}
