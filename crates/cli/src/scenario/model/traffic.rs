//! What a scenario says of what is carried, and over what connection.

use crate::scenario::quantity::{Packets, Size};
use anabranch_media::Trace;
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
    /// Each frame is so many times as long.
    pub load: f64,
    /// The latency of the play-out.
    pub deadline: Duration,
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

/// The receive buffer of the connection.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum ReceiveBuffer {
    /// Always this.
    Fixed(Size),
    /// Grows with the rate at which the application reads.
    Auto {
        /// At the start.
        initial: Size,
        /// At most.
        max: Size,
    },
}

/// What both ends are set to; `None` leaves the engine's default.
#[derive(Clone, PartialEq, Debug)]
pub struct Connection {
    /// The application's priority, 1 (highest) to 6.
    pub priority: Option<u8>,
    /// The receive buffer, shared by all subflows.
    pub receive_buffer: ReceiveBuffer,
    /// Bytes out of order take from the window that is offered, as in Linux.
    pub charge_out_of_order: Option<bool>,
    /// What lies behind a hole of its subflow waits there, as in Linux.
    pub data_in_subflow_order: Option<bool>,
    /// Whether the send buffer and the most of an automatic receive buffer are per subflow.
    pub buffers_per_subflow: Option<bool>,
    /// Most bytes written and not acknowledged.
    pub send_buffer: Option<Size>,
    /// Most congestion window of a subflow, in full segments.
    pub max_window: Option<Packets>,
    /// Segments of the initial window.
    pub initial_window: Option<Packets>,
    /// Least retransmission timeout.
    pub min_rto: Option<Duration>,
    /// Retransmission timeout before the first sample.
    pub initial_rto: Option<Duration>,
    /// Timeouts in a row before a subflow is given up.
    pub max_timeouts: Option<u32>,
    /// Longest delay of an acknowledgement.
    pub delayed_ack: Option<Duration>,
    /// Largest IP packet.
    pub mtu: Option<u16>,
    /// Selective acknowledgements.
    pub sack: Option<bool>,
    /// Timestamps.
    pub timestamps: Option<bool>,
    /// Explicit congestion notification.
    pub ecn: Option<bool>,
    /// Nagle's algorithm.
    pub nagle: Option<bool>,
    /// Spread segments over the round trip.
    pub pacing: Option<bool>,
    /// DSS checksums.
    pub checksum: Option<bool>,
}

impl Connection {
    /// Everything at the engine's defaults.
    pub fn untouched() -> Self {
        Self {
            priority: None,
            receive_buffer: ReceiveBuffer::Auto { initial: Size(128_000), max: Size(6_000_000) },
            charge_out_of_order: None,
            data_in_subflow_order: None,
            buffers_per_subflow: None,
            send_buffer: None,
            max_window: None,
            initial_window: None,
            min_rto: None,
            initial_rto: None,
            max_timeouts: None,
            delayed_ack: None,
            mtu: None,
            sack: None,
            timestamps: None,
            ecn: None,
            nagle: None,
            pacing: None,
            checksum: None,
        }
    }
}
