//! Two hosts with a veth pair per path, running `anabranch proxy` and `anabranch serve`.

use crate::relay::{self, Relay};
use crate::wireguard;
use anabranch_system::{Namespace, command_in};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::fmt;
use std::io::{BufRead as _, BufReader};
use std::net::{Ipv4Addr, SocketAddr};
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// Port of the proxy for programs on the client's host.
pub const ENTRANCE: u16 = 5_000;
/// Port of the target.
pub const TARGET: u16 = 5_001;
/// Name of the default policy.
pub const SHIPPED: &str = "default";
/// Pseudo-policy that measures [`WIREGUARD_PROGRAM`] over the first path instead.
pub const WIREGUARD: &str = "wireguard";
/// The user-space WireGuard for comparison.
pub const WIREGUARD_PROGRAM: &str = "wireguard-go";
/// Port of the server.
const SERVER: u16 = 4_433;

/// Encapsulation of segments.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mode {
    Tun,
    Udp,
}

impl Mode {
    pub fn named(name: &str) -> Option<Self> {
        match name {
            "tun" => Some(Self::Tun),
            "udp" => Some(Self::Udp),
            _ => None,
        }
    }
}

/// A configuration to measure.
#[derive(Clone, Debug)]
pub struct Setting {
    pub mode: Mode,
    pub paths: u8,
    /// [`SHIPPED`], or the value of `--policy`.
    pub policy: String,
    /// One-way delay, ms; 0: a veth pair without a relay.
    pub delay: u32,
    /// Rate of each path with a delay, Mbit/s; 0: unlimited.
    pub mbit: u32,
    /// Worker threads of each program; 0: their default.
    pub workers: u8,
    /// `--buffer-memory` of both programs, if set.
    pub buffer_memory: Option<String>,
    pub program: PathBuf,
    pub wireguard: PathBuf,
}

impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { mode, paths, policy, delay, mbit, workers, .. } = self;
        let mode = if *mode == Mode::Tun { "TUN" } else { "UDP" };
        if policy == WIREGUARD {
            write!(f, "{WIREGUARD_PROGRAM}, 1 of {paths} path(s)")?;
        } else {
            write!(f, "{policy}, {mode}, {paths} path(s), {workers} worker(s)")?;
        }
        match (*delay, *mbit) {
            (0, _) => Ok(()),
            (delay, 0) => write!(f, ", {delay} ms each way"),
            (delay, mbit) => write!(f, ", {mbit} Mbit/s and {delay} ms each way"),
        }
    }
}

/// A program that is ended on drop.
pub struct Program(Child);

impl Program {
    /// Starts it on a host and waits until it reports that it listens.
    fn start(host: &Namespace, setting: &Setting, words: &[&str]) -> Self {
        let mut command = command_in(host, setting.program.as_os_str());
        let policy = ["--policy", &setting.policy];
        command.args(words).args(policy.iter().filter(|_| setting.policy != SHIPPED));
        let child = command.stdout(Stdio::piped()).spawn();
        let mut child = child.unwrap_or_else(|error| panic!("{}: {error}", setting.program.display()));
        let mut lines = BufReader::new(child.stdout.take().expect("it is a pipe")).lines();
        let listens = lines.any(|line| line.is_ok_and(|line| line.starts_with("listening")));
        assert!(listens, "{words:?} does not listen");
        // Drains its later output, so that it never blocks.
        std::thread::spawn(move || lines.for_each(drop));
        Self(child)
    }

    /// Starts a program without output.
    pub fn start_silent(host: &Namespace, program: &Path, words: &[&str]) -> Self {
        let child = command_in(host, program.as_os_str()).args(words).stdout(Stdio::null()).spawn();
        Self(child.unwrap_or_else(|error| panic!("{}: {error}", program.display())))
    }

    /// CPU time used, user and system.
    pub fn cpu(&self) -> Duration {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.0.id())).expect("it runs");
        // After the name in brackets, utime and stime are fields 14 and 15 of proc(5), in ticks of 10 ms.
        let (_, numbers) = stat.rsplit_once(')').expect("the name is in brackets");
        let ticks: u64 = numbers.split_whitespace().skip(11).take(2).map(|word| word.parse().unwrap_or(0)).sum();
        Duration::from_millis(ticks * 10)
    }

    /// Resident memory, kB.
    pub fn memory(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.0.id())).expect("it runs");
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("there is such a line");
        line.trim().trim_end_matches(" kB").parse().expect("a number")
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // It may have exited.
        let _ = kill(Pid::from_raw(self.0.id() as i32), Signal::SIGTERM);
        let _ = self.0.wait();
    }
}

/// Two hosts with the two programs.
pub struct Scene {
    // Dropped first: programs end before the hosts are removed.
    pub proxy: Program,
    pub serve: Program,
    pub client: Namespace,
    pub server: Namespace,
    /// Address at which programs of the client's host reach [`TARGET`] of the server's.
    pub entrance: SocketAddr,
    _relays: Vec<Relay>,
    _directory: Directory,
}

/// A directory that is removed on drop.
struct Directory(PathBuf);

impl Drop for Directory {
    fn drop(&mut self) {
        // Files that cannot be removed stay in the temporary directory.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

impl Scene {
    pub fn new(setting: &Setting) -> Self {
        let directory = std::env::temp_dir().join(format!("anabranch-bench-{}", std::process::id()));
        std::fs::create_dir_all(&directory).expect("a directory can be made");
        let directory = Directory(directory);
        let key = directory.0.join("key");
        let made = Command::new(&setting.program).arg("key").arg(&key).stdout(Stdio::null()).status();
        assert!(made.expect("the program runs").success(), "no key");
        let (client, server, relays) = hosts(setting);
        if setting.policy == WIREGUARD {
            let (proxy, serve) = wireguard::start(&client, &server, &setting.wireguard);
            let entrance = SocketAddr::from((wireguard::SERVER, TARGET));
            return Self { proxy, serve, client, server, entrance, _relays: relays, _directory: directory };
        }
        let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        let mut common = words(&format!("--key {}", key.display()));
        (1..=setting.paths).for_each(|path| common.extend(words(&format!("--uplink path{path}"))));
        if setting.workers > 0 {
            common.extend(words(&format!("--workers {}", setting.workers)));
        }
        if let Some(size) = &setting.buffer_memory {
            common.extend(words(&format!("--buffer-memory {size}")));
        }
        match setting.mode {
            Mode::Tun => common.extend(words(&format!("--journal {}", directory.0.display()))),
            Mode::Udp => common.push("--udp".to_owned()),
        }
        let start = |host: &Namespace, text: &str| {
            let words: Vec<&str> = text.split_whitespace().chain(common.iter().map(String::as_str)).collect();
            Program::start(host, setting, &words)
        };
        let serve = start(&server, &format!("serve --port {SERVER} --to 127.0.0.1:{TARGET}"));
        let proxy = start(&client, &format!("proxy --server 10.1.1.2:{SERVER} --forward {ENTRANCE}"));
        let entrance = SocketAddr::from((Ipv4Addr::LOCALHOST, ENTRANCE));
        Self { proxy, serve, client, server, entrance, _relays: relays, _directory: directory }
    }
}

/// The hosts with a veth pair per path, or with a delay, two TUN devices and a relay.
fn hosts(setting: &Setting) -> (Namespace, Namespace, Vec<Relay>) {
    let client = Namespace::new().expect("there were namespaces a moment ago");
    let server = Namespace::new().expect("there were namespaces a moment ago");
    let mut devices = Vec::new();
    for (host, number, other) in [(&client, 1, &server), (&server, 2, &client)] {
        devices.push(run_in(host, || {
            ip("link set lo up");
            // The benchmark's connections must not exhaust ports.
            sysctl("net.ipv4.ip_local_port_range=10000 65000");
            let each = |path| path_end(setting, path, number, other);
            let devices: Vec<_> = (1..=setting.paths).filter_map(each).collect();
            // Both paths route to all addresses of the other end.
            for path in 1..=setting.paths {
                let gateway = format!("10.1.{path}.{}", 3 - number);
                ip(&format!("route add default via {gateway} dev path{path} metric {path}"));
            }
            devices
        }));
    }
    let line = relay::Line { delay: Duration::from_millis(setting.delay.into()), mbit: setting.mbit };
    let (right, left) = (devices.pop().unwrap_or_default(), devices.pop().unwrap_or_default());
    let relays = left.into_iter().zip(right).map(|(left, right)| Relay::between(left, right, line)).collect();
    (client, server, relays)
}

/// One host's end of a path, in the calling thread's namespace; returns the device if packets are relayed.
fn path_end(setting: &Setting, path: u8, number: u8, other: &Namespace) -> Option<OwnedFd> {
    let device = (setting.delay > 0).then(|| relay::device(&format!("path{path}")));
    if device.is_none() && number == 1 {
        let (pid, fd) = (std::process::id(), other.file().as_raw_fd());
        ip(&format!("link add path{path} type veth peer name path{path} netns /proc/{pid}/fd/{fd}"));
    }
    ip(&format!("addr add 10.1.{path}.{number}/24 dev path{path}"));
    ip(&format!("link set path{path} up"));
    device
}

/// Runs `work` on a host.
pub fn run_in<T: Send>(host: &Namespace, work: impl FnOnce() -> T + Send) -> T {
    host.run(work).expect("it can be entered")
}

pub fn ip(words: &str) {
    run(Command::new("ip").args(words.split_whitespace()));
}

fn sysctl(setting: &str) {
    run(Command::new("sysctl").arg("-qw").arg(setting));
}

fn run(command: &mut Command) {
    let output = command.output().expect("it was there a moment ago");
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
}
