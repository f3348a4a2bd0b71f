//! Assembles messages from the in-order stream, and records which bytes are abandoned.
//!
//! A message is delivered whole or not at all: if one of its bytes is abandoned, all of it becomes a gap. If a header
//! is abandoned, the next one is searched for.

use crate::record::Record;
use crate::stats::Abandoned;
use anabranch_policy::reliability::Reason;
use anabranch_policy::time::Instant;
use anabranch_wire::message::{HEADER, MessageHeader, find};
use bytes::{Buf, Bytes, BytesMut};
use std::collections::VecDeque;

/// Limit of parsed records that wait to be read, so that small messages do not take more memory than their bytes.
const MAX_READY: usize = 1_024;

/// Messages are assembled in blocks of at least this many bytes.
const BLOCK: usize = 16 * 1024;

/// An empty queue with capacity for more records releases its memory.
const IDLE_PLACES: usize = 16;

/// Parser state.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Place {
    /// A header is next.
    Header,
    /// A message with this header is next.
    Message(MessageHeader),
    /// This many bytes of an abandoned message are next.
    Rest(u64, Reason),
    /// The borders of messages are unknown after abandoned data; the next header follows somewhere.
    Lost(Reason),
}

/// Parses a stream into records.
#[derive(Debug)]
pub struct Assembler {
    /// Bytes that are not parsed, and their offset.
    pending: BytesMut,
    start: u64,
    place: Place,
    /// Arrival of the first of the pending bytes.
    began: Instant,
    /// Length of the longest message that the buffer can hold, header included.
    longest: u64,
    ready: VecDeque<Record>,
    abandoned: Abandoned,
    /// Headers parsed since the last [`Self::take_met`], with the arrival of the first byte of the message.
    met: Vec<(Instant, MessageHeader)>,
}

/// The message of the next byte of the stream, as far as it is known.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Current {
    /// It begins with that byte, or its header is incomplete, or that of an earlier message is missing: it may begin
    /// anywhere from there on.
    Unknown,
    /// Its header, and its end.
    Known(MessageHeader, u64),
    /// It is abandoned already, and ends there.
    Abandoned(u64, Reason),
}

impl Assembler {
    /// At the beginning of a stream. No message may be longer than `longest`, header included.
    pub fn new(longest: u64) -> Self {
        Self {
            pending: BytesMut::new(),
            start: 0,
            place: Place::Header,
            began: Instant::ZERO,
            longest,
            ready: VecDeque::new(),
            abandoned: Abandoned::default(),
            met: Vec::new(),
        }
    }

    /// The receive buffer may become as large as this.
    pub fn set_longest(&mut self, longest: u64) {
        self.longest = longest;
    }

    /// Offset of the first byte that is not parsed.
    pub fn start(&self) -> u64 {
        self.start
    }

    /// Whether all complete data is parsed. It is not if the reader is slow.
    pub fn is_settled(&self) -> bool {
        self.ready.len() < MAX_READY
    }

    /// Offset after the last byte received from [`Self::take`].
    pub fn end(&self) -> u64 {
        self.start + self.pending.len() as u64
    }

    /// Appends the next bytes of the stream.
    pub fn take(&mut self, now: Instant, mut bytes: Bytes) {
        if self.pending.is_empty() {
            self.began = now;
            self.take_whole(&mut bytes);
        }
        if self.pending.capacity() - self.pending.len() < bytes.len() {
            self.pending.reserve(bytes.len().max(BLOCK));
        }
        self.pending.extend_from_slice(&bytes);
        self.parse(now);
    }

    /// A message that is contiguous in memory is delivered without a copy.
    fn take_whole(&mut self, bytes: &mut Bytes) {
        while self.place == Place::Header
            && self.is_settled()
            && let Ok(header) = MessageHeader::decode(bytes)
            && whole(&header) <= self.longest.min(bytes.len() as u64)
        {
            let payload = bytes.split_to(whole(&header) as usize).slice(HEADER..);
            self.met.push((self.began, header));
            self.ready.push_back(Record::Message { offset: self.start, header, payload, arrived: self.began });
            self.start += whole(&header);
        }
    }

    /// The next `length` bytes of the stream were abandoned.
    pub fn skip(&mut self, now: Instant, length: u64, reason: Reason) {
        self.parse_all(now);
        let (start, end) = (self.start, self.end() + length);
        let (message_end, reason) = match self.place {
            Place::Header | Place::Lost(_) => (None, reason),
            Place::Message(header) => (Some(start + whole(&header)), reason),
            // An abandoned range that continues another keeps its reason.
            Place::Rest(rest, first) => (Some(start + rest), first),
        };
        self.place = match message_end {
            Some(message_end) if message_end > end => Place::Rest(message_end - end, reason),
            Some(message_end) if message_end == end => Place::Header,
            Some(_) | None => Place::Lost(reason),
        };
        self.pending.clear();
        self.start = end;
        self.push_gap(start, end - start, reason);
    }

    /// The stream ends here.
    pub fn finish(&mut self, now: Instant) {
        self.parse_all(now);
        let length = self.pending.len() as u64;
        if length > 0 {
            let reason = match self.place {
                Place::Rest(_, reason) | Place::Lost(reason) => reason,
                Place::Header | Place::Message(_) => Reason::Unframed,
            };
            self.push_gap(self.start, length, reason);
            self.start += length;
            self.pending = BytesMut::new();
        }
    }

    /// The message of the next byte.
    pub fn current(&self) -> Current {
        match self.place {
            Place::Header | Place::Lost(_) => Current::Unknown,
            Place::Message(header) => Current::Known(header, self.start + whole(&header)),
            Place::Rest(rest, reason) => Current::Abandoned(self.start + rest, reason),
        }
    }

    /// The length of the incomplete message, once its header has arrived.
    pub fn wanted(&self) -> Option<u64> {
        match &self.place {
            Place::Message(header) => Some(whole(header)),
            Place::Header | Place::Rest(..) | Place::Lost(_) => None,
        }
    }

    /// The end of the message being assembled, if known: no header can be before it.
    pub fn known_to(&self) -> u64 {
        match &self.place {
            Place::Message(header) => self.start + whole(header),
            Place::Rest(rest, _) => self.start + rest,
            Place::Header | Place::Lost(_) => self.start,
        }
    }

    pub fn abandoned(&self) -> Abandoned {
        self.abandoned
    }

    pub fn is_ready(&self) -> bool {
        !self.ready.is_empty()
    }

    pub fn next_record(&mut self, now: Instant) -> Option<Record> {
        let record = self.ready.pop_front();
        self.parse(now);
        if self.ready.is_empty() && self.ready.capacity() > IDLE_PLACES {
            self.ready = VecDeque::new();
        }
        record
    }

    /// The headers parsed since the last call.
    pub fn take_met(&mut self) -> impl Iterator<Item = (Instant, MessageHeader)> {
        self.met.drain(..)
    }

    /// The message at `offset` began to arrive earlier than it was appended.
    pub fn record_arrival(&mut self, offset: u64, arrived: Instant) {
        for record in self.ready.iter_mut().rev() {
            if let Record::Message { offset: at, arrived: recorded, .. } = record
                && *at == offset
            {
                *recorded = arrived.min(*recorded);
            }
            if record.offset() <= offset {
                break;
            }
        }
        if self.start == offset {
            self.began = self.began.min(arrived);
        }
    }

    /// Parses pending bytes, unless the reader is slow.
    fn parse(&mut self, now: Instant) {
        while self.ready.len() < MAX_READY && self.step(now) {}
    }

    /// The same even if the reader is slow, where the result is needed at once. Gaps are rare, so this adds few
    /// records.
    fn parse_all(&mut self, now: Instant) {
        while self.step(now) {}
    }

    /// One step; returns false if more bytes are needed.
    fn step(&mut self, now: Instant) -> bool {
        let here = self.pending.len();
        match self.place {
            Place::Header if here < HEADER => false,
            Place::Header => {
                self.place = match MessageHeader::decode(&self.pending) {
                    Ok(header) => {
                        self.met.push((self.began, header));
                        if whole(&header) > self.longest {
                            Place::Rest(whole(&header), Reason::Unframed)
                        } else {
                            Place::Message(header)
                        }
                    }
                    Err(_) => Place::Lost(Reason::Unframed),
                };
                true
            }
            Place::Message(header) if (here as u64) < whole(&header) => false,
            Place::Message(header) => {
                let offset = self.start;
                let mut bytes = self.pending.split_to(whole(&header) as usize).freeze();
                bytes.advance(HEADER);
                self.ready.push_back(Record::Message { offset, header, payload: bytes, arrived: self.began });
                self.start = offset + whole(&header);
                self.begin_anew(now);
                self.place = Place::Header;
                true
            }
            Place::Rest(..) if here == 0 => false,
            Place::Rest(rest, reason) => {
                let length = rest.min(here as u64);
                self.drop_pending(now, length as usize, reason);
                self.place = if rest == length { Place::Header } else { Place::Rest(rest - length, reason) };
                true
            }
            Place::Lost(_) if here < HEADER => false,
            Place::Lost(reason) => {
                let found = find(&self.pending).map(|(at, _)| at);
                // A header may have begun in the last bytes.
                self.drop_pending(now, found.unwrap_or(here + 1 - HEADER), reason);
                if found.is_some() {
                    self.place = Place::Header;
                }
                found.is_some()
            }
        }
    }

    fn drop_pending(&mut self, now: Instant, length: usize, reason: Reason) {
        if length > 0 {
            self.push_gap(self.start, length as u64, reason);
            self.pending.advance(length);
            self.start += length as u64;
            self.begin_anew(now);
        }
    }

    /// The pending bytes arrived with the latest data.
    fn begin_anew(&mut self, now: Instant) {
        self.began = now;
        if self.pending.is_empty() {
            // The memory is shared with the records cut from it, and released with them.
            self.pending = BytesMut::new();
        }
    }

    /// A gap that continues the last unread one, for the same reason, is merged with it.
    fn push_gap(&mut self, offset: u64, length: u64, reason: Reason) {
        if let Some(Record::Gap { offset: first, length: so_far, reason: same }) = self.ready.back_mut()
            && *first + *so_far == offset
            && *same == reason
        {
            *so_far += length;
            self.abandoned.count(reason, 0, length);
            return;
        }
        self.abandoned.count(reason, 1, length);
        self.ready.push_back(Record::Gap { offset, length, reason });
    }
}

/// Length of a message with its header.
fn whole(header: &MessageHeader) -> u64 {
    HEADER as u64 + u64::from(header.length)
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_policy::time::Duration;

    fn at(micros: u64) -> Instant {
        Instant::ZERO + Duration::from_micros(micros)
    }

    fn message(payload: &[u8]) -> Vec<u8> {
        let header = MessageHeader { length: payload.len() as u32, ..MessageHeader::default() };
        [header.encode().unwrap().as_slice(), payload].concat()
    }

    #[test]
    fn a_message_that_began_to_arrive_earlier_is_dated_back_also_behind_later_ones() {
        let mut assembler = Assembler::new(10_000);
        let whole = message(b"abc");
        assembler.take(at(50), Bytes::from([whole.clone(), whole.clone()].concat()));
        assembler.record_arrival(0, at(10));
        let arrivals = [0, 1].map(|_| match assembler.next_record(at(60)) {
            Some(Record::Message { arrived, .. }) => arrived,
            other => panic!("{other:?}"),
        });
        assert_eq!(arrivals, [at(10), at(50)]);
    }

    #[test]
    fn where_messages_were_lost_a_header_alone_is_found_as_soon_as_it_is_whole() {
        let mut assembler = Assembler::new(10_000);
        assembler.skip(at(0), 100, Reason::Unframed);
        assert!(matches!(assembler.next_record(at(0)), Some(Record::Gap { .. })));
        let header = message(b"");
        assert_eq!(header.len(), HEADER);
        assembler.take(at(1), Bytes::from(header[..HEADER - 1].to_vec()));
        assert_eq!(assembler.current(), Current::Unknown);
        assembler.take(at(2), Bytes::from(header[HEADER - 1..].to_vec()));
        assert!(matches!(assembler.next_record(at(2)), Some(Record::Message { offset: 100, .. })));
    }

    /// The records that are ready: offset, length, and whether it is a message.
    fn records(assembler: &mut Assembler) -> Vec<(u64, u64, bool)> {
        let of = |record| match record {
            Record::Message { offset, header, .. } => (offset, u64::from(header.length), true),
            Record::Gap { offset, length, .. } => (offset, length, false),
            Record::Bytes { .. } => panic!("there are messages only"),
        };
        core::iter::from_fn(|| assembler.next_record(at(9))).map(of).collect()
    }

    #[test]
    fn what_is_left_at_the_end_of_the_stream_is_a_gap_and_the_end_is_where_it_was() {
        let mut assembler = Assembler::new(10_000);
        let (whole, header) = (message(b"abc"), HEADER as u64);
        assembler.take(at(1), Bytes::from([whole.as_slice(), &whole[..HEADER + 2]].concat()));
        assert_eq!((assembler.start(), assembler.end()), (header + 3, 2 * header + 5));
        assembler.finish(at(2));
        assert_eq!((assembler.start(), assembler.end()), (2 * header + 5, 2 * header + 5));
        assembler.finish(at(3));
        assert_eq!(records(&mut assembler), [(0, 3, true), (header + 3, header + 2, false)]);
        assert_eq!(assembler.abandoned(), {
            let mut counted = Abandoned::default();
            counted.count(Reason::Unframed, 1, header + 2);
            counted
        });
    }

    #[test]
    fn a_message_that_lost_a_byte_is_one_gap_to_its_end_and_the_next_one_is_delivered() {
        let mut assembler = Assembler::new(10_000);
        let (whole, header) = (message(&[7; 100]), HEADER as u64);
        assembler.take(at(1), Bytes::from(whole[..HEADER + 10].to_vec()));
        assert_eq!((assembler.known_to(), assembler.wanted()), (header + 100, Some(header + 100)));
        assembler.skip(at(2), 20, Reason::Unframed);
        assert_eq!(assembler.current(), Current::Abandoned(header + 100, Reason::Unframed));
        assert_eq!((assembler.known_to(), assembler.wanted()), (header + 100, None));
        assert_eq!((assembler.start(), assembler.end()), (header + 30, header + 30));
        assembler.take(at(3), Bytes::from([&whole[HEADER + 30..], whole.as_slice()].concat()));
        assert_eq!(records(&mut assembler), [(0, header + 100, false), (header + 100, 100, true)]);
        // The rest exactly, and more than that.
        for (lost, place) in [(90, Place::Header), (91, Place::Lost(Reason::Unframed))] {
            let mut assembler = Assembler::new(10_000);
            assembler.take(at(1), Bytes::from(whole[..HEADER + 10].to_vec()));
            assembler.skip(at(2), lost, Reason::Unframed);
            assert_eq!((assembler.place, assembler.current()), (place, Current::Unknown));
            assert_eq!(assembler.known_to(), header + 10 + lost);
            assembler.take(at(3), Bytes::from(message(b"next")));
            assert_eq!(records(&mut assembler), [(0, header + 10 + lost, false), (header + 10 + lost, 4, true)]);
            assert_eq!(assembler.place, Place::Header);
        }
    }

    #[test]
    fn a_message_longer_than_the_buffer_is_a_gap_and_one_that_fills_it_is_delivered() {
        let whole = message(&[7; 100]);
        for (longest, delivered) in [(HEADER as u64 + 100, true), (HEADER as u64 + 99, false)] {
            // At once, and in two parts.
            for cut in [whole.len(), HEADER + 50] {
                let mut assembler = Assembler::new(longest);
                assembler.take(at(1), Bytes::from(whole[..cut].to_vec()));
                assembler.take(at(2), Bytes::from(whole[cut..].to_vec()));
                let expected = if delivered { (0, 100, true) } else { (0, HEADER as u64 + 100, false) };
                assert_eq!(records(&mut assembler), [expected], "{longest}, {cut}");
                assert_eq!(assembler.take_met().count(), 1);
            }
        }
    }

    #[test]
    fn a_slow_reader_limits_what_is_parsed_and_a_gap_does_not_wait_for_it() {
        let mut assembler = Assembler::new(10_000);
        let (whole, settled) = (message(b""), MAX_READY as u64 * HEADER as u64);
        assembler.take(at(1), Bytes::from(whole.repeat(MAX_READY - 1)));
        assert!(assembler.is_settled());
        assembler.take(at(1), Bytes::from(whole.repeat(3)));
        assert!(!assembler.is_settled());
        assert_eq!((assembler.start(), assembler.end()), (settled, settled + 2 * HEADER as u64));
        assert!(assembler.next_record(at(2)).is_some());
        assert_eq!(assembler.start(), settled + HEADER as u64, "one was read, one is parsed");
        assembler.skip(at(3), 5, Reason::Unframed);
        assert_eq!(assembler.start(), settled + 2 * HEADER as u64 + 5);
        assert_eq!(records(&mut assembler).len(), MAX_READY + 2);
    }

    #[test]
    fn a_whole_message_is_passed_on_in_the_memory_in_which_it_arrived() {
        let mut assembler = Assembler::new(10_000);
        let bytes = Bytes::from(message(b"abc"));
        let there = bytes.slice(HEADER..).as_ptr();
        assembler.take(at(1), bytes);
        match assembler.next_record(at(1)) {
            Some(Record::Message { payload, .. }) => assert_eq!(payload.as_ptr(), there),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn records_that_were_read_leave_the_memory_of_a_few() {
        let left = |messages: usize| {
            let mut assembler = Assembler::new(10_000);
            assembler.take(at(1), Bytes::from(message(b"abc").repeat(messages)));
            let read = core::iter::from_fn(|| assembler.next_record(at(1))).count();
            assert_eq!(read, messages, "and none is lost");
            assembler.ready.capacity()
        };
        assert_eq!((left(16), left(17)), (16, 0));
    }

    #[test]
    fn the_beginning_of_a_header_waits_for_the_rest_and_takes_a_block_of_memory() {
        let mut assembler = Assembler::new(100_000);
        assembler.take(at(1), Bytes::from(message(b"abc")[..HEADER - 1].to_vec()));
        assert_eq!(assembler.place, Place::Header, "nothing is lost");
        assert!(assembler.pending.capacity() >= BLOCK);
        assembler.take(at(2), Bytes::from(message(b"abc")[HEADER - 1..].to_vec()));
        assert_eq!(records(&mut assembler), [(0, 3, true)]);
        assert!(assembler.pending.capacity() < BLOCK, "it is released with the record");
    }
}
