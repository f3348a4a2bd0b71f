//! A host with two uplinks, and the world, which is router, server and, at 203.0.113.1 and 2001:db8::1, target.

pub use crate::program::{Running, anabranch, command, ip, text};

use crate::program::directory;
use crate::two_uplinks::host_and_world;
use anabranch_system::Namespace;
use libtest_mimic::Trial;
use std::process::{Command, Output};

/// Address of the server, as seen by the host.
pub const SERVER: &str = "10.1.0.1:4433";

/// Services of the world: kernel sockets that answer on the ports used by the tests.
const WORLD: &str = include_str!("world.py");

/// A new key; none if it cannot be created.
pub fn key(name: &str) -> Option<String> {
    let file = directory(&format!("run-{name}")).join("key").display().to_string();
    let made = anabranch(&["key", &file]).output().ok()?;
    made.status.success().then_some(file)
}

/// Host and world, with a running server.
pub struct Scene {
    pub host: Namespace,
    pub world: Namespace,
    pub key: String,
    _serve: Running,
    _world: Running,
}

impl Scene {
    pub fn new(name: &str) -> Self {
        let (host, world) = host_and_world(|_, _| ());
        let enter = "the namespace can be entered";
        let key = key(name).expect("a key can be made");
        let (serve, standing) = world
            .run(|| {
                ip("link set lo up");
                ip("address add 203.0.113.1/32 dev lo");
                ip("address add 2001:db8::1/128 dev lo nodad");
                let mut standing = Running::new(Command::new("python3").args(["-c", WORLD]));
                assert_eq!(standing.line(), "ready");
                // The server uses the world's resolver too.
                let resolver = format!("{key}.resolver");
                std::fs::write(&resolver, "nameserver 127.0.0.1\n").expect("it can be written");
                let script = "mount --bind \"$0\" /etc/resolv.conf && exec \"$@\"";
                let mut command = Command::new("unshare");
                command.args(["--mount", "sh", "-c", script, &resolver, env!("CARGO_BIN_EXE_anabranch")]);
                let mut serve =
                    Running::new(command.args(["serve", "--udp", "--socks", "--port", "4433", "--key", &key]));
                assert!(serve.line().starts_with("listening on "));
                (serve, standing)
            })
            .expect(enter);
        Self { host, world, key, _serve: serve, _world: standing }
    }

    /// `run` with these options and this program, on the host.
    pub fn command(&self, options: &[&str], program: &[&str]) -> Command {
        let mut command = anabranch(&["run", "--server", SERVER, "--key", &self.key]);
        command.args(options).arg("--").args(program);
        command
    }

    /// Runs a program until it exits.
    pub fn run(&self, options: &[&str], program: &[&str]) -> Output {
        let mut command = self.command(options, program);
        self.on_host(|| command.output().expect("the program runs"))
    }

    /// Runs a Python script that must succeed; returns its output.
    pub fn python(&self, script: &str) -> String {
        let output = self.run(&[], &["python3", "-c", script]);
        assert!(output.status.success(), "{}{}", text(&output.stdout), text(&output.stderr));
        text(&output.stdout).trim().to_owned()
    }

    /// A resolver configuration with the world's resolver, as reached by the host.
    pub fn resolver(&self) -> String {
        let resolver = format!("{}.straight", self.key);
        std::fs::write(&resolver, "nameserver 203.0.113.1\n").expect("it can be written");
        resolver
    }

    /// Runs a Python script without a server; it must succeed. Returns its output.
    pub fn straight(&self, script: &str) -> String {
        let mut command = anabranch(&["run", "--", "python3", "-c", script]);
        let mut command = crate::run::straight::with_resolver(&self.resolver(), &mut command);
        let output = self.on_host(|| command.output().expect("the program runs"));
        assert!(output.status.success(), "{}{}", text(&output.stdout), text(&output.stderr));
        text(&output.stdout).trim().to_owned()
    }

    pub fn on_host<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        self.host.run(work).expect("the namespace can be entered")
    }

    pub fn in_world<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        self.world.run(work).expect("the namespace can be entered")
    }

    /// Bytes received by the host over an uplink.
    pub fn received(&self, uplink: &str) -> u64 {
        let shown = self.on_host(|| command("ip", &format!("-statistics -oneline link show {uplink}")));
        let after = shown.split("RX:").nth(1).expect("it counts");
        let numbers: Vec<u64> = after.split_whitespace().filter_map(|word| word.parse().ok()).collect();
        *numbers.first().expect("bytes come first")
    }
}

/// A test with its own scene.
pub fn trial(group: &str, name: &'static str, work: fn(&Scene)) -> Trial {
    Trial::test(format!("run::{group}::{name}"), move || {
        work(&Scene::new(name));
        Ok(())
    })
}
