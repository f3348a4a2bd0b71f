//! Routers side by side on the paper's mesh: ours, ours with BFD, and babeld (Debian package `babeld`), each with a Hello a
//! second.
//!
//! `ANABRANCH_BESIDE=6 cargo test -p anabranch-router --test route -- beside --test-threads 1 --nocapture` makes 6 runs of each and prints a
//! table (docs/measurements/routing.md has one): the time to the first answer, control traffic while nothing happens, the longest
//! time without an answer after a silent cut of the first link of the way, and the probes lost when its first relay ends
//! by SIGTERM, of 500.

use crate::convergence::{summary, way};
use crate::probe::{Probe, Target};
use crate::scene::{Running, Scene, config, variable, wait_for};
use anabranch_emulate::{ChannelModel, Ether, Mesh, MeshConfig, mesh};
use anabranch_router::{Family, RouteConfig};
use anabranch_routing::bfd::BfdSettings;
use anabranch_system::Namespace;
use libtest_mimic::Trial;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::ops::Range;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const BABELD: &str = "/usr/sbin/babeld";

/// Idle time in which control traffic is counted.
const IDLE: Duration = Duration::from_secs(30);

/// Wait after a cut or an end; probes of the last second do not count.
const AFTER: Duration = Duration::from_secs(6);

pub fn trials() -> Vec<Trial> {
    let Some(runs) = variable("ANABRANCH_BESIDE") else { return Vec::new() };
    let trial = |name: &'static str, kind: fn() -> Kind| {
        Trial::test(format!("beside::{name}"), move || {
            beside(name, &kind(), runs);
            Ok(())
        })
    };
    let plain = || Some(config(Family::Ipv4, 1));
    let detecting = || Some(RouteConfig { bfd: Some(BfdSettings::default()), ..config(Family::Ipv4, 1) });
    vec![
        trial("anabranch", plain),
        trial("anabranch_with_bfd", detecting),
        trial("babeld", || None).with_ignored_flag(babeld_is_missing()),
    ]
}

/// A trial with as many draws as an environment variable says, from `ANABRANCH_SEED` on; none without the variable.
pub fn draws_beside_babeld(name: &str, draws: &str, side_by_side: fn(Range<u64>)) -> Vec<Trial> {
    let Some(draws) = variable::<u64>(draws) else { return Vec::new() };
    let first = variable("ANABRANCH_SEED").unwrap_or(1);
    let trial = Trial::test(name, move || {
        side_by_side(first..first + draws);
        Ok(())
    });
    vec![trial.with_ignored_flag(babeld_is_missing())]
}

fn babeld_is_missing() -> bool {
    !Path::new(BABELD).exists()
}

/// A router of one of the kinds.
pub enum Router {
    Ours(Option<Running>),
    Babel(Child),
}

impl Router {
    fn babel(namespace: &Namespace) -> Self {
        let mut command = Command::new(BABELD);
        // Several would have one pid file, and one state file, which each removes at its start.
        command.args(["-I", "", "-S", "", "-C", "skip-kernel-setup true"]);
        command.args(["-C", "interface e0 type wireless hello-interval 1 update-interval 4"]);
        command.args(["-C", "redistribute local ip 10.26.255.0/24 allow", "-C", "redistribute local deny", "e0"]);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        Self::Babel(namespace.run(|| command.spawn()).expect("it can be entered").expect("the program is there"))
    }

    /// Ends it by SIGTERM, or as SIGTERM ends it.
    fn end(&mut self) {
        match self {
            Self::Ours(running) => running.take().map_or(Ok(()), Running::stop).expect("it ends well"),
            Self::Babel(child) => {
                let process = Pid::from_raw(i32::try_from(child.id()).expect("a number of a process"));
                // It may have ended.
                let _ = kill(process, Signal::SIGTERM);
                let _ = child.wait();
            }
        }
    }
}

impl Drop for Router {
    fn drop(&mut self) {
        self.end();
    }
}

/// What runs in all nodes; none: babeld.
pub type Kind = Option<RouteConfig>;

pub fn start(namespace: &Namespace, kind: &Kind) -> Router {
    match kind {
        Some(config) => Router::Ours(Some(Running::start(namespace, config.clone()))),
        None => Router::babel(namespace),
    }
}

/// What was measured of a kind.
#[derive(Default)]
struct Measured {
    first: Vec<f64>,
    control: Vec<f64>,
    silent: Vec<f64>,
    ended: Vec<f64>,
}

fn beside(name: &str, kind: &Kind, runs: usize) {
    let mut measured = Measured::default();
    for run in 0..runs {
        measure(kind, run, &mut measured);
    }
    eprintln!("{name}:");
    eprintln!("  s to the first answer: {}", summary(&mut measured.first));
    eprintln!("  control bytes per second and node: {}", summary(&mut measured.control));
    eprintln!("  s without an answer after a silent cut: {}", summary(&mut measured.silent));
    eprintln!("  probes lost when a relay ends: {}", summary(&mut measured.ended));
}

fn measure(kind: &Kind, run: usize, measured: &mut Measured) {
    let network = MeshConfig { seed: run as u64 + 1, ..MeshConfig::figure_8(vec![ChannelModel::Ideal]) };
    let (mesh, air, ends) = Mesh::new(&network).expect("namespaces were there a moment ago");
    let ether = Ether::start(air, ends, None).expect("a thread");
    let scene = Scene { routers: Vec::new(), mesh, ether };
    let begun = Instant::now();
    let mut routers: Vec<Router> = (1..=8).map(|node| start(scene.node(node), kind)).collect();
    let probe = Probe::start(&scene, Target::Ipv4, 0);
    let answers = |more: u32| {
        let before = probe.answered();
        wait_for("answers", || if probe.answered() >= before + more { Ok(()) } else { Err(probe.answered()) });
    };
    answers(1);
    measured.first.push(begun.elapsed().as_secs_f64());
    // Better paths and databases are found.
    std::thread::sleep(Duration::from_secs(15));
    drop(probe);
    let (before, since) = (sent(&scene), Instant::now());
    std::thread::sleep(IDLE);
    measured.control.push((sent(&scene) - before) as f64 / since.elapsed().as_secs_f64() / 8.0);

    let probe = Probe::start(&scene, Target::Ipv4, 0);
    std::thread::sleep(Duration::from_secs(2) + Duration::from_millis(137) * run as u32);
    let first = way(&scene, 0)[1];
    let mark = probe.mark();
    scene.set_link(1, first, 0, None);
    std::thread::sleep(AFTER);
    measured.silent.push(probe.since(&mark).longest_gap.as_secs_f64());
    scene.set_link(1, first, 0, Some(0.0));
    std::thread::sleep(Duration::from_secs(15));

    let first = way(&scene, 0)[1];
    let mark = probe.mark();
    routers[first - 1].end();
    // 500 probes and the last second.
    std::thread::sleep(Duration::from_secs(6));
    measured.ended.push(probe.since(&mark).lost.into());
}

/// Bytes that all nodes have sent on the channel, Ethernet headers included.
pub fn sent(scene: &Scene) -> u64 {
    let of = |node| {
        let text = scene.output(node, "cat /proc/net/dev");
        let line = text.lines().find_map(|line| line.trim().strip_prefix(&format!("{}:", mesh::device(0))));
        line.and_then(|line| line.split_whitespace().nth(8)?.parse::<u64>().ok()).expect("a device with counters")
    };
    (1..=scene.mesh.nodes().len()).map(of).sum()
}
