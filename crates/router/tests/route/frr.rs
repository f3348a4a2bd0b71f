//! FRRouting's OSPFv3 at the other end of a point-to-point link: adjacency, and routes in both directions. Needs the
//! programs of the Debian package `frr`.

use crate::bfd::{lost, sessions};
use crate::field::{lines, listener};
use crate::gateway::give_uplink;
use crate::kernel::ip;
use crate::scene::{Running, wait_for};
use anabranch_policy::time::Duration;
use anabranch_router::{Family, MeshInterface, Question, RouteConfig};
use anabranch_routing::bfd::BfdSettings;
use anabranch_system::Namespace;
use libtest_mimic::Trial;
use serde_json::Value;
use std::fs;
use std::os::fd::AsRawFd;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{PoisonError, RwLock};

/// Debian's directory of the daemons.
const PROGRAMS: &str = "/usr/lib/frr";

pub fn trials() -> Vec<Trial> {
    let there = Path::new(PROGRAMS).join("ospf6d").exists();
    if !there {
        eprintln!("skipped: frr::*: there is no {PROGRAMS}/ospf6d (Debian package frr)");
    }
    let tests: [(&str, fn()); 7] = [
        (
            "frr::on_a_network_with_a_designated_router_it_is_told_so",
            on_a_network_with_a_designated_router_it_is_told_so,
        ),
        ("frr::restarts_and_no_route_is_lost_while_it_is_away", restarts_and_no_route_is_lost_while_it_is_away),
        ("frr::uses_our_way_out_while_there_is_one", uses_our_way_out_while_there_is_one),
        ("frr::a_neighbor_that_is_killed_is_lost_by_bfd", a_neighbor_that_is_killed_is_lost_by_bfd),
        ("frr::becomes_fully_adjacent_and_routes_are_exchanged", becomes_fully_adjacent_and_routes_are_exchanged),
        ("frr::the_default_route_of_a_gateway_is_used", the_default_route_of_a_gateway_is_used),
        ("frr::a_neighbor_that_is_killed_and_comes_back_is_used_again", a_neighbor_that_is_killed_comes_back),
    ];
    let trial = |(name, test): (&'static str, fn())| {
        Trial::test(name, move || {
            test();
            Ok(())
        })
        .with_ignored_flag(!there)
    };
    tests.into_iter().map(trial).collect()
}

/// Their configuration: the link with short timers, and a network of their own.
const CONFIGURATION: &str = "\
interface far
 ipv6 ospf6 area 0.0.0.0
 ipv6 ospf6 network point-to-point
 ipv6 ospf6 hello-interval 1
 ipv6 ospf6 dead-interval 4
interface lo
 ipv6 ospf6 area 0.0.0.0
 ipv6 ospf6 passive
router ospf6
 ospf6 router-id 9.9.9.9
";

/// FRR's ospf6d has one file for all its processes in which it tells its successor that this is a restart. Others that start
/// meanwhile would take it for theirs, and originate nothing until the grace period is over.
static RESTART: RwLock<()> = RwLock::new(());

/// An FRR router in its own namespace.
struct Frr {
    namespace: Namespace,
    directory: PathBuf,
    daemons: Vec<Child>,
}

impl Frr {
    fn new() -> Self {
        static NUMBER: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let directory = std::env::temp_dir().join(format!("anabranch-frr-{}-{number}", std::process::id()));
        fs::create_dir(&directory).expect("there is room for a directory");
        // The daemons drop privileges to their own user.
        fs::set_permissions(&directory, fs::Permissions::from_mode(0o777)).expect("it is ours");
        fs::write(directory.join("zebra.conf"), "").expect("there is room for a file");
        fs::write(directory.join("ospf6d.conf"), CONFIGURATION).expect("there is room for a file");
        let namespace = Namespace::new().expect("namespaces were there a moment ago");
        Self { namespace, directory, daemons: Vec::new() }
    }

    fn start(&mut self) {
        let _nobody_restarts = RESTART.read().unwrap_or_else(PoisonError::into_inner);
        self.start_all(&[("zebra", "zserv.api"), ("ospf6d", "ospf6d.vty")]);
    }

    /// The same with BFD on the link, a packet every 100 ms; and with a dead interval that nobody waits for.
    fn start_with_bfd(&mut self) {
        let file = |name: &str| self.directory.join(name);
        let detecting = " ipv6 ospf6 dead-interval 600\n ipv6 ospf6 bfd profile fast\n";
        let configuration = CONFIGURATION.replace(" ipv6 ospf6 dead-interval 4\n", detecting);
        fs::write(file("ospf6d.conf"), configuration).expect("there is room for a file");
        let profile = "bfd\n profile fast\n  receive-interval 100\n  transmit-interval 100\n";
        fs::write(file("bfdd.conf"), profile).expect("there is room for a file");
        let _nobody_restarts = RESTART.read().unwrap_or_else(PoisonError::into_inner);
        self.start_all(&[("zebra", "zserv.api"), ("bfdd", "bfdd.vty"), ("ospf6d", "ospf6d.vty")]);
    }

    /// Starts daemons, each once the file of the one before is there.
    fn start_all(&mut self, daemons: &[(&str, &str)]) {
        for (program, readiness) in daemons {
            let file = |name: &str| self.directory.join(name);
            let mut command = Command::new(Path::new(PROGRAMS).join(program));
            command.arg("-f").arg(file(&format!("{program}.conf"))).arg("-i").arg(file(&format!("{program}.pid")));
            command.arg("-z").arg(file("zserv.api")).arg("--vty_socket").arg(&self.directory);
            command.args(["-P", "0", "--log", "stdout"]).stdin(Stdio::null()).stderr(Stdio::null());
            let log = fs::File::create(file(&format!("{program}.log"))).expect("there is room for a file");
            let child = self.namespace.run(|| command.stdout(log).spawn()).expect("it can be entered");
            self.daemons.push(child.expect("the program is there"));
            wait_for(program, || if file(readiness).exists() { Ok(()) } else { Err(self.log(program)) });
        }
    }

    fn log(&self, program: &str) -> String {
        fs::read_to_string(self.directory.join(format!("{program}.log"))).unwrap_or_default()
    }

    /// Tells the neighbours that it restarts.
    fn begin_restart(&mut self) {
        let said = self.show("graceful-restart prepare ipv6 ospf");
        assert_eq!(said.trim(), "");
    }

    fn kill_ospf(&mut self) {
        if let Some(mut daemon) = self.daemons.pop() {
            daemon.kill().expect("it runs");
            daemon.wait().expect("it ran");
        }
        fs::remove_file(self.directory.join("ospf6d.vty")).expect("it was there");
    }

    /// Kills the daemons without a goodbye.
    fn kill(&mut self) {
        for mut daemon in self.daemons.drain(..) {
            // It may already have exited.
            let _ = daemon.kill();
            let _ = daemon.wait();
        }
        for name in ["zserv.api", "ospf6d.vty", "zebra.vty", "bfdd.vty"] {
            let _ = fs::remove_file(self.directory.join(name));
        }
    }

    /// The output of a command.
    fn show(&self, command: &str) -> String {
        let mut vtysh = Command::new("vtysh");
        vtysh.arg("--vty_socket").arg(&self.directory).args(["-c", command]);
        let output = self.namespace.run(|| vtysh.output()).expect("it can be entered").expect("vtysh runs");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }
}

impl Frr {
    /// Gives commands of the configuration.
    fn configure(&self, commands: &[&str]) {
        let mut vtysh = Command::new("vtysh");
        vtysh.arg("--vty_socket").arg(&self.directory);
        for command in [&["configure terminal"], commands].concat() {
            vtysh.args(["-c", command]);
        }
        let output = self.namespace.run(|| vtysh.output()).expect("it can be entered").expect("vtysh runs");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    }
}

impl Drop for Frr {
    fn drop(&mut self) {
        self.kill();
        let _ = fs::remove_dir_all(&self.directory);
    }
}

/// Our namespace with the link `near`, FRR's with `far`, and a network behind each.
fn linked() -> (Namespace, Frr) {
    let (ours, theirs) = (Namespace::new().expect("namespaces were there a moment ago"), Frr::new());
    let there = format!("/proc/{}/fd/{}", std::process::id(), theirs.namespace.file().as_raw_fd());
    let inside = |namespace: &Namespace, device: &str, address: &str| {
        namespace
            .run(|| {
                ip("link set lo up");
                ip(&format!("link set {device} up"));
                ip(&format!("address add {address}/128 dev lo nodad"));
            })
            .expect("it can be entered");
    };
    ours.run(|| ip(&format!("link add near type veth peer name far netns {there}"))).expect("it can be entered");
    inside(&theirs.namespace, "far", "2001:db8:9::1");
    inside(&ours, "near", "2001:db8:1::1");
    (ours, theirs)
}

fn config() -> RouteConfig {
    let mut config = RouteConfig { families: vec![Family::Ipv6], keep_settings: true, ..RouteConfig::default() };
    config.interfaces.push(MeshInterface { name: "near".to_owned(), point_to_point: true, cost: None });
    config.router_id = Some("1.1.1.1".parse().expect("an address"));
    config.networks.push(("2001:db8:1:5::".parse().expect("an address"), 64));
    config.point_to_point.hello_interval = Duration::from_secs(1);
    config.point_to_point.router_dead_interval = Duration::from_secs(4);
    config
}

/// Waits until both are adjacent, and each has the other's routes in its kernel.
fn joined(ours: &Namespace, frr: &Frr, router: &Running) {
    let full = || {
        let text = frr.show("show ipv6 ospf6 neighbor json");
        let answer: Value = serde_json::from_str(&text).unwrap_or_default();
        let state = &answer["neighbors"][0]["state"];
        if *state == "Full" { Ok(()) } else { Err((text, router.ask(Question::Neighbors), frr.log("ospf6d"))) }
    };
    wait_for("FRR to be fully adjacent", full);
    let routes = |namespace: &Namespace| {
        let shown = namespace.run(|| Command::new("ip").args(["-6", "route", "show", "table", "all"]).output());
        String::from_utf8_lossy(&shown.expect("it can be entered").expect("ip runs").stdout).into_owned()
    };
    wait_for("our route to their network", || {
        let shown = routes(ours);
        let there = shown.lines().any(|line| line.starts_with("2001:db8:9::1 via fe80:") && line.contains("proto 199"));
        if there { Ok(()) } else { Err((shown, router.ask(Question::Database))) }
    });
    for network in ["2001:db8:1::1 ", "2001:db8:1:5::/64 "] {
        wait_for("their route to our networks", || {
            let shown = routes(&frr.namespace);
            let there = shown.lines().any(|line| line.starts_with(network) && line.contains("proto ospf"));
            if there {
                Ok(())
            } else {
                Err((shown, frr.show("show ipv6 ospf6 database"), frr.show("show ipv6 ospf6 route")))
            }
        });
    }
}

fn becomes_fully_adjacent_and_routes_are_exchanged() {
    let (ours, mut frr) = linked();
    frr.start();
    let router = Running::start(&ours, config());
    joined(&ours, &frr, &router);
    // The kernels forward accordingly.
    let ping =
        || Command::new("ping").args(["-6", "-c", "1", "-W", "5", "-I", "2001:db8:1::1", "2001:db8:9::1"]).output();
    if let Ok(output) = ours.run(ping).expect("it can be entered") {
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    }
    router.stop().expect("it ends well");
    let left = ours.run(|| Command::new("ip").args(["-6", "route", "show", "table", "all", "proto", "199"]).output());
    assert!(left.expect("it can be entered").expect("ip runs").stdout.is_empty(), "its routes are gone");
}

/// Ethernet's type unless they set another: they would be adjacent, and neither would find the other's routes.
fn on_a_network_with_a_designated_router_it_is_told_so() {
    let (ours, mut frr) = linked();
    let configuration = CONFIGURATION.replace(" ipv6 ospf6 network point-to-point\n", "");
    fs::write(frr.directory.join("ospf6d.conf"), configuration).expect("there is room for a file");
    frr.start();
    let (log, tell) = listener();
    let router = Running::start_telling(&ours, config(), tell);
    let wanted = "tells of a Designated Router, and this end is point-to-point";
    wait_for("the sentence", || match lines(&log, wanted) {
        1 => Ok(()),
        _ => Err((router.ask(Question::Neighbors), frr.show("show ipv6 ospf6 interface far"))),
    });
    wait_for("the loss of the neighbour", || {
        let neighbors = router.ask(Question::Neighbors);
        let is_there = neighbors[0]["state"].as_str().is_some_and(|state| state != "down");
        if is_there { Err(neighbors) } else { Ok(()) }
    });
}

fn our_route_is_gone(ours: &Namespace) {
    wait_for("our route to be gone", || {
        let shown =
            ours.run(|| Command::new("ip").args(["-6", "route", "show", "table", "all", "proto", "199"]).output());
        let shown = shown.expect("it can be entered").expect("ip runs").stdout;
        if shown.is_empty() { Ok(()) } else { Err(String::from_utf8_lossy(&shown).into_owned()) }
    });
}

fn a_neighbor_that_is_killed_comes_back() {
    let (ours, mut frr) = linked();
    frr.start();
    let router = Running::start(&ours, config());
    joined(&ours, &frr, &router);
    frr.kill();
    our_route_is_gone(&ours);
    frr.start();
    joined(&ours, &frr, &router);
}

fn a_neighbor_that_is_killed_is_lost_by_bfd() {
    let (ours, mut frr) = linked();
    frr.start_with_bfd();
    let mut config = config();
    config.bfd = Some(BfdSettings::default());
    config.point_to_point.router_dead_interval = Duration::from_secs(600);
    let router = Running::start(&ours, config);
    joined(&ours, &frr, &router);
    wait_for("the session to be up at both ends", || {
        let peers = frr.show("show bfd peers json");
        let theirs: Value = serde_json::from_str(&peers).unwrap_or_default();
        let up = theirs[0]["status"] == "up" && theirs[0]["remote-transmit-interval"] == 100;
        if up && sessions(&router) == ["up"] { Ok(()) } else { Err((peers, sessions(&router), frr.log("bfdd"))) }
    });
    frr.kill();
    our_route_is_gone(&ours);
    assert_eq!(lost(&router), 1);
}

/// FRR as the gateway of a team: it knows the way to the Internet and tells it in an AS-External-LSA.
fn the_default_route_of_a_gateway_is_used() {
    let (ours, mut frr) = linked();
    frr.start();
    let router = Running::start(&ours, config());
    joined(&ours, &frr, &router);
    frr.configure(&["router ospf6", "default-information originate always"]);
    wait_for("the default route", || {
        let shown = ours.run(|| Command::new("ip").args(["-6", "route", "show", "table", "199", "default"]).output());
        let shown = String::from_utf8_lossy(&shown.expect("it can be entered").expect("ip runs").stdout).into_owned();
        if shown.contains("via fe80:") { Ok(()) } else { Err((shown, router.ask(Question::Database))) }
    });
}

/// This router as the gateway of FRR.
fn uses_our_way_out_while_there_is_one() {
    let (ours, mut frr) = linked();
    give_uplink(&ours);
    frr.start();
    let router = Running::start(&ours, RouteConfig { gateway: Some(7), ..config() });
    let default = |wanted: bool| {
        wait_for("their default route", || {
            let words = ["-6", "route", "show", "default"];
            let shown = frr.namespace.run(|| Command::new("ip").args(words).output());
            let shown =
                String::from_utf8_lossy(&shown.expect("it can be entered").expect("ip runs").stdout).into_owned();
            let there = shown.contains("via fe80:") && shown.contains("proto ospf");
            if there == wanted { Ok(()) } else { Err((shown, frr.show("show ipv6 ospf6 database as-external detail"))) }
        });
    };
    default(true);
    let shown = frr.show("show ipv6 ospf6 route external-1");
    assert!(shown.contains("::/0"), "{shown}");
    ours.run(|| ip("-6 route del default dev up0")).expect("it can be entered");
    default(false);
    router.stop().expect("it ends well");
}

/// RFC 5187: FRR restarts its daemon of OSPF, and its kernel goes on forwarding.
fn restarts_and_no_route_is_lost_while_it_is_away() {
    let (ours, mut frr) = linked();
    let configuration = CONFIGURATION.to_owned() + " graceful-restart grace-period 60\n";
    fs::write(frr.directory.join("ospf6d.conf"), configuration).expect("there is room for a file");
    frr.start();
    let (log, tell) = listener();
    let router = Running::start_telling(&ours, config(), tell);
    joined(&ours, &frr, &router);
    // It acknowledges our LSAs a second late.
    wait_for("acknowledgments", || {
        let answer = router.ask(Question::Neighbors);
        if answer[0]["unacknowledged"] == 0 { Ok(()) } else { Err(answer) }
    });
    let said = |words: &str| {
        wait_for("a sentence", || {
            if lines(&log, words) == 1 { Ok(()) } else { Err(log.lock().map(|log| log.clone()).ok()) }
        });
    };
    let others_wait = RESTART.write().unwrap_or_else(PoisonError::into_inner);
    frr.begin_restart();
    said("the neighbour 9.9.9.9 on near restarts and stays a neighbour for");
    frr.kill_ospf();
    let removed = || router.ask(Question::Status)["routes_removed"].clone();
    let before = removed();
    // Its RouterDeadInterval is 4 s.
    std::thread::sleep(std::time::Duration::from_secs(6));
    assert_eq!(router.ask(Question::Neighbors)[0]["state"], "full");
    assert_eq!(removed(), before);
    // The LSAs that FRR 8.4 originates once it has restarted may take the route away for a moment.
    frr.start_all(&[("ospf6d", "ospf6d.vty")]);
    said("the neighbour 9.9.9.9 on near has restarted");
    joined(&ours, &frr, &router);
    drop(others_wait);
    assert_eq!(router.ask(Question::Status)["instances"][0]["restarts_helped"], 1);
}
