//! The text format of traces: a header, then one line per frame in coding order.
//!
//! ```text
//! anabranch video trace 1
//! frames 3
//! length 133333 us
//! # number  display  type  bytes  there us  shown us
//! 0 0 I 3100 0 33333
//! 1 2 P 900 33333 100000
//! 2 1 B 120 66667 66667
//! ```
//!
//! Numbers and display indices count from 0, times from the stream's start. `B+` is a referenced B frame, `P-` an
//! unreferenced P frame. Empty lines and text after `#` are ignored.

use super::words::shortened;
use super::{MOST_FRAMES, Trace, TraceError};
use crate::frame::{Frame, FrameType};
use anabranch_policy::Duration;
use core::fmt::Write;
use core::str::{FromStr, SplitWhitespace};

/// The first line.
const MAGIC: &str = "anabranch video trace 1";

impl Trace {
    /// The trace as text. [`Self::from_text`] reads the same trace again if its times are whole microseconds, which
    /// holds for all traces made by this crate.
    pub fn to_text(&self) -> String {
        let mut text = format!("{MAGIC}\nframes {}\nlength {} us\n", self.frames.len(), self.length.as_micros());
        text.push_str("# number  display  type  bytes  there us  shown us\n");
        for (number, frame) in self.frames.iter().enumerate() {
            let mark = match (frame.frame_type, frame.referenced) {
                (FrameType::B, true) => "+",
                (FrameType::B, false) | (_, true) => "",
                (_, false) => "-",
            };
            let (letter, at, shown) = (frame.frame_type.letter(), frame.at.as_micros(), frame.play_out.as_micros());
            // Writing to a string cannot fail.
            let _ = writeln!(text, "{number} {} {letter}{mark} {} {at} {shown}", frame.display, frame.size);
        }
        text
    }

    /// Reads a trace: the format of [`Self::to_text`] or, with another first line, EvalVid's.
    ///
    /// ```
    /// use anabranch_media::Trace;
    ///
    /// let evalvid = "1 H 29 1 segm at 33 ms\n2 I 3036 3 segm at 66 ms\n3 P 659 1 segm at 99 ms";
    /// assert_eq!(Trace::from_text(evalvid)?.bytes().p, 659);
    /// let error = Trace::from_text("1 X 3036 3 segm at 66 ms").unwrap_err();
    /// assert_eq!(error.to_string(), "line 1 of the trace: 'X' is no type of frame: I, P or B");
    /// # Ok::<(), anabranch_media::TraceError>(())
    /// ```
    ///
    /// # Errors
    /// The first line that cannot be parsed; a truncated trace; a trace that [`Trace::new`] refuses.
    pub fn from_text(text: &str) -> Result<Self, TraceError> {
        let mut lines = text
            .lines()
            .enumerate()
            .map(|(index, line)| (index + 1, line.split('#').next().unwrap_or_default().trim()))
            .filter(|(_, line)| !line.is_empty());
        let first = lines.next().ok_or(TraceError::Empty)?;
        if first.1 != MAGIC {
            return super::evalvid::read(core::iter::once(first).chain(lines));
        }
        let announced = head(lines.next(), "frames")?;
        if announced > MOST_FRAMES as u64 {
            return Err(TraceError::TooLong);
        }
        let length = Duration::from_micros(head(lines.next(), "length")?);
        let mut frames = Vec::new();
        for (line, content) in lines {
            if frames.len() as u64 == announced {
                return Err(TraceError::Line {
                    line,
                    what: format!("there are more frames than the {announced} announced"),
                });
            }
            frames.push(frame(content, frames.len()).map_err(|what| TraceError::Line { line, what })?);
        }
        if (frames.len() as u64) < announced {
            return Err(TraceError::CutOff { announced: announced as usize, found: frames.len() });
        }
        Self::new(frames, length)
    }
}

/// The number after `word` in a header line.
fn head(line: Option<(usize, &str)>, word: &str) -> Result<u64, TraceError> {
    let wrong = |line| TraceError::Line { line, what: format!("'{word}' and a number are expected") };
    let (line, content) = line.ok_or_else(|| wrong(2))?;
    let mut words = content.split_whitespace();
    let number = words.next().filter(|&first| first == word).and_then(|_| words.next());
    number.and_then(|number| number.parse().ok()).ok_or_else(|| wrong(line))
}

fn frame(content: &str, expected: usize) -> Result<Frame, String> {
    let mut words = content.split_whitespace();
    let number: usize = next(&mut words, "number")?;
    if number != expected {
        return Err(format!("frame {expected} is expected, not {number}"));
    }
    let display = next(&mut words, "display place")?;
    let (frame_type, referenced) = match words.next() {
        Some("I") => (FrameType::I, true),
        Some("I-") => (FrameType::I, false),
        Some("P") => (FrameType::P, true),
        Some("P-") => (FrameType::P, false),
        Some("B") => (FrameType::B, false),
        Some("B+") => (FrameType::B, true),
        Some(other) => return Err(format!("'{}' is no type of frame: I, P or B", shortened(other))),
        None => return Err("the type of the frame is missing: I, P or B".to_owned()),
    };
    let size = next(&mut words, "size in bytes")?;
    let at = Duration::from_micros(next(&mut words, "time at which it is there")?);
    let play_out = Duration::from_micros(next(&mut words, "time at which it is shown")?);
    match words.next() {
        Some(word) => Err(format!("'{}' is one word too many", shortened(word))),
        None => Ok(Frame { frame_type, referenced, size, display, at, play_out }),
    }
}

fn next<T: FromStr>(words: &mut SplitWhitespace, what: &str) -> Result<T, String> {
    let word = words.next().ok_or_else(|| format!("the {what} is missing"))?;
    word.parse().map_err(|_| format!("'{}' is no {what}", shortened(word)))
}
