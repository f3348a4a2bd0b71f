//! Records under a shared mapping.

use super::board::Scoreboard;
use super::record::{Fate, Joined, Place, Record};
use crate::event::SendKind;

impl Scoreboard {
    /// The place in a shared mapping of new data to be appended. It continues the mapping of up to `most` records if it
    /// continues the range of the last record, which must be new data whose mapping is not sent yet, and if no data has
    /// arrived meanwhile: an end that receives has acknowledgements to send on each segment.
    pub fn next_place(&self, data_seq: u64, arrived: u32, most: u32) -> Place {
        let continues = |last: &&Record| {
            let open = last.fate == Fate::Unsent && last.joined.is_none() && !last.fin;
            let follows = last.origin == SendKind::New && last.data_end() == data_seq && last.place.arrived == arrived;
            open && follows && u32::from(last.place.number) + 1 < most
        };
        let number = self.records.back().filter(continues).map_or(0, |last| last.place.number.saturating_add(1));
        Place { number, arrived }
    }

    pub fn set_place(&mut self, place: Place) {
        self.records.back_mut().into_iter().for_each(|last| last.place = place);
        self.shares_mappings |= place.number > 0;
    }

    /// Whether there ever was a shared mapping: some segments are then longer than one with a mapping may be.
    pub fn shares_mappings(&self) -> bool {
        self.shares_mappings
    }

    /// The last record sent was sent for the first time. If it is the first of a shared mapping, that covers all of its
    /// records, which are now bound to it. `ends` tells whether the stream ends at a data sequence.
    pub fn bind_to_mapping(&mut self, ends: impl FnOnce(u64) -> bool) -> Option<Joined> {
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
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_policy::time::Instant;
    use anabranch_wire::SeqNumber;
    use bytes::Bytes;

    fn board() -> Scoreboard {
        let mut board = Scoreboard::default();
        for at in 0..3 {
            let payload = Bytes::from_static(b"0123456789");
            board.push(SeqNumber(100 + 10 * at), 10 * u64::from(at), payload, false, SendKind::New);
            board.set_place(Place { number: at as u8, arrived: 7 });
        }
        board
    }

    #[test]
    fn new_data_continues_a_mapping_that_has_not_left_and_that_it_follows() {
        let mut board = board();
        let number = |board: &Scoreboard, data_seq, arrived, most| board.next_place(data_seq, arrived, most).number;
        assert_eq!((number(&board, 30, 7, 4), number(&board, 30, 7, 3)), (3, 0), "of four places the last");
        assert_eq!((number(&board, 31, 7, 4), number(&board, 30, 8, 4)), (0, 0), "a gap, and something that arrived");
        (0..3).for_each(|_| drop(board.send_next(Instant::ZERO)));
        assert_eq!(number(&board, 30, 7, 4), 0, "it has left");
    }

    #[test]
    fn a_mapping_that_leaves_says_of_each_record_what_is_around_it() {
        let mut board = board();
        board.send_next(Instant::ZERO);
        let whole = board.bind_to_mapping(|end| end == 30).unwrap();
        assert_eq!((whole.before, whole.after, whole.data_fin), (0, 20, true));
        let around = board.records().map(|record| record.joined.map(|joined| (joined.before, joined.after)));
        assert_eq!(around.collect::<Vec<_>>(), [Some((0, 20)), Some((10, 10)), Some((20, 0))]);
    }

    /// Ten bytes for each of these places.
    fn board_of(numbers: &[u8]) -> Scoreboard {
        let mut board = Scoreboard::default();
        for (at, number) in (0_u32..).zip(numbers) {
            let payload = Bytes::from_static(b"0123456789");
            board.push(SeqNumber(100 + 10 * at), 10 * u64::from(at), payload, false, SendKind::New);
            board.set_place(Place { number: *number, arrived: 7 });
        }
        board
    }

    #[test]
    fn only_the_first_of_a_mapping_binds_and_only_those_that_follow_it() {
        let bound = |numbers: &[u8], sent: usize| {
            let mut board = board_of(numbers);
            (0..sent).for_each(|_| drop(board.send_next(Instant::ZERO)));
            let whole = board.bind_to_mapping(|_| false).map(|joined| (joined.before, joined.after));
            let joined = board.records().map(|record| record.joined.map(|joined| (joined.before, joined.after)));
            (whole, joined.collect::<Vec<_>>())
        };
        let nothing = |count: usize| (None, vec![None; count]);
        assert_eq!(bound(&[0, 1, 0], 1), (Some((0, 10)), vec![Some((0, 10)), Some((10, 0)), None]));
        assert_eq!(bound(&[0, 0], 1), nothing(2), "the next has a mapping of its own");
        assert_eq!(bound(&[0], 1), nothing(1), "there is no next");
        assert_eq!(bound(&[0, 1, 2], 0), nothing(3), "nothing was sent");
        assert_eq!(bound(&[0, 2, 3], 1), nothing(3), "what would follow it is gone");
        assert_eq!(bound(&[3, 1, 2], 1), nothing(3), "the first of them is gone");
    }

    #[test]
    fn a_mapping_that_has_left_is_not_bound_again() {
        let mut board = board_of(&[0, 1, 2]);
        board.send_next(Instant::ZERO);
        assert!(board.bind_to_mapping(|_| true).is_some());
        let records = format!("{board:?}");
        assert!(board.bind_to_mapping(|_| false).is_none());
        assert_eq!(format!("{board:?}"), records);
        board.send_next(Instant::ZERO);
        assert!(board.bind_to_mapping(|_| false).is_none());
        assert!(board.records().all(|record| record.joined.is_some_and(|joined| joined.data_fin)));
    }

    #[test]
    fn mappings_are_shared_from_the_second_record_of_one_on() {
        let shares = |numbers: &[u8]| {
            let mut board = Scoreboard::default();
            for number in numbers {
                board.push(SeqNumber(100), 0, Bytes::from_static(b"data"), false, SendKind::New);
                board.set_place(Place { number: *number, arrived: 7 });
            }
            board.shares_mappings()
        };
        assert!(!shares(&[]) && !shares(&[0]) && shares(&[0, 1]) && shares(&[0, 1, 0]));
    }
}
