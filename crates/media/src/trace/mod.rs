//! A video as a list of frames in coding order, and its text formats.

mod evalvid;
mod scaled;
mod text;
mod words;

#[cfg(test)]
mod tests;

use crate::frame::{ByType, Frame, FrameType};
use anabranch_policy::Duration;
use thiserror::Error;

/// Limit of a trace: 92 hours at 30 frames per second. Longer ones are refused before memory is allocated.
pub const MOST_FRAMES: usize = 10_000_000;

/// Why a trace could not be created or read.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum TraceError {
    /// It has no frames.
    #[error("the trace has no frames")]
    Empty,
    /// More than [`MOST_FRAMES`].
    #[error("the trace has more than {MOST_FRAMES} frames")]
    TooLong,
    /// A line that cannot be parsed.
    #[error("line {line} of the trace: {what}")]
    Line {
        /// Counted from 1.
        line: usize,
        what: String,
    },
    /// The file ends before the announced number of frames.
    #[error("the trace is cut off: it announces {announced} frames and has {found}")]
    CutOff {
        /// In the header.
        announced: usize,
        /// In the file.
        found: usize,
    },
    /// A scale factor that is not allowed.
    #[error("sizes cannot be scaled so: the factor must be above 0, and no frame may exceed 16 MiB")]
    Factor,
    /// An impossible sequence of frames.
    #[error("frame {frame} of the trace: {what}")]
    Frame {
        /// Index in coding order, from 0.
        frame: usize,
        what: &'static str,
    },
}

/// Frames per second, as a fraction: 30/1, 24/1, 30000/1001.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FrameRate {
    numerator: u32,
    denominator: u32,
}

impl FrameRate {
    /// `numerator / denominator` frames per second, in lowest terms; `None` unless the rate is at least 0.001 (a frame in 1,000 s) and at
    /// most 1,000: what headers tell beyond that is no rate of a video.
    pub const fn new(numerator: u32, denominator: u32) -> Option<Self> {
        let (frames, seconds) = (numerator as u64, denominator as u64);
        if frames == 0 || seconds == 0 || frames > 1_000 * seconds || seconds > 1_000 * frames {
            return None;
        }
        let (mut divisor, mut rest) = (numerator, denominator);
        while rest > 0 {
            (divisor, rest) = (rest, divisor % rest);
        }
        Some(Self { numerator: numerator / divisor, denominator: denominator / divisor })
    }

    pub fn per_second(self) -> f64 {
        f64::from(self.numerator) / f64::from(self.denominator)
    }

    /// Numerator and denominator, in lowest terms.
    pub const fn fraction(self) -> (u32, u32) {
        (self.numerator, self.denominator)
    }

    /// The time of frame `index` relative to frame 0: rounded to the microsecond, without drift. At most what a [`Duration`] holds
    /// (584 years).
    pub fn time(self, index: u64) -> Duration {
        let numerator = u128::from(self.numerator);
        let micros = (u128::from(index) * u128::from(self.denominator) * 1_000_000 + numerator / 2) / numerator;
        // A whole number of them also at the end, as a trace in text has them.
        let most = u128::from(u64::MAX / 1_000);
        Duration::from_micros(micros.min(most) as u64)
    }
}

/// A video: its frames in coding order, the order in which they are sent.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Trace {
    frames: Vec<Frame>,
    length: Duration,
}

impl Trace {
    /// A trace of these frames, in coding order. `length` is the time until a frame after the last would be shown,
    /// where a repetition begins.
    ///
    /// # Errors
    /// If there are none or too many; if a frame is empty; if times decrease, or a frame is shown before it is encoded;
    /// if the display indices are not each of 0, 1, 2 ... once, or play-out times do not increase with them; if the
    /// first frame in coding order is not an I frame; if it is shown after `length`.
    pub fn new(frames: Vec<Frame>, length: Duration) -> Result<Self, TraceError> {
        if frames.is_empty() {
            return Err(TraceError::Empty);
        }
        if frames.len() > MOST_FRAMES {
            return Err(TraceError::TooLong);
        }
        let mut shown: Vec<Option<Duration>> = vec![None; frames.len()];
        let mut before = Duration::ZERO;
        for (index, frame) in frames.iter().enumerate() {
            let wrong = |what| Err(TraceError::Frame { frame: index, what });
            if index == 0 && frame.frame_type != FrameType::I {
                return wrong("the first frame must be an I frame, nothing can be predicted yet");
            }
            if frame.size == 0 {
                return wrong("it is empty");
            }
            if frame.at < before {
                return wrong("it is there before the frame ahead of it in coding order");
            }
            if frame.play_out < frame.at {
                return wrong("it is shown before it is there");
            }
            if frame.play_out >= length {
                return wrong("it is shown after the end");
            }
            before = frame.at;
            match shown.get_mut(frame.display as usize) {
                None => return wrong("its place in display order is behind the last"),
                Some(Some(_)) => return wrong("its place in display order is taken"),
                Some(place) => *place = Some(frame.play_out),
            }
        }
        if let Some(at) = shown.windows(2).position(|pair| pair[0] >= pair[1]) {
            let behind = frames.iter().position(|frame| frame.display as usize == at + 1).unwrap_or_default();
            return Err(TraceError::Frame { frame: behind, what: "it is not shown later than the one before it" });
        }
        Ok(Self { frames, length })
    }

    /// A trace at a constant rate from types and sizes in coding order, with the display order of plain I, P and B
    /// frames: a B frame is shown at once, an I or P frame when the next one arrives. One frame is encoded per
    /// interval.
    ///
    /// # Errors
    /// As [`Self::new`].
    pub fn at_rate(coded: &[(FrameType, u32)], rate: FrameRate) -> Result<Self, TraceError> {
        if coded.is_empty() {
            return Err(TraceError::Empty);
        }
        if coded.len() > MOST_FRAMES {
            return Err(TraceError::TooLong);
        }
        let display = display_order(coded.iter().map(|&(frame_type, _)| frame_type));
        let delay = reorder_delay(&display);
        let frame = |(index, &(frame_type, size)): (usize, &(FrameType, u32))| Frame {
            frame_type,
            referenced: frame_type != FrameType::B,
            size,
            display: display[index],
            at: rate.time(index as u64),
            play_out: rate.time(u64::from(display[index]) + delay),
        };
        Self::new(coded.iter().enumerate().map(frame).collect(), rate.time(coded.len() as u64 + delay))
    }

    /// The frames in coding order.
    pub fn frames(&self) -> &[Frame] {
        &self.frames
    }

    /// The time until a frame after the last would be shown.
    pub const fn length(&self) -> Duration {
        self.length
    }

    /// Number of frames of each type.
    pub fn counts(&self) -> ByType<u64> {
        self.sum(|_| 1)
    }

    /// Bytes of each type.
    pub fn bytes(&self) -> ByType<u64> {
        self.sum(|frame| u64::from(frame.size))
    }

    fn sum(&self, of: impl Fn(&Frame) -> u64) -> ByType<u64> {
        let mut sum = ByType::default();
        for frame in &self.frames {
            sum[frame.frame_type] += of(frame);
        }
        sum
    }

    /// Bits per second over the display time.
    pub fn bit_rate(&self) -> f64 {
        self.bytes().total() as f64 * 8.0 / self.period().as_secs_f64()
    }

    /// By coding index: when the first frame of the frame's group of pictures is encoded. A group begins with an I
    /// frame and lasts, in coding order, until the next.
    pub fn group_times(&self) -> Vec<Duration> {
        let mut first = Duration::ZERO;
        let of = |frame: &Frame| {
            if frame.frame_type == FrameType::I {
                first = frame.at;
            }
            first
        };
        self.frames.iter().map(of).collect()
    }

    /// Coding indices in display order: `display_order()[0]` is the frame that is shown first.
    pub fn display_order(&self) -> Vec<usize> {
        let mut order = vec![0; self.frames.len()];
        for (index, frame) in self.frames.iter().enumerate() {
            // `new` has checked that each index occurs once.
            order[frame.display as usize] = index;
        }
        order
    }

    /// When the first frame is shown.
    fn first_play_out(&self) -> Duration {
        self.frames.iter().map(|frame| frame.play_out).min().unwrap_or_default()
    }

    /// The time from one repetition to the next.
    fn period(&self) -> Duration {
        self.length - self.first_play_out()
    }

    /// The trace repeated, as the paper makes 10,000 frames of 2,000.
    ///
    /// # Errors
    /// If the result has no frames or too many.
    pub fn repeat(&self, times: u32) -> Result<Self, TraceError> {
        let total = self.frames.len().checked_mul(times as usize).filter(|&total| total <= MOST_FRAMES);
        let total = total.ok_or(TraceError::TooLong)?;
        let mut frames = Vec::with_capacity(total);
        let mut later = Duration::ZERO;
        for pass in 0..times {
            let first = pass * self.frames.len() as u32;
            frames.extend(self.frames.iter().map(|frame| Frame {
                display: frame.display + first,
                at: frame.at + later,
                play_out: frame.play_out + later,
                ..*frame
            }));
            later += self.period();
        }
        Self::new(frames, self.first_play_out() + later)
    }

    /// The first `count` frames in coding order whose display indices are also the first `count`, or a few frames
    /// fewer: a cut where no B frame misses a frame that it is predicted from.
    ///
    /// # Errors
    /// [`TraceError::Empty`] if no frame is left.
    pub fn head(&self, count: usize) -> Result<Self, TraceError> {
        let mut last = None;
        let mut highest = 0;
        for (index, frame) in self.frames.iter().take(count).enumerate() {
            highest = highest.max(frame.display as usize);
            if highest == index {
                last = Some(index);
            }
        }
        let kept = last.map_or(0, |last| last + 1);
        let next = self.frames.iter().filter(|frame| frame.display as usize == kept).map(|frame| frame.play_out).next();
        Self::new(self.frames[..kept].to_vec(), next.unwrap_or(self.length))
    }
}

/// The display indices of plain I, P and B frames in coding order. A B frame is shown when it arrives; an I or P frame
/// when the next I or P frame arrives, or at the end.
pub(crate) fn display_order(types: impl Iterator<Item = FrameType>) -> Vec<u32> {
    let mut display: Vec<u32> = Vec::new();
    let mut next = 0;
    let mut held = None;
    for (index, frame_type) in types.enumerate() {
        if frame_type == FrameType::B {
            display.push(next);
        } else {
            display.push(0);
            match held.replace(index) {
                Some(index) => display[index] = next,
                None => continue,
            }
        }
        next += 1;
    }
    if let Some(index) = held {
        display[index] = next;
    }
    display
}

/// Number of frames by which display must lag behind coding so that no frame is shown before it arrives.
fn reorder_delay(display: &[u32]) -> u64 {
    let late = |(index, &display): (usize, &u32)| (index as u64).saturating_sub(u64::from(display));
    display.iter().enumerate().map(late).max().unwrap_or(0)
}
