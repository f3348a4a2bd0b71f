//! A history: two sides, the paths between them, and the events with their times. It is determined by a few lines of
//! text.

pub mod behaviour;
mod draw;
pub mod engine;
pub mod hostile;
pub mod landmark;
pub mod lie;
pub mod network;
mod observer;
pub mod opposite;
mod text;
pub mod transcript;
pub mod twins;
pub mod verdict;
pub mod world;

use crate::literal::Action;
use crate::literal::choices::CHOICES;
use crate::settings::{Settings, Table};
use engine::ENGINE;
use lie::Lie;
use network::{Fate, Weather, Which};

/// The pair of sides. The client is side 0.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// Two engines.
    Engines,
    /// The engine opens a connection to the literal peer.
    EngineClient,
    /// The literal peer opens a connection to the engine.
    EngineServer,
    /// Two literal peers with the same key each open a connection to the engine, which is neither side.
    Twins,
}

impl Kind {
    pub const NAMES: [(&'static str, Self); 4] = [
        ("engines", Self::Engines),
        ("engine-client", Self::EngineClient),
        ("engine-server", Self::EngineServer),
        ("twins", Self::Twins),
    ];

    /// Whether a side is the literal peer.
    pub fn is_literal(self, side: usize) -> bool {
        match self {
            Self::Engines => false,
            Self::EngineClient => side == 1,
            Self::EngineServer => side == 0,
            Self::Twins => true,
        }
    }

    /// The table of a side's settings.
    pub fn table(self, side: usize) -> Table {
        if self.is_literal(side) { CHOICES } else { ENGINE }
    }
}

/// An event.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Op {
    /// The application of a side writes octets.
    Write(usize, u32),
    /// The server writes octets to one of the twins.
    Answer(usize, u32),
    /// It stops reading.
    Pause(usize),
    /// It reads octets while paused.
    Read(usize, u32),
    /// It reads everything from now on.
    Resume(usize),
    /// It closes its direction after writing everything.
    Close(usize),
    /// It aborts.
    Abort(usize),
    /// The properties of a path change.
    Weather(usize, Weather),
    /// MPTCP options of a side's segments are removed from now on.
    Strip(usize),
    /// In the next packets of a side an octet of the payload is changed.
    Change(usize, u32),
    /// A side loses its address on a path.
    Down(usize, u8),
    /// The address comes back.
    Up(usize, u8),
    /// The literal peer acts without its application.
    Act(usize, Action),
    /// The next packets of the literal peer are changed in transit.
    Lie(Lie, u32),
}

impl Op {
    /// The same event with another number of octets, if it has one.
    #[must_use]
    pub fn with_length(self, length: u32) -> Self {
        match self {
            Self::Write(side, _) => Self::Write(side, length),
            Self::Answer(side, _) => Self::Answer(side, length),
            other => other,
        }
    }
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct History {
    pub kind: Kind,
    /// Seed of keys, and of the random choices of paths and literal peer.
    pub seed: u64,
    /// Addresses are IPv6.
    pub v6: bool,
    /// In microseconds.
    pub delays: Vec<u32>,
    pub sides: [Settings; 2],
    /// Whether MPTCP options of each side's segments are removed, from the first SYN on.
    pub strip: [bool; 2],
    /// Fates of single packets: the sending side, which of its packets, and the fate.
    pub fates: Vec<(usize, Which, Fate)>,
    /// Events with their times in milliseconds.
    pub ops: Vec<(u32, Op)>,
}

impl History {
    /// Whether mappings have checksums while MPTCP is used: if one side asks for them.
    pub fn checksums(&self) -> bool {
        self.is_set("checksum")
    }

    /// Whether a setting of either side differs from the plainest.
    pub fn is_set(&self, name: &str) -> bool {
        self.sides.iter().any(|side| side.odd().any(|(odd, _)| odd == name))
    }
}
