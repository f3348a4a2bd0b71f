//! Reads the IP packets of programs from a TUN device, whatever their destination: TCP is terminated here and continues
//! over several paths; UDP, ICMP echo and DNS are carried as datagrams.
//!
//! Routes and namespaces are the caller's job.

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
pub use counters::{CaptureCounters, Drops};
pub use device::{MTU, open_device};
pub use flows::FlowReport;
