//! Rewards of a step.

use super::observation::Totals;
use std::str::FromStr;

/// What an agent is to maximize.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reward {
    /// Data delivered in order, as a share of the sum of the paths' rates.
    Goodput,
    /// 10 throughput - 1000 latency - 2000 loss, with throughput in packets per second, latency in seconds and loss as
    /// a share (Jay et al., "A Deep Reinforcement Learning Perspective on Internet Congestion Control", ICML 2019,
    /// section 4.2), divided by 10 times the packets per second of all paths.
    Aurora,
    /// Throughput to the power of 0.5 over delay in units of the least round trip (the power of Giessler et al., 1978).
    Power,
    /// Goodput, less 1 per second of a stall.
    Stalls,
}

impl FromStr for Reward {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        match name {
            "goodput" => Ok(Self::Goodput),
            "aurora" => Ok(Self::Aurora),
            "power" => Ok(Self::Power),
            "stalls" => Ok(Self::Stalls),
            _ => Err(format!("'{name}' is none of goodput, aurora, power, stalls")),
        }
    }
}

/// Payload of a full segment, in bits, for rates in packets.
const PACKET: f64 = 1_400.0 * 8.0;

impl Reward {
    /// Of a step on paths of `capacity` Mbit/s in all, whose least round trip is `least` ms.
    pub fn of(self, totals: &Totals, capacity: f64, least: f64) -> f64 {
        let share = totals.goodput / capacity.max(1e-9);
        match self {
            Self::Goodput => share,
            Self::Aurora => {
                let packets = |rate: f64| rate * 1e6 / PACKET;
                let sum = 10.0 * packets(totals.goodput) - totals.delay - 2_000.0 * totals.loss;
                sum / (10.0 * packets(capacity)).max(1e-9)
            }
            Self::Power => share.max(0.0).sqrt() / (totals.delay / least.max(1e-3)).max(1.0),
            Self::Stalls => share - totals.stalled,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rewards_are_those_of_their_sources() {
        let totals = Totals { goodput: 5.6, delay: 100.0, loss: 0.01, stalled: 0.2 };
        let of = |reward: Reward| reward.of(&totals, 11.2, 50.0);
        assert!((of(Reward::Goodput) - 0.5).abs() < 1e-12);
        // 500 packets per second of 1,000: (5000 - 1000 * 0.1 - 2000 * 0.01) / 10000.
        assert!((of(Reward::Aurora) - 0.488).abs() < 1e-12);
        assert!((of(Reward::Power) - 0.5f64.sqrt() / 2.0).abs() < 1e-12);
        assert!((of(Reward::Stalls) - 0.3).abs() < 1e-12);
    }
}
