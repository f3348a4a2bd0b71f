//! State of the stream beyond the first hole: which messages have arrived, and when.

use anabranch_policy::time::Instant;
use anabranch_wire::message::{HEADER, MessageHeader, find};
use std::collections::VecDeque;

/// Limit of messages recorded; with more, later ones are not searched for.
const MAX_MESSAGES: usize = 4_096;

/// Limit of recorded times; above it the last one applies to all later data.
const MAX_MOMENTS: usize = 4_096;

/// A header beyond the first hole.
#[derive(Clone, Copy, Debug)]
pub struct Seen {
    /// Offset of the message.
    pub offset: u64,
    pub header: MessageHeader,
    /// Arrival of the header.
    pub arrived: Instant,
    /// The message is complete.
    whole: bool,
}

/// Headers and arrival times, by offset.
#[derive(Debug, Default)]
pub struct Ahead {
    messages: VecDeque<Seen>,
    /// The highest byte that had arrived, and the time.
    moments: VecDeque<(u64, Instant)>,
}

impl Seen {
    /// Offset after the message.
    pub fn end(&self) -> u64 {
        self.offset + HEADER as u64 + u64::from(self.header.length)
    }
}

impl Ahead {
    /// Data arrived beyond the hole; the highest byte so far ends at `highest`.
    pub fn record_highest(&mut self, now: Instant, highest: u64) {
        if self.moments.back().is_some_and(|(so_far, _)| *so_far >= highest) || self.moments.len() >= MAX_MOMENTS {
            return;
        }
        self.moments.push_back((highest, now));
    }

    /// Since when data beyond `offset` has been present; none if there is none.
    pub fn since(&self, offset: u64) -> Option<Instant> {
        let at = self.moments.partition_point(|(highest, _)| *highest <= offset);
        self.moments.get(at).or(self.moments.back()).map(|(_, since)| *since)
    }

    /// Searches for headers in `bytes`, which begin at `start`. Returns the new ones.
    pub fn look_for_headers(&mut self, now: Instant, mut start: u64, mut bytes: &[u8]) -> Vec<Seen> {
        let mut new = Vec::new();
        while let Some((at, header)) = find(bytes) {
            let seen = Seen { offset: start + at as u64, header, arrived: now, whole: false };
            let place = self.messages.partition_point(|known| known.offset < seen.offset);
            let known = self.messages.get(place).is_some_and(|known| known.offset == seen.offset);
            if !known && self.messages.len() < MAX_MESSAGES {
                self.messages.insert(place, seen);
                new.push(seen);
            }
            // What looks like a header within a payload is not one.
            let next = usize::try_from(u64::from(header.length)).unwrap_or(usize::MAX).saturating_add(at + HEADER);
            let Some(rest) = bytes.get(next..) else { break };
            bytes = rest;
            start += next as u64;
        }
        new
    }

    /// The end of the message that contains `offset`, if its header has arrived; otherwise 0. A header of a message
    /// longer than `longest` is ignored.
    pub fn known_to(&self, offset: u64, longest: u64) -> u64 {
        let behind = self.messages.partition_point(|seen| seen.offset <= offset);
        let sender = behind.checked_sub(1).and_then(|at| self.messages.get(at));
        sender.map_or(0, |seen| if seen.end() - seen.offset <= longest { seen.end() } else { 0 })
    }

    /// The earliest play-out time, in microseconds, of the complete messages among the first `most` from `offset` on;
    /// `is_here` tells whether a range has arrived. The result is cached, since a complete message stays complete.
    pub fn earliest_whole(&mut self, offset: u64, most: usize, is_here: impl Fn(u64, u64) -> bool) -> Option<u64> {
        let from = self.messages.partition_point(|seen| seen.offset < offset);
        let mut earliest = None;
        for seen in self.messages.range_mut(from..).take(most) {
            seen.whole = seen.whole || is_here(seen.offset, seen.end());
            if seen.whole && earliest.is_none_or(|earliest| seen.header.play_out < earliest) {
                earliest = Some(seen.header.play_out);
            }
        }
        earliest
    }

    /// The stream is in order up to `next`: removes and returns a header before that.
    pub fn pop_before(&mut self, next: u64) -> Option<Seen> {
        while self.moments.front().is_some_and(|(highest, _)| *highest <= next) {
            self.moments.pop_front();
        }
        if self.messages.front().is_some_and(|seen| seen.offset < next) {
            return self.messages.pop_front();
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_policy::time::Duration;

    fn at(millis: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(millis)
    }

    #[test]
    fn a_hole_is_waited_for_since_the_first_byte_beyond_it_came() {
        let mut ahead = Ahead::default();
        assert_eq!(ahead.since(0), None);
        ahead.record_highest(at(1), 2_000);
        ahead.record_highest(at(2), 1_500);
        ahead.record_highest(at(3), 4_000);
        assert_eq!(ahead.since(1_000), Some(at(1)));
        assert_eq!(ahead.since(2_000), Some(at(3)));
        ahead.pop_before(2_500);
        assert_eq!(ahead.since(2_500), Some(at(3)));
    }

    #[test]
    fn of_the_messages_that_are_whole_the_one_to_be_played_first_counts_and_whole_they_stay() {
        let mut ahead = Ahead::default();
        let headers = [(0, 30), (0, 10), (0, 20)]
            .map(|(length, play_out)| MessageHeader { length, play_out, ..MessageHeader::default() }.encode().unwrap());
        assert_eq!(ahead.look_for_headers(at(0), 100, &headers.concat()).len(), 3);
        assert_eq!(ahead.earliest_whole(100, 9, |start, _| start != 124), Some(20));
        assert_eq!(ahead.earliest_whole(100, 1, |_, _| false), Some(30));
        assert_eq!(ahead.earliest_whole(100, 9, |_, _| true), Some(10));
        assert_eq!(ahead.earliest_whole(125, 9, |_, _| false), Some(20));
        assert_eq!(ahead.earliest_whole(149, 9, |_, _| true), None);
    }

    #[test]
    fn no_more_is_remembered_than_there_is_room_for() {
        let mut ahead = Ahead::default();
        let header = MessageHeader::default().encode().unwrap();
        for nth in 0..5_000 {
            ahead.record_highest(at(nth), 100 * (nth + 1));
            ahead.look_for_headers(at(nth), 100 * nth, &header);
        }
        assert_eq!((ahead.moments.len(), ahead.messages.len()), (MAX_MOMENTS, MAX_MESSAGES));
        // The last time applies to all later data.
        assert_eq!(ahead.since(499_999), Some(at(4_095)));
    }

    #[test]
    fn headers_are_found_once_and_not_within_payload() {
        let mut ahead = Ahead::default();
        let inner = MessageHeader { length: 1, ..MessageHeader::default() }.encode().unwrap();
        let outer = MessageHeader { number: 1, length: HEADER as u32, ..MessageHeader::default() };
        let next = MessageHeader { number: 2, ..outer };
        let bytes = [&b"rest"[..], &outer.encode().unwrap(), &inner, &next.encode().unwrap()].concat();
        let seen = ahead.look_for_headers(at(5), 100, &bytes);
        let offsets: Vec<_> = seen.iter().map(|seen| (seen.offset, seen.header.number)).collect();
        assert_eq!(offsets, [(104, 1), (152, 2)]);
        assert!(ahead.look_for_headers(at(6), 100, &bytes).is_empty());
        // 24 bytes of header and 24 of payload; of the last message only the header has arrived.
        assert_eq!([0, 103, 104, 151, 152, 500].map(|at| ahead.known_to(at, 48)), [0, 0, 152, 152, 200, 200]);
        assert_eq!(ahead.known_to(104, 47), 0);
        assert_eq!(ahead.pop_before(152).map(|seen| seen.arrived), Some(at(5)));
        assert!(ahead.pop_before(152).is_none());
    }
}
