//! A live video: frames are written as messages at the times of an encoder, and their arrivals are recorded.
//!
//! A schedule consists of plain numbers. The lab does not know where they come from, nor which arrivals were in time.

mod message;
mod receiver;
mod sender;

pub use message::{FrameToSend, GapRead, MessageRead, Schedule, VideoReceived};
pub(crate) use receiver::VideoReceiver;
pub(crate) use sender::VideoSender;
