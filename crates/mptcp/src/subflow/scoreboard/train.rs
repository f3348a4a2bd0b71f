//! Records under one mapping: which may share one, and from when on they must.

use super::{Fate, Record, Scoreboard};
use crate::event::SendKind;

/// How a record lies among others under one mapping: those that left with it as one packet, or those of its train.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Joined {
    /// Bytes of payload before it.
    pub before: u16,
    /// Bytes of payload behind it.
    pub after: u16,
    /// The mapping ends with a DATA_FIN.
    pub data_fin: bool,
}

/// Where a record is in a train, which is put together while all of it waits.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Place {
    /// From 0, the one that carries the mapping; 0 also without a train.
    pub number: u8,
    /// Bytes that had arrived from the peer when the train was begun, modulo 2^32.
    pub arrived: u32,
}

impl Scoreboard {
    /// The place in a train of new data that is put behind what waits. It continues one of up to `most` records if it
    /// continues the stretch of the stream that the last record ends, which is new too and whose mapping has not left
    /// yet, and if nothing has arrived meanwhile: who receives has acknowledgements to send along.
    pub fn next_place(&self, data_seq: u64, arrived: u32, most: u32) -> Place {
        let continues = |last: &&Record| {
            let open = last.fate == Fate::Unsent && last.joined.is_none() && !last.fin;
            let follows = last.origin == SendKind::New && last.data_end() == data_seq && last.place.arrived == arrived;
            open && follows && u32::from(last.place.number) + 1 < most
        };
        let number = self.records.back().filter(continues).map_or(0, |last| last.place.number.saturating_add(1));
        Place { number, arrived }
    }

    /// Gives the last record its place in a train.
    pub fn set_place(&mut self, place: Place) {
        self.records.back_mut().into_iter().for_each(|last| last.place = place);
        self.has_trains |= place.number > 0;
    }

    /// Whether there was ever a train: some segments are longer than one with a mapping may be.
    pub fn has_trains(&self) -> bool {
        self.has_trains
    }

    /// The record sent last has left for the first time: if it is the first of a train, its mapping is for all of it, and those
    /// behind it are bound to it. `ends` says whether the stream ends at a data sequence.
    pub fn bind_train(&mut self, ends: impl FnOnce(u64) -> bool) -> Option<Joined> {
        if self.next_unsent().is_none_or(|next| next.place.number == 0) {
            return None;
        }
        let follows =
            |at: usize, record: &Record| usize::from(record.place.number) == at + 1 && record.joined.is_none();
        let behind = self.records.range(self.sent..).enumerate().take_while(|(at, record)| follows(*at, record));
        let (count, length) = behind.fold((0, 0), |(count, sum), (_, record)| (count + 1, sum + record.payload.len()));
        let first = self.sent.checked_sub(1)?;
        if count == 0 || self.records.get(first).is_none_or(|head| head.place.number != 0) {
            return None;
        }
        let last = self.records.get(first + count)?.data_end();
        let (mut before, mut after, data_fin) = (0, length as u16, ends(last));
        let whole = Some(Joined { before, after, data_fin });
        for (at, record) in self.records.range_mut(first..=first + count).enumerate() {
            let own = record.payload.len() as u16;
            after -= if at == 0 { 0 } else { own };
            record.joined = Some(Joined { before, after, data_fin });
            before += own;
        }
        whole
    }

    /// How many records have not been sent, and must be: their mapping is out.
    pub(super) fn bound(&self) -> usize {
        self.records.range(self.sent..).take_while(|record| record.joined.is_some()).count()
    }
}
