//! The traffic of a scenario.

use anabranch_media::Trace;
use anabranch_policy::reliability::Deadline;
use anabranch_policy::time::Duration;
use anabranch_settings::quantity::Size;
use std::sync::Arc;

/// Traffic of a connection.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Transfer {
    /// Bulk transfer until the end.
    Endless,
    /// This many bytes, then close.
    Finite(Size),
    /// Messages at random times (a Poisson process), sent immediately.
    Messages {
        /// Bytes of a message.
        size: Size,
        /// Mean interval.
        interval: Duration,
    },
    /// Sequential requests and responses over one connection.
    RequestResponse {
        /// Bytes of a request.
        request: Size,
        /// Bytes of a response.
        response: Size,
        /// Time between a response and the next request.
        pause: Duration,
    },
    /// The frames of the scenario's video.
    Video,
    /// None: there are only datagrams.
    None,
}

/// Unit that is written as one message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MessageUnit {
    Frames,
    /// A packet of a frame, as cut by the packetizer.
    Packets,
}

/// A live video as transfer.
#[derive(Clone, PartialEq, Debug)]
pub struct Video {
    /// Name of the trace, or of its file.
    pub name: String,
    /// Location of its pictures.
    pub footage: Footage,
    /// One pass.
    pub trace: Arc<Trace>,
    /// Passes of a full run.
    pub repeats: u32,
    /// Passes of a quick run.
    pub quick_repeats: u32,
    /// Passes per point of a sweep.
    pub sweep_repeats: u32,
    /// Factor of frame sizes.
    pub load: f64,
    /// Play-out latency, per frame or per group of pictures.
    pub deadline: Deadline,
    pub messages: MessageUnit,
}

/// Location of a trace's pictures.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Footage {
    /// Embedded in the program.
    Clip,
    /// The film, encoded at this many Mbit/s; an optional file of the user.
    Film(u32),
    /// None: the trace is a user's file.
    Nowhere,
}

/// Direction of a transfer, except for requests and responses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Heading {
    /// The client sends.
    Upload,
    /// The server sends.
    Download,
}
