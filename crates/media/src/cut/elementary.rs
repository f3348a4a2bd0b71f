//! Cuts an elementary stream into coded pictures, each with the headers before it.

use super::pictures::{self, Picture, start_code};
use super::{CutCounters, Format, MOST, Piece};
use anabranch_policy::reliability::ESSENTIAL;

/// Bytes after a start code that identify a unit.
const HEAD: usize = 16;

/// The byte after the first start code, if there is one.
pub(super) fn first_code(bytes: &[u8]) -> Option<u8> {
    let at = start_code(bytes, 0)?;
    // Only zeros may precede it.
    let clean = bytes.iter().take(at).all(|byte| *byte == 0);
    bytes.get(at + 3).copied().filter(|_| clean)
}

/// The byte after the second start code, if it is known.
pub(super) fn second_code(bytes: &[u8]) -> Option<u8> {
    let at = start_code(bytes, start_code(bytes, 0)? + 3)?;
    bytes.get(at + 3).copied()
}

/// The effect of a unit on the picture being collected.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Unit {
    /// Precedes a picture: ends the present one.
    Before,
    /// Begins a picture, and ends the present one.
    Begins(Option<Picture>),
    /// Belongs to the present picture.
    Within,
}

#[derive(Debug)]
pub(super) struct Elementary {
    format: Format,
    /// From the start of the next piece on.
    waiting: Vec<u8>,
    /// Start codes have been searched for up to here.
    looked: usize,
    begun: bool,
    /// The picture being collected.
    picture: Option<Option<Picture>>,
    counters: CutCounters,
}

impl Elementary {
    pub(super) fn new(format: Format) -> Self {
        let counters = CutCounters::default();
        Self { format, waiting: Vec::new(), looked: 0, begun: false, picture: None, counters }
    }

    pub(super) fn counters(&self) -> CutCounters {
        self.counters
    }

    pub(super) fn push(&mut self, bytes: &[u8], pieces: &mut Vec<Piece>) {
        self.waiting.extend_from_slice(bytes);
        // A unit is known when enough of its bytes have arrived.
        while let Some(at) = start_code(&self.waiting, self.looked)
            && at + 3 + HEAD <= self.waiting.len()
        {
            self.unit(at, pieces);
        }
        // A start code may begin in the last bytes.
        let last = self.waiting.len().saturating_sub(2);
        let unknown = start_code(&self.waiting, self.looked).unwrap_or(last);
        self.looked = self.looked.max(unknown.min(last));
        if !self.begun && self.looked > 1 {
            // The byte before a start code may be a zero that belongs to it.
            self.counters.skipped_bytes += self.looked as u64 - 1;
            self.waiting.drain(..self.looked - 1);
            self.looked = 1;
        }
        if self.waiting.len() > MOST {
            self.cut(self.looked, pieces);
        }
    }

    pub(super) fn finish(&mut self, pieces: &mut Vec<Piece>) {
        while let Some(at) = start_code(&self.waiting, self.looked) {
            self.unit(at, pieces);
        }
        if self.begun {
            self.cut(self.waiting.len(), pieces);
        } else {
            self.counters.skipped_bytes += self.waiting.len() as u64;
            self.waiting.clear();
        }
    }

    /// A unit begins with its start code at `at`.
    fn unit(&mut self, at: usize, pieces: &mut Vec<Piece>) {
        // The zero byte before a code of four bytes belongs to it.
        let begin = if at > 0 && self.waiting.get(at - 1) == Some(&0) { at - 1 } else { at };
        let unit = self.read(self.waiting.get(at + 3..).unwrap_or_default());
        self.looked = at + 3;
        if !self.begun {
            self.begun = true;
            self.counters.skipped_bytes += begin as u64;
            self.waiting.drain(..begin);
            self.looked -= begin;
        } else if unit != Unit::Within && self.picture.is_some() {
            self.cut(begin, pieces);
            self.looked = at - begin + 3;
        }
        if let Unit::Begins(picture) = unit {
            self.picture = Some(picture);
        }
    }

    fn read(&self, unit: &[u8]) -> Unit {
        let code = unit.first().copied().unwrap_or_default();
        if self.format == Format::H264 {
            return match (code & 0x1f, pictures::h264_slice(unit)) {
                (_, Some((true, picture))) => Unit::Begins(Some(picture)),
                (6..=9 | 14..=18, _) => Unit::Before,
                _ => Unit::Within,
            };
        }
        match code {
            0xb6 => Unit::Begins(pictures::mpeg4_plane(unit.get(1..).unwrap_or_default())),
            0xb0 | 0xb3 | 0xb5 | 0x00..=0x2f => Unit::Before,
            _ => Unit::Within,
        }
    }

    /// Cuts a piece that ends at `at`.
    fn cut(&mut self, at: usize, pieces: &mut Vec<Piece>) {
        let rest = self.waiting.split_off(at.min(self.waiting.len()));
        let bytes = core::mem::replace(&mut self.waiting, rest);
        let picture = self.picture.take().flatten();
        self.looked = 0;
        if bytes.is_empty() {
            return;
        }
        if picture.is_none() {
            self.counters.unknown_pictures += 1;
        }
        let importance = picture.map_or(ESSENTIAL, Picture::importance);
        pieces.push(Piece { bytes, picture: picture.map(|picture| picture.frame_type), importance, time: None });
    }
}
