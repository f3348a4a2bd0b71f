//! A host with two uplinks behind NATs and a neighbour, a server behind the routers, and a target behind the server.
//!
//! ```text
//!   host  up0 10.1.0.2 ----- 10.1.0.1 router 0 100.64.1.2 ----- 100.64.1.1 s0  server 203.0.113.1 (beyond 198.51.100.1)
//!         up1 10.2.0.2 ----- 10.2.0.1 router 1 100.64.2.2 ----- 100.64.2.1 s1          |
//!         lan0 192.168.7.1 -- 192.168.7.2 neighbour              target 198.51.100.2, 2001:db8:2::2
//! ```
//!
//! Routers translate addresses, and count packets to other addresses than the server's. The server forwards, so that
//! the host reaches the target without `up` too.

use crate::program::as_nobody;
pub use crate::program::{Running, command, ip, text};

use crate::up::clock::Clocks;
use anabranch_system::Namespace;
use std::os::fd::AsRawFd as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

/// Address of the server.
const SERVER: &str = "203.0.113.1:4433";

const WORLD: &str = include_str!("world.py");

/// Configuration of routers.
const ROUTER: &str = "
table inet router {
  counter past {}
  chain count {
    type filter hook forward priority filter;
    iifname \"near\" ip daddr != { 203.0.113.1, 100.64.1.1, 100.64.2.1 } counter name past
  }
  chain translate {
    type nat hook postrouting priority srcnat;
    oifname \"far\" masquerade
  }
}
";

fn setting(key: &str, value: &str) {
    std::fs::write(Path::new("/proc/sys/net").join(key), value).expect("we may");
}

/// Answers every request like a captive portal.
const PORTAL: &str = "
import http.server
class Login(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.send_header('Content-Length', '5')
        self.end_headers()
        self.wfile.write(b'login')
    def log_message(self, *words):
        pass
server = http.server.ThreadingHTTPServer(('', 8080), Login)
print('ready', flush=True)
server.serve_forever()
";

/// Leads requests of the host's network to it.
const CAPTIVE: &str = "
table ip portal {
  chain catch {
    type nat hook prerouting priority dstnat;
    iifname \"near\" tcp dport 80 redirect to :8080
  }
}
";

/// What a server may use.
#[derive(Clone, Copy)]
pub struct Room {
    /// Limit of file descriptors.
    pub files: u64,
    pub connections: u64,
}

pub struct Scene {
    pub host: Namespace,
    pub neighbour: Namespace,
    pub routers: [Namespace; 2],
    pub server: Namespace,
    pub target: Namespace,
    pub place: PathBuf,
    clocks: Option<Clocks>,
    /// Killed at the end.
    serve: Option<Running>,
    running: Vec<Running>,
}

fn inside<T: Send>(namespace: &Namespace, work: impl FnOnce() -> T + Send) -> T {
    namespace.run(work).expect("the namespace can be entered")
}

/// A link with an address at each end.
fn link(one: (&Namespace, &str, &str), other: (&Namespace, &str, &str)) {
    let there = format!("/proc/{}/fd/{}", std::process::id(), other.0.file().as_raw_fd());
    inside(one.0, || ip(&format!("link add {} type veth peer name {} netns {there}", one.1, other.1)));
    for (namespace, name, address) in [one, other] {
        inside(namespace, || {
            setting(&format!("ipv6/conf/{name}/addr_gen_mode"), "1");
            ip(&format!("address add {address} dev {name}"));
            ip(&format!("link set {name} up"));
        });
    }
}

impl Scene {
    /// The scene, with `serve` running; segments are inside UDP if `udp`.
    pub fn new(name: &str, udp: bool) -> Self {
        Self::start(name, udp, |_| None)
    }

    /// Like [`Self::new`], with clocks that the test sets.
    pub fn with_clocks(name: &str, udp: bool) -> Self {
        Self::start(name, udp, |place| Some(Clocks::new(place)))
    }

    fn start(name: &str, udp: bool, clocks: fn(&Path) -> Option<Clocks>) -> Self {
        let namespace = || Namespace::new().expect("namespaces were there a moment ago");
        let place = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("up-{name}"));
        // It does not exist on the first run.
        let _ = std::fs::remove_dir_all(&place);
        std::fs::create_dir_all(place.join("journal")).expect("the test's directory can be made");
        let mut scene = Self {
            host: namespace(),
            neighbour: namespace(),
            routers: [namespace(), namespace()],
            server: namespace(),
            target: namespace(),
            clocks: clocks(&place),
            place,
            serve: None,
            running: Vec::new(),
        };
        scene.build();
        scene.serve(udp, None);
        scene
    }

    fn build(&mut self) {
        let Self { host, neighbour, routers, server, target, .. } = &*self;
        for namespace in [host, neighbour, &routers[0], &routers[1], server, target] {
            inside(namespace, || ip("link set lo up"));
        }
        inside(server, || {
            ip("address add 203.0.113.1/32 dev lo");
            setting("ipv4/ip_forward", "1");
        });
        for (n, router) in routers.iter().enumerate() {
            let net = n + 1;
            link((host, &format!("up{n}"), &format!("10.{net}.0.2/24")), (router, "near", &format!("10.{net}.0.1/24")));
            link(
                (router, "far", &format!("100.64.{net}.2/24")),
                (server, &format!("s{n}"), &format!("100.64.{net}.1/24")),
            );
            inside(router, || {
                ip(&format!("route add default via 100.64.{net}.1"));
                setting("ipv4/ip_forward", "1");
                let rules = self.place.join(format!("router{n}"));
                std::fs::write(&rules, ROUTER).expect("there is room");
                command("nft", &format!("-f {}", rules.display()));
            });
            inside(host, || ip(&format!("route add default via 10.{net}.0.1 dev up{n} metric 10{n}")));
        }
        link((host, "lan0", "192.168.7.1/24"), (neighbour, "eth0", "192.168.7.2/24"));
        inside(neighbour, || ip("route add default via 192.168.7.1"));
        link((server, "beyond", "198.51.100.1/24"), (target, "eth0", "198.51.100.2/24"));
        inside(server, || ip("address add 2001:db8:2::1/64 dev beyond nodad"));
        inside(target, || {
            ip("address add 2001:db8:2::2/64 dev eth0 nodad");
            ip("route add default via 198.51.100.1");
        });
        let stand = |role: &str| {
            let mut standing = Running::new(Command::new("python3").args(["-c", WORLD, role]));
            assert_eq!(standing.line(), "ready");
            standing
        };
        let standing = [inside(target, || stand("target")), inside(neighbour, || stand("echo"))];
        self.running.extend(standing);
    }

    fn serve(&mut self, udp: bool, room: Option<Room>) {
        let key = self.place.join("key").display().to_string();
        if !Path::new(&key).exists() {
            assert!(self.anabranch(&["key", &key]).status().expect("the program runs").success());
        }
        let resolver = self.place.join("resolv.conf");
        std::fs::write(&resolver, "nameserver 198.51.100.2\n").expect("there is room");
        let ways = if udp { "--udp" } else { "--uplink s0 --uplink s1" };
        // The server's host has its own resolver.
        let script = format!(
            "mount --bind {} /etc/resolv.conf && exec {} serve {ways} --socks --port 4433 --key {key} --journal {}",
            resolver.display(),
            env!("CARGO_BIN_EXE_anabranch"),
            self.place.join("served").display()
        );
        let script = if udp { script.split(" --journal").next().unwrap_or_default().to_owned() } else { script };
        let script = room.map_or(script.clone(), |Room { files, connections }| {
            format!("ulimit -n {files} && {script} --max-connections {connections}")
        });
        let serve = inside(&self.server, || {
            let mut command = Command::new("unshare");
            self.clocks.iter().for_each(|clocks| clocks.give("server", &mut command));
            let mut serve = Running::new(command.args(["--mount", "sh", "-c", &script]));
            assert!(serve.line().starts_with("listening on "));
            serve
        });
        self.serve = Some(serve);
    }

    /// Kills the server, and starts it again.
    pub fn restart_server(&mut self, udp: bool) {
        self.serve = None;
        self.serve(udp, None);
    }

    /// The same with segments inside UDP and limits; returns its process.
    pub fn restart_server_with(&mut self, room: Room) -> u32 {
        self.serve = None;
        self.serve(true, Some(room));
        self.serve.as_ref().expect("it runs").child.id()
    }

    /// Ends the server; returns the rest of its output.
    pub fn end_server(&mut self) -> String {
        self.serve.take().expect("it runs").end_by("TERM")
    }

    /// Those of [`Self::with_clocks`].
    pub fn clocks(&self) -> &Clocks {
        self.clocks.as_ref().expect("the scene has clocks")
    }

    /// Sends the server a signal.
    pub fn signal_server(&self, signal: &str) {
        self.serve.as_ref().expect("it runs").signal(signal);
    }

    /// Gives each uplink IPv6 (2001:db8:1N::/64), which the routers translate to 2001:db8:aN::2.
    pub fn give_ipv6(&self) {
        let forward = || setting("ipv6/conf/all/forwarding", "1");
        // Routers ask for neighbours from link-local addresses.
        let local = |device: &str| ip(&format!("address add fe80::1:1/64 dev {device} nodad"));
        inside(&self.server, || {
            forward();
            ["beyond", "s0", "s1"].into_iter().for_each(local);
        });
        inside(&self.target, || ip("route add default via 2001:db8:2::1"));
        for (n, router) in self.routers.iter().enumerate() {
            let (lan, wan) = (format!("2001:db8:1{}:", n + 1), format!("2001:db8:a{}:", n + 1));
            inside(router, || {
                forward();
                ["near", "far"]
                    .into_iter()
                    .for_each(|device| ip(&format!("address add fe80::1:2/64 dev {device} nodad")));
                ip(&format!("address add {lan}:1/64 dev near nodad"));
                ip(&format!("address add {wan}:2/64 dev far nodad"));
                ip(&format!("route add default via {wan}:1"));
            });
            inside(&self.server, || {
                ip(&format!("address add {wan}:1/64 dev s{n} nodad"));
                ip(&format!("route add {lan}:/64 via {wan}:2"));
            });
            inside(&self.host, || {
                ip(&format!("address add {lan}:2/64 dev up{n} nodad"));
                ip(&format!("route add default via {lan}:1 dev up{n} metric 10{n}"));
            });
        }
    }

    /// Drops what a router would forward, or ends that.
    pub fn silence(&self, router: usize, silent: bool) {
        let rules = if silent {
            "add table inet silent { chain passing { type filter hook forward priority 0; policy drop; }; }"
        } else {
            "delete table inet silent"
        };
        inside(&self.routers[router], || command("nft", rules));
    }

    /// Makes a router a captive portal, until [`Self::end_portal`].
    pub fn portal(&self, router: usize) -> Running {
        let rules = self.file("portal", CAPTIVE);
        inside(&self.routers[router], || {
            let portal = Running::python(PORTAL);
            command("nft", &format!("-f {rules}"));
            portal
        })
    }

    pub fn end_portal(&self, router: usize) {
        inside(&self.routers[router], || command("nft", "delete table ip portal"));
    }

    /// Bytes that the host has received over an uplink.
    pub fn received(&self, uplink: &str) -> u64 {
        let shown = inside(&self.host, || command("ip", &format!("-statistics -json link show {uplink}")));
        let shown: serde_json::Value = serde_json::from_str(&shown).expect("JSON");
        shown[0]["stats64"]["rx"]["bytes"].as_u64().expect("it counts")
    }

    pub fn anabranch(&self, words: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_anabranch"));
        self.clocks.iter().for_each(|clocks| clocks.give("host", &mut command));
        command.args(words);
        command
    }

    /// `up` with these options.
    pub fn command(&self, options: &[&str]) -> Command {
        let mut command =
            self.anabranch(&["up", "--server", SERVER, "--uplink", "up0", "--uplink", "up1", "--drain", "0"]);
        command.arg("--key").arg(self.place.join("key")).args(options);
        command.arg("--journal").arg(self.place.join("journal"));
        command
    }

    /// `up`, once it carries traffic.
    pub fn up(&self, options: &[&str]) -> Running {
        let mut up = self.on_host(|| Running::new(self.command(options).stderr(Stdio::piped())));
        up.hear("all traffic of this host");
        up.hear("answers over up0, up1");
        up
    }

    /// A resolver on the first router that has another address for the server's name.
    pub fn liar(&self) -> Running {
        inside(&self.routers[0], || {
            let mut liar = Running::new(Command::new("python3").args(["-c", WORLD, "liar"]));
            assert_eq!(liar.line(), "ready");
            liar
        })
    }

    /// Like [`Self::up`], with a server that the target's resolver knows by name; whether it answers is still unread.
    pub fn up_by_name(&self, options: &[&str]) -> Running {
        self.up_by_name_of("nameserver 198.51.100.2\n", options)
    }

    /// Like [`Self::up_by_name`], with other resolvers.
    pub fn up_by_name_of(&self, resolvers: &str, options: &[&str]) -> Running {
        let resolver = self.file("resolv.conf", resolvers);
        let key = self.place.join("key").display().to_string();
        let named = ["--server", "server.test:4433", "--key", &key, "--drain", "0"];
        let mut up = self.start_with(&resolver, &[&named, options].concat());
        up.hear("all traffic of this host goes through server.test:4433 now");
        up
    }

    /// `up` without a server, once it carries traffic; its events about uplinks are still unread.
    pub fn straight(&self, options: &[&str]) -> Running {
        let uplinks = ["--uplink", "up0", "--uplink", "up1", "--drain", "0"];
        self.begin(&[&uplinks, options].concat())
    }

    /// Like [`Self::straight`], with a configuration file.
    pub fn configured(&self, file: &str) -> Running {
        self.begin(&["--config", file])
    }

    fn begin(&self, options: &[&str]) -> Running {
        let mut up = self.start_with(&self.place.join("resolv.conf").display().to_string(), options);
        up.hear("all traffic of this host goes over all uplinks straight to its targets now");
        up
    }

    /// `up` with a resolver configuration of its own.
    fn start_with(&self, resolver: &str, options: &[&str]) -> Running {
        self.on_host(|| {
            let script = "mount --bind \"$0\" /etc/resolv.conf && exec \"$@\"";
            let mut command = Command::new("unshare");
            command.args(["--mount", "sh", "-c", script, resolver, env!("CARGO_BIN_EXE_anabranch"), "up"]);
            command.args(options).arg("--journal").arg(self.place.join("journal"));
            Running::new(command.stderr(Stdio::piped()))
        })
    }

    /// Like [`Self::straight`], as the systemd unit runs it: another user than root, with no capability but
    /// CAP_NET_ADMIN. `place` is a directory that all users reach.
    pub fn as_a_unit(&self, place: &Path, options: &[&str]) -> Running {
        let program = place.join("anabranch");
        std::fs::copy(env!("CARGO_BIN_EXE_anabranch"), &program).expect("there is room");
        let mut up = self.on_host(|| {
            let mut command = as_nobody();
            command.arg("--no-new-privs");
            for set in ["inh-caps", "ambient-caps", "bounding-set"] {
                command.arg(format!("--{set}=-all,+net_admin"));
            }
            command.arg(program).arg("up").args(options).arg("--journal").arg(place.join("journal"));
            Running::new(command.env("NOTIFY_SOCKET", place.join("notify")).stderr(Stdio::piped()))
        });
        up.hear("all traffic of this host goes over all uplinks straight to its targets now");
        up
    }

    /// Writes a file of the test; returns its path.
    pub fn file(&self, name: &str, text: &str) -> String {
        let path = self.place.join(name);
        std::fs::write(&path, text).expect("there is room");
        path.display().to_string()
    }

    /// The output of `status` as JSON.
    pub fn status(&self) -> serde_json::Value {
        let journal = self.place.join("journal").display().to_string();
        let output = self.anabranch(&["status", "--json", "--journal", &journal]).output().expect("the program runs");
        let all: serde_json::Value = serde_json::from_slice(&output.stdout).expect("it is JSON");
        all.get(0).cloned().unwrap_or_else(|| panic!("nothing runs: {}", text(&output.stderr)))
    }

    /// The output of `up --down`.
    pub fn down(&self) -> String {
        let mut command = self.anabranch(&["up", "--down"]);
        command.arg("--journal").arg(self.place.join("journal"));
        let output = self.on_host(|| command.output().expect("the program runs"));
        text(&output.stdout) + &text(&output.stderr)
    }

    pub fn on_host<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        inside(&self.host, work)
    }

    /// Packets of the host that routers forwarded to other addresses than the server's.
    pub fn past(&self) -> u64 {
        let count = |router| {
            let shown = inside(router, || command("nft", "list counter inet router past"));
            let number = shown.split("packets ").nth(1).and_then(|rest| rest.split(' ').next()?.parse::<u64>().ok());
            number.expect("it counts")
        };
        self.routers.iter().map(count).sum()
    }

    /// Network configuration of the host.
    pub fn state(&self) -> Vec<String> {
        self.on_host(|| {
            let shown = ["rule", "-6 rule", "route show table all", "-6 route show table all", "-oneline address"];
            let mut state: String = shown.map(|words| command("ip", words)).concat();
            state += &command("nft", "list ruleset");
            state.lines().map(|line| line.trim_end().to_owned()).collect()
        })
    }

    /// Runs a Python script on the host; returns its output, or its error.
    pub fn python(&self, script: &str) -> Result<String, String> {
        python(&self.host, script)
    }
}

/// Runs a Python script; returns its output, or the last line of its error.
pub fn python(namespace: &Namespace, script: &str) -> Result<String, String> {
    let script = format!("import socket, struct, sys, time, urllib.request\n{script}");
    let output = inside(namespace, || Command::new("python3").args(["-c", &script]).output().expect("python runs"));
    let errors = text(&output.stderr);
    if output.status.success() {
        Ok(text(&output.stdout).trim().to_owned())
    } else {
        Err(errors.lines().last().unwrap_or_default().to_owned())
    }
}

/// Waits until a condition holds.
pub fn wait_until(what: &str, mut so: impl FnMut() -> bool) {
    for _ in 0..200 {
        if so() {
            return;
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    panic!("{what}: not within 20 s");
}
