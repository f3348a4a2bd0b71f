//! A descriptor that moves one IP packet per read and write.

use super::DeviceCounters;
use super::received::Received;
use super::tun_config::{TUN_QUEUE, TunConfig};
use anabranch_system::{packet_pipe, poll_readable, watch};
use anabranch_wire::Packet;
use bytes::Bytes;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::task::{Context, Poll, ready};
use tokio::io::unix::AsyncFd;
use tun_rs::{DeviceBuilder, Layer};

/// Bytes of the largest IP packet.
const LARGEST: usize = 65_535;

/// A new TUN device without offloads in the caller's namespace, non-blocking: one IP packet per read and write. It is
/// removed when its last descriptor is closed.
///
/// # Errors
/// As for [`super::Device::tun`].
pub fn open_tun(name: &str, mtu: u16) -> io::Result<OwnedFd> {
    let device = DeviceBuilder::new().name(name).mtu(mtu).tx_queue_len(TUN_QUEUE).build_sync()?;
    device.set_nonblocking(true)?;
    // A duplicate descriptor of the same device; the wrapper of it is no longer needed.
    device.as_fd().try_clone_to_owned()
}

/// A new TAP device with this hardware address in the caller's namespace, non-blocking: one Ethernet frame per read and
/// write. It is removed when its last descriptor is closed.
///
/// # Errors
/// As for [`super::Device::tun`].
pub fn open_tap(name: &str, mtu: u16, hardware: [u8; 6]) -> io::Result<OwnedFd> {
    let device = DeviceBuilder::new()
        .layer(Layer::L2)
        .name(name)
        .mtu(mtu)
        .mac_addr(hardware)
        .tx_queue_len(TUN_QUEUE)
        .build_sync()?;
    device.set_nonblocking(true)?;
    // A duplicate descriptor of the same device; the wrapper of it is no longer needed.
    device.as_fd().try_clone_to_owned()
}

/// A TUN device without offloads, or one end of a pipe.
pub struct Packets {
    descriptor: AsyncFd<OwnedFd>,
    inbox: Vec<u8>,
    outbox: Vec<u8>,
    counters: DeviceCounters,
}

impl Packets {
    pub(super) fn tun(config: &TunConfig) -> io::Result<Self> {
        Self::over(open_tun(&config.name, config.mtu)?)
    }

    pub(super) fn pipe() -> io::Result<(Self, OwnedFd)> {
        let (ours, theirs) = packet_pipe()?;
        Ok((Self::over(ours)?, theirs))
    }

    fn over(descriptor: OwnedFd) -> io::Result<Self> {
        Ok(Self {
            descriptor: watch(descriptor)?,
            inbox: vec![0; LARGEST],
            outbox: Vec::new(),
            counters: DeviceCounters::default(),
        })
    }

    pub(super) fn poll_receive(&mut self, context: &mut Context<'_>) -> Poll<io::Result<Received>> {
        loop {
            let mut guard = ready!(poll_readable(&self.descriptor, context))?;
            let length = match guard.try_io(|descriptor| Ok(nix::unistd::read(descriptor.get_ref(), &mut self.inbox)?))
            {
                Ok(outcome) => outcome?,
                Err(_would_block) => continue,
            };
            if length == 0 {
                return Poll::Ready(Err(io::ErrorKind::UnexpectedEof.into()));
            }
            let bytes = Bytes::copy_from_slice(self.inbox.get(..length).unwrap_or_default());
            self.counters.bytes_received += length as u64;
            match Received::parse(&bytes, false) {
                Ok(received) => {
                    self.counters.packets_received += 1;
                    return Poll::Ready(Ok(received));
                }
                Err(_) => self.counters.malformed += 1,
            }
        }
    }

    pub(super) fn transmit(&mut self, packet: &Packet) {
        self.outbox.clear();
        let taken = packet.emit(&mut self.outbox).is_ok()
            && nix::unistd::write(self.descriptor.get_ref(), &self.outbox).is_ok();
        if taken {
            self.counters.writes += 1;
            self.counters.packets_sent += 1;
            self.counters.bytes_sent += self.outbox.len() as u64;
        } else {
            self.counters.not_taken += 1;
        }
    }

    pub(super) fn counters(&self) -> DeviceCounters {
        self.counters
    }
}
