//! What all transfers have in common: settings, cores, applications on the kernel's sockets, and the measurement.

use anabranch_system::Need;
use nix::sched::{CpuSet, sched_setaffinity};
use nix::unistd::{Pid, gettid};
use socket2::{Domain, Protocol, Socket, Type};
use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddr};
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// The port of every transfer.
pub const PORT: u16 = 5001;
/// Bytes that an application writes or reads at a time.
pub const PIECE: usize = 256 * 1024;
/// Time until all paths are there and windows have opened.
const WARM_UP: Duration = Duration::from_millis(500);
/// How long an application waits before it looks whether it is over.
const PATIENCE: Duration = Duration::from_millis(200);

/// The network of a transfer.
pub struct Setting {
    pub paths: u8,
    pub mtu: u16,
    pub offload: bool,
    /// How long is measured.
    pub time: Duration,
}

/// Which core each part of a transfer between kernels is on; none: the scheduler decides.
#[derive(Clone, Copy)]
pub struct Pins {
    pub sender: usize,
    pub path: Option<usize>,
    pub receiver: usize,
}

impl Pins {
    pub const WITH_SENDER: Self = Self { sender: 0, path: Some(0), receiver: 1 };
    pub const WITH_RECEIVER: Self = Self { sender: 1, path: Some(0), receiver: 0 };
    pub const PATH_FREE: Self = Self { sender: 0, path: None, receiver: 1 };
}

/// The core of everything of ours.
pub const OURS: usize = 0;
/// The core of the application at the other end.
pub const THEIRS: usize = 1;

/// What this machine lacks, if anything.
pub fn missing() -> Option<String> {
    if std::thread::available_parallelism().map_or(1, usize::from) < 2 {
        return Some("one core for each end is needed".to_owned());
    }
    anabranch_system::missing(&[Need::Mptcp, Need::Tun, Need::Programs(&["ip"]), Need::Namespaces])
}

/// Runs `ip WORDS` in the calling thread's namespace.
pub fn ip(words: &str) {
    let output = Command::new("ip").args(words.split_whitespace()).output().expect("ip runs");
    assert!(output.status.success(), "ip {words}: {}", String::from_utf8_lossy(&output.stderr));
}

/// The kernel's end of a path, and the other one.
pub fn address(path: u8, host: u8) -> Ipv4Addr {
    Ipv4Addr::new(10, 0, path, host)
}

/// What a transfer reached.
#[derive(Clone, Copy)]
pub struct Rate {
    /// Gbit per second.
    pub by_clock: f64,
    /// Gbit per second of processor time of the threads on core 0. Where others use the core too, this says more.
    pub by_core: f64,
}

/// Counts what arrives and the time that it takes, and says when it is enough.
#[derive(Clone, Default)]
pub struct Meter {
    bytes: Arc<AtomicU64>,
    over: Arc<AtomicBool>,
    /// The threads whose time is counted.
    threads: Arc<Mutex<Vec<Pid>>>,
}

impl Meter {
    pub fn count(&self, bytes: usize) {
        self.bytes.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    pub fn is_over(&self) -> bool {
        self.over.load(Ordering::Relaxed)
    }

    /// Keeps the calling thread on a core; its time is counted if that is ours.
    pub fn pin(&self, core: usize) {
        let mut cores = CpuSet::new();
        cores.set(core).expect("a core's number");
        sched_setaffinity(Pid::from_raw(0), &cores).expect("there are two cores");
        if core == OURS {
            self.count_time();
        }
    }

    /// Counts the calling thread's time.
    pub fn count_time(&self) {
        self.threads.lock().expect("nobody panics with it").push(gettid());
    }

    /// Processor time of the threads so far: what the kernel does on their behalf is in it.
    fn time(&self) -> Duration {
        let threads = self.threads.lock().expect("nobody panics with it");
        let of = |thread: &Pid| -> u64 {
            let text = std::fs::read_to_string(format!("/proc/self/task/{thread}/schedstat")).expect("it runs");
            text.split(' ').next().and_then(|nanos| nanos.parse().ok()).expect("nanoseconds on a core come first")
        };
        Duration::from_nanos(threads.iter().map(of).sum())
    }

    /// Waits for the paths, then measures the rate and has everybody stop.
    pub fn measure(&self, time: Duration) -> Rate {
        std::thread::sleep(WARM_UP);
        let (began, worked, before) = (Instant::now(), self.time(), self.bytes.load(Ordering::Relaxed));
        std::thread::sleep(time);
        let gbit = (self.bytes.load(Ordering::Relaxed) - before) as f64 * 8.0 / 1e9;
        let by_clock = gbit / began.elapsed().as_secs_f64();
        let by_core = gbit / (self.time() - worked).as_secs_f64();
        self.over.store(true, Ordering::Relaxed);
        Rate { by_clock, by_core }
    }
}

fn mptcp_socket() -> Socket {
    Socket::new(Domain::IPV4, Type::STREAM, Some(Protocol::MPTCP)).expect("the kernel has MPTCP")
}

/// A listening socket of the kernel's, in the calling thread's namespace.
pub fn kernel_listener() -> Socket {
    let socket = mptcp_socket();
    socket.set_reuse_address(true).expect("a socket can be told");
    socket.bind(&SocketAddr::from((Ipv4Addr::UNSPECIFIED, PORT)).into()).expect("the port is free");
    socket.listen(1).expect("it can listen");
    socket
}

/// Starts an application on `core` that reads what comes to a listener.
pub fn kernel_reads(listener: Socket, core: usize, meter: Meter) -> JoinHandle<()> {
    std::thread::spawn(move || {
        meter.pin(core);
        let (mut socket, _) = listener.accept().expect("somebody connects");
        socket.set_read_timeout(Some(PATIENCE)).expect("a socket can be told");
        let mut piece = vec![0; PIECE];
        while !meter.is_over() {
            match socket.read(&mut piece) {
                Ok(0) => break,
                Ok(length) => meter.count(length),
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                Err(_) => break,
            }
        }
    })
}

/// Starts an application on `core`, in the calling thread's namespace, that connects and writes.
pub fn kernel_writes(to: Ipv4Addr, core: usize, meter: Meter) -> JoinHandle<()> {
    let mut socket = mptcp_socket();
    std::thread::spawn(move || {
        meter.pin(core);
        socket.connect(&SocketAddr::from((to, PORT)).into()).expect("somebody listens");
        socket.set_write_timeout(Some(PATIENCE)).expect("a socket can be told");
        let piece = vec![7; PIECE];
        let goes_on = |error: std::io::Error| error.kind() == ErrorKind::WouldBlock;
        while !meter.is_over() && socket.write(&piece).map_or_else(goes_on, |_| true) {}
    })
}
