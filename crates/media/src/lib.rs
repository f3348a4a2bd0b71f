//! Video as seen by the transport: frames with type, size and time; their dependencies; and the picture quality after
//! losses and delays.
//!
//! Without input and output, except for files and ffmpeg. The processing steps:
//!
//! | step | module |
//! |---|---|
//! | frames from a text file | [`trace`] |
//! | frames from a coded stream | [`elementary`] |
//! | pieces of a live stream, elementary or transport, as it comes in | [`cut`] |
//! | a live stream with gaps, made decodable | [`mend`] |
//! | frames into packets | [`packetiser`] |
//! | which frames decode, given what arrived | [`dependency`] |
//! | frames on time, frozen pictures | [`metrics::delivery`] |
//! | the stream as received, for a decoder | [`lossy`] |
//! | decoded pictures | [`ffmpeg`] |
//! | their distance from the original | [`metrics::score`] |
//! | all of that in one call | [`quality`] |
//! | single frames as PNG | [`stills`] |
//! | the included clip | [`clip`] |
//! | the same film at 640x360 | [`film`] |
//!
//! From a file to the fate of its frames:
//!
//! ```
//! use anabranch_media::metrics::delivery::{Arrival, Delivery, Fate};
//! use anabranch_media::{ElementaryStream, FrameRate, FrameType, Packetiser, clip};
//! use anabranch_policy::{Duration, Instant};
//!
//! let stream = ElementaryStream::read(clip::MPEG4)?; // any MPEG-4 part 2 or H.264
//! let trace = stream.trace(FrameRate::new(30, 1).unwrap())?;
//! assert_eq!(trace.counts()[FrameType::I], 223);
//! assert_eq!(Packetiser::new(1012).packets(0, &trace.frames()[0]).count(), 1);
//!
//! // Each frame is whole 20 ms after it is there, but the first P frame, which takes a second.
//! let arrival = |(index, frame): (usize, &anabranch_media::Frame)| {
//!     let first = Instant::ZERO + frame.at + Duration::from_millis(20);
//!     Some(Arrival { first, whole: Some(if index == 1 { first + Duration::from_secs(1) } else { first }) })
//! };
//! let arrivals: Vec<_> = trace.frames().iter().enumerate().map(arrival).collect();
//! let delivery = Delivery::judge(&trace, &arrivals, Duration::from_millis(500), Instant::ZERO);
//! assert_eq!(delivery.fates[1], Fate::Late);
//! assert_eq!((delivery.late.p, delivery.broken.total(), delivery.stalls.count), (1, 7, 1));
//! # Ok::<(), anabranch_media::StreamError>(())
//! ```

pub mod clip;
pub mod cut;
pub mod dependency;
pub mod elementary;
pub mod ffmpeg;
pub mod film;
pub mod frame;
pub mod lossy;
mod matroska;
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
