//! A host with two uplinks, and a server with an address of its own, both with the kernel's MPTCP.

use crate::program::{Running, anabranch, command, directory, ip, text};
use crate::two_uplinks::host_and_world;
use anabranch_system::Namespace;
use libtest_mimic::Trial;
use serde_json::Value;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// The server.
pub const SERVER: &str = "203.0.113.1";

/// Of a scene: the path of a socket is short.
static NUMBER: AtomicU32 = AtomicU32::new(0);

/// The programs at both ends.
const WORLD: &str = include_str!("world.py");

/// How long anything that is waited for may take, on a busy machine.
const PATIENCE: Duration = Duration::from_secs(30);

pub struct Scene {
    pub host: Namespace,
    world: Namespace,
    /// Holds journals and sockets of the daemons.
    pub directory: PathBuf,
    _serve: Running,
}

fn python(words: &[&str]) -> Command {
    let mut command = Command::new("python3");
    command.args(["-c", WORLD]).args(words).stdin(Stdio::piped());
    command
}

impl Scene {
    pub fn new() -> Self {
        let (host, world) = host_and_world(|n, net| {
            ip(&format!("route add default via 10.{net}.0.1 dev up{n} table 10{n}"));
            ip(&format!("rule add from 10.{net}.0.2 table 10{n}"));
            ip(&format!("mptcp endpoint add 10.{net}.0.2 dev up{n} subflow"));
        });
        let enter = "the namespace can be entered";
        let serve = world
            .run(|| {
                ip("link set lo up");
                ip(&format!("address add {SERVER}/32 dev lo"));
                ip("mptcp limits set subflows 8 add_addr_accepted 8");
                let mut serve = Running::new(&mut python(&["serve"]));
                assert_eq!(serve.line(), "ready");
                serve
            })
            .expect(enter);
        Self {
            host,
            world,
            directory: directory(&format!("s{}", NUMBER.fetch_add(1, Ordering::Relaxed))),
            _serve: serve,
        }
    }

    pub fn on_host<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        self.host.run(work).expect("the namespace can be entered")
    }

    pub fn in_world<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        self.world.run(work).expect("the namespace can be entered")
    }

    /// `steer` with these options and the scene's journal.
    pub fn command(&self, options: &[&str]) -> Command {
        let mut command = anabranch(&["steer"]);
        command.arg("--journal").arg(&self.directory).args(options);
        command
    }

    /// A daemon that has begun. What it says goes to the file `said`.
    pub fn daemon(&self, options: &[&str]) -> Running {
        let file = self.said_file();
        let said = std::fs::File::create(&file).expect("it can be made");
        let mut command = self.command(options);
        let running = self.on_host(|| Running::new(command.stderr(said)));
        wait_for(|| self.said().contains("policy ").then_some(()).ok_or_else(|| self.said()));
        running
    }

    fn said_file(&self) -> PathBuf {
        self.directory.join("said")
    }

    /// What the last daemon has said.
    pub fn said(&self) -> String {
        std::fs::read_to_string(self.said_file()).unwrap_or_default()
    }

    /// A connection on which a little is exchanged all the time.
    pub fn connection(&self) -> Running {
        self.connection_to(SERVER)
    }

    /// The server, in the caller's namespace.
    pub fn serve(&self) -> Running {
        Running::new(&mut python(&["serve"]))
    }

    /// The same to another server.
    pub fn connection_to(&self, server: &str) -> Running {
        let mut running = self.on_host(|| Running::new(&mut python(&["keep", server])));
        assert_eq!(running.line(), "ready");
        running
    }

    /// Opens and closes connections; returns how many.
    pub fn churn(&self, rate: u32, seconds: u32) -> u32 {
        let (rate, seconds) = (rate.to_string(), seconds.to_string());
        let output = self.on_host(|| python(&["churn", SERVER, &rate, &seconds]).output().expect("python3 is there"));
        text(&output.stdout).trim().parse().unwrap_or_else(|_| panic!("{}", text(&output.stderr)))
    }

    /// The status of the daemon.
    pub fn status(&self) -> Value {
        let mut status = anabranch(&["status", "--json", "--journal"]);
        let output = status.arg(&self.directory).output().expect("the program runs");
        let all: Value = serde_json::from_slice(&output.stdout).expect("it is JSON");
        all[0].clone()
    }

    /// Waits for a status in which the first connection's live paths are these, with their states.
    pub fn sees(&self, wanted: &[(&str, &str)]) -> Value {
        wait_for(|| {
            let status = self.status();
            let paths = status["connections"]["shown"][0]["paths"].as_array().cloned().unwrap_or_default();
            let mut found: Vec<(&str, &str)> = paths
                .iter()
                .filter_map(|path| Some((path["uplink"].as_str()?, path["state"].as_str()?)))
                .filter(|(_, state)| !state.contains(" ago"))
                .collect();
            found.sort_unstable();
            if found == wanted { Ok(status) } else { Err(format!("{status:#}\n{}", self.said())) }
        })
    }

    /// The choice of a path manager for new connections.
    pub fn path_manager(&self) -> String {
        self.on_host(|| std::fs::read_to_string("/proc/sys/net/mptcp/pm_type").expect("the kernel has MPTCP"))
            .trim()
            .to_owned()
    }

    /// Waits until these endpoints are backups.
    pub fn has_backups(&self, wanted: &[&str]) {
        wait_for(|| {
            let all = self.on_host(|| command("ip", "mptcp endpoint show"));
            let backups = all.lines().filter(|line| line.contains("backup"));
            let found: Vec<&str> = backups.filter_map(|line| line.split_whitespace().next()).collect();
            if found == wanted { Ok(()) } else { Err(format!("{all}\n{}", self.said())) }
        });
    }
}

/// How much has come back to a connection.
pub fn exchanged(connection: &mut Running) -> u64 {
    let input = connection.child.stdin.as_mut().expect("it was asked for");
    input.write_all(b"\n").expect("it reads");
    let line = connection.line();
    line.parse().unwrap_or_else(|_| panic!("the connection is {line}"))
}

/// Asserts that something comes back.
pub fn lives(connection: &mut Running) {
    let before = exchanged(connection);
    wait_for(|| (exchanged(connection) > before + 2).then_some(()).ok_or_else(|| "nothing comes back".to_owned()));
}

pub fn wait_for<T>(mut look: impl FnMut() -> Result<T, String>) -> T {
    let end = Instant::now() + PATIENCE;
    loop {
        match look() {
            Ok(found) => return found,
            Err(seen) if Instant::now() > end => panic!("what is waited for does not come: {seen}"),
            Err(_) => std::thread::sleep(Duration::from_millis(50)),
        }
    }
}

/// A test with its own scene.
pub fn trial(name: &'static str, work: fn(&Scene)) -> Trial {
    Trial::test(format!("steer::{name}"), move || {
        work(&Scene::new());
        Ok(())
    })
}
