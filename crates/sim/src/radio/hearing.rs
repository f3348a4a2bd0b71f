//! Relations between stations: positions, and reception.

/// A position on the ground in metres.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Position {
    /// East.
    pub x: f64,
    /// North.
    pub y: f64,
}

impl Position {
    /// The distance in metres.
    pub fn distance(self, other: Self) -> f64 {
        libm::hypot(self.x - other.x, self.y - other.y)
    }
}

/// How one station perceives another's frames, in one direction.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub enum Hears {
    #[default]
    Nothing,
    /// The channel is busy, without interference.
    Busy,
    /// Interference, but the channel seems idle.
    Noise,
    BusyAndNoise,
    /// Its frames can be received.
    Frames,
}

impl Hears {
    /// From whether frames can be received, interfere, and make the channel busy.
    pub(super) fn of(receive_disturb_sense: [bool; 3]) -> Self {
        match receive_disturb_sense {
            [true, ..] => Self::Frames,
            [_, true, true] => Self::BusyAndNoise,
            [_, true, false] => Self::Noise,
            [_, false, true] => Self::Busy,
            [_, false, false] => Self::Nothing,
        }
    }
}
