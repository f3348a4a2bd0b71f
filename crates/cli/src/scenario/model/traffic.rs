//! The traffic part of a scenario: what is sent, and the receive buffer.

use crate::scenario::quantity::Size;
use anabranch_media::Trace;
use anabranch_policy::reliability::Deadline;
use anabranch_policy::time::Duration;
use std::sync::Arc;

/// What is carried.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Transfer {
    /// As much as fits, until the end.
    Endless,
    /// So many bytes, then close.
    Finite(Size),
    /// Messages at random times (a Poisson process), each at once.
    Messages {
        /// Bytes of each.
        size: Size,
        /// Mean time from one to the next.
        interval: Duration,
    },
    /// Requests and responses over one connection, one after the other.
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
    /// Nothing: programs send datagrams alone.
    None,
}

/// What is written as one message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MessageUnit {
    /// A frame.
    Frames,
    /// A packet of a frame, as the packetiser cuts it.
    Packets,
}

/// A live video in place of a transfer.
#[derive(Clone, PartialEq, Debug)]
pub struct Video {
    /// The trace's name, or its file.
    pub name: String,
    /// Where its pictures are.
    pub footage: Footage,
    /// One pass.
    pub trace: Arc<Trace>,
    /// How many passes.
    pub repeats: u32,
    /// How many in a quick run.
    pub quick_repeats: u32,
    /// How many at each point of a sweep.
    pub sweep_repeats: u32,
    /// Each frame is so many times as long.
    pub load: f64,
    /// The latency of the play-out, and whether each frame has it or each group of pictures.
    pub deadline: Deadline,
    /// What is written as one message.
    pub messages: MessageUnit,
}

/// Where the pictures of a trace are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Footage {
    /// They come with the program.
    Clip,
    /// In the film, coded for so many Mbit/s; the user may have it.
    Film(u32),
    /// Nowhere: the trace is a user's file.
    Nowhere,
}

/// Which way a transfer goes that is not requests and responses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Heading {
    /// The client sends.
    Upload,
    /// The server sends.
    Download,
}
