//! A coded picture as seen by the transport: type, size, order and times, no pixels.

use anabranch_policy::Duration;
use anabranch_policy::reliability::{DEPENDED_ON, ESSENTIAL, EXPENDABLE};
use core::ops::{Index, IndexMut};

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
    /// In descending order of importance.
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

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Frame {
    pub frame_type: FrameType,
    /// Whether other pictures are predicted from it.
    pub referenced: bool,
    /// Bytes, including headers before it.
    pub size: u32,
    /// Index in display order, from 0.
    pub display: u32,
    /// When the encoder has finished it, since the stream's start, and so when a decoder without delay takes it in.
    /// Does not decrease in coding order. **This is the play-out time for the transport** (message headers, schedules,
    /// play-out clock): with [`Self::play_out`] instead, I and P frames would set the clock early, by the time that
    /// they are coded ahead of the B frames between them, and all B frames would lose that much latency.
    pub at: Duration,
    /// Display time since the stream's start. Includes the reordering delay, so it is never before [`Self::at`].
    pub play_out: Duration,
}

impl Frame {
    /// Its class for being abandoned: essential for I, then frames that others are predicted from, then the rest. With
    /// the usual B pictures that is I, P, B, the order of the recPR paper (section III.A).
    pub const fn importance(&self) -> u8 {
        match (self.frame_type, self.referenced) {
            (FrameType::I, _) => ESSENTIAL,
            (_, true) => DEPENDED_ON,
            (_, false) => EXPENDABLE,
        }
    }
}

/// A value for each type of frame.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct ByType<T> {
    pub i: T,
    pub p: T,
    pub b: T,
}

impl ByType<u64> {
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
