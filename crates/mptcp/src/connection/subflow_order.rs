//! A receiver restricted as that of Linux ([`crate::config::ReceiverConfig::data_in_subflow_order`]): data behind a
//! hole of its subflow is acknowledged selectively, and reaches the data level when the hole is filled.
//!
//! Memory is bounded like that of out-of-order pieces in the receive buffer. When it is exhausted, the data furthest
//! ahead on the subflow is dropped although it was acknowledged (RFC 2018, section 8; as in Linux). Data for which the
//! data level has no space is lost, although the subflow has acknowledged it (RFC 8684, section 3.3.6).

use anabranch_policy::ids::SubflowId;
use anabranch_wire::SeqNumber;
use bytes::Bytes;
use std::collections::VecDeque;

/// Overhead charged for each piece.
const BOOKKEEPING: u64 = 64;

/// Limit of pieces with their overhead on all subflows, as a multiple of the receive buffer's size.
pub(super) const FACTOR: u64 = 2;

/// A piece of payload with its position on the subflow and in the stream.
#[derive(Debug)]
pub(super) struct Piece {
    pub(super) seq: SeqNumber,
    pub(super) data_seq: u64,
    pub(super) bytes: Bytes,
}

/// Data that waits behind holes, by subflow, in sequence order.
#[derive(Debug, Default)]
pub(super) struct SubflowOrder {
    waiting: Vec<(SubflowId, VecDeque<Piece>)>,
    held: u64,
    /// Pieces whose hole was abandoned, to be passed to the data level.
    released: VecDeque<(SubflowId, Piece)>,
}

impl Piece {
    fn end(&self) -> SeqNumber {
        self.seq + self.bytes.len() as u32
    }
    fn cost(&self) -> u64 {
        self.bytes.len() as u64 + BOOKKEEPING
    }
}

impl SubflowOrder {
    /// Removes the data of a subflow that is gone.
    pub fn forget(&mut self, subflow: SubflowId) {
        for (_, pieces) in self.waiting.extract_if(.., |(id, _)| *id == subflow) {
            self.held -= pieces.iter().map(Piece::cost).sum::<u64>();
        }
    }

    /// Makes space for a piece by dropping data behind it on its subflow. Returns the first sequence number dropped, if
    /// any; an error if there is no space.
    pub(super) fn make_room(&mut self, subflow: SubflowId, piece: &Piece, limit: u64) -> Result<Option<SeqNumber>, ()> {
        let mut dropped = None;
        while self.held + piece.cost() > limit {
            let Some((_, pieces)) = self.waiting.iter_mut().find(|(id, _)| *id == subflow) else { return Err(()) };
            let Some(last) = pieces.back().filter(|last| last.seq.after(piece.seq)) else {
                return dropped.ok_or(()).map(Some);
            };
            (self.held, dropped) = (self.held - last.cost(), Some(last.seq));
            pieces.pop_back();
        }
        Ok(dropped)
    }

    pub(super) fn hold(&mut self, subflow: SubflowId, piece: Piece) {
        self.held += piece.cost();
        match self.waiting.iter_mut().find(|(id, _)| *id == subflow) {
            Some((_, pieces)) => {
                let at = pieces.partition_point(|other| other.seq.at_or_before(piece.seq));
                pieces.insert(at, piece);
            }
            None => self.waiting.push((subflow, VecDeque::from([piece]))),
        }
    }

    /// Releases data that waited for an abandoned hole, for [`Self::pop_released`].
    pub fn release(&mut self, subflow: SubflowId, next: SeqNumber) {
        let ready = self.take_ready(subflow, next);
        self.released.extend(ready.into_iter().map(|piece| (subflow, piece)));
    }

    /// The next released piece, and its subflow.
    pub fn pop_released(&mut self) -> Option<(SubflowId, Piece)> {
        self.released.pop_front()
    }

    /// Removes and returns data before the next expected sequence number of its subflow, oldest first.
    pub(super) fn take_ready(&mut self, subflow: SubflowId, next: SeqNumber) -> Vec<Piece> {
        let Some(at) = self.waiting.iter().position(|(id, _)| *id == subflow) else { return Vec::new() };
        let Some((_, pieces)) = self.waiting.get_mut(at) else { return Vec::new() };
        let mut ready = Vec::new();
        let count = pieces.iter().take_while(|piece| piece.end().at_or_before(next)).count();
        for piece in pieces.drain(..count) {
            self.held -= piece.cost();
            ready.push(piece);
        }
        if pieces.is_empty() {
            self.waiting.swap_remove(at);
        }
        ready
    }
}
