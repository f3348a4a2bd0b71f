//! Reception of frames that overlap.

use anabranch_policy::rate::Rate;
use std::f64::consts::{PI, SQRT_2};

/// The fate of a frame that overlaps with others.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub enum Overlap {
    #[default]
    Spoils,
    /// It survives if it came first and its signal is stronger than each of the others by this margin in dB.
    Capture(f32),
    /// It survives if it came first and its bits do, each with the probability of its modulation: 802.11b spreads a bit
    /// over 11 chips at 1 Mbit/s, and over fewer at higher rates, so that slow frames survive others of equal strength.
    /// As in ns-3, after G. Pei and T. Henderson, "Validation of ns-3 802.11b PHY model" (2009). Without a signal model
    /// all are equally strong.
    Despreads,
}

/// The modulations of 802.11b.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Modulation {
    /// Differential binary phase shift keying, 1 Mbit/s.
    Binary,
    /// Differential quadrature phase shift keying, 2 Mbit/s.
    Quadrature,
    /// Complementary code keying with 4 bits to a symbol, 5.5 Mbit/s.
    FourBits,
    /// Complementary code keying with 8 bits to a symbol, 11 Mbit/s.
    EightBits,
}

impl Modulation {
    /// The modulation of a rate, or of the next higher.
    pub fn of(rate: Rate) -> Self {
        match rate.bits_per_second() {
            0..=1_000_000 => Self::Binary,
            1_000_001..=2_000_000 => Self::Quadrature,
            2_000_001..=5_500_000 => Self::FourBits,
            _ => Self::EightBits,
        }
    }
    fn bits_per_micro(self) -> f64 {
        match self {
            Self::Binary => 1.0,
            Self::Quadrature => 2.0,
            Self::FourBits => 5.5,
            Self::EightBits => 11.0,
        }
    }
    /// The error probability of a bit (for the code keyings: of a symbol) at a ratio of signal to interference within
    /// the 22 MHz of the channel.
    fn error(self, ratio: f64) -> f64 {
        match self {
            Self::Binary => 0.5 * libm::exp(-22.0 * ratio),
            Self::Quadrature => {
                let x = 11.0 * ratio;
                (SQRT_2 + 1.0) / libm::sqrt(8.0 * PI * SQRT_2 * x) * libm::exp(-(2.0 - SQRT_2) * x)
            }
            Self::FourBits => biorthogonal(8.0 * ratio),
            Self::EightBits => {
                let right = 1.0 - biorthogonal(4.0 * ratio);
                1.0 - right * right
            }
        }
    }
    /// The negative logarithm of the probability that a microsecond survives.
    fn damage_per_micro(self, ratio: f64) -> f64 {
        let bits = match self {
            Self::Binary | Self::Quadrature => 1.0,
            Self::FourBits => 4.0,
            Self::EightBits => 8.0,
        };
        -libm::log1p(-self.error(ratio).min(1.0 - 1e-9)) / bits * self.bits_per_micro()
    }
}

/// The error probability of one of 16 biorthogonal signals (Proakis, "Digital Communications", 4.4) at a ratio of
/// symbol energy to noise density; by the trapezoidal rule.
fn biorthogonal(energy: f64) -> f64 {
    let (mean, steps, width) = (libm::sqrt(2.0 * energy), 400, 8.0);
    let step = 2.0 * width / f64::from(steps);
    let right: f64 = (0..=steps)
        .map(|index| f64::from(index) * step - width)
        .filter(|v| v + mean > 0.0)
        .map(|v| libm::pow(libm::erf((v + mean) / SQRT_2), 7.0) * libm::exp(-0.5 * v * v))
        .sum();
    (1.0 - right * step / libm::sqrt(2.0 * PI)).clamp(0.0, 1.0)
}

/// The lowest ratio in the tables, in dB; below it nothing survives for long.
const LOWEST: f64 = -12.0;
/// The highest, in dB; above it everything survives.
const HIGHEST: f64 = 13.0;
/// Entries per dB.
const PER_DECIBEL: f64 = 4.0;

/// Precomputed survival tables: a ratio between two entries is rounded down.
#[derive(Clone, Debug)]
pub struct Despreading {
    tables: [Vec<f64>; 4],
}

impl Despreading {
    pub fn new() -> Self {
        let modulations = [Modulation::Binary, Modulation::Quadrature, Modulation::FourBits, Modulation::EightBits];
        let entries = ((HIGHEST - LOWEST) * PER_DECIBEL) as u32;
        let ratio = |entry: u32| libm::pow(10.0, (LOWEST + f64::from(entry) / PER_DECIBEL) / 10.0);
        let table =
            |modulation: Modulation| (0..entries).map(|entry| modulation.damage_per_micro(ratio(entry))).collect();
        Self { tables: modulations.map(table) }
    }
    /// The negative logarithm of the probability that `micros` microseconds survive at a ratio of signal to
    /// interference.
    pub fn damage(&self, modulation: Modulation, ratio: f64, micros: f64) -> f64 {
        // A tiny fraction of a step, so that equal strength has its own entry regardless of rounding of the logarithm.
        let entry = (10.0 * libm::log10(ratio) - LOWEST) * PER_DECIBEL + 1e-6;
        let table = &self.tables[modulation as usize];
        if entry >= table.len() as f64 { 0.0 } else { micros * table[entry.max(0.0) as usize] }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What ns-3.37's `DsssErrorRateModel` computed for 1000 bits (the phase shift keyings) and one symbol (the others).
    #[test]
    fn errors_are_those_of_pei_and_henderson() {
        let near = |seen: f64, expected: f64| assert!((seen / expected - 1.0).abs() < 0.01, "{seen} {expected}");
        let thousand = |p: f64| 1.0 - libm::pow(1.0 - p, 1000.0);
        near(thousand(Modulation::Binary.error(0.5)), 0.008_316_11);
        near(thousand(Modulation::Binary.error(0.25)), 0.870_681);
        near(thousand(Modulation::Quadrature.error(1.0)), 0.176_526);
        near(thousand(Modulation::Quadrature.error(0.7)), 0.799_197);
        near(Modulation::FourBits.error(1.0), 0.023_998_8);
        near(Modulation::FourBits.error(0.5), 0.164_481);
        near(Modulation::EightBits.error(1.0), 0.301_908);
        near(Modulation::EightBits.error(2.0), 0.047_421_7);
    }

    #[test]
    fn an_acknowledgment_at_one_megabit_survives_an_equal_and_one_at_eleven_does_not() {
        let despreading = Despreading::new();
        let survives = |modulation, bits: f64| {
            libm::exp(-despreading.damage(modulation, 1.0, bits / Modulation::bits_per_micro(modulation)))
        };
        assert!(survives(Modulation::Binary, 112.0) > 0.999_999);
        assert!((survives(Modulation::Quadrature, 112.0) - libm::pow(1.0 - 0.176_526, 0.112)).abs() < 1e-3);
        // 28 symbols at 2.4 %, 14 at 30 %.
        assert!((survives(Modulation::FourBits, 112.0) - libm::pow(1.0 - 0.024, 28.0)).abs() < 1e-3);
        assert!(survives(Modulation::EightBits, 112.0) < 0.01);
    }
}
