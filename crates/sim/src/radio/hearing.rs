//! Relations between stations: positions, and who receives whom.

/// A place on the ground, in metres.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Position {
    /// East.
    pub x: f64,
    /// North.
    pub y: f64,
}

impl Position {
    /// The distance to another place in metres.
    pub fn distance(self, other: Self) -> f64 {
        libm::hypot(self.x - other.x, self.y - other.y)
    }
}

/// What one station is to another, in one direction.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub enum Hears {
    /// Nothing.
    #[default]
    Nothing,
    /// The channel is busy, but frames of others are not disturbed.
    Busy,
    /// Frames of others are disturbed, but the channel seems free.
    Noise,
    /// Both.
    BusyAndNoise,
    /// Its frames.
    Frames,
}

impl Hears {
    /// By whether frames can be received, disturb others, and make the channel busy.
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
