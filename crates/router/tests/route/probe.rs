//! UDP probes from a node to another's loopback address, and back: by default every 10 ms from M1 to M8.

use crate::scene::Scene;
use anabranch_emulate::mesh;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// The ports of both ends. Flows have different ports, so that they spread over the routes.
pub fn ports(flow: u16) -> (u16, u16) {
    (4_100 + flow, 4_800 + flow)
}

pub const INTERVAL: Duration = Duration::from_millis(10);

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Target {
    Ipv4,
    Ipv6,
}

impl Target {
    /// The address of a node.
    pub fn address(self, node: usize) -> IpAddr {
        match self {
            Self::Ipv4 => mesh::loopback_ipv4(node).into(),
            Self::Ipv6 => mesh::loopback_ipv6(node).into(),
        }
    }
}

/// The results of the probes.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    pub answered: u32,
    /// Unanswered probes, without those of the last second, which may be in flight.
    pub lost: u32,
    /// The longest time between two answers.
    pub longest_gap: Duration,
}

/// Shared by both threads: when each probe was sent, and when answers arrived.
#[derive(Default)]
struct Log {
    sent: Vec<Instant>,
    answers: Vec<(u32, Instant)>,
}

/// Running probes.
pub struct Probe {
    end: Arc<AtomicBool>,
    answered: Arc<AtomicU32>,
    log: Arc<Mutex<Log>>,
    threads: Vec<JoinHandle<()>>,
}

impl Probe {
    pub fn start(scene: &Scene, target: Target, flow: u16) -> Self {
        Self::between(scene, (1, 8), target, flow, INTERVAL)
    }

    /// Probes from one node to another.
    pub fn between(scene: &Scene, nodes: (usize, usize), target: Target, flow: u16, interval: Duration) -> Self {
        let (here, there) = (target.address(nodes.0), target.address(nodes.1));
        let (near, far) = ports(flow);
        let (from, to) = (SocketAddr::new(here, near), SocketAddr::new(there, far));
        let socket = |node: usize, address: SocketAddr| {
            let socket = scene.node(node).run(|| UdpSocket::bind(address)).expect("it can be entered");
            let socket = socket.expect("the address is the node's");
            socket.set_read_timeout(Some(Duration::from_millis(100))).expect("a time");
            socket
        };
        let (probing, echoing) = (socket(nodes.0, from), socket(nodes.1, to));
        let hearing = probing.try_clone().expect("a descriptor");
        let (end, answered) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU32::new(0)));
        let log = Arc::new(Mutex::new(Log::default()));
        let threads = vec![
            spawn(&end, move || echo(&echoing)),
            {
                let log = Arc::clone(&log);
                let mut due = Instant::now();
                spawn(&end, move || {
                    let number = {
                        let mut log = log.lock().expect("nobody panics");
                        log.sent.push(Instant::now());
                        log.sent.len() as u32 - 1
                    };
                    // Without a route the probe counts as lost.
                    let _ = probing.send_to(&number.to_be_bytes(), to);
                    due += interval;
                    std::thread::sleep(due.saturating_duration_since(Instant::now()));
                })
            },
            {
                let (log, answered) = (Arc::clone(&log), Arc::clone(&answered));
                spawn(&end, move || {
                    let mut bytes = [0; 64];
                    if let Ok(4) = hearing.recv(&mut bytes) {
                        let number = bytes.first_chunk().map_or(0, |number| u32::from_be_bytes(*number));
                        answered.fetch_add(1, Ordering::Relaxed);
                        log.lock().expect("nobody panics").answers.push((number, Instant::now()));
                    }
                })
            },
        ];
        Self { end, answered, log, threads }
    }

    /// Answers so far.
    pub fn answered(&self) -> u32 {
        self.answered.load(Ordering::Relaxed)
    }

    /// Marks the current moment, from which `since` counts.
    pub fn mark(&self) -> Mark {
        let log = self.log.lock().expect("nobody panics");
        Mark { sent: log.sent.len(), answers: log.answers.len() }
    }

    /// The results since a mark.
    pub fn since(&self, mark: &Mark) -> Seen {
        let log = self.log.lock().expect("nobody panics");
        let last = Instant::now() - Duration::from_secs(1);
        let old = log.sent.iter().skip(mark.sent).filter(|sent| **sent < last).count();
        let end = (mark.sent + old) as u32;
        let mut numbers: Vec<u32> = log.answers.iter().map(|(number, _)| *number).collect();
        numbers.retain(|number| (mark.sent as u32..end).contains(number));
        numbers.sort_unstable();
        numbers.dedup();
        // The gap that starts at the last answer before the mark counts.
        let before = mark.answers.saturating_sub(1);
        let times: Vec<Instant> = log.answers.iter().skip(before).map(|(_, at)| *at).collect();
        let gaps = times.windows(2).map(|pair| pair[1] - pair[0]);
        // The time since the last answer is a gap too.
        let open = times.last().map(|at| Instant::now() - *at);
        Seen {
            answered: numbers.len() as u32,
            lost: old as u32 - numbers.len() as u32,
            longest_gap: gaps.chain(open).max().unwrap_or_default(),
        }
    }

    /// Stops the probes.
    pub fn stop(self) -> Seen {
        let seen = self.since(&Mark { sent: 0, answers: 0 });
        drop(self);
        seen
    }
}

/// A moment.
pub struct Mark {
    sent: usize,
    answers: usize,
}

impl Drop for Probe {
    fn drop(&mut self) {
        self.end.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            // The test is already failing.
            let _ = thread.join();
        }
    }
}

fn spawn(end: &Arc<AtomicBool>, mut work: impl FnMut() + Send + 'static) -> JoinHandle<()> {
    let end = Arc::clone(end);
    std::thread::spawn(move || {
        while !end.load(Ordering::Relaxed) {
            work();
        }
    })
}

fn echo(socket: &UdpSocket) {
    let mut bytes = [0; 64];
    if let Ok((length, from)) = socket.recv_from(&mut bytes) {
        // The route back may be gone.
        let _ = socket.send_to(&bytes[..length], from);
    }
}
