//! The thread that runs a network between descriptors in real time.

use super::capture::{Capture, Captured};
use super::lateness::Lateness;
use super::network::{Network, NetworkCounters, PortId};
use anabranch_policy::time::{Duration, Instant};
use anabranch_sim::link::LinkCounters;
use anabranch_system::Clock;
use anabranch_system::{Priority, enlarge, raise_priority};
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::eventfd::{EfdFlags, EventFd};
use nix::sys::time::TimeSpec;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::thread::{self, JoinHandle};

/// Bytes of the largest IP packet.
const LARGEST: usize = 65_535;
/// Most packets read from a port before the others.
const BATCH: usize = 32;
/// Least mean time from one turn to the next, as network interfaces moderate their interrupts. A turn for each packet
/// would take most of a core at 300 Mbit/s, from the programs that are emulated, and wake them for each packet too.
const MODERATION: Duration = Duration::from_micros(100);
/// Longest time for which the thread sleeps, so that it knows for how long it did not run while its hosts had packets.
const HEARTBEAT: Duration = Duration::from_millis(50);
/// Time between two heartbeats from which on the thread counts as stopped. A packet that waits for it in a device has no time of arrival,
/// and the links compute its delay from the time at which it is read.
const STOPPED: Duration = Duration::from_millis(100);
/// Turns that may follow each other at once after a lull, so that a sparse flow never waits.
const CREDIT: u64 = 4;

/// The counters of a port.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PortReport {
    /// Packets read from its host.
    pub read_packets: u64,
    /// Packets delivered to its host.
    pub written_packets: u64,
    /// Packets that its host refused: its queue was full, or it was gone.
    pub not_taken: u64,
}

/// A link with its counters.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LinkReport {
    pub name: String,
    pub counters: LinkCounters,
}

/// The results of a relay's run.
#[derive(Clone, Debug)]
pub struct Report {
    /// The duration.
    pub time: Duration,
    /// The links, in the order of addition.
    pub links: Vec<LinkReport>,
    /// The ports, in order.
    pub ports: Vec<PortReport>,
    /// The network's counters beside those of the links.
    pub network: NetworkCounters,
    /// How late packets left.
    pub lateness: Lateness,
    /// The longest time for which the thread did not run, if that was over 100 ms: its process was stopped, or had no processor.
    pub stopped: Option<Duration>,
    /// How often the thread looked for packets and for events that are due.
    pub turns: u64,
    /// The thread's scheduling priority.
    pub priority: Priority,
    /// What became of the capture; `None` without one.
    pub captured: Option<Captured>,
}

/// A network running in its own thread, which ends when this is dropped.
#[derive(Debug)]
pub struct Relay {
    clock: Clock,
    stop: Arc<EventFd>,
    thread: Option<JoinHandle<io::Result<Report>>>,
}

impl Relay {
    /// Starts a network at time zero. Each port's descriptor, non-blocking, returns an IP packet per read and takes one
    /// per write: a TUN device without offloads, or an end of a pipe.
    ///
    /// # Errors
    /// An error of the kernel; [`io::ErrorKind::InvalidInput`] if the number of descriptors is not that of the ports.
    pub fn start(network: Network, descriptors: Vec<OwnedFd>, capture: Option<Capture>) -> io::Result<Self> {
        if descriptors.len() != network.ports() {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        descriptors.iter().for_each(enlarge);
        let stop = Arc::new(EventFd::from_flags(EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK)?);
        let clock = Clock::new();
        let worker = Worker {
            clock,
            network,
            ports: vec![PortReport::default(); descriptors.len()],
            capture,
            lateness: Lateness::default(),
            stopped: None,
            last_heartbeat: clock.now(),
            next_turn: Instant::ZERO,
            turns: 0,
            stop: Arc::clone(&stop),
        };
        let thread = thread::Builder::new().name("relay".to_owned()).spawn(move || worker.run(descriptors))?;
        Ok(Self { clock, stop, thread: Some(thread) })
    }

    /// The clock of the links; zero is the start.
    pub fn clock(&self) -> Clock {
        self.clock
    }

    /// Stops the thread; packets in flight are lost.
    ///
    /// # Errors
    /// An error from waiting for packets or writing the capture.
    pub fn stop(mut self) -> io::Result<Report> {
        self.end().unwrap_or_else(|| Err(io::ErrorKind::NotConnected.into()))
    }

    fn end(&mut self) -> Option<io::Result<Report>> {
        let thread = self.thread.take()?;
        // The counter cannot overflow after a single write.
        let _ = self.stop.write(1);
        Some(thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        // A destructor cannot report errors.
        let _ = self.end();
    }
}

/// The state of the thread.
struct Worker {
    clock: Clock,
    network: Network,
    ports: Vec<PortReport>,
    capture: Option<Capture>,
    lateness: Lateness,
    stopped: Option<Duration>,
    last_heartbeat: Instant,
    /// When the next turn may begin.
    next_turn: Instant,
    turns: u64,
    stop: Arc<EventFd>,
}

/// The result of reading a port.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Turn {
    /// No packet is waiting.
    Empty,
    /// There may be more.
    More,
    /// Its host is gone.
    Closed,
}

impl Worker {
    fn run(mut self, descriptors: Vec<OwnedFd>) -> io::Result<Report> {
        let priority = raise_priority();
        let mut inbox = vec![0; LARGEST];
        let stop = Arc::clone(&self.stop);
        let mut watched = vec![PollFd::new(stop.as_fd(), PollFlags::POLLIN)];
        watched.extend(descriptors.iter().map(|descriptor| PollFd::new(descriptor.as_fd(), PollFlags::POLLIN)));
        // The port of each polled descriptor after the first.
        let mut places: Vec<usize> = (0..descriptors.len()).collect();
        let mut more = false;
        loop {
            self.deliver(&descriptors);
            let until = if std::mem::take(&mut more) {
                Duration::ZERO
            } else {
                self.rest();
                self.wait()
            };
            let until = std::time::Duration::from_nanos(until.as_nanos());
            let ready = match ppoll(&mut watched, Some(TimeSpec::from(until)), None) {
                Ok(ready) => ready,
                Err(Errno::EINTR) => 0,
                Err(error) => return Err(error.into()),
            };
            let now = self.clock.now();
            self.note_heartbeat(now);
            if ready == 0 && now < self.network.poll_timeout() {
                continue;
            }
            self.count_turn(now);
            self.network.handle_timeout(now);
            self.deliver(&descriptors);
            if watched.first().is_some_and(|stop| stop.any() == Some(true)) {
                return self.finish(priority);
            }
            for place in (0..places.len()).rev() {
                let ready = watched.get(place + 1).is_some_and(|port| port.any() != Some(false));
                let Some(&port) = places.get(place).filter(|_| ready) else { continue };
                match self.read(port, &descriptors, &mut inbox) {
                    Turn::Empty => {}
                    Turn::More => more = true,
                    Turn::Closed => {
                        places.remove(place);
                        watched.remove(place + 1);
                    }
                }
            }
        }
    }

    fn note_heartbeat(&mut self, now: Instant) {
        let between = now.since(self.last_heartbeat);
        if between > STOPPED {
            self.stopped = self.stopped.max(Some(between));
        }
        self.last_heartbeat = now;
    }

    fn count_turn(&mut self, now: Instant) {
        self.turns += 1;
        self.next_turn = (self.next_turn + MODERATION).max(now - MODERATION * CREDIT);
    }

    /// Sleeps until the next turn may begin.
    fn rest(&self) {
        let now = self.clock.now();
        if now < self.next_turn {
            thread::sleep(std::time::Duration::from_nanos(self.next_turn.since(now).as_nanos()));
        }
    }

    /// The time until the next event or the next heartbeat.
    fn wait(&self) -> Duration {
        self.network.poll_timeout().since(self.clock.now()).min(HEARTBEAT)
    }

    /// Reads a limited number of packets from a port.
    fn read(&mut self, port: usize, descriptors: &[OwnedFd], inbox: &mut [u8]) -> Turn {
        let Some(descriptor) = descriptors.get(port) else { return Turn::Closed };
        for _ in 0..BATCH {
            let length = match nix::unistd::read(descriptor, inbox) {
                Ok(0) => return Turn::Closed,
                Ok(length) => length,
                Err(Errno::EAGAIN) => return Turn::Empty,
                Err(Errno::EINTR) => continue,
                Err(_) => return Turn::Closed,
            };
            let now = self.clock.now();
            let packet = inbox.get(..length).unwrap_or_default();
            if let Some(report) = self.ports.get_mut(port) {
                report.read_packets += 1;
            }
            if let Some(capture) = &mut self.capture {
                capture.came(now, port, packet);
            }
            self.network.handle_packet(now, PortId(port), packet);
            self.deliver(descriptors);
        }
        Turn::More
    }

    /// Writes the packets that have left the network.
    fn deliver(&mut self, descriptors: &[OwnedFd]) {
        while let Some(delivery) = self.network.poll_delivery() {
            let PortId(port) = delivery.port;
            let packet = delivery.frame.bytes();
            let taken = descriptors.get(port).is_some_and(|descriptor| write(descriptor, packet));
            let now = self.clock.now();
            if let Some(report) = self.ports.get_mut(port) {
                report.written_packets += u64::from(taken);
                report.not_taken += u64::from(!taken);
            }
            if let Some(capture) = self.capture.as_mut().filter(|_| taken) {
                capture.went(now, port, packet);
            }
            self.lateness.add(now.since(delivery.at));
            self.network.give_back(delivery.frame);
        }
    }

    fn finish(self, priority: Priority) -> io::Result<Report> {
        let link = |(name, counters): (&str, &LinkCounters)| LinkReport { name: name.to_owned(), counters: *counters };
        Ok(Report {
            time: self.clock.now().since(Instant::ZERO),
            links: self.network.links().map(link).collect(),
            network: self.network.counters(),
            ports: self.ports,
            lateness: self.lateness,
            stopped: self.stopped,
            turns: self.turns,
            priority,
            captured: self.capture.map(Capture::finish),
        })
    }
}

fn write(descriptor: &OwnedFd, packet: &[u8]) -> bool {
    loop {
        match nix::unistd::write(descriptor, packet) {
            Ok(_) => return true,
            Err(Errno::EINTR) => {}
            Err(_) => return false,
        }
    }
}
