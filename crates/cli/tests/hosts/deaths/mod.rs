//! New connections while all uplinks but one are dead, in each way in which an uplink dies. Needs root, TUN, network
//! namespaces, nft and python3; otherwise it counts as ignored, with the reason.
//!
//! It opens `ANABRANCH_CONNECTIONS` for each (default 12), and says how long they took. Times are not judged: the
//! machine may be busy. `ANABRANCH_DEATH` names the ways to die
//! (`Mute,NoCarrier`), and `ANABRANCH_ROUNDS` repeats all (default 1).

use crate::program::{Running, anabranch, directory};
use crate::soak::faults::{FAULTS, Fault};
use crate::soak::setting;
use crate::soak::town::{SERVER, Town, UPLINKS};
use crate::soak::traffic::{SHORT, target};
use anabranch_system::{Need, missing};
use libtest_mimic::Trial;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const CLIENT: &str = include_str!("client.py");

/// The server's port.
const PORT: &str = "4433";

/// How a program's connections are carried.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Way {
    Proxy,
    ProxyInUdp,
    Up,
    UpInUdp,
    Run,
}

impl Way {
    fn is_in_udp(self) -> bool {
        matches!(self, Self::ProxyInUdp | Self::UpInUdp | Self::Run)
    }
}

pub fn trials() -> Vec<Trial> {
    let missing = missing(&[Need::Tun, Need::Programs(&["ip", "nft", "python3"]), Need::Namespaces]);
    if let Some(reason) = &missing {
        eprintln!("skipped deaths: {reason}");
    }
    let ways = [Way::Proxy, Way::ProxyInUdp, Way::Up, Way::UpInUdp, Way::Run];
    let trial = |way: Way| {
        let run = move || {
            Scene::new(way).live();
            Ok(())
        };
        let name = format!("deaths::with_one_uplink_left_all_new_connections_come_there_by_{way:?}");
        Trial::test(name, run).with_ignored_flag(missing.is_some())
    };
    ways.into_iter().map(trial).collect()
}

/// The ways to die, each with its place among all.
fn deaths() -> Vec<(usize, Fault)> {
    let only = std::env::var("ANABRANCH_DEATH").ok();
    let is_meant =
        |fault: &Fault| only.as_ref().is_none_or(|only| only.split(',').any(|name| name == format!("{fault:?}")));
    let meant: Vec<_> = FAULTS.into_iter().enumerate().filter(|(_, fault)| is_meant(fault)).collect();
    assert!(!meant.is_empty(), "ANABRANCH_DEATH is of {FAULTS:?}");
    meant.repeat(setting("ANABRANCH_ROUNDS", 1) as usize)
}

struct Scene {
    way: Way,
    town: Town,
    place: PathBuf,
    /// Held while the test runs.
    _serve: Running,
}

impl Scene {
    fn new(way: Way) -> Self {
        let (town, place) = (Town::new(), directory(&format!("deaths-{way:?}")));
        let key = place.join("key").display().to_string();
        assert!(anabranch(&["key", &key]).status().expect("the program runs").success());
        target(&town.core);
        let mut serve = anabranch(&["serve", "--port", PORT, "--socks", "--allow", "192.0.2.80:80", "--key", &key]);
        serve.args(carriage(way, &place.join("served"))).stderr(Stdio::null());
        let serve = town.server.run(|| {
            let mut serve = Running::new(&mut serve);
            assert!(serve.line().starts_with("listening on "));
            serve
        });
        Self { way, town, place, _serve: serve.expect("it can be entered") }
    }

    /// A command of the client's, with the options for the server.
    fn command(&self, words: &[&str]) -> Command {
        let mut command = anabranch(words);
        command.args(["--server", &format!("{SERVER}:{PORT}"), "--key"]).arg(self.place.join("key"));
        for n in 0..UPLINKS {
            command.args(["--uplink", &format!("up{n}")]);
        }
        if self.way != Way::Run {
            command.args(carriage(self.way, &self.place.join("journal")));
        }
        command
    }

    fn on_client<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        self.town.client.run(work).expect("it can be entered")
    }

    /// Starts what carries connections, unless that starts the program itself.
    fn carrier(&self) -> Option<Running> {
        let words: &[&str] = match self.way {
            Way::Proxy | Way::ProxyInUdp => &["proxy", "--listen", crate::soak::traffic::PROXY],
            Way::Up | Way::UpInUdp => &["up", "--drain", "0"],
            Way::Run => return None,
        };
        let mut command = self.command(words);
        let mut carrier = self.on_client(|| Running::new(command.stderr(Stdio::piped())));
        carrier.hear("answers over up0, up1, up2");
        Some(carrier)
    }

    fn program(&self) -> Running {
        let count = setting("ANABRANCH_CONNECTIONS", 12).to_string();
        let mut command = if self.way == Way::Run {
            let mut command = self.command(&["run"]);
            command.args(["--", "python3"]);
            command
        } else {
            Command::new("python3")
        };
        let how = if matches!(self.way, Way::Proxy | Way::ProxyInUdp) { "proxy" } else { "straight" };
        command.args(["-c", CLIENT, how, &count, &SHORT.to_string()]).stdin(Stdio::piped());
        let mut program = self.on_client(|| Running::new(&mut command));
        assert_eq!(program.line(), "ready");
        program
    }

    /// Each death meets programs that have seen no other.
    fn live(&self) {
        for (n, fault) in deaths() {
            let carrier = self.carrier();
            let mut program = self.program();
            let dead: Vec<usize> = (0..UPLINKS).filter(|uplink| *uplink != (UPLINKS - 1 + n) % UPLINKS).collect();
            dead.iter().for_each(|uplink| fault.happens(&self.town, *uplink));
            let errors = self.judge(&format!("{fault:?}"), &mut program);
            dead.iter().for_each(|uplink| fault.ends(&self.town, *uplink, 2));
            drop(program);
            let said = carrier.map(|mut carrier| {
                let errors = carrier.errors.take().expect("it was asked for");
                carrier.end_by("TERM");
                std::io::read_to_string(errors).expect("it speaks UTF-8")
            });
            let said = said.unwrap_or_default();
            assert!(errors.is_empty(), "{:?}, {fault:?}: {} failed: {errors:?}\n{said}", self.way, errors.len());
        }
    }

    /// Lets the program connect, and prints how long that took. Returns the errors.
    fn judge(&self, death: &str, program: &mut Running) -> Vec<String> {
        writeln!(program.child.stdin.as_ref().expect("it was asked for"), "go").expect("it listens");
        let (times, errors): (Vec<f64>, Vec<String>) = serde_json::from_str(&program.line()).expect("JSON");
        let at = |share: f64| times.get(((times.len().max(1) - 1) as f64 * share) as usize).map_or(0.0, |t| t * 1e3);
        let slow = times.iter().filter(|time| **time > 0.3).count();
        eprintln!(
            "{:?}, {death}: {} answered, {} failed; after {:.0} ms (median), {:.0} (99 of 100), {:.0} (all); {slow} after more than 300 ms",
            self.way,
            times.len(),
            errors.len(),
            at(0.5),
            at(0.99),
            at(1.0)
        );
        errors
    }
}

/// Options for the encapsulation of segments.
fn carriage(way: Way, journal: &Path) -> Vec<String> {
    let journal = vec!["--journal".to_owned(), journal.display().to_string()];
    if way.is_in_udp() { vec!["--udp".to_owned()] } else { journal }
}
