//! Rates of mobile links: generated traces of Wi-Fi and LTE, with pauses in which the queue is kept.
//!
//! A trace is a sequence of rates, one per [`TICK`], and pauses in which nothing leaves. Packets queued during a pause
//! leave afterwards, as on a radio link that repeats a frame until it is received.
//!
//! - [`Walk::wifi`]: a station moves towards an access point and away from it. The distance goes from 3 to 40 m and
//!   back in 20 to 45 s; the rate is 60 Mbit/s within 5 m and falls with the square of the distance, down to 1 Mbit/s,
//!   with a geometric fading of up to 20 % per tick. Far away, it pauses every 12 s on average, for 0.3 to 4 s.
//! - [`Walk::lte`]: the logarithm of the rate walks randomly between 2 and 40 Mbit/s, in steps of up to 25 %. A
//!   handover happens every 8 s on average, a pause of 40 to 150 ms; one in five fails and takes 0.5 to 3 s.
//! - [`Walk::steady`]: a constant rate, with given pauses.

use crate::link::{Discipline, LinkConfig, QueueConfig, QueueLimit, RateModel, RateTrace, TraceError};
use crate::random::RandomStream;
use anabranch_policy::time::Duration;
use std::fmt::Write as _;
use std::sync::Arc;

/// Duration of a rate in seconds.
pub const TICK: f64 = 0.1;
/// In milliseconds.
const TICK_MS: u64 = 100;

/// The rate of a link over time.
#[derive(Clone, PartialEq, Debug)]
pub struct Walk {
    /// In Mbit/s, one per tick.
    pub rates: Vec<f64>,
    /// Start and end of pauses in seconds, in order.
    pub pauses: Vec<(f64, f64)>,
}

impl Walk {
    /// A constant rate in Mbit/s for `seconds` seconds.
    pub fn steady(mbit: f64, seconds: u32, pauses: &[(f64, f64)]) -> Self {
        Self { rates: vec![mbit; ticks(seconds)], pauses: pauses.to_vec() }
    }

    /// A station that moves towards an access point and away from it, repeatedly.
    pub fn wifi(seed: u64, seconds: u32) -> Self {
        let mut luck = RandomStream::new(seed, "walk/wifi");
        let period = luck.between(20.0, 45.0);
        let begin = luck.between(0.0, 1.0);
        let (mut fading, mut free_at) = (1.0_f64, 2.0);
        let mut walk = Self { rates: Vec::new(), pauses: Vec::new() };
        for tick in 0..ticks(seconds) {
            let at = tick as f64 * TICK;
            let turn = (at / period + begin).fract();
            let distance = 3.0 + 37.0 * (1.0 - (2.0 * turn - 1.0).abs());
            fading = (fading * libm::pow(1.2, luck.between(-1.0, 1.0))).clamp(0.6, 1.4);
            let near = (5.0 / distance).min(1.0);
            walk.rates.push((60.0 * near * near * fading).max(1.0));
            if distance > 15.0 && at >= free_at && luck.uniform() < TICK / 12.0 {
                free_at = walk.pause(at, luck.between(0.3, 4.0)) + 2.0;
            }
        }
        walk
    }

    /// A terminal of a mobile network that moves through cells.
    pub fn lte(seed: u64, seconds: u32) -> Self {
        let mut luck = RandomStream::new(seed, "walk/lte");
        let mut rate = luck.between(5.0, 30.0);
        let mut free_at = 2.0;
        let mut walk = Self { rates: Vec::new(), pauses: Vec::new() };
        for tick in 0..ticks(seconds) {
            let at = tick as f64 * TICK;
            rate = (rate * libm::pow(1.25, luck.between(-1.0, 1.0))).clamp(2.0, 40.0);
            walk.rates.push(rate);
            if at >= free_at && luck.uniform() < TICK / 8.0 {
                let fails = luck.uniform() < 0.2;
                let length = if fails { luck.between(0.5, 3.0) } else { luck.between(0.04, 0.15) };
                free_at = walk.pause(at, length) + 1.0;
            }
        }
        walk
    }

    /// Adds a pause of whole milliseconds; returns its end.
    fn pause(&mut self, from: f64, length: f64) -> f64 {
        let to = ((from + length) * 1e3).round() / 1e3;
        self.pauses.push((from, to));
        to
    }

    /// Whether it pauses at a time in seconds.
    pub fn is_paused(&self, at: f64) -> bool {
        self.pauses.iter().any(|(from, to)| (*from..*to).contains(&at))
    }

    /// Bytes that can leave between two times in whole ticks, in seconds.
    pub fn bytes_between(&self, from: f64, to: f64) -> f64 {
        let (from, to) = ((from * 1e3).round() as u64, (to * 1e3).round() as u64);
        (from..to).map(|millis| self.bits_in(millis) / 8.0).sum()
    }

    /// Bits that can leave in one millisecond.
    fn bits_in(&self, millis: u64) -> f64 {
        let rate = self.rates.get((millis / TICK_MS) as usize).copied().unwrap_or_default();
        if self.is_paused(millis as f64 / 1e3) { 0.0 } else { rate * 1e3 }
    }

    /// As a trace in the format of mahimahi.
    ///
    /// # Errors
    /// If nothing can ever leave.
    pub fn trace(&self) -> Result<RateTrace, TraceError> {
        let mut text = String::new();
        let mut bits = 0.0;
        for millis in 0..self.rates.len() as u64 * TICK_MS {
            bits += self.bits_in(millis);
            while bits >= f64::from(RateTrace::BYTES) * 8.0 {
                bits -= f64::from(RateTrace::BYTES) * 8.0;
                let _ = writeln!(text, "{}", millis + 1);
            }
        }
        RateTrace::parse(&text)
    }

    /// A link with this rate, a one-way delay and a drop-tail queue of `queue` packets.
    ///
    /// # Errors
    /// If nothing can ever leave.
    pub fn link(&self, delay: Duration, queue: usize) -> Result<LinkConfig, TraceError> {
        Ok(LinkConfig {
            queue: QueueConfig { limit: QueueLimit::Packets(queue), discipline: Discipline::DropTail },
            rate: RateModel::Trace(Arc::new(self.trace()?)),
            delay: crate::link::DelayModel::Fixed(delay),
            ..LinkConfig::default()
        })
    }
}

fn ticks(seconds: u32) -> usize {
    (f64::from(seconds) / TICK).round() as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_policy::time::Instant;

    #[test]
    fn a_pause_holds_what_would_have_left_in_it() {
        let walk = Walk::steady(12.0, 4, &[(1.0, 2.5)]);
        // 12 Mbit/s are one opportunity of 1500 bytes per millisecond.
        assert_eq!(walk.bytes_between(0.0, 1.0), 1.5e6);
        assert_eq!(walk.bytes_between(0.0, 4.0), 3.75e6);
        let trace = walk.trace().unwrap();
        let at = |seconds| Instant::ZERO + Duration::from_secs_f64(seconds);
        assert_eq!(trace.bytes_between(at(0.0), at(1.0)), 1_500_000);
        assert_eq!(trace.bytes_between(at(1.0), at(2.5)), 0);
        assert_eq!(trace.bytes_between(at(2.5), at(4.0)), 2_250_000);
    }

    #[test]
    fn walks_differ_by_their_seeds_and_stay_in_their_ranges() {
        for seed in 0..20 {
            let (wifi, lte) = (Walk::wifi(seed, 60), Walk::lte(seed, 60));
            assert_eq!(wifi, Walk::wifi(seed, 60));
            assert_ne!(wifi, Walk::wifi(seed + 1, 60));
            assert!(wifi.rates.iter().all(|rate| (1.0..=84.0).contains(rate)));
            assert!(lte.rates.iter().all(|rate| (2.0..=40.0).contains(rate)));
            assert!(lte.pauses.len() >= 2, "{:?}", lte.pauses);
            let lengths = wifi.pauses.iter().chain(&lte.pauses).map(|(from, to)| to - from);
            assert!(lengths.into_iter().all(|length| (0.039..=4.001).contains(&length)));
            assert_eq!(wifi.rates.len(), 600);
        }
    }
}
