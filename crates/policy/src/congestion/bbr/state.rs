//! The states of BBR with their gains (section 5.3), and the measurements from an acknowledgement or loss.

use super::super::Ack;
use crate::rate::Rate;

/// Share of a round's flight that may be lost while probing (LossThresh).
pub(super) const LOSS_THRESHOLD: f64 = 0.02;
/// "Infinity" of volumes.
pub(super) const UNBOUNDED: u64 = u64::MAX;

/// The states of section 5.3.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum State {
    Startup,
    Drain,
    Down,
    Cruise,
    Refill,
    Up,
    ProbeRtt,
}

impl State {
    pub(super) fn pacing_gain(self) -> f64 {
        match self {
            Self::Startup => 2.77,
            Self::Drain => 0.5,
            Self::Down => 0.9,
            Self::Cruise | Self::Refill | Self::ProbeRtt => 1.0,
            Self::Up => 1.25,
        }
    }
    pub(super) fn cwnd_gain(self) -> f64 {
        match self {
            Self::Up => 2.25,
            Self::ProbeRtt => 0.5,
            Self::Startup | Self::Drain | Self::Down | Self::Cruise | Self::Refill => 2.0,
        }
    }
    /// IsInAProbeBWState.
    pub(super) fn is_probe_bw(self) -> bool {
        matches!(self, Self::Down | Self::Cruise | Self::Refill | Self::Up)
    }
    /// IsProbingBW.
    pub(super) fn is_probing(self) -> bool {
        matches!(self, Self::Startup | Self::Refill | Self::Up)
    }
}

/// The measurements from an acknowledgement or loss (RS in the draft).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sample {
    pub(super) rate: Option<Rate>,
    pub(super) app_limited: bool,
    /// Bytes delivered over the flight of the newest segment.
    pub(super) delivered: u64,
    /// Bytes lost over it.
    pub(super) lost: u64,
    pub(super) tx_in_flight: u64,
}

impl Sample {
    /// The sample of an acknowledgement; `held_down`: the newest segment was sent within a ProbeRTT.
    pub(super) fn of(ack: &Ack, held_down: bool) -> Self {
        Self {
            rate: ack.delivery_rate,
            app_limited: ack.app_limited || held_down,
            delivered: ack.prior_delivered.map_or(0, |prior| ack.total_delivered.saturating_sub(prior)),
            lost: ack.total_lost.saturating_sub(ack.prior_lost),
            tx_in_flight: ack.tx_in_flight,
        }
    }

    /// IsInflightTooHigh: the losses exceed the threshold.
    pub(super) fn lost_too_much(&self) -> bool {
        self.lost as f64 > self.tx_in_flight as f64 * LOSS_THRESHOLD
    }
}
