//! A live video: frames that are written as messages when a coder would have them, and what became of each at the other
//! end.
//!
//! A schedule is plain numbers. Where they come from (a trace, a clip), and what was in time, is no matter of the lab's.

mod message;
mod receiver;
mod sender;

pub use message::{FrameToSend, GapRead, MessageRead, Schedule, VideoReceived};
pub(crate) use receiver::VideoReceiver;
pub(crate) use sender::VideoSender;
