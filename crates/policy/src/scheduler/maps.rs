//! MAPS: the path with the best mixture of round-trip time and loss, and the next best when its window is full.
//!
//! Source: Zeng, Ke, Zuo, Liu, Huang, Cao, "Multi-attribute Aware Path Selection Approach for Efficient MPTCP-based Data
//! Delivery", Journal of Internet Services and Information Security 7(1), 2017. This is the form as published. For each path i (phi smoothed RTT, w congestion window in bytes):
//!
//! ```text
//! phi   <- 7/8 phi + 1/8 (t_ack - t_send - dt)                     (2)
//! AB    = C / (phi sqrt(PLR)),  C = 1.22 MSS, MSS = 1500 bytes     (3)  Mathis
//! AB    = w / phi_min                                                   Vegas
//! PLR   = (C / (phi AB))^2 = (C phi_min / (phi w))^2               (3) solved for PLR
//! MP    = 1/2 phi / phi_max + 1/2 PLR / PLR_max                    (5), (6), (7)
//! ```
//!
//! The smaller MP the better; a path is one that can be used now. The active paths are sorted by MP, ascending, and a packet
//! goes to the first whose window has room (Algorithms 1 to 3).
//!
//! Where the paper contradicts itself or is silent (the first value of each setting is the default):
//! - Equation 4 prints PLR on both sides: (C / (phi sqrt(PLR)))^2, which is AB^2. What follows from equation 3, and needs
//!   the AB that the next sentence estimates, is the form above. `loss` mathis takes it; measured is a variant that takes
//!   the share of segments found lost, smoothed over the last hundred or so.
//! - `maxima` paths | own_history. "phi_max is the maximum value of phi": over the paths, those that can be used now, it
//!   ranks them; over the path's own past, as long as this connection has seen it, it compares each path with itself and a
//!   slow path at its own best is preferred to a fast one at its worst.
//! - Equation 2 is RFC 6298's estimate, which the engine keeps. dt, "the time interval at which the packet is
//!   transmitted to receiver", cannot be the one-way delay, or phi would be no round trip; it is taken as 0.
//! - A maximum of 0 (no sample yet; nothing lost, with measured) makes its term 0. On equal MP the lower id goes first.
//! - Two regular paths that are full are waited for although a backup has room; a path with an unanswered timeout is
//!   not active unless all are such.
//! - Data that is sent again goes by the same order, without the path that had it.
//!
//! What the printed PLR amounts to: it is not a loss rate. C is the same for all and cancels, so that what is compared is
//! (phi_min / (phi w))^2: of two paths alike the one with the larger window is better, and a path whose queue grows, phi
//! above phi_min at the same window, gets a *smaller* PLR, against its growing phi in the other term.

use super::candidates::{excluded, fits, preferred};
use super::{Chunk, Decision, Scheduler};
use crate::ids::{SubflowId, SubflowMap};
use crate::table::{Choice, Reader, SettingError};
use crate::view::{ConnectionView, SubflowView};

const LOSS: Choice<Loss> = Choice {
    name: "loss",
    default: Loss::Mathis,
    words: &[("mathis", Loss::Mathis), ("measured", Loss::Measured)],
    summary: "Loss as the paper computes it from window and round trip, or as measured",
};
const MAXIMA: Choice<Maxima> = Choice {
    name: "maxima",
    default: Maxima::Paths,
    words: &[("paths", Maxima::Paths), ("own_history", Maxima::OwnHistory)],
    summary: "What round trip and loss are divided by: the largest of all paths, or of the path's own past",
};

/// C of the Mathis model, bytes.
const MATHIS: f64 = 1.22 * 1500.0;
/// Weight of round trip and of loss.
const WEIGHT: f64 = 0.5;

/// Where the loss comes from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Loss {
    /// From window and round trip, by the Mathis model solved for loss.
    Mathis,
    /// From what was found lost.
    Measured,
}

/// What is normalised by.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Maxima {
    /// The largest of the paths that can be used now.
    Paths,
    /// The largest that the path itself has shown.
    OwnHistory,
}

/// Smoothed RTT in seconds and loss.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
struct Quality {
    phi: f64,
    loss: f64,
}

impl Quality {
    fn of(subflow: &SubflowView, source: Loss) -> Self {
        let phi = subflow.smoothed_rtt.as_secs_f64();
        let loss = match source {
            Loss::Measured => subflow.loss_rate,
            Loss::Mathis => {
                let root = MATHIS * subflow.min_rtt.as_secs_f64() / (phi * subflow.cwnd as f64);
                if root.is_finite() { root * root } else { 0.0 }
            }
        };
        Self { phi, loss }
    }

    fn max(self, other: Self) -> Self {
        Self { phi: self.phi.max(other.phi), loss: self.loss.max(other.loss) }
    }

    /// MP, equation 7.
    fn relative_to(self, max: Self) -> f64 {
        let share = |value: f64, max: f64| if max > 0.0 { value / max } else { 0.0 };
        WEIGHT * share(self.phi, max.phi) + WEIGHT * share(self.loss, max.loss)
    }
}

/// The scheduler `maps`.
#[derive(Debug)]
pub struct Maps {
    loss: Loss,
    maxima: Maxima,
    /// The largest values of each path; empty unless `maxima` is `own_history`.
    history: SubflowMap<Quality>,
}

impl Maps {
    pub fn new(loss: Loss, maxima: Maxima) -> Self {
        Self { loss, maxima, history: SubflowMap::new() }
    }

    pub fn build(reader: &mut Reader<'_>) -> Result<Box<dyn Scheduler>, SettingError> {
        let loss = reader.read(&LOSS)?;
        let maxima = reader.read(&MAXIMA)?;
        Ok(Box::new(Self::new(loss, maxima)))
    }

    /// Records the values of each path.
    fn observe(&mut self, subflows: &[SubflowView]) {
        for subflow in subflows.iter().filter(|subflow| subflow.usable()) {
            let now = Quality::of(subflow, self.loss);
            let most = self.history.get(subflow.id).map_or(now, |most| most.max(now));
            self.history.insert(subflow.id, most);
        }
    }
}

impl Scheduler for Maps {
    fn schedule(&mut self, _connection: &ConnectionView, chunk: &Chunk, subflows: &[SubflowView]) -> Decision {
        if self.maxima == Maxima::OwnHistory {
            self.observe(subflows);
        }
        let active = preferred(subflows, excluded(chunk));
        let most = active.clone().fold(Quality::default(), |most, path| most.max(Quality::of(path, self.loss)));
        let score = |path: &SubflowView| {
            let max = match self.maxima {
                Maxima::Paths => most,
                Maxima::OwnHistory => self.history.get(path.id).copied().unwrap_or(most),
            };
            Quality::of(path, self.loss).relative_to(max)
        };
        let with_room = active.filter(|path| fits(path, chunk.length));
        match with_room.min_by(|a, b| score(a).total_cmp(&score(b))) {
            Some(path) => Decision::Send(path.id),
            None => Decision::Wait(None),
        }
    }

    fn on_subflow_removed(&mut self, id: SubflowId) {
        self.history.remove(id);
    }
}

#[cfg(test)]
mod tests;
