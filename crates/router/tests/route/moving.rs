//! Routers side by side while their hosts move: random waypoints on the lab's radio with path loss, shadows and fading, the same
//! movement and probes for hop count, ETX and babeld.
//!
//! `ANABRANCH_MOVING=4 cargo test -p anabranch-router --test route -- moving --test-threads 1 --nocapture` makes 4 draws and prints a
//! table (docs/measurements/routing.md has one).

use crate::beside::{Kind, Router, draws_beside_babeld, sent, start};
use crate::convergence::summary;
use crate::probe::{Mark, Probe, Seen, Target};
use crate::scene::ROUTER;
use crate::unequal::{NODES, SIDE, kinds, mesh_on_radio, random_pair};
use anabranch_policy::time::{Duration as Span, Instant as Time};
use anabranch_sim::mobility::{Area, Model, Movement, Span as Between};
use anabranch_sim::radio::Position;
use anabranch_sim::random::RandomStream;
use libtest_mimic::Trial;
use std::ops::Range;
use std::path::Path;
use std::time::{Duration, Instant};

/// Metres per second.
const SLOWEST: f64 = 1.0;
const FASTEST: f64 = 10.0;

/// From the start of all until probes count; the nodes move from the start.
const SETTLE: Duration = Duration::from_secs(20);
const MEASURED: Duration = Duration::from_secs(60);

/// Positions are set so often.
const STEP: Duration = Duration::from_millis(200);

/// Pairs that probe, and how often.
const FLOWS: u16 = 6;
const INTERVAL: Duration = Duration::from_millis(100);

pub fn trials() -> Vec<Trial> {
    draws_beside_babeld("moving::side_by_side", "ANABRANCH_MOVING", side_by_side)
}

/// What was measured of a kind, by draw.
#[derive(Default)]
struct Measured {
    first: Vec<f64>,
    answered: Vec<f64>,
    outage: Vec<f64>,
    control: Vec<f64>,
    processor: Vec<f64>,
}

fn side_by_side(draws: Range<u64>) {
    let mut all: Vec<(&str, Measured)> = kinds().into_iter().map(|(name, _)| (name, Measured::default())).collect();
    for draw in draws {
        for ((_, kind), (_, measured)) in kinds().iter().zip(&mut all) {
            measure(draw, kind, measured);
        }
    }
    for (name, mut measured) in all {
        eprintln!("{name}:");
        eprintln!("  s to the first answer of half of the flows: {}", summary(&mut measured.first));
        eprintln!("  probes answered, %: {}", summary(&mut measured.answered));
        eprintln!("  longest time without an answer, mean of flows, s: {}", summary(&mut measured.outage));
        eprintln!("  bytes sent per second and node, probes included: {}", summary(&mut measured.control));
        eprintln!("  processor time per second and node, ms: {}", summary(&mut measured.processor));
    }
}

fn movement(draw: u64) -> Movement {
    let model = Model::RandomWaypoint { speed: Between::new(SLOWEST, FASTEST), pause: Between::only(0.0) };
    let duration = Span::from_secs((SETTLE + MEASURED + Duration::from_secs(60)).as_secs());
    model.draw(Area { x: SIDE, y: SIDE }, NODES, duration, draw).expect("a valid model")
}

fn measure(draw: u64, kind: &Kind, measured: &mut Measured) {
    let movement = movement(draw);
    let place = |node: usize, at: Duration| -> Position {
        movement.position(node, Time::ZERO + Span::from_nanos(at.as_nanos() as u64))
    };
    let scene = mesh_on_radio((0..NODES).map(|node| place(node, Duration::ZERO)).collect(), draw);
    let routers: Vec<Router> = (1..=NODES).map(|node| start(scene.node(node), kind)).collect();
    let begun = Instant::now();
    let mut luck = RandomStream::new(draw, "moving");
    let probes: Vec<Probe> =
        (0..FLOWS).map(|flow| Probe::between(&scene, random_pair(&mut luck), Target::Ipv4, flow, INTERVAL)).collect();
    let mut first = None;
    let mut move_until = |end: Duration| {
        while begun.elapsed() < end {
            let at = begun.elapsed();
            for (node, host) in scene.mesh.nodes().iter().enumerate() {
                scene.ether.with(|air| air.set_position(host.antennas[0], place(node, at)));
            }
            let answered = probes.iter().filter(|probe| probe.answered() > 0).count();
            if first.is_none() && answered * 2 >= probes.len() {
                first = Some(begun.elapsed());
            }
            std::thread::sleep(STEP);
        }
    };
    move_until(SETTLE);
    let marks: Vec<Mark> = probes.iter().map(Probe::mark).collect();
    let (bytes, busy) = (sent(&scene), processor_time(&routers));
    move_until(SETTLE + MEASURED);
    let per_node = MEASURED.as_secs_f64() * NODES as f64;
    measured.control.push((sent(&scene) - bytes) as f64 / per_node);
    measured.processor.push((processor_time(&routers) - busy) * 1e3 / per_node);
    let seen: Vec<Seen> = probes.iter().zip(&marks).map(|(probe, mark)| probe.since(mark)).collect();
    let (answered, lost) = seen.iter().fold((0, 0), |(answered, lost), one| (answered + one.answered, lost + one.lost));
    measured.answered.push(f64::from(answered) / f64::from(answered + lost) * 100.0);
    measured.outage.push(seen.iter().map(|one| one.longest_gap.as_secs_f64()).sum::<f64>() / seen.len() as f64);
    measured.first.push(first.map_or(f64::INFINITY, |first| first.as_secs_f64()));
}

/// Seconds of processor time of the routers so far, in ticks of 10 ms.
fn processor_time(routers: &[Router]) -> f64 {
    let ticks = |path: &Path| -> f64 {
        // The fields after the name, which ends with the last bracket (proc(5)): state is the first of them.
        let text = std::fs::read_to_string(path.join("stat")).unwrap_or_default();
        let fields: Vec<&str> = text.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
        [11, 12].iter().filter_map(|field| fields.get(*field)?.parse::<f64>().ok()).sum()
    };
    let others: f64 = routers
        .iter()
        .filter_map(|router| match router {
            Router::Babel(child) => Some(ticks(Path::new(&format!("/proc/{}", child.id())))),
            Router::Ours(_) => None,
        })
        .sum();
    let threads = std::fs::read_dir("/proc/self/task").expect("it is there").flatten().map(|entry| entry.path());
    let ours = threads.filter(|path| {
        std::fs::read_to_string(path.join("comm")).is_ok_and(|name| name.trim().as_bytes() == ROUTER.to_bytes())
    });
    (others + ours.map(|path| ticks(&path)).sum::<f64>()) / 100.0
}
