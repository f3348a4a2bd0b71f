//! A history: two sides, the paths between them, and what happens to them when. All of it follows from a few lines of text.

mod draw;
pub mod engine;
pub mod hostile;
pub mod lie;
pub mod network;
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
use network::{Fate, Weather};

/// Who meets whom. The client is side 0.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// The engine meets itself.
    Engines,
    /// The engine opens a connection to the literal peer.
    EngineClient,
    /// The literal peer opens one to the engine.
    EngineServer,
    /// Two literal peers with the same key open one each to the engine, which is neither side.
    Twins,
}

impl Kind {
    /// All of them, with their names in files.
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

    /// What a side is set to.
    pub fn table(self, side: usize) -> Table {
        if self.is_literal(side) { CHOICES } else { ENGINE }
    }
}

/// One thing that happens.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Op {
    /// The application of a side writes so many octets.
    Write(usize, u32),
    /// The server writes so many octets to one of the twins.
    Answer(usize, u32),
    /// It stops reading.
    Pause(usize),
    /// It reads so many octets while paused.
    Read(usize, u32),
    /// It reads all from now on.
    Resume(usize),
    /// It closes its direction when all is written.
    Close(usize),
    /// It aborts.
    Abort(usize),
    /// A path changes.
    Weather(usize, Weather),
    /// What a side sends loses its MPTCP options from now on.
    Strip(usize),
    /// In so many packets of a side's an octet of the payload is changed.
    Change(usize, u32),
    /// A side loses its address on a path.
    Down(usize, u8),
    /// It has it again.
    Up(usize, u8),
    /// The literal peer does something of its own accord.
    Act(usize, Action),
    /// The next packets of the literal peer's, so many, are changed on their way.
    Lie(Lie, u32),
}

impl Op {
    /// The same with so many octets, if it writes.
    #[must_use]
    pub fn with_length(self, length: u32) -> Self {
        match self {
            Self::Write(side, _) => Self::Write(side, length),
            Self::Answer(side, _) => Self::Answer(side, length),
            other => other,
        }
    }
}

/// What is played.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct History {
    /// Who meets whom.
    pub kind: Kind,
    /// Seeds keys, the paths' luck and the literal peer's.
    pub seed: u64,
    /// Addresses are IPv6.
    pub v6: bool,
    /// One-way delays of the paths, microseconds.
    pub delays: Vec<u32>,
    /// What the sides are set to.
    pub sides: [Settings; 2],
    /// What each side sends has no MPTCP options, from the first SYN on.
    pub strip: [bool; 2],
    /// What happens to single packets: the side that sends it, which one from 0 on, and what.
    pub fates: Vec<(usize, u32, Fate)>,
    /// What happens when, in milliseconds.
    pub ops: Vec<(u32, Op)>,
}

impl History {
    /// Whether mappings have checksums where MPTCP is spoken: a side asks for them.
    pub fn checksums(&self) -> bool {
        self.is_set("checksum")
    }

    /// Whether a setting of either side's is not the plainest.
    pub fn is_set(&self, name: &str) -> bool {
        self.sides.iter().any(|side| side.odd().any(|(odd, _)| odd == name))
    }
}
