//! The schedule of the soak test, and its checks at the end.

use crate::soak::faults::{FAULTS, Fault};
use crate::soak::town::{SERVER, TARGET, Town, UPLINKS};
use crate::soak::traffic::{PROXY, Record, programs, target};
use anabranch_system::command_in;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::ffi::OsStr;
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// The server's port.
const PORT: &str = "4433";
/// Time after a total outage, e.g. a restart of the server, during which connections may still fail.
const AFTERMATH: Duration = Duration::from_secs(2);
/// Slower connections are reported.
const SLOW: Duration = Duration::from_millis(400);
/// A fault, the pause after it included, takes a few seconds. If it takes this long, the machine itself stood still.
const STANDSTILL: Duration = Duration::from_secs(15);
/// Time limit for a connection to proceed or to fail.
const LONGEST: Duration = Duration::from_secs(62);

/// A 64-bit multiplicative congruential generator: it only needs to be reproducible.
struct Draws(u64);

impl Draws {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) as usize) % limit
    }
}

/// A program that is killed on drop.
struct Running(Child);

impl Running {
    fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(self.0.id().cast_signed()), signal).expect("it lives");
    }

    /// Stops it by a signal; it must exit successfully.
    fn end(mut self) {
        self.signal(Signal::SIGTERM);
        let status = self.0.wait().expect("it ends");
        assert!(status.success(), "{status}");
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It has exited unless the test failed.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The running programs and the faults.
struct Day {
    town: Town,
    udp: bool,
    begun: Instant,
    key: PathBuf,
    serve: Option<Running>,
    proxy: Option<Running>,
    faults: [Option<Fault>; UPLINKS],
    /// Intervals in which connections may fail.
    disturbed: Vec<(Instant, Instant)>,
    draws: Draws,
}

/// Runs the schedule, and checks the programs' connections.
pub fn live(udp: bool, seed: u64, length: Duration) {
    let place = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("soak-{}-{udp}", std::process::id()));
    std::fs::create_dir_all(&place).expect("the test's directory can be made");
    let mut day = Day::begin(udp, seed, &place);
    target(&day.town.core);
    let over = Arc::new(AtomicBool::new(false));
    let (threads, short, long) = programs(&day.town.client, &over);
    let evening = Instant::now() + length;
    while Instant::now() < evening {
        let begun = Instant::now();
        day.something_happens();
        if begun.elapsed() > STANDSTILL {
            day.say(&format!("the machine stood still for {:?}", begun.elapsed()));
            day.disturbed.push((begun, Instant::now() + AFTERMATH));
        }
    }
    (0..UPLINKS).for_each(|n| day.mend(n));
    over.store(true, Ordering::Relaxed);
    threads.into_iter().for_each(|thread| thread.join().expect("it ends"));
    let (begun, disturbed) = (day.begun, std::mem::take(&mut day.disturbed));
    day.end();
    std::fs::remove_dir_all(&place).expect("it is the test's own");
    // In a short run each download may meet a restart of the server.
    let downloads = usize::from(length >= Duration::from_secs(60));
    let faults = [("short", short.take(), 20), ("long", long.take(), downloads)]
        .map(|(kind, records, enough)| judge(kind, begun, &records, &disturbed, enough));
    let faults: String = faults.concat();
    assert!(faults.is_empty(), "{faults}");
}

/// Options of the command for the encapsulation of segments.
fn carriage(udp: bool, journal: &str) -> Vec<&str> {
    if udp { vec!["--udp"] } else { vec!["--journal", journal] }
}

impl Day {
    fn begin(udp: bool, seed: u64, place: &Path) -> Self {
        let key = place.join("key");
        // A key of an earlier run with the same number may exist.
        let _ = std::fs::remove_file(&key);
        let town = Town::new();
        let faults = [None; UPLINKS];
        let mut day = Self {
            town,
            udp,
            begun: Instant::now(),
            key,
            serve: None,
            proxy: None,
            faults,
            disturbed: Vec::new(),
            draws: Draws(seed),
        };
        let key = day.key.display().to_string();
        assert!(day.start(&day.town.client, &["key", &key]).0.wait().expect("it ends").success());
        day.serve = Some(day.start_serve());
        let journal = place.join("client").display().to_string();
        let server = format!("{SERVER}:{PORT}");
        let mut words = vec!["proxy", "--server", &server, "--key", &key, "--listen", PROXY];
        words.extend(carriage(udp, &journal));
        day.proxy = Some(day.start(&day.town.client, &words));
        while day.town.client.run(|| TcpStream::connect(PROXY)).expect("it can be entered").is_err() {
            thread::sleep(Duration::from_millis(20));
        }
        // Both have configured their hosts.
        thread::sleep(Duration::from_secs(1));
        day
    }

    fn start(&self, host: &anabranch_system::Namespace, words: &[&str]) -> Running {
        let mut command = command_in(host, OsStr::new(env!("CARGO_BIN_EXE_anabranch")));
        let quiet = || if std::env::var_os("ANABRANCH_SOAK").is_some() { Stdio::inherit() } else { Stdio::null() };
        Running(command.args(words).stdout(Stdio::null()).stderr(quiet()).spawn().expect("the program runs"))
    }

    fn start_serve(&self) -> Running {
        let key = self.key.display().to_string();
        let journal = self.key.with_file_name("server").display().to_string();
        let [a, b, c, d] = TARGET;
        let allowed = format!("{a}.{b}.{c}.{d}:80");
        let mut words = vec!["serve", "--port", PORT, "--socks", "--allow", &allowed, "--key", &key];
        words.extend(carriage(self.udp, &journal));
        self.start(&self.town.server, &words)
    }

    /// One event, followed by a pause.
    fn something_happens(&mut self) {
        match self.draws.below(20) {
            0 => self.restart_server(),
            1 => self.suspend(),
            2 => self.cut_all(),
            _ => {
                let n = self.draws.below(UPLINKS);
                let alive = self.faults.iter().filter(|fault| fault.is_none()).count();
                match self.faults[n] {
                    Some(_) => self.mend(n),
                    // One uplink always works.
                    None if alive > 1 => self.harm(n),
                    None => {}
                }
            }
        }
        thread::sleep(Duration::from_millis(300 + 100 * self.draws.below(20) as u64));
    }

    fn harm(&mut self, n: usize) {
        let fault = FAULTS[self.draws.below(FAULTS.len())];
        self.say(&format!("up{n}: {fault:?}"));
        fault.happens(&self.town, n);
        self.faults[n] = Some(fault);
    }

    fn mend(&mut self, n: usize) {
        if let Some(fault) = self.faults[n].take() {
            self.say(&format!("up{n}: {fault:?} is over"));
            fault.ends(&self.town, n, 2 + self.draws.below(200) as u8);
        }
    }

    /// Logs events in long runs, so that failures can be attributed.
    fn say(&self, what: &str) {
        if std::env::var_os("ANABRANCH_SOAK").is_some() {
            let way = if self.udp { "udp" } else { "tun" };
            eprintln!("{way} {:8.3} {what}", self.begun.elapsed().as_secs_f64());
        }
    }

    fn disturb(&mut self, disturbance: impl FnOnce(&mut Self)) {
        self.say("all are disturbed");
        let begun = Instant::now();
        disturbance(self);
        self.disturbed.push((begun, Instant::now() + AFTERMATH));
    }

    /// Without closing connections, as in a power failure.
    fn restart_server(&mut self) {
        self.disturb(|day| {
            drop(day.serve.take());
            thread::sleep(Duration::from_millis(500));
            day.serve = Some(day.start_serve());
            thread::sleep(Duration::from_secs(1));
        });
    }

    fn suspend(&mut self) {
        self.disturb(|day| {
            let program = if day.draws.below(2) == 0 { &day.serve } else { &day.proxy };
            let program = program.as_ref().expect("it runs");
            program.signal(Signal::SIGSTOP);
            thread::sleep(Duration::from_secs(2));
            program.signal(Signal::SIGCONT);
        });
    }

    /// Unplugs the server.
    fn cut_all(&mut self) {
        self.disturb(|day| {
            crate::soak::town::at(&day.town.core, &["link set inside down"]);
            thread::sleep(Duration::from_secs(2));
            crate::soak::town::at(&day.town.core, &["link set inside up"]);
            crate::soak::town::at(&day.town.server, &["route replace default via 198.51.100.1"]);
            // The kernel detects the carrier with a delay.
            thread::sleep(Duration::from_secs(1));
        });
    }

    fn end(&mut self) {
        for program in [self.proxy.take(), self.serve.take()] {
            program.expect("it runs").end();
        }
        for host in [&self.town.client, &self.town.server] {
            let show = || std::process::Command::new("ip").args(["rule", "show", "priority", "198"]).output();
            let rules = host.run(show).expect("it can be entered").expect("ip runs");
            assert_eq!(String::from_utf8_lossy(&rules.stdout), "", "nothing is left");
        }
    }
}

/// Connections may fail only during or shortly after total outages, and none may hang unless the machine does. Returns
/// what is wrong, in lines.
fn judge(kind: &str, begun: Instant, records: &[Record], disturbed: &[(Instant, Instant)], enough: usize) -> String {
    let touched = |record: &&Record| disturbed.iter().any(|(from, to)| record.begun <= *to && record.ended >= *from);
    let (affected, calm): (Vec<&Record>, Vec<&Record>) = records.iter().partition(touched);
    let failed: Vec<&&Record> = calm.iter().filter(|record| record.outcome.is_err()).collect();
    let mut waits: Vec<Duration> = calm.iter().filter_map(|r| r.answered.map(|at| at - r.begun)).collect();
    waits.sort();
    let at = |share: f64| waits.get(((waits.len().max(1) - 1) as f64 * share) as usize).copied().unwrap_or_default();
    let broken = affected.iter().filter(|record| record.outcome.is_err()).count();
    eprintln!(
        "{kind}: {} connections while some uplink and the server were there, {} failed; answered after {:?} (median), {:?} (99 of 100), \
         {:?} (all); of {} others {broken} failed",
        calm.len(),
        failed.len(),
        at(0.5),
        at(0.99),
        at(1.0),
        affected.len()
    );
    let tell = |record: &&&Record| {
        let (from, to) = ((record.begun - begun).as_secs_f64(), (record.ended - begun).as_secs_f64());
        format!("from {from:.3} to {to:.3} s: {:?}\n", record.outcome)
    };
    // Rare failures are searched for in long runs only; they must not fail ordinary test runs.
    let tolerated = usize::from(std::env::var_os("ANABRANCH_SOAK").is_none());
    let mut wrong: String = if failed.len() > tolerated { failed.iter().map(tell).collect() } else { String::new() };
    let slow = calm.iter().filter(|record| record.answered.is_some_and(|at| at - record.begun > SLOW));
    slow.for_each(|record| eprint!("slow {}", tell(&record)));
    let mut require = |so: bool, what: &str| {
        if !so {
            wrong += &format!("{kind}: {what}\n");
        }
    };
    require(records.iter().filter(|record| record.outcome.is_ok()).count() >= enough, "there was no traffic");
    let cut = |record: &&&Record| record.outcome.as_ref().is_err_and(|error| error.contains("is another"));
    require(affected.iter().filter(cut).count() == 0, "what came is not what was sent");
    let stood_still = |record: &Record| {
        let whole =
            |(from, to): &(Instant, Instant)| *to - *from > STANDSTILL && record.begun <= *to && record.ended >= *from;
        disturbed.iter().any(whole)
    };
    let waited = |record: &Record| record.answered.unwrap_or(record.ended) - record.begun;
    let hung = records.iter().filter(|record| waited(record) > LONGEST && !stood_still(record)).count();
    require(hung == 0, "something hung");
    wrong
}
