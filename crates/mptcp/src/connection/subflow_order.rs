//! A receiver as strict as the kernel of Linux ([`crate::ConnectionConfig::data_in_subflow_order`]): what lies behind a hole
//! of its subflow is acknowledged there selectively, and is given to the data level when the hole is filled.
//!
//! What that takes is bounded as the receive buffer's pieces out of order are. When it is full, what lies furthest on the
//! subflow is dropped although it was acknowledged (RFC 2018, section 8; Linux does so too); and what the data level has no
//! room for is lost there, although the subflow has acknowledged it (RFC 8684, section 3.3.6).

use super::Connection;
use crate::subflow::receiver::Placement;
use anabranch_policy::ids::SubflowId;
use anabranch_policy::time::Instant;
use anabranch_wire::SeqNumber;
use bytes::Bytes;
use std::collections::VecDeque;

/// What a piece costs besides its bytes.
const BOOKKEEPING: u64 = 64;
/// Pieces with their bookkeeping take at most so many times the size of the receive buffer, all subflows' together.
const FACTOR: u64 = 2;

/// A piece of payload: where it lies on its subflow and in the stream.
#[derive(Debug)]
pub(super) struct Piece {
    seq: SeqNumber,
    data_seq: u64,
    bytes: Bytes,
}

impl Piece {
    fn end(&self) -> SeqNumber {
        self.seq + self.bytes.len() as u32
    }
    fn cost(&self) -> u64 {
        self.bytes.len() as u64 + BOOKKEEPING
    }
}

/// What waits behind holes, by subflow in sequence order.
#[derive(Debug, Default)]
pub(super) struct SubflowOrder {
    waiting: Vec<(SubflowId, VecDeque<Piece>)>,
    held: u64,
    /// Pieces whose hole was given up; the data level takes them next.
    released: VecDeque<(SubflowId, Piece)>,
}

impl SubflowOrder {
    /// Forgets what waits on a subflow that is gone.
    pub fn forget(&mut self, subflow: SubflowId) {
        for (_, pieces) in self.waiting.extract_if(.., |(id, _)| *id == subflow) {
            self.held -= pieces.iter().map(Piece::cost).sum::<u64>();
        }
    }

    /// Makes room for a piece by dropping what lies behind it on its subflow. Gives the first sequence number that was
    /// dropped, if one was; an error if there is no room.
    fn make_room(&mut self, subflow: SubflowId, piece: &Piece, limit: u64) -> Result<Option<SeqNumber>, ()> {
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

    fn hold(&mut self, subflow: SubflowId, piece: Piece) {
        self.held += piece.cost();
        match self.waiting.iter_mut().find(|(id, _)| *id == subflow) {
            Some((_, pieces)) => {
                let at = pieces.partition_point(|other| other.seq.at_or_before(piece.seq));
                pieces.insert(at, piece);
            }
            None => self.waiting.push((subflow, VecDeque::from([piece]))),
        }
    }

    /// Sets apart what waited for a hole that was given up: [`Self::pop_released`] returns it.
    pub fn release(&mut self, subflow: SubflowId, next: SeqNumber) {
        let ready = self.take_ready(subflow, next);
        self.released.extend(ready.into_iter().map(|piece| (subflow, piece)));
    }

    /// The next piece that was released, and its subflow.
    pub fn pop_released(&mut self) -> Option<(SubflowId, Piece)> {
        self.released.pop_front()
    }

    /// Takes out what the next expected sequence number of its subflow has passed, oldest first.
    fn take_ready(&mut self, subflow: SubflowId, next: SeqNumber) -> Vec<Piece> {
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

impl Connection {
    /// Whether a stretch of a subflow waits until all before it is here.
    pub(super) fn waits_for_hole(&self, index: usize, start: SeqNumber) -> bool {
        self.subflows.get(index).is_some_and(|subflow| start.after(subflow.receiver.next))
    }

    /// Takes in payload behind a hole of its subflow: it gets its place there, and waits.
    pub(super) fn hold_behind_hole(
        &mut self,
        now: Instant,
        index: usize,
        (start, end): (SeqNumber, SeqNumber),
        data_seq: u64,
        bytes: Bytes,
    ) {
        let limit = self.receiver.buffer.size().saturating_mul(FACTOR);
        let (Some(order), Some(subflow)) = (self.receiver.subflow_order.as_mut(), self.subflows.get_mut(index)) else {
            return;
        };
        let piece = Piece { seq: start, data_seq, bytes };
        match order.make_room(subflow.id(), &piece, limit) {
            Ok(dropped) => dropped.into_iter().for_each(|from| subflow.receiver.forget_from(from)),
            Err(()) => return subflow.receiver.acknowledge_now(),
        }
        let placement = subflow.receiver.place(now, start, end, subflow.mss, &self.config.tcp);
        if placement == Placement::OutOfOrder {
            order.hold(subflow.id(), piece);
        }
        if self.partial.is_some() {
            self.note_placed(now, index, (start, end), data_seq);
            self.tell_of_missing(index);
        }
    }

    /// Holds a part of a mapping whose checksum is right, if it lies behind a hole; else gives it to the data level.
    pub(super) fn insert_in_order(
        &mut self,
        now: Instant,
        index: usize,
        seq: SeqNumber,
        (data_seq, bytes): (u64, Bytes),
    ) {
        let end = seq + bytes.len() as u32;
        if self.receiver.subflow_order.is_none() || !self.waits_for_hole(index, end) {
            self.insert(now, index, data_seq, bytes);
        } else if let (Some(order), Some(subflow)) = (self.receiver.subflow_order.as_mut(), self.subflows.get(index)) {
            order.hold(subflow.id(), Piece { seq, data_seq, bytes });
        }
    }

    /// Gives the data level what waited for the holes of a subflow that are filled.
    pub(super) fn release_in_order(&mut self, now: Instant, index: usize) {
        let (Some(order), Some(subflow)) = (self.receiver.subflow_order.as_mut(), self.subflows.get(index)) else {
            return;
        };
        for piece in order.take_ready(subflow.id(), subflow.receiver.next) {
            self.insert(now, index, piece.data_seq, piece.bytes);
        }
    }

    /// Gives the data level what waited for holes of subflows that were given up. Returns whether anything did.
    pub(super) fn insert_released(&mut self, now: Instant) -> bool {
        let mut any = false;
        while let Some((id, piece)) = self.receiver.subflow_order.as_mut().and_then(|order| order.pop_released()) {
            if let Some(index) = self.index_of(id) {
                self.insert(now, index, piece.data_seq, piece.bytes);
                any = true;
            }
        }
        any
    }
}
