//! Live view: connections and paths of a stack, or of several programs with their uplinks and flows, on the terminal,
//! updated several times a second.
//!
//! Without the feature `screen` there are only the samples, which `status` prints.

#[cfg(not(feature = "screen"))]
mod absent;
mod ending;
#[cfg(feature = "screen")]
mod history;
mod sample;
#[cfg(feature = "screen")]
mod screen;
#[cfg(feature = "screen")]
mod terminal;

#[cfg(not(feature = "screen"))]
pub use absent::Live;
pub use ending::{asked_or_quit, asked_or_quit_then_hurry, hurry_when_asked_again, wish_to_end};
#[cfg(feature = "screen")]
pub use sample::Counted;
pub use sample::{ConnectionSample, MAX_CONNECTIONS, PathSample, Sample, View};
#[cfg(feature = "screen")]
pub use terminal::Live;
