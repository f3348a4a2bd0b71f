//! The thread that runs the air between the hosts' network devices in real time.

use super::air::{Air, AirCounters, AntennaId};
use super::capture::{Capture, Captured};
use anabranch_policy::time::Instant;
use anabranch_system::Clock;
use anabranch_system::raise_priority;
use bytes::Bytes;
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::eventfd::{EfdFlags, EventFd};
use nix::sys::time::TimeSpec;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// Bytes of the largest frame.
const LARGEST: usize = 65_535 + 14;

/// Most frames read from a device before the others.
const BATCH: usize = 32;

/// Bytes of an Ethernet header; the last two are the EtherType.
const ETHERNET: usize = 14;

/// The traffic at an antenna.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct AntennaReport {
    /// Frames sent by its host.
    pub frames_from_host: u64,
    /// Bytes of these, with Ethernet headers.
    pub bytes_from_host: u64,
    /// Frames delivered to its host.
    pub frames_to_host: u64,
    /// Bytes of these, with Ethernet headers.
    pub bytes_to_host: u64,
    /// Frames that the host's device refused.
    pub not_taken: u64,
}

/// The results of a run.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct EtherReport {
    /// The counters of the air.
    pub air: AirCounters,
    /// One report per antenna.
    pub antennas: Vec<AntennaReport>,
    /// The duration of the run.
    pub time: anabranch_policy::time::Duration,
    /// What became of the capture; `None` without one.
    pub captured: Option<Captured>,
}

/// The IP packet in an Ethernet frame, if any.
fn ip_in(frame: &[u8]) -> Option<&[u8]> {
    let (header, packet) = frame.split_at_checked(ETHERNET)?;
    matches!(header.last_chunk(), Some([0x08, 0x00] | [0x86, 0xdd])).then_some(packet)
}

/// The air running in its own thread, which ends when this is dropped.
pub struct Ether {
    clock: Clock,
    air: Arc<Mutex<Air>>,
    stop: Arc<EventFd>,
    thread: Option<JoinHandle<io::Result<EtherReport>>>,
}

impl Ether {
    /// Starts it at time zero. Each antenna's descriptor, non-blocking, returns an Ethernet frame per read and takes
    /// one per write: a TAP device (see [`anabranch_stack::device::open_tap`]). IP packets from and to hosts are
    /// written to `capture`, which has an interface for each antenna.
    ///
    /// # Errors
    /// An error of the kernel; [`io::ErrorKind::InvalidInput`] if the number of descriptors is not that of the antennas.
    pub fn start(air: Air, descriptors: Vec<OwnedFd>, capture: Option<Capture>) -> io::Result<Self> {
        if descriptors.len() != air.antennas() {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let stop = Arc::new(EventFd::from_flags(EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK)?);
        let clock = Clock::new();
        let air = Arc::new(Mutex::new(air));
        let antennas = vec![AntennaReport::default(); descriptors.len()];
        let worker = Worker { clock, air: Arc::clone(&air), stop: Arc::clone(&stop), antennas, capture };
        let thread = thread::Builder::new().name("ether".to_owned()).spawn(move || worker.run(&descriptors))?;
        Ok(Self { clock, air, stop, thread: Some(thread) })
    }

    /// The clock of the air; zero is the start.
    pub fn clock(&self) -> Clock {
        self.clock
    }

    /// Accesses the air between two frames.
    pub fn with<T>(&self, work: impl FnOnce(&mut Air) -> T) -> T {
        work(&mut lock(&self.air))
    }

    /// Stops the thread.
    ///
    /// # Errors
    /// An error from waiting for frames or writing the capture.
    pub fn stop(mut self) -> io::Result<EtherReport> {
        self.end()
    }

    fn end(&mut self) -> io::Result<EtherReport> {
        let Some(thread) = self.thread.take() else { return Ok(EtherReport::default()) };
        // The counter cannot overflow after a single write.
        let _ = self.stop.write(1);
        thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }
}

impl Drop for Ether {
    fn drop(&mut self) {
        // A destructor cannot report errors.
        let _ = self.end();
    }
}

fn lock(air: &Mutex<Air>) -> MutexGuard<'_, Air> {
    air.lock().unwrap_or_else(PoisonError::into_inner)
}

struct Worker {
    clock: Clock,
    air: Arc<Mutex<Air>>,
    stop: Arc<EventFd>,
    antennas: Vec<AntennaReport>,
    capture: Option<Capture>,
}

impl Worker {
    fn run(mut self, descriptors: &[OwnedFd]) -> io::Result<EtherReport> {
        self.work(descriptors)?;
        let time = self.clock.now().since(Instant::ZERO);
        let captured = self.capture.map(Capture::finish);
        Ok(EtherReport { air: lock(&self.air).counters(), antennas: self.antennas, time, captured })
    }

    fn work(&mut self, descriptors: &[OwnedFd]) -> io::Result<()> {
        raise_priority();
        let mut inbox = vec![0; LARGEST];
        let stop = Arc::clone(&self.stop);
        let mut watched = vec![PollFd::new(stop.as_fd(), PollFlags::POLLIN)];
        watched.extend(descriptors.iter().map(|descriptor| PollFd::new(descriptor.as_fd(), PollFlags::POLLIN)));
        // Devices that disappeared are no longer polled.
        let mut places: Vec<usize> = (0..descriptors.len()).collect();
        loop {
            let until = self.turn(descriptors);
            let wait =
                (until != Instant::NEVER).then(|| Duration::from_nanos(until.since(self.clock.now()).as_nanos()));
            match ppoll(&mut watched, wait.map(TimeSpec::from), None) {
                Ok(_) | Err(Errno::EINTR) => {}
                Err(error) => return Err(error.into()),
            }
            if watched.first().is_some_and(|stop| stop.any() == Some(true)) {
                return Ok(());
            }
            for place in (0..places.len()).rev() {
                let ready = watched.get(place + 1).is_some_and(|device| device.any() != Some(false));
                let Some(&antenna) = places.get(place).filter(|_| ready) else { continue };
                if !self.read(antenna, descriptors, &mut inbox) {
                    places.remove(place);
                    watched.remove(place + 1);
                }
            }
        }
    }

    /// Handles events that are due. Returns the time of the next.
    fn turn(&mut self, descriptors: &[OwnedFd]) -> Instant {
        let Self { clock, air, antennas, capture, .. } = self;
        let mut air = lock(air);
        let now = clock.now();
        air.handle_timeout(now);
        while let Some(landing) = air.poll_landing() {
            if let Some(descriptor) = descriptors.get(landing.antenna.0) {
                // A host whose device is down or full does not receive it.
                let taken = nix::unistd::write(descriptor, &landing.frame).is_ok();
                if let Some(report) = antennas.get_mut(landing.antenna.0) {
                    report.frames_to_host += u64::from(taken);
                    report.bytes_to_host += if taken { landing.frame.len() as u64 } else { 0 };
                    report.not_taken += u64::from(!taken);
                }
                if let (true, Some(capture), Some(packet)) = (taken, capture.as_mut(), ip_in(&landing.frame)) {
                    capture.went(now, landing.antenna.0, packet);
                }
            }
        }
        air.poll_timeout()
    }

    /// Reads a limited number of a host's frames. Returns whether its device still exists.
    fn read(&mut self, antenna: usize, descriptors: &[OwnedFd], inbox: &mut [u8]) -> bool {
        let Some(descriptor) = descriptors.get(antenna) else { return false };
        for _ in 0..BATCH {
            let length = match nix::unistd::read(descriptor, inbox) {
                Ok(0) => return false,
                Ok(length) => length,
                Err(Errno::EAGAIN) => return true,
                Err(Errno::EINTR) => continue,
                // The error of a TAP device that is down; it may come up again.
                Err(Errno::EIO) => return true,
                Err(_) => return false,
            };
            let frame = Bytes::copy_from_slice(inbox.get(..length).unwrap_or_default());
            let now = self.clock.now();
            if let Some(report) = self.antennas.get_mut(antenna) {
                report.frames_from_host += 1;
                report.bytes_from_host += length as u64;
            }
            if let Some((capture, packet)) = self.capture.as_mut().zip(ip_in(&frame)) {
                capture.came(now, antenna, packet);
            }
            lock(&self.air).handle_frame(now, AntennaId(antenna), frame);
        }
        true
    }
}
