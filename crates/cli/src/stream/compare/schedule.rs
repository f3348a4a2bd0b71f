//! The stream of all contenders: synthetic frames in decoding order, with the sizes of a typical group of pictures.

use anabranch_policy::rate::Rate;
use anabranch_policy::reliability::{DEPENDED_ON, ESSENTIAL, EXPENDABLE};
use std::time::Duration;

pub const FRAMES_A_SECOND: u32 = 30;
/// Minimum bytes of a frame: the header of a packet and one byte.
const LEAST: u32 = 64;
/// A group of nine frames in decoding order, with two B frames between references.
const GROUP: [Kind; 9] = [Kind::I, Kind::P, Kind::B, Kind::B, Kind::P, Kind::B, Kind::B, Kind::B, Kind::B];

/// Dependency of a frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// Depends on no other frame.
    I,
    /// Depends on the reference before it.
    P,
    /// No frame depends on it.
    B,
}

impl Kind {
    /// Size relative to a B frame.
    const fn weight(self) -> u32 {
        match self {
            Self::I => 4,
            Self::P => 2,
            Self::B => 1,
        }
    }

    /// Importance for partial reliability: 0 is abandoned last.
    pub const fn importance(self) -> u8 {
        match self {
            Self::I => ESSENTIAL,
            Self::P => DEPENDED_ON,
            Self::B => EXPENDABLE,
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Frame {
    /// Index, from 0.
    pub number: u32,
    /// Time of its availability, from the start of the stream.
    pub at: Duration,
    pub kind: Kind,
    /// Bytes.
    pub length: u32,
}

/// Index of the frame with this play-out time in microseconds. Message numbers differ: a message that is dropped before
/// it is sent has no number.
pub fn number_at(play_out: u64) -> u32 {
    let frames = play_out.saturating_mul(u64::from(FRAMES_A_SECOND)).saturating_add(500_000) / 1_000_000;
    u32::try_from(frames).unwrap_or(u32::MAX)
}

/// Frames at a mean rate.
pub fn frames(count: u32, rate: Rate) -> Vec<Frame> {
    let group: u32 = GROUP.iter().map(|kind| kind.weight()).sum();
    let bytes = rate.bits_per_second() as f64 / 8.0 * GROUP.len() as f64 / f64::from(FRAMES_A_SECOND);
    let unit = bytes / f64::from(group);
    let frame = |(number, kind): (u32, Kind)| Frame {
        number,
        at: Duration::from_secs(1) * number / FRAMES_A_SECOND,
        kind,
        length: ((unit * f64::from(kind.weight())).round() as u32).max(LEAST),
    };
    (0..count).zip(GROUP.into_iter().cycle()).map(frame).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_have_the_rate_asked_for_and_the_shares_of_a_group() {
        let frames = frames(900, Rate::from_bits_per_second(500_000));
        let of = |kind| frames.iter().filter(|frame| frame.kind == kind).count();
        assert_eq!([of(Kind::I), of(Kind::P), of(Kind::B)], [100, 200, 600]);
        let bytes: u32 = frames.iter().map(|frame| frame.length).sum();
        // Thirty seconds at 62,500 bytes a second, except for rounding.
        assert!((1_874_000..=1_876_000).contains(&bytes), "{bytes}");
        assert_eq!(frames[899].at, Duration::from_secs(1) * 899 / 30);
        assert!(frames.iter().all(|frame| number_at(frame.at.as_micros() as u64) == frame.number));
    }
}
