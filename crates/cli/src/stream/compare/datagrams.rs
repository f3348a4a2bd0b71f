//! SRT and RIST: their own programs at both ends, with a datagram generator before the sender and the judge after the
//! receiver.

use super::ends::{Lasts, failed};
use super::judge::Judge;
use super::packet::{LARGEST, Part, datagrams};
use super::schedule::Frame;
use anabranch_emulate::{Hosts, address};
use anabranch_system::{Need, command_in, missing, raise_priority};
use std::ffi::OsStr;
use std::io::ErrorKind;
use std::net::{IpAddr, UdpSocket};
use std::process::{Child, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// Input port of the sending program.
const IN: u16 = 5000;
/// Output port of the receiving program.
const OUT: u16 = 7000;
/// First port between the two.
const BETWEEN: u16 = 6000;
/// Niceness of the programs.
const URGENCY: &str = "-15";
/// Interval at which the judge checks for the end.
const TICK: Duration = Duration::from_millis(50);

/// A pair of programs that carry datagrams.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Programs {
    /// srt-live-transmit on the path with this index.
    Srt(usize),
    /// ristsender and ristreceiver on this many paths, each datagram on one of them.
    Rist(usize),
    /// The same, each datagram on all paths.
    RistTwice(usize),
}

/// The server's address on the path with this index.
fn on(place: usize) -> IpAddr {
    address::server_on(place as u8 + 1)[0]
}

impl Programs {
    /// Names of the two programs.
    pub const fn names(self) -> [&'static str; 2] {
        match self {
            Self::Srt(_) => ["srt-live-transmit", "srt-live-transmit"],
            Self::Rist(_) | Self::RistTwice(_) => ["ristsender", "ristreceiver"],
        }
    }

    /// The first of them that is not installed.
    pub fn missing(self) -> Option<&'static str> {
        self.names().into_iter().find(|name| missing(&[Need::Programs(&[name])]).is_some())
    }

    /// Arguments of the sender and of the receiver.
    fn arguments(self, latency: Duration) -> [Vec<String>; 2] {
        let latency = latency.as_millis();
        let [from, to] = [IN, OUT].map(|port| format!("udp://127.0.0.1:{port}"));
        match self {
            Self::Srt(place) => {
                let words = |ends: [String; 2]| {
                    let options = ["-loglevel:fatal", "-quiet"].map(str::to_owned);
                    options.into_iter().chain([format!("-chunk:{LARGEST}")]).chain(ends).collect()
                };
                let options = format!("latency={latency}&transtype=live");
                let caller = format!("srt://{}:{BETWEEN}?mode=caller&{options}", on(place));
                let listener = format!("srt://{}:{BETWEEN}?mode=listener&{options}", on(place));
                [words([from, caller]), words([listener, to])]
            }
            Self::Rist(paths) | Self::RistTwice(paths) => {
                let weight = if matches!(self, Self::Rist(_)) { 5 } else { 0 };
                // Profile 1, the default of the programs; an even port per path.
                let url = |listens: &str, place: usize, more: &str| {
                    let port = BETWEEN as usize + 2 * place;
                    format!("rist://{listens}{}:{port}?buffer={latency}{more}", on(place))
                };
                let list = |listens: &str, more: &str| {
                    (0..paths).map(|place| url(listens, place, more)).collect::<Vec<_>>().join(",")
                };
                let quiet = ["-v", "-1", "-S", "0"].map(str::to_owned);
                let words = |input: String, output: String| {
                    let ends = ["-i".to_owned(), input, "-o".to_owned(), output];
                    quiet.iter().cloned().chain(ends).collect()
                };
                // A datagram socket receives what is sent to its own address.
                let from = format!("udp://@127.0.0.1:{IN}");
                [words(from, list("", &format!("&weight={weight}"))), words(list("@", ""), to)]
            }
        }
    }
}

/// The running programs; killed on drop.
struct Running(Vec<Child>);

impl Drop for Running {
    fn drop(&mut self) {
        for child in &mut self.0 {
            // It may have exited.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Carries the stream.
pub fn run(
    programs: Programs,
    hosts: &Hosts,
    frames: &[Frame],
    latency: Duration,
    lasts: Lasts,
) -> Result<Judge, String> {
    let [sends, receives] = programs.arguments(latency);
    let [sender, receiver] = programs.names();
    let mut running = Running(Vec::new());
    for (host, name, words) in [(hosts.server(), receiver, receives), (hosts.client(), sender, sends)] {
        // A higher priority than other processes, like the engine, the generator and the judge. Real-time priority
        // would be too high: SRT hardly sleeps and would starve all others.
        let mut command = command_in(host, OsStr::new("nice"));
        command
            .args(["-n", URGENCY, name])
            .args(words)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        running.0.push(command.spawn().map_err(failed("start a program"))?);
        thread::sleep(Duration::from_millis(200));
    }
    let bound = |port: u16| move || UdpSocket::bind(("127.0.0.1", port));
    let out = hosts.server().run(bound(OUT)).and_then(|socket| socket).map_err(failed("open a port"))?;
    let source = hosts.client().run(bound(0)).and_then(|socket| socket).map_err(failed("open a port"))?;
    out.set_read_timeout(Some(TICK)).map_err(failed("set a port"))?;
    let began = lasts.begins();
    let judge = Judge::new(began, frames);
    let judge = thread::scope(|scope| {
        let generator = scope.spawn(|| generate(&source, frames, began));
        let judge = receive(&out, judge, lasts.end(began));
        generator.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        judge
    });
    for (child, name) in running.0.iter_mut().zip([receiver, sender]) {
        if let Ok(Some(status)) = child.try_wait() {
            return Err(format!("{name} ended before its time ({status})"));
        }
    }
    Ok(judge)
}

/// Sends each frame when it is due.
fn generate(socket: &UdpSocket, frames: &[Frame], began: Instant) {
    raise_priority();
    for frame in frames {
        thread::sleep((began + frame.at).saturating_duration_since(Instant::now()));
        for datagram in datagrams(frame.number, frame.length) {
            // A missing program is reported at the end.
            let _ = socket.send_to(&datagram, ("127.0.0.1", IN));
        }
    }
}

/// Records received datagrams.
fn receive(socket: &UdpSocket, mut judge: Judge, end: Instant) -> Judge {
    raise_priority();
    let mut datagram = [0; 2048];
    while Instant::now() < end && !judge.is_complete() {
        match socket.recv(&mut datagram) {
            Ok(length) => {
                let part = datagram.get(..length).and_then(Part::read);
                part.into_iter().for_each(|part| judge.part(part, Instant::now()));
            }
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
            Err(_) => break,
        }
    }
    judge
}
