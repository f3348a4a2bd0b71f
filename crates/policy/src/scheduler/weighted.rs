//! In proportion to weights: each segment goes to the subflow with the largest credit.
//!
//! Source: deficit (credit) accounting as in Adiseshu, Parulkar, Varghese, "A Reliable and Scalable Striping Protocol",
//! SIGCOMM 1996, which turns fair queueing round to distribute one queue over many links; here with the account settled at
//! each segment and not once a round, so that the segments of two subflows are interleaved as evenly as they can be.
//!
//! For a segment of l bytes, over the subflows i that take part, with integer weights w_i:
//!
//! ```text
//! W      = sum of w_i
//! i*     = argmax (c_i + l_i w_i)          l_i = min(l, MSS_i); the lower id on a tie
//! c_i   <- c_i + l_i* w_i                  all that take part are due their share of it
//! c_i*  <- c_i* - l_i* W                   and the one that gets it has had it
//! ```
//!
//! c is in bytes times weight; the sum over those that take part does not change. So long as the same subflows take part
//! and the segments have one size, each has its exact share after every W segments, and in between two subflows are off by
//! less than one segment.
//!
//! Decisions:
//! - Weights are listed in order of subflow (the k-th weight for the k-th subflow by id that is not closing), or per
//!   local address as `ADDRESS=WEIGHT`, by its identifier (0 is the address of the first subflow). Others have weight
//!   1. Subflows from one address each have its weight.
//! - `when_full` others (the default) | wait. A subflow without room passes its turn to the others: it does not take
//!   part, and gets no credit for it. Then bulk data fills all windows and the shares are those of the windows; the
//!   weights decide while there is room to choose. With `wait` the shares always hold, but the connection is only as
//!   fast as the subflow that is slowest for its weight.
//! - The shares are of new data. Reinjections go to the fastest other subflow with room, and change no credit.
//! - Backup and stale subflows take part only when nothing better is left, as with the other schedulers.

use super::candidates::{excluded, fastest, fits, preferred};
use super::{Chunk, ChunkKind, Decision, Scheduler};
use crate::ids::{AddressId, SubflowId, SubflowMap};
use crate::table::{Choice, Reader, SettingError, Written};
use crate::view::{ConnectionView, SubflowState, SubflowView};
use core::cmp::Reverse;

const WHEN_FULL: Choice<WhenFull> = Choice {
    name: "when_full",
    default: WhenFull::Others,
    words: &[("others", WhenFull::Others), ("wait", WhenFull::Wait)],
    summary: "Whether the others take the segments of a subflow without room, or wait for it",
};

const MOST: u32 = 1000;

/// What the weights apply to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Weights {
    /// The k-th is that of the k-th subflow by id.
    InOrder(Vec<u32>),
    /// By identifier of the local address.
    ByAddress(Vec<(AddressId, u32)>),
}

/// What happens to the share of a subflow without room.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WhenFull {
    /// The others take it.
    Others,
    /// It is waited for.
    Wait,
}

/// The scheduler `weighted`.
#[derive(Debug)]
pub struct Weighted {
    weights: Weights,
    when_full: WhenFull,
    /// Credit of each: what it is due beyond what it got, in bytes times weight.
    credits: SubflowMap<i64>,
}

impl Weights {
    /// Reads `3:1` or `0=3:1=1`.
    fn read(text: &str) -> Option<Self> {
        let weight = |text: &str| text.trim().parse().ok().filter(|weight| (1..=MOST).contains(weight));
        if !text.contains('=') {
            return text.split(':').map(weight).collect::<Option<_>>().map(Self::InOrder);
        }
        let entry = |entry: &str| {
            let (address, share) = entry.split_once('=')?;
            Some((AddressId(address.trim().parse().ok()?), weight(share)?))
        };
        text.split(':').map(entry).collect::<Option<_>>().map(Self::ByAddress)
    }

    fn of(&self, subflow: &SubflowView, subflows: &[SubflowView]) -> i64 {
        let weight = match self {
            Self::InOrder(weights) => {
                let alive = |other: &&SubflowView| other.state != SubflowState::Closing && other.id < subflow.id;
                weights.get(subflows.iter().filter(alive).count()).copied()
            }
            Self::ByAddress(weights) => {
                weights.iter().find(|(address, _)| *address == subflow.local_address).map(|(_, weight)| *weight)
            }
        };
        i64::from(weight.unwrap_or(1))
    }
}

impl Weighted {
    pub fn new(weights: Weights, when_full: WhenFull) -> Self {
        Self { weights, when_full, credits: SubflowMap::new() }
    }

    pub fn build(reader: &mut Reader<'_>) -> Result<Box<dyn Scheduler>, SettingError> {
        let weights = reader.read(&Written {
            name: "weights",
            default: "1",
            values: "whole numbers 1 to 1000 in order of subflow, as 3:1, or by local address, as 0=3:1=1",
            expected: "weights from 1 to 1000, as 3:1, or ADDRESS=WEIGHT, as 0=3:1=1",
            read: Weights::read,
            summary: "Share of each subflow; 1 for those not named",
        })?;
        let when_full = reader.read(&WHEN_FULL)?;
        Ok(Box::new(Self::new(weights, when_full)))
    }

    fn credit(&self, id: SubflowId) -> i64 {
        self.credits.get(id).copied().unwrap_or(0)
    }

    fn schedule_new(&mut self, length: u32, subflows: &[SubflowView]) -> Decision {
        let waits = self.when_full == WhenFull::Wait;
        let taking_part = preferred(subflows, None).filter(|subflow| waits || fits(subflow, length));
        let due = |subflow: &&SubflowView| {
            self.credit(subflow.id) + i64::from(length.min(subflow.mss)) * self.weights.of(subflow, subflows)
        };
        let Some(chosen) = taking_part.clone().min_by_key(|subflow| Reverse(due(subflow))) else {
            return Decision::Wait(None);
        };
        if !fits(chosen, length) {
            return Decision::Wait(None);
        }
        let bytes = i64::from(length.min(chosen.mss));
        let mut sum = 0;
        for subflow in taking_part {
            let weight = self.weights.of(subflow, subflows);
            sum += weight;
            self.credits.insert(subflow.id, self.credit(subflow.id) + bytes * weight);
        }
        self.credits.insert(chosen.id, self.credit(chosen.id) - bytes * sum);
        Decision::Send(chosen.id)
    }
}

impl Scheduler for Weighted {
    fn schedule(&mut self, _connection: &ConnectionView, chunk: &Chunk, subflows: &[SubflowView]) -> Decision {
        match chunk.kind {
            ChunkKind::New => self.schedule_new(chunk.length, subflows),
            ChunkKind::Reinjection => Decision::on(fastest(subflows, excluded(chunk), chunk.length)),
        }
    }

    fn on_subflow_removed(&mut self, id: SubflowId) {
        self.credits.remove(id);
    }
}

#[cfg(test)]
mod tests;
