//! One coded picture as the transport sees it: type, size, order and times, no pixels.

use anabranch_policy::Duration;
use anabranch_policy::reliability::{DEPENDED_ON, ESSENTIAL, EXPENDABLE};
use core::ops::{Index, IndexMut};

/// How a picture is predicted.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum FrameType {
    /// From nothing but itself.
    I,
    /// From earlier pictures.
    P,
    /// From pictures before and after it in display order.
    B,
}

impl FrameType {
    /// All of them, the most important first.
    pub const ALL: [Self; 3] = [Self::I, Self::P, Self::B];

    /// `'I'`, `'P'` or `'B'`.
    pub const fn letter(self) -> char {
        match self {
            Self::I => 'I',
            Self::P => 'P',
            Self::B => 'B',
        }
    }
}

/// A coded picture.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Frame {
    /// How it is predicted.
    pub frame_type: FrameType,
    /// Whether other pictures are predicted from it.
    pub referenced: bool,
    /// Bytes, headers that stand before it included.
    pub size: u32,
    /// Its place in display order, from 0.
    pub display: u32,
    /// When the encoder has it, since the stream's start, and so when a decoder that lags by nothing takes it in. Does not
    /// fall in coding order. **This is the play-out time for the transport** (message headers, schedules, play-out
    /// clock): measured by [`Self::play_out`] instead, I and P frames would set the clock early, by as much as they are
    /// coded ahead of the B frames between them, and all B frames would have that much less latency.
    pub at: Duration,
    /// When it is shown, since the stream's start. Includes the delay of reordering, so it is never before [`Self::at`].
    pub play_out: Duration,
}

impl Frame {
    /// The class by which it may be abandoned: essential for I, then what others are predicted from, then what nobody needs.
    /// With the usual B pictures that is I, P, B, the order of the recPR paper (section III.A).
    pub const fn importance(&self) -> u8 {
        match (self.frame_type, self.referenced) {
            (FrameType::I, _) => ESSENTIAL,
            (_, true) => DEPENDED_ON,
            (_, false) => EXPENDABLE,
        }
    }
}

/// Something for each type of frame.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct ByType<T> {
    /// Of I frames.
    pub i: T,
    /// Of P frames.
    pub p: T,
    /// Of B frames.
    pub b: T,
}

impl ByType<u64> {
    /// All types together.
    pub const fn total(&self) -> u64 {
        self.i + self.p + self.b
    }
}

impl<T> Index<FrameType> for ByType<T> {
    type Output = T;

    fn index(&self, frame_type: FrameType) -> &T {
        match frame_type {
            FrameType::I => &self.i,
            FrameType::P => &self.p,
            FrameType::B => &self.b,
        }
    }
}

impl<T> IndexMut<FrameType> for ByType<T> {
    fn index_mut(&mut self, frame_type: FrameType) -> &mut T {
        match frame_type {
            FrameType::I => &mut self.i,
            FrameType::P => &mut self.p,
            FrameType::B => &mut self.b,
        }
    }
}
