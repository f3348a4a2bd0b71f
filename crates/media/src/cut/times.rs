//! Time stamps of 33 bits, converted to time since the first.

use anabranch_policy::Duration;
use std::collections::BTreeMap;

/// Ticks per second.
const TICKS: i64 = 90_000;
/// They wrap here.
const WRAP: u64 = 1 << 33;
/// A greater step ahead is a new start of the clock.
const LONGEST_STEP: i64 = 10 * TICKS;
/// So is a greater step back within an elementary stream, whose decoding times increase. The elementary streams of a
/// program may be further apart.
const LONGEST_STEP_BACK: i64 = TICKS;

/// A stamp, and its time in ticks since the first of the stream.
#[derive(Clone, Copy, Debug)]
struct Known {
    /// The first stamp of its elementary stream since the last new start.
    first: u64,
    stamp: u64,
    ticks: i64,
    /// The number of new starts before it.
    start: u64,
}

/// Follows the time stamps of a stream, whose elementary streams share a clock.
#[derive(Clone, Debug, Default)]
pub struct Times {
    /// The last stamp since the last new start.
    last: Option<Known>,
    /// The last stamps of each elementary stream.
    streams: BTreeMap<u16, Known>,
    /// The greatest time returned.
    largest: i64,
}

impl Times {
    /// The time of a stamp of an elementary stream. Stamps may wrap, and may be slightly behind those of another
    /// elementary stream; results are never below 0. A stream that restarts, such as a short file in a loop, continues
    /// at the end of the old one.
    pub fn of(&mut self, stream: u16, stamp: u64) -> Duration {
        let stamp = stamp % WRAP;
        let own = self.streams.get(&stream).copied();
        // The first of its elementary stream, or a jump that another one has made before it.
        let shared = self.last.filter(|last| own.is_none_or(|own| own.start < last.start));
        // A file of less than a second in a loop is back at its first stamp.
        let same = own.filter(|own| stamp == own.stamp || stamp != own.first);
        let known = same.and_then(|own| own.next(stamp, LONGEST_STEP_BACK));
        let adopted = || Some(Known { first: stamp, ..shared?.next(stamp, LONGEST_STEP)? });
        let known = known.or_else(adopted).unwrap_or_else(|| {
            let start = self.last.map_or(0, |last| last.start + 1);
            Known { first: stamp, stamp, ticks: self.largest, start }
        });
        // The end of the old one may be interleaved with the new one.
        if self.last.is_none_or(|last| last.start <= known.start) {
            self.last = Some(known);
        }
        self.streams.insert(stream, known);
        self.largest = self.largest.max(known.ticks);
        duration(known.ticks)
    }

    /// The greatest time so far.
    pub fn latest(&self) -> Option<Duration> {
        self.last.map(|_| duration(self.largest))
    }
}

impl Known {
    /// A later stamp on the same clock; none if the step is too great.
    fn next(self, stamp: u64, back: i64) -> Option<Self> {
        let ahead = stamp.wrapping_sub(self.stamp) % WRAP;
        let step = if ahead < WRAP / 2 { ahead as i64 } else { ahead as i64 - WRAP as i64 };
        (-back..=LONGEST_STEP).contains(&step).then(|| Self { stamp, ticks: self.ticks + step, ..self })
    }
}

fn duration(ticks: i64) -> Duration {
    // A tick is 100,000 / 9 nanoseconds.
    Duration::from_nanos(u64::try_from(ticks).unwrap_or(0).saturating_mul(100_000) / 9)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PICTURES: u16 = 256;
    const SOUND: u16 = 257;

    #[test]
    fn times_count_from_the_first_stamp_and_pass_the_wrap() {
        let mut times = Times::default();
        assert_eq!(times.latest(), None);
        assert_eq!(times.of(PICTURES, WRAP - 45_000), Duration::ZERO);
        assert_eq!(times.of(PICTURES, 45_000), Duration::from_secs(1));
        // Sound slightly behind the pictures.
        assert_eq!(times.of(SOUND, 0), Duration::from_millis(500));
        assert_eq!(times.of(2, WRAP - 90_000), Duration::ZERO);
        assert_eq!(times.latest(), Some(Duration::from_secs(1)));
    }

    #[test]
    fn a_stream_that_begins_anew_goes_on_where_it_was() {
        let mut times = Times::default();
        times.of(PICTURES, 0);
        times.of(PICTURES, 180_000);
        assert_eq!(times.of(PICTURES, WRAP / 2), Duration::from_secs(2));
        assert_eq!(times.of(PICTURES, WRAP / 2 + 90_000), Duration::from_secs(3));
    }

    #[test]
    fn a_file_that_is_sent_in_a_loop_goes_on_where_it_was() {
        let mut times = Times::default();
        for second in 0..=15 {
            assert_eq!(times.of(PICTURES, second * 90_000), Duration::from_secs(second));
        }
        assert_eq!(times.of(PICTURES, 0), Duration::from_secs(15));
        assert_eq!(times.of(PICTURES, 90_000), Duration::from_secs(16));
    }

    #[test]
    fn so_does_one_of_less_than_a_second() {
        let mut times = Times::default();
        for turn in 0..3_u64 {
            for picture in 0..10 {
                let (stamp, milliseconds) = (picture * 3_600, (turn * 9 + picture) * 40);
                // Sound is 10 ms ahead of the pictures.
                let expected = [milliseconds, milliseconds.saturating_sub(10)].map(Duration::from_millis);
                assert_eq!([times.of(PICTURES, 900 + stamp), times.of(SOUND, stamp)], expected);
            }
        }
    }

    #[test]
    fn so_does_a_short_one_though_its_sound_ends_after_its_pictures_begin_anew() {
        let mut times = Times::default();
        for second in 0..=4 {
            times.of(PICTURES, second * 90_000);
            times.of(SOUND, second * 90_000);
        }
        assert_eq!(times.of(PICTURES, 0), Duration::from_secs(4));
        assert_eq!(times.of(SOUND, 405_000), Duration::from_millis(4_500));
        assert_eq!(times.of(PICTURES, 90_000), Duration::from_secs(5));
        // Both go on with the clock of the new start.
        assert_eq!(times.of(SOUND, 45_000), Duration::from_millis(4_500));
        assert_eq!(times.of(SOUND, 135_000), Duration::from_millis(5_500));
    }
}
