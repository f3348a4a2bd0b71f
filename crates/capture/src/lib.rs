//! Takes the IP packets of programs from a TUN device, whatever their destination: TCP is terminated here and goes on over
//! several paths.
//!
//! It knows nothing of routes and namespaces: whoever opened the device has led the packets to it.

#![warn(missing_docs)]

mod capture;
mod counters;
mod refusal;
mod tcp;

pub use capture::{Capture, CaptureConfig, MTU, open_device};
pub use counters::CaptureCounters;
