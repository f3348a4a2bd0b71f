//! Reads EvalVid's sender traces: number, type, bytes, packets and time, in coding order.
//!
//! ```text
//! 1  H   29  1 segm at   33 ms
//! 2  I  3036 4 segm at   66 ms
//! 2  P   659 1 0.099
//! ```
//!
//! Two forms exist: with words and milliseconds, and plain with seconds. `H` is the header of the stream, which is not
//! part of the trace here (it is sent out of band). Display order is that of plain I, P and B frames, and the rate is
//! the mean rate of the times; a trace with a single time has 30 frames per second.

use super::words::shortened;
use super::{FrameRate, MOST_FRAMES, Trace, TraceError};
use crate::frame::FrameType;

/// Reads numbered lines, trimmed and without comments.
pub(super) fn read<'a>(lines: impl Iterator<Item = (usize, &'a str)>) -> Result<Trace, TraceError> {
    let mut coded = Vec::new();
    let mut times = Vec::new();
    for (line, content) in lines {
        if coded.len() >= MOST_FRAMES {
            return Err(TraceError::TooLong);
        }
        let wrong = |what: String| TraceError::Line { line, what };
        let mut words = content.split_whitespace();
        words.next().and_then(|word| word.parse::<u64>().ok()).ok_or_else(|| {
            wrong("neither a trace of ours ('anabranch video trace 1' comes first) nor one of EvalVid's (a number comes first)".into())
        })?;
        let frame_type = match words.next() {
            Some("H") => continue,
            Some("I") => FrameType::I,
            Some("P") => FrameType::P,
            Some("B") => FrameType::B,
            Some(other) => return Err(wrong(format!("'{}' is no type of frame: I, P or B", shortened(other)))),
            None => return Err(wrong("the type of the frame is missing: I, P or B".into())),
        };
        let size =
            words.next().and_then(|word| word.parse().ok()).ok_or_else(|| wrong("its size is missing".into()))?;
        let seconds = time(&words.collect::<Vec<_>>()).ok_or_else(|| wrong("its time is missing".into()))?;
        coded.push((frame_type, size));
        times.push(seconds);
    }
    Trace::at_rate(&coded, rate(&times))
}

/// The last number in seconds, or in milliseconds if `ms` follows it.
fn time(words: &[&str]) -> Option<f64> {
    let last = words.last()?;
    let (number, unit) = match last.strip_suffix("ms") {
        Some("") => (*words.get(words.len().checked_sub(2)?)?, 1e-3),
        Some(number) => (number, 1e-3),
        // The number of packets alone is no time.
        None if words.len() < 2 => return None,
        None => (*last, 1.0),
    };
    number.parse::<f64>().ok().filter(|time| time.is_finite() && *time >= 0.0).map(|time| time * unit)
}

/// Frames per second, from the first time to the last.
fn rate(times: &[f64]) -> FrameRate {
    const USUAL: FrameRate = FrameRate { numerator: 30, denominator: 1 };
    let (Some(first), Some(last)) = (times.first(), times.last()) else { return USUAL };
    let milli = (times.len() as f64 - 1.0) / (last - first) * 1e3;
    if !milli.is_finite() || !(1.0..=1e6).contains(&milli) {
        return USUAL;
    }
    // Times have three digits, so that 30 frames per second look like 30.003: rates near an integer are rounded.
    let near = (milli / 1e3).round().max(1.0);
    if (milli / 1e3 - near).abs() <= 0.02 * near {
        return FrameRate { numerator: near as u32, denominator: 1 };
    }
    FrameRate { numerator: milli.round() as u32, denominator: 1_000 }
}
