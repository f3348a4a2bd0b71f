//! Video as the transport sees it: frames with a type, a size and a time; what depends on what; how good it looks when
//! some of it came late or not at all.
//!
//! Without input and output, except where files and ffmpeg are the point. A picture's way:
//!
//! | step | module |
//! |---|---|
//! | frames from a text file | [`trace`] |
//! | a live stream of bytes into pictures and PES packets | [`cut`] |
//! | frames into packets | [`packetiser`] |
//! | which frames decode, given what arrived | [`dependency`] |
//! | the clip that comes with the crate | [`clip`] |
//! | the clip that comes with the crate | [`clip`] |

pub mod clip;
pub mod cut;
pub mod dependency;
pub mod elementary;
pub mod frame;
pub mod packetiser;
pub mod trace;

pub use dependency::Dependency;
pub use frame::{ByType, Frame, FrameType};
pub use packetiser::{Packet, Packetiser};
pub use trace::{FrameRate, Trace, TraceError};
