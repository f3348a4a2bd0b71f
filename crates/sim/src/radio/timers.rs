//! Pending events of the channel: a heap of (time, kind, order of entry).
//!
//! At equal times, ends are processed before starts, so that a frame does not interfere with one that follows it at
//! once.

use anabranch_policy::time::Instant;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Kinds of events at a station, in the order of processing at equal times.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Due {
    /// Its frame ends.
    End,
    /// It answers a frame, or continues after CTS.
    Answer,
    /// Its wait for an answer is over.
    Timeout,
    /// Its back-off is over.
    Access,
}

const KINDS: [Due; 4] = [Due::End, Due::Answer, Due::Timeout, Due::Access];

/// Bits of an entry for the station; above them 36 for the order of entry, 4 for the kind, 64 for the time.
const STATION_BITS: u32 = 24;

#[derive(Clone, Debug, Default)]
pub struct Timers {
    heap: BinaryHeap<Reverse<u128>>,
    put: u64,
}

impl Timers {
    /// Limit of stations of a channel.
    pub const STATIONS: usize = 1 << STATION_BITS;

    pub fn put(&mut self, time: Instant, due: Due, station: u32) {
        let order = self.put & ((1 << 36) - 1);
        self.put += 1;
        let low = (due as u64) << 60 | order << STATION_BITS | u64::from(station);
        self.heap.push(Reverse(u128::from(time.as_nanos()) << 64 | u128::from(low)));
    }
    /// Time of the first event, [`Instant::NEVER`] if there is none.
    pub fn next_time(&self) -> Instant {
        self.heap.peek().map_or(Instant::NEVER, |Reverse(entry)| time_of(*entry))
    }
    /// Removes the first event if it is due before `time`, or at `time` and its kind is not after `last`.
    pub fn take(&mut self, time: Instant, last: Due) -> Option<(Instant, Due, u32)> {
        let entry = self.heap.peek()?.0;
        let (due_at, due) = (time_of(entry), KINDS[(entry >> 60 & 3) as usize]);
        if (due_at, due) > (time, last) {
            return None;
        }
        self.heap.pop();
        Some((due_at, due, entry as u32 & ((1 << STATION_BITS) - 1)))
    }
}

fn time_of(entry: u128) -> Instant {
    Instant::from_nanos((entry >> 64) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn at_the_same_time_ends_come_before_beginnings_and_equals_in_order() {
        let mut timers = Timers::default();
        let at = Instant::from_nanos;
        for (time, due, station) in
            [(5, Due::Access, 1), (5, Due::Access, 2), (5, Due::End, 3), (4, Due::Timeout, 4), (6, Due::End, 5)]
        {
            timers.put(at(time), due, station);
        }
        let taken =
            |timers: &mut Timers, last| std::iter::from_fn(|| timers.take(at(5), last)).map(|(.., s)| s).collect();
        let early: Vec<u32> = taken(&mut timers, Due::Timeout);
        assert_eq!(early, [4, 3]);
        let late: Vec<u32> = taken(&mut timers, Due::Access);
        assert_eq!(late, [1, 2]);
        assert_eq!(timers.next_time(), at(6));
    }
}
