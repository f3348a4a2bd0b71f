//! Video as the transport sees it: frames with a type, a size and a time; what depends on what; how good it looks when
//! some of it came late or not at all.
//!
//! Without input and output, except where files and ffmpeg are the point. A picture's way:
//!
//! | step | module |
//! |---|---|
//! | frames from a text file | [`trace`] |
//! | frames from a coded stream | [`elementary`] |
//! | pieces of a live stream, elementary or transport, as it comes in | [`cut`] |
//! | a live stream with gaps, made decodable | [`mend`] |
//! | frames into packets | [`packetiser`] |
//! | which frames decode, given what arrived | [`dependency`] |
//! | what was on time, where the picture stood still | [`metrics::delivery`] |
//! | the stream as received, for a decoder | [`lossy`] |
//! | pixels again | [`ffmpeg`] |
//! | how far they are from the original | [`metrics::score`] |
//! | all of that in one call | [`quality`] |
//! | single frames as PNG | [`stills`] |
//! | the clip that comes with the crate | [`clip`] |
//! | the same film at 640x360 | [`film`] |

pub mod clip;
pub mod cut;
pub mod dependency;
pub mod elementary;
pub mod ffmpeg;
pub mod film;
pub mod frame;
pub mod lossy;
pub mod mend;
pub mod metrics;
pub mod packetiser;
pub mod quality;
pub mod stills;
pub mod trace;

pub use dependency::Dependency;
pub use elementary::{ElementaryStream, StreamError};
pub use ffmpeg::{Ffmpeg, FfmpegError};
pub use film::{Film, FilmError};
pub use frame::{ByType, Frame, FrameType};
pub use packetiser::{Packet, Packetiser};
pub use quality::{Quality, QualityError};
pub use trace::{FrameRate, Trace, TraceError};
