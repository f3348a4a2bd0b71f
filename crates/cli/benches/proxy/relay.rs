//! A path with delay: two TUN devices, and threads that relay packets between them with a fixed delay, and at most at a rate. Long packets are
//! relayed without segmentation, so that hosts do the same work as with a veth pair. Needs no kernel module.

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use std::os::fd::{AsFd as _, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};
use tun_rs::DeviceBuilder;

/// Maximum bytes of a packet with its virtio header.
const LARGEST: usize = 65_535 + 10;
/// Queue length of a device in packets.
const QUEUE: u32 = 10_000;

/// What a path is like, each way.
#[derive(Clone, Copy, Debug)]
pub struct Line {
    pub delay: Duration,
    /// Rate in Mbit/s, with a queue that holds what it carries in a round trip; 0: unlimited.
    pub mbit: u32,
}

/// A packet and its due time.
type Held = (Instant, Vec<u8>);

/// The threads of a path; stopped on drop.
pub struct Relay {
    over: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

/// A TUN device with offloads in the calling thread's namespace.
pub fn device(name: &str) -> OwnedFd {
    let builder = DeviceBuilder::new().name(name).mtu(1_500).tx_queue_len(QUEUE).offload(true);
    let device = builder.build_sync().expect("a TUN device");
    device.set_nonblocking(true).expect("a device can be told");
    device.as_fd().try_clone_to_owned().expect("a descriptor can be copied")
}

impl Relay {
    pub fn between(left: OwnedFd, right: OwnedFd, line: Line) -> Self {
        let over = Arc::new(AtomicBool::new(false));
        let (left, right) = (Arc::new(left), Arc::new(right));
        let mut threads = Vec::new();
        for (from, to) in [(left.clone(), right.clone()), (right, left)] {
            let (sender, receiver) = channel();
            let over = over.clone();
            threads.push(thread::spawn(move || take(&from, &sender, line, &over)));
            threads.push(thread::spawn(move || give(&to, &receiver)));
        }
        Self { over, threads }
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        // A thread that panicked has reported it.
        self.threads.drain(..).for_each(|thread| drop(thread.join()));
    }
}

fn take(from: &OwnedFd, sender: &Sender<Held>, line: Line, over: &AtomicBool) {
    let mut packet = vec![0; LARGEST];
    // When the last packet has left at the rate.
    let mut idle_at = Instant::now();
    while !over.load(Ordering::Relaxed) {
        match nix::unistd::read(from, &mut packet) {
            Ok(length) => {
                let now = Instant::now();
                if idle_at > now + 2 * line.delay {
                    continue;
                }
                // 8 bits for each byte, 1,000 ns for each bit at 1 Mbit/s.
                let takes = (8_000 * length as u64).checked_div(line.mbit.into()).unwrap_or(0);
                idle_at = idle_at.max(now) + Duration::from_nanos(takes);
                let held = packet.get(..length).unwrap_or_default().to_vec();
                if sender.send((idle_at + line.delay, held)).is_err() {
                    return;
                }
            }
            // No packet, or the other end is not set up yet.
            Err(_) => {
                let mut waits = [PollFd::new(from.as_fd(), PollFlags::POLLIN)];
                poll(&mut waits, PollTimeout::from(100_u8)).expect("it is open");
            }
        }
    }
}

fn give(to: &OwnedFd, receiver: &Receiver<Held>) {
    while let Ok((due, packet)) = receiver.recv() {
        thread::sleep(due.saturating_duration_since(Instant::now()));
        // Packets that the other end does not accept are lost, as on any path.
        let _ = nix::unistd::write(to, &packet);
    }
}
