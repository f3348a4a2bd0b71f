//! Takes the IP packets of programs from a TUN device, whatever their destination: TCP is terminated here and goes on over
//! several paths; UDP, ICMP echo and questions for names are carried as datagrams.
//!
//! It knows nothing of routes and namespaces: whoever opened the device has led the packets to it.

#![warn(missing_docs)]

mod capture;
mod counters;
mod datagrams;
mod device;
mod dns;
mod flows;
mod fragments;
mod refusal;
mod tcp;

pub use capture::{Capture, CaptureConfig, CaptureObserver};
pub use counters::CaptureCounters;
pub use device::{MTU, open_device};
pub use flows::FlowReport;
