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

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[derive(Clone, Debug)]
    enum Step {
        /// Makes room for a piece of one subflow that begins there, and holds it if there is some.
        Hold(u32, u32, usize),
        Take(u32, u32),
        Release(u32, u32),
        Forget(u32),
    }

    /// What is to be held: of each piece its subflow, its first number and its length, by number.
    #[derive(Debug, Default)]
    struct Model(Vec<(u32, u32, usize)>);

    impl Model {
        fn cost(&self) -> u64 {
            self.0.iter().map(|(_, _, length)| *length as u64 + 64).sum()
        }

        /// Drops what is behind a new piece, the last first, until there is room.
        fn make_room(&mut self, of: u32, seq: u32, length: usize, limit: u64) -> Result<Option<u32>, ()> {
            let mut dropped = None;
            while self.cost() + length as u64 + 64 > limit {
                let Some(at) = self.0.iter().rposition(|piece| piece.0 == of && piece.1 > seq) else {
                    return if dropped.is_some() { Ok(dropped) } else { Err(()) };
                };
                dropped = Some(self.0.remove(at).1);
            }
            Ok(dropped)
        }

        fn hold(&mut self, of: u32, seq: u32, length: usize) {
            let at = self.0.iter().position(|piece| piece.1 > seq).unwrap_or(self.0.len());
            self.0.insert(at, (of, seq, length));
        }

        /// Those of a subflow from its first on that end there or before.
        fn take(&mut self, of: u32, next: u32) -> Vec<(u32, u32, usize)> {
            let own = self.0.iter().filter(|piece| piece.0 == of);
            let ready: Vec<_> = own.take_while(|piece| piece.1 + piece.2 as u32 <= next).copied().collect();
            self.0.retain(|piece| !ready.contains(piece));
            ready
        }
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            6 => (0_u32..3, 0_u32..40, 1_usize..60).prop_map(|(of, seq, length)| Step::Hold(of, seq * 10, length)),
            2 => (0_u32..3, 0_u32..45).prop_map(|(of, next)| Step::Take(of, next * 10)),
            1 => (0_u32..3, 0_u32..45).prop_map(|(of, next)| Step::Release(of, next * 10)),
            1 => (0_u32..3).prop_map(Step::Forget),
        ]
    }

    fn of_piece(of: u32, piece: &Piece) -> (u32, u32, usize) {
        (of, piece.seq.0, piece.bytes.len())
    }

    proptest! {
        #[test]
        fn what_waits_behind_holes_and_its_cost_are_those_of_a_list(steps in prop::collection::vec(step(), 1..60)) {
            const LIMIT: u64 = 900;
            let (mut order, mut model, mut released) = (SubflowOrder::default(), Model::default(), Vec::new());
            for step in steps {
                match step {
                    // A range that is held already is a duplicate, which the subflow does not pass on.
                    Step::Hold(of, seq, _) if model.0.iter().any(|piece| (piece.0, piece.1) == (of, seq)) => {}
                    Step::Hold(of, seq, length) => {
                        let bytes = Bytes::from(vec![0; length]);
                        let piece = Piece { seq: SeqNumber(seq), data_seq: 0, bytes };
                        let room = order.make_room(SubflowId(of), &piece, LIMIT);
                        prop_assert_eq!(room.map(|dropped| dropped.map(|seq| seq.0)), model.make_room(of, seq, length, LIMIT));
                        if room.is_ok() {
                            order.hold(SubflowId(of), piece);
                            model.hold(of, seq, length);
                        }
                    }
                    Step::Take(of, next) => {
                        let taken = order.take_ready(SubflowId(of), SeqNumber(next));
                        let taken: Vec<_> = taken.iter().map(|piece| of_piece(of, piece)).collect();
                        prop_assert_eq!(taken, model.take(of, next));
                    }
                    Step::Release(of, next) => {
                        order.release(SubflowId(of), SeqNumber(next));
                        released.extend(model.take(of, next));
                    }
                    Step::Forget(of) => {
                        order.forget(SubflowId(of));
                        model.0.retain(|piece| piece.0 != of);
                    }
                }
                prop_assert_eq!(order.held, model.cost());
            }
            let popped = core::iter::from_fn(|| order.pop_released()).map(|(of, piece)| of_piece(of.0, &piece));
            prop_assert_eq!(popped.collect::<Vec<_>>(), released);
        }
    }
}
