//! A TUN device with offloads: the kernel handles checksums in both directions, and long packets pass as a whole.

use super::gso::{GsoPacket, MAX_PIECES};
use super::received::{Foreign, Received};
use super::tun_config::{TUN_QUEUE, TunConfig};
use super::{DeviceCounters, virtio};
use crate::slots::{Slot, Slots};
use anabranch_mptcp::JoinedSegments;
use anabranch_system::{poll_readable, watch, write_joined};
use anabranch_wire::{Packet, ParseError};
use bytes::Bytes;
use std::io::{self, IoSlice};
use std::os::fd::{AsFd, OwnedFd};
use std::task::{Context, Poll, ready};
use tokio::io::unix::AsyncFd;
use tun_rs::{DeviceBuilder, SyncDevice};

/// Bytes of the largest IP packet with its header.
const LARGEST: usize = virtio::LENGTH + 65_535;

/// Packets of this length keep their slot; shorter ones are copied, so that unread data never keeps more than four
/// times its size alive.
const KEEPS_SLOT: usize = 16 * 1024;

/// Limit of subflows with a waiting GSO packet.
const MAX_WAITING: usize = 4;

/// A new TUN device with offloads in the caller's namespace, for [`super::Device::opened_tun`]; removed when its last
/// descriptor is closed.
///
/// # Errors
/// As for [`super::Device::tun`].
pub fn open_tun_with_offloads(config: &TunConfig) -> io::Result<OwnedFd> {
    let opened = match Tun::open_with_queue(config, 1, Some(TUN_QUEUE)) {
        // In a user namespace the queue length cannot be set this way; the caller may set it over rtnetlink.
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Tun::open_with_queue(config, 1, None)?,
        other => other?,
    };
    opened.into_iter().next().ok_or_else(|| io::ErrorKind::NotFound.into())
}

/// A TUN device with offloads.
pub struct Tun {
    descriptor: AsyncFd<OwnedFd>,
    slots: Slots,
    /// Slot of the next read.
    inbox: Slot,
    /// Packets not sent yet, oldest first.
    waiting: Vec<GsoPacket>,
    /// Merged segments to be reported to the engine.
    joined: Vec<JoinedSegments>,
    headers: Vec<u8>,
    /// Packets that are not for the engine are passed on.
    keeps_foreign: bool,
    counters: DeviceCounters,
}

impl Tun {
    pub(super) fn new(config: &TunConfig) -> io::Result<Self> {
        Self::over(open_tun_with_offloads(config)?)
    }

    /// A new device with this many queues, at least one.
    pub(super) fn open(config: &TunConfig, queues: usize) -> io::Result<Vec<OwnedFd>> {
        Self::open_with_queue(config, queues, Some(TUN_QUEUE))
    }

    /// The same, with the given queue length of the kernel or its default.
    fn open_with_queue(config: &TunConfig, queues: usize, length: Option<u32>) -> io::Result<Vec<OwnedFd>> {
        let builder = DeviceBuilder::new().name(&config.name).mtu(config.mtu).offload(true).multi_queue(queues > 1);
        let builder = match length {
            Some(length) => builder.tx_queue_len(length),
            None => builder,
        };
        let device = builder.build_sync()?;
        let further = (1..queues).map(|_| device.try_clone()).collect::<io::Result<Vec<SyncDevice>>>()?;
        let queue = |device: &SyncDevice| {
            device.set_nonblocking(true)?;
            // A duplicate descriptor of the same queue; the wrapper of it is no longer needed.
            device.as_fd().try_clone_to_owned()
        };
        std::iter::once(&device).chain(&further).map(queue).collect()
    }

    /// One queue of a device. To be called within a runtime.
    pub(super) fn over(queue: OwnedFd) -> io::Result<Self> {
        let slots = Slots::new(LARGEST);
        Ok(Self {
            descriptor: watch(queue)?,
            inbox: slots.take(),
            slots,
            waiting: Vec::with_capacity(MAX_WAITING),
            joined: Vec::new(),
            headers: Vec::new(),
            keeps_foreign: false,
            counters: DeviceCounters::default(),
        })
    }

    pub(super) fn poll_receive(&mut self, context: &mut Context<'_>) -> Poll<io::Result<Received>> {
        loop {
            let mut guard = ready!(poll_readable(&self.descriptor, context))?;
            let inbox = &mut self.inbox.bytes;
            let read = guard.try_io(|descriptor| Ok(nix::unistd::read(descriptor.get_ref(), inbox)?));
            let length = match read {
                Ok(outcome) => outcome?,
                Err(_would_block) => continue,
            };
            self.counters.bytes_received += length.saturating_sub(virtio::LENGTH) as u64;
            let vouched = virtio::vouches_for_checksum(&self.inbox.bytes);
            let cut = virtio::cut(&self.inbox.bytes);
            let bytes = self.take(length);
            match Received::parse(&bytes, vouched) {
                Ok(received) => {
                    self.counters.packets_received += 1;
                    return Poll::Ready(Ok(received));
                }
                Err(ParseError::Unsupported) if self.keeps_foreign => {
                    self.counters.packets_received += 1;
                    return Poll::Ready(Ok(Received::Foreign(Foreign { bytes, vouched, cut })));
                }
                Err(_) => self.counters.malformed += 1,
            }
        }
    }

    /// From now on packets that are not for the engine are passed on.
    pub(super) fn keep_foreign(&mut self) {
        self.keeps_foreign = true;
    }

    /// Sends an IP packet with complete checksums; returns whether it was accepted.
    pub(super) fn send(&mut self, packet: &[u8]) -> bool {
        let nothing_to_do = [0; virtio::LENGTH];
        let pieces = [IoSlice::new(&nothing_to_do), IoSlice::new(packet)];
        let taken = write_joined::<2>(self.descriptor.get_ref(), &pieces);
        if taken {
            self.counters.writes += 1;
            self.counters.packets_sent += 1;
            self.counters.bytes_sent += packet.len() as u64;
        } else {
            self.counters.not_taken += 1;
        }
        taken
    }

    /// The packet in the first `length` bytes of the inbox, without the header before it.
    fn take(&mut self, length: usize) -> Bytes {
        if length >= KEEPS_SLOT {
            let full = std::mem::replace(&mut self.inbox, self.slots.take());
            return full.share(virtio::LENGTH..length);
        }
        Bytes::copy_from_slice(self.inbox.bytes.get(virtio::LENGTH..length).unwrap_or_default())
    }

    /// A retransmission leaves `alone`, since its mapping must not change. Returns whether GSO packets were sent.
    pub(super) fn transmit(&mut self, mut packet: Packet, alone: bool) -> bool {
        let of_flow = self.waiting.iter_mut().find(|gso| gso.is_of_flow(&packet));
        let follows = of_flow.map(|gso| !alone && gso.push(&mut packet));
        if follows == Some(true) {
            return false;
        }
        // In order on its subflow. All waiting packets are sent: data of the same stream on another subflow must not be
        // later than the next GSO packet of this one.
        let leave = follows.is_some() || self.waiting.len() >= MAX_WAITING;
        if leave {
            self.flush();
        }
        let gso = GsoPacket::new(packet);
        if alone || gso.is_bare() {
            self.write(&gso);
        } else {
            self.waiting.push(gso);
        }
        leave
    }

    fn write(&mut self, gso: &GsoPacket) {
        let descriptor = self.descriptor.get_ref();
        let written = gso.emit(&mut self.headers, |pieces| write_joined::<MAX_PIECES>(descriptor, pieces));
        self.joined.extend(gso.joined_segments());
        let packets = gso.packets() as u64;
        match written {
            Ok(true) => {
                self.counters.writes += 1;
                self.counters.packets_sent += packets;
                self.counters.bytes_sent += gso.bytes() as u64;
            }
            Ok(false) | Err(_) => self.counters.not_taken += packets,
        }
    }

    pub(super) fn flush(&mut self) {
        let mut waiting = std::mem::take(&mut self.waiting);
        waiting.drain(..).for_each(|gso| self.write(&gso));
        // Its memory is reused.
        self.waiting = waiting;
    }

    /// Segments merged since the last call.
    pub(super) fn joined(&mut self) -> impl Iterator<Item = JoinedSegments> + '_ {
        self.joined.drain(..)
    }

    pub(super) fn counters(&self) -> DeviceCounters {
        self.counters
    }
}
