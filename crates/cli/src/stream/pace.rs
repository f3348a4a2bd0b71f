//! Pacing of a raw stream: its frame rate by its headers, and whether it is read faster than real time.
//!
//! A raw stream has no time stamps. A live one is played on arrival; a faster one, such as a file, is delayed to its
//! frame rate.

use anabranch_media::cut::Piece;
use anabranch_media::elementary::{Picture, Reader};
use anabranch_media::{ElementaryStream, FrameRate};
use anabranch_policy::time::Duration;

/// Pictures needed to determine the pace.
const ENOUGH: usize = 8;
/// Allowed difference between pictures and pieces: the reader and the cutter each hold one back.
const HELD_BACK: usize = 2;
/// Bytes examined.
const LOOKED_AT: usize = 1 << 20;
/// Higher rates are invalid: they are the time resolution of a stream with variable rate.
const MOST_PER_SECOND: f64 = 120.0;

/// Determines the pace, and adds time stamps to pieces.
#[derive(Debug)]
pub struct Pace(State);

#[derive(Debug)]
enum State {
    Looking(Box<Looking>),
    /// Live input.
    Live,
    Paced {
        rate: FrameRate,
        count: u64,
    },
}

#[derive(Debug)]
struct Looking {
    reader: Reader,
    pictures: Vec<Picture>,
    bytes: usize,
    pieces: usize,
}

impl Pace {
    pub fn new() -> Self {
        Self(State::Looking(Box::new(Looking { reader: Reader::new(), pictures: Vec::new(), bytes: 0, pieces: 0 })))
    }

    /// Handles input bytes, read `since` after the first, and sets the times of the pieces cut from them.
    pub fn handle(&mut self, bytes: &[u8], since: Duration, pieces: &mut [Piece]) {
        if let State::Looking(looking) = &mut self.0
            && let Some(state) = looking.handle(bytes, since, pieces)
        {
            self.0 = state;
        }
        if let State::Paced { rate, count } = &mut self.0 {
            for piece in pieces.iter_mut().filter(|piece| piece.time.is_none()) {
                piece.time = Some(rate.time(*count));
                *count += 1;
            }
        }
    }
}

impl Looking {
    fn handle(&mut self, bytes: &[u8], since: Duration, pieces: &[Piece]) -> Option<State> {
        self.bytes += bytes.len();
        self.pieces += pieces.len();
        let timed = pieces.iter().any(|piece| piece.time.is_some());
        if timed || self.reader.handle_bytes(bytes).is_err() {
            return Some(State::Live);
        }
        self.pictures.extend(core::iter::from_fn(|| self.reader.poll_picture()));
        if self.pictures.len() < ENOUGH {
            return (self.bytes > LOOKED_AT).then_some(State::Live);
        }
        // If fields are pieces of their own, the rate does not apply.
        let alike = self.pictures.len().abs_diff(self.pieces) <= HELD_BACK;
        Some(
            self.rate()
                .filter(|rate| alike && self.is_ahead(*rate, since))
                .map_or(State::Live, |rate| State::Paced { rate, count: 0 }),
        )
    }

    fn rate(&mut self) -> Option<FrameRate> {
        let format = self.reader.format()?.clone();
        let stream = ElementaryStream { format, pictures: core::mem::take(&mut self.pictures) };
        let rate = stream.rate().filter(|rate| rate.per_second() <= MOST_PER_SECOND);
        self.pictures = stream.pictures;
        rate
    }

    /// Whether the input took less than half of its playing time.
    fn is_ahead(&self, rate: FrameRate, since: Duration) -> bool {
        since * 2 < rate.time(self.pictures.len() as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_media::clip;
    use anabranch_media::cut::Cutter;

    /// Times of the clip's pieces if these blocks of it arrive at this interval.
    fn times<'a>(blocks: impl Iterator<Item = &'a [u8]>, interval: Duration) -> Vec<Option<Duration>> {
        let (mut cutter, mut pace) = (Cutter::new(None), Pace::new());
        let mut times = Vec::new();
        for (index, bytes) in blocks.enumerate() {
            let mut pieces = cutter.push(bytes).expect("it is video");
            pace.handle(bytes, interval * index as u64, &mut pieces);
            times.extend(pieces.iter().map(|piece| piece.time));
        }
        times
    }

    #[test]
    fn a_raw_file_has_the_times_of_its_rate_and_one_that_comes_as_it_is_made_has_none() {
        let file = times(clip::MPEG4.chunks(32 << 10).take(2), Duration::from_millis(1));
        assert!(file.len() > 60, "{}", file.len());
        let thirty = |index: usize| Some(Duration::from_micros((index as u64 * 1_000_000 + 15) / 30));
        assert!(file.iter().enumerate().all(|(index, time)| *time == thirty(index)), "{file:?}");
        let pictures = clip::stream().pictures;
        let live = times(pictures.iter().take(90).map(|picture| &picture.data[..]), Duration::from_millis(33));
        assert!(live.len() > 60 && live.iter().all(Option::is_none), "{live:?}");
    }
}
