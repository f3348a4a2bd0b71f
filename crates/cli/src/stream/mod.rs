//! `anabranch stream`: live streams over several paths with a delivery deadline.

mod channel;
#[cfg(feature = "lab")]
mod compare;
mod connection;
mod emission;
mod histogram;
mod input;
mod options;
mod output;
mod pace;
mod paths;
mod policy;
mod receive;
mod reception;
mod send;

use anabranch_settings::diagnostic::Diagnostic;
use clap::Subcommand;
#[cfg(feature = "lab")]
use compare::CompareOptions;
use options::{ReceiveOptions, SendOptions};

/// What to do with a stream.
#[derive(Clone, Debug, Subcommand)]
pub enum StreamCommand {
    /// Send standard input, an MPEG transport stream or a raw H.264 or MPEG-4 stream, frame by frame
    #[command(after_help = SEND_EXAMPLES)]
    Send {
        #[command(flatten)]
        options: Box<SendOptions>,
    },
    /// Receive a stream and write it to standard output, without data that missed its deadline
    #[command(after_help = RECEIVE_EXAMPLES)]
    Receive {
        #[command(flatten)]
        options: Box<ReceiveOptions>,
    },
    #[cfg(feature = "lab")]
    /// Carry a synthetic stream over emulated paths in real time with the kernel's TCP and MPTCP, SRT, RIST and
    /// Anabranch, and count the frames on time; needs root
    Compare {
        #[command(flatten)]
        options: Box<CompareOptions>,
    },
}

/// End of the help of `send`.
const SEND_EXAMPLES: &str = "\
Examples:
  ffmpeg -re -i video.mp4 -c copy -f mpegts -flush_packets 1 -pes_payload_size 0 - | anabranch stream send server.example:5004 --key stream.key --latency 300ms
  ffmpeg -f v4l2 -i /dev/video0 -c:v libx264 -tune zerolatency -f mpegts -flush_packets 1 - | anabranch stream send server.example:5004 --key stream.key --latency 1s

Exit codes: 0 the whole stream was sent, or a signal ended it; 1 the connection broke; 2 an argument is wrong.
See docs/stream.md.";

/// End of the help of `receive`.
const RECEIVE_EXAMPLES: &str = "\
Examples:
  anabranch key stream.key      # once; a copy to the other end
  anabranch stream receive --listen 5004 --key stream.key --latency 300ms | ffplay -fflags nobuffer -i -
  anabranch stream receive --listen 5004 --key stream.key --latency 1s > video.ts
  anabranch stream receive --listen 5004 --raw > video.ts      # the other end: mptcpize run ffmpeg ... -f mpegts tcp://HOST:5004

Exit codes: 0 the stream ended, a signal ended it, or standard output was closed; 1 the connection broke; 2 an argument is wrong.
See docs/stream.md.";

/// Runs a stream command; returns whether it was completed.
pub fn stream(command: &StreamCommand) -> Result<bool, Diagnostic> {
    match command {
        StreamCommand::Send { options } => send::send(options),
        StreamCommand::Receive { options } => receive::receive(options),
        #[cfg(feature = "lab")]
        StreamCommand::Compare { options } => compare::compare(options),
    }
}
