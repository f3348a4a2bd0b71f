//! Bulk transfers at full speed, and the CPU time they use.

use crate::scene::{Scene, TARGET, run_in};
use anabranch_system::Namespace;
use std::fmt;
use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// Excluded start of a connection.
const WARM_UP: Duration = Duration::from_secs(1);
/// Bytes per read or write.
pub const BLOCK: usize = 256 * 1024;

/// The sending end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Way {
    Up,
    Down,
}

impl Way {
    pub fn named(name: &str) -> Option<Self> {
        match name {
            "up" => Some(Self::Up),
            "down" => Some(Self::Down),
            _ => None,
        }
    }
}

impl fmt::Display for Way {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if *self == Self::Up { "upload" } else { "download" })
    }
}

/// Results of a run.
#[derive(Clone, Copy, Debug)]
pub struct Rate {
    gbit: f64,
    seconds: f64,
    /// CPU time of the two programs, seconds.
    proxy: f64,
    serve: f64,
    /// Mean size of packets leaving the sender on its paths, bytes: with offloads a packet is many segments.
    pub packet: f64,
}

impl Rate {
    fn by_clock(&self) -> f64 {
        self.gbit / self.seconds
    }

    fn by_proxy(&self) -> f64 {
        self.gbit / self.proxy
    }

    fn by_serve(&self) -> f64 {
        self.gbit / self.serve
    }
}

/// Transfers for this time after the warm-up, over this many connections.
pub fn measure(scene: &Scene, way: Way, time: Duration, connections: usize) -> Rate {
    let listener = run_in(&scene.server, || TcpListener::bind((Ipv4Addr::UNSPECIFIED, TARGET)).expect("it is free"));
    let connect = |_| {
        let near = run_in(&scene.client, || TcpStream::connect(scene.entrance));
        let (far, _) = listener.accept().expect("the connection comes through");
        let near = near.expect("the proxy listens");
        if way == Way::Up { (near, far) } else { (far, near) }
    };
    let ends: Vec<(TcpStream, TcpStream)> = (0..connections).map(connect).collect();
    let (arrived, over) = (AtomicU64::new(0), AtomicBool::new(false));
    thread::scope(|scope| {
        for (source, sink) in &ends {
            scope.spawn(|| send(source, &over));
            scope.spawn(|| receive(sink, &arrived));
        }
        thread::sleep(WARM_UP);
        let look = || (Instant::now(), arrived.load(Ordering::Relaxed), scene.proxy.cpu(), scene.serve.cpu());
        let sender = if way == Way::Up { &scene.client } else { &scene.server };
        let sent_before = sent(sender);
        let before = look();
        thread::sleep(time);
        let after = look();
        let sent_after = sent(sender);
        over.store(true, Ordering::Relaxed);
        // Unblocks all threads.
        for socket in ends.iter().flat_map(|(source, sink)| [source, sink]) {
            let _ = socket.shutdown(std::net::Shutdown::Both);
        }
        Rate {
            gbit: (after.1 - before.1) as f64 * 8e-9,
            seconds: (after.0 - before.0).as_secs_f64(),
            proxy: (after.2 - before.2).as_secs_f64(),
            serve: (after.3 - before.3).as_secs_f64(),
            packet: (sent_after.0 - sent_before.0) / (sent_after.1 - sent_before.1),
        }
    })
}

/// Bytes and packets sent by a host on its paths.
fn sent(host: &Namespace) -> (f64, f64) {
    let text = run_in(host, || std::fs::read_to_string("/proc/thread-self/net/dev").expect("it is there"));
    let paths = text.lines().filter(|line| line.trim_start().starts_with("path"));
    paths.fold((0.0, 0.0), |(bytes, packets), line| {
        // After the name, of 16 columns, transmit counters start at the ninth.
        let numbers = line.split_once(':').map_or("", |(_, numbers)| numbers);
        let mut sent = numbers.split_whitespace().skip(8).map(|number| number.parse().unwrap_or(0.0));
        (bytes + sent.next().unwrap_or(0.0), packets + sent.next().unwrap_or(0.0))
    })
}

/// Writes until it is over or the connection ends.
pub fn send(mut socket: &TcpStream, over: &AtomicBool) {
    let block = vec![7; BLOCK];
    while !over.load(Ordering::Relaxed) && socket.write(&block).is_ok() {}
}

fn receive(mut socket: &TcpStream, arrived: &AtomicU64) {
    let mut block = vec![0; BLOCK];
    while let Ok(length @ 1..) = socket.read(&mut block) {
        arrived.fetch_add(length as u64, Ordering::Relaxed);
    }
}

/// Median, minimum and maximum.
fn spread(values: impl Iterator<Item = f64>) -> (f64, f64, f64) {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    let at = |index: usize| values.get(index).copied().unwrap_or(f64::NAN);
    (at(values.len() / 2), at(0), at(values.len().saturating_sub(1)))
}

fn line(what: &str, values: impl Iterator<Item = f64>) {
    let (median, least, most) = spread(values);
    println!("  {what:<38} {median:>6.2} ({least:.2} - {most:.2})");
}

pub fn print(rates: &[Rate]) {
    line("Gbit/s", rates.iter().map(Rate::by_clock));
    line("Gbit per CPU second of proxy", rates.iter().map(Rate::by_proxy));
    line("Gbit per CPU second of serve", rates.iter().map(Rate::by_serve));
    line("kB that leave the sender at once", rates.iter().map(|rate| rate.packet * 1e-3));
}

/// The ratio of two, round by round.
pub fn print_ratio(what: &str, first: &[Rate], second: &[Rate]) {
    let ratio = |of: fn(&Rate) -> f64| first.iter().zip(second).map(move |(a, b)| of(a) / of(b));
    println!("\n{what}");
    line("ratio of Gbit/s", ratio(Rate::by_clock));
    line("ratio per CPU second of proxy", ratio(Rate::by_proxy));
    line("ratio per CPU second of serve", ratio(Rate::by_serve));
}
