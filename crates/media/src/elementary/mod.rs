//! Reads elementary streams of video: MPEG-4 part 2 and H.264 in byte stream format (Annex B): start, type, order and
//! time of pictures. Pixels are not decoded.
//!
//! [`Reader`] takes bytes as they arrive and returns pictures in coding order; [`ElementaryStream`] is a whole file.
//! Any input is accepted: every fault is a [`StreamError`], memory is bounded by the input and by 16 MiB per picture.

mod bits;
mod h264;
mod mpeg4;
mod picture;
mod start_codes;

#[cfg(test)]
mod tests;

pub(crate) use picture::LONGEST_PICTURE;
pub use picture::{Codec, Format, Picture, StreamError};

use crate::frame::Frame;
use crate::trace::{FrameRate, MOST_FRAMES, Trace, TraceError, display_order};
use start_codes::StartCodes;
use std::collections::VecDeque;

/// A video stream has its header within this: 1 MiB.
const HEADER_WITHIN: u64 = 1 << 20;

/// The parser of one codec.
#[derive(Debug)]
enum Machine {
    /// The codec is not known yet; the units so far.
    Unknown(Vec<Vec<u8>>),
    Mpeg4(mpeg4::Mpeg4),
    H264(h264::H264),
}

/// Takes the bytes of a stream as they arrive and returns its pictures in coding order. Pictures before the first
/// header are dropped and counted.
#[derive(Debug)]
pub struct Reader {
    codes: StartCodes,
    machine: Machine,
    pictures: VecDeque<Picture>,
    taken: u64,
}

impl Default for Reader {
    fn default() -> Self {
        Self::new()
    }
}

impl Reader {
    /// The codec is detected.
    pub fn new() -> Self {
        Self {
            codes: StartCodes::default(),
            machine: Machine::Unknown(Vec::new()),
            pictures: VecDeque::new(),
            taken: 0,
        }
    }

    /// For a stream of a known codec, such as one from a transport stream.
    pub fn of(codec: Codec) -> Self {
        let machine = match codec {
            Codec::Mpeg4 => Machine::Mpeg4(mpeg4::Mpeg4::default()),
            Codec::H264 => Machine::H264(h264::H264::default()),
        };
        Self { machine, ..Self::new() }
    }

    /// The format, once the header has been read.
    pub fn format(&self) -> Option<&Format> {
        match &self.machine {
            Machine::Unknown(_) => None,
            Machine::Mpeg4(machine) => machine.format(),
            Machine::H264(machine) => machine.format(),
        }
    }

    /// Number of pictures before the first header, which were dropped.
    pub const fn dropped(&self) -> u64 {
        match &self.machine {
            Machine::Unknown(_) => 0,
            Machine::Mpeg4(machine) => machine.dropped(),
            Machine::H264(machine) => machine.dropped(),
        }
    }

    /// Takes the next bytes of the stream.
    ///
    /// # Errors
    /// If it is no video, or damaged in parts that the reader needs. Nothing can be read after an error.
    pub fn handle_bytes(&mut self, bytes: &[u8]) -> Result<(), StreamError> {
        self.taken = self.taken.saturating_add(bytes.len() as u64);
        self.codes.handle_bytes(bytes);
        while let Some(unit) = self.codes.poll_unit()? {
            self.unit(unit)?;
        }
        if matches!(self.machine, Machine::Unknown(_)) && self.taken > HEADER_WITHIN {
            return Err(StreamError::NotVideo);
        }
        Ok(())
    }

    /// The end of the stream completes the pending picture.
    ///
    /// # Errors
    /// As [`Self::handle_bytes`]; for a stream without a byte or a picture.
    pub fn handle_end(&mut self) -> Result<(), StreamError> {
        if self.taken == 0 {
            return Err(StreamError::Empty);
        }
        if let Some(unit) = self.codes.finish() {
            self.unit(unit)?;
        }
        let last = match &mut self.machine {
            Machine::Unknown(_) => return Err(StreamError::NotVideo),
            Machine::Mpeg4(machine) => machine.finish(),
            Machine::H264(machine) => machine.finish(),
        }?;
        self.pictures.extend(last);
        Ok(())
    }

    /// The next complete picture in coding order.
    pub fn poll_picture(&mut self) -> Option<Picture> {
        self.pictures.pop_front()
    }

    fn unit(&mut self, unit: Vec<u8>) -> Result<(), StreamError> {
        let picture = match &mut self.machine {
            Machine::Unknown(units) => {
                let codec = codec_of(&unit);
                units.push(unit);
                let Some(codec) = codec else { return Ok(()) };
                let units = core::mem::take(units);
                self.machine = Self::of(codec).machine;
                return units.into_iter().try_for_each(|unit| self.unit(unit));
            }
            Machine::Mpeg4(machine) => machine.handle_unit(unit),
            Machine::H264(machine) => machine.handle_unit(unit),
        }?;
        self.pictures.extend(picture);
        Ok(())
    }
}

/// The codec that a unit reveals. In H.264 the highest bit of the byte after the start code is never set; MPEG-4 begins
/// with a unit in which it is. Other units of MPEG-4 look like some of H.264, but come later.
fn codec_of(unit: &[u8]) -> Option<Codec> {
    match *unit.get(3)? {
        0xB0 | 0xB3 | 0xB5 | 0xB6 => Some(Codec::Mpeg4),
        // A VOL of MPEG-4 has the random access flag and the type of object here, which are no profile of H.264.
        code if code & 0x80 == 0 && code & 0x1F == 7 && h264::is_profile(*unit.get(4)?) => Some(Codec::H264),
        _ => None,
    }
}

/// A whole stream.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ElementaryStream {
    pub format: Format,
    /// In coding order.
    pub pictures: Vec<Picture>,
}

impl ElementaryStream {
    /// # Errors
    /// As [`Reader::handle_bytes`] and [`Reader::handle_end`]; also for too many pictures.
    pub fn read(bytes: &[u8]) -> Result<Self, StreamError> {
        // Its start codes would be found, and its packet headers taken for pictures.
        if crate::cut::aligned(bytes) == Some(0) {
            return Err(StreamError::NotSupported("an MPEG transport stream"));
        }
        let mut reader = Reader::new();
        let mut pictures = Vec::new();
        // In chunks, so that the reader's buffer stays small.
        for piece in bytes.chunks(1 << 16) {
            reader.handle_bytes(piece)?;
            pictures.extend(core::iter::from_fn(|| reader.poll_picture()));
            if pictures.len() > MOST_FRAMES {
                return Err(TraceError::TooLong.into());
            }
        }
        reader.handle_end()?;
        pictures.extend(core::iter::from_fn(|| reader.poll_picture()));
        match reader.format() {
            Some(format) if !pictures.is_empty() => Ok(Self { format: format.clone(), pictures }),
            Some(_) => Err(StreamError::NoPictures),
            None => Err(StreamError::Header("header")),
        }
    }

    /// The stream as a trace: sizes without repeated headers, times at the constant rate that the stream states, or
    /// else `rate`. Pictures before the first I picture, which cannot be decoded, are an error of the trace.
    ///
    /// # Errors
    /// [`StreamError::Trace`].
    pub fn trace(&self, rate: FrameRate) -> Result<Trace, StreamError> {
        let rate = self.rate().unwrap_or(rate);
        let display = self.display();
        let lag = |(index, &display): (usize, &u32)| (index as u64).saturating_sub(u64::from(display));
        let delay = display.iter().enumerate().map(lag).max().unwrap_or(0);
        let frame = |(index, picture): (usize, &Picture)| Frame {
            frame_type: picture.frame_type,
            referenced: picture.referenced,
            size: u32::try_from(picture.payload().len()).unwrap_or(u32::MAX),
            display: display[index],
            at: rate.time(index as u64),
            play_out: rate.time(u64::from(display[index]) + delay),
        };
        let frames = self.pictures.iter().enumerate().map(frame).collect();
        Ok(Trace::new(frames, rate.time(self.pictures.len() as u64 + delay))?)
    }

    /// Frames per second: from the header or, without it, the most frequent rate of the pictures' times.
    pub fn rate(&self) -> Option<FrameRate> {
        self.format.rate.or_else(|| self.measured_rate())
    }

    /// The display index of each picture, in coding order.
    pub fn display(&self) -> Vec<u32> {
        if self.format.codec == Codec::Mpeg4 {
            return display_order(self.pictures.iter().map(|picture| picture.frame_type));
        }
        let mut order: Vec<usize> = (0..self.pictures.len()).collect();
        order.sort_by_key(|&index| self.pictures[index].order);
        let mut display = vec![0; order.len()];
        for (place, index) in order.into_iter().enumerate() {
            display[index] = place as u32;
        }
        display
    }

    /// The most frequent rate of the pictures' times, if they have any.
    fn measured_rate(&self) -> Option<FrameRate> {
        let display = self.display();
        let mut shown = vec![None; display.len()];
        for (picture, place) in self.pictures.iter().zip(display) {
            shown[place as usize] = picture.time;
        }
        let mut steps: Vec<u64> = shown
            .windows(2)
            .filter_map(|pair| pair[1]?.as_nanos().checked_sub(pair[0]?.as_nanos()))
            .filter(|&step| step > 0)
            .collect();
        steps.sort_unstable();
        let usual = steps.get(steps.len() / 2).copied()?;
        // Milliseconds of a frame per second: 30.000, 23.976.
        let milli = u32::try_from((1_000_000_000_000 + usual / 2) / usual).ok()?;
        if milli % 1_000 == 0 { FrameRate::new(milli / 1_000, 1) } else { FrameRate::new(milli, 1_000) }
    }
}
