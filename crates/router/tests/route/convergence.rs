//! How long the paper's mesh is without a route after a link is cut: silently, as when a radio is out of range, or
//! fading.
//!
//! `ANABRANCH_CUTS=8` makes 8 cuts of each kind and prints the results (docs/measurements/routing.md has the figures), the
//! silent ones with BFD if there is `ANABRANCH_BFD`; without it one silent cut is made, which only has to be survived.

use crate::mesh::routes_are_there;
use crate::probe::{Probe, Seen, Target, ports};
use crate::scene::{Scene, config, variable, wait_for};
use anabranch_emulate::{ChannelModel, mesh};
use anabranch_policy::combination::Combination;
use anabranch_policy::time::Duration as Span;
use anabranch_router::{Family, Question, RouteConfig};
use anabranch_routing::bfd::BfdSettings;
use anabranch_routing::config::Forecast;
use anabranch_routing::next_hops::{ForecastUse, SoftUse};
use libtest_mimic::Trial;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Seconds in which a fading link's loss rises from 0 to 1.
const FADE: u64 = 10;

/// Interval between forecasts, and for how many forecasts a change persists: 10 s.
const PERIOD: Span = Span::from_millis(250);
const HOLD: u32 = 40;

/// Concurrent flows of probes while links fade.
const FLOWS: u16 = 6;

/// Wait after a cut, longer than the dead interval.
const AFTER: Duration = Duration::from_secs(6);

pub fn trials() -> Vec<Trial> {
    let cuts = variable::<usize>("ANABRANCH_CUTS");
    let quick = Trial::test("convergence::a_silent_cut_is_survived", || {
        a_silent_cut_is_survived();
        Ok(())
    });
    let mut trials = vec![quick];
    if let Some(cuts) = cuts {
        trials.push(Trial::test("convergence::silent_cuts", move || {
            silent_cuts(cuts);
            Ok(())
        }));
        trials.push(Trial::test("convergence::fading_cuts", move || {
            fading_cuts(cuts);
            Ok(())
        }));
    }
    trials
}

/// The nodes on the current route of a flow of probes from M1 to M8.
pub fn way(scene: &Scene, flow: u16) -> Vec<usize> {
    let (from, to) = (mesh::loopback_ipv4(1), mesh::loopback_ipv4(8));
    let mut way = vec![1];
    while let Some(&here) = way.last().filter(|here| **here != 8 && way.len() < 9) {
        let came_in = if here == 1 { "" } else { "iif e0" };
        let (sport, dport) = ports(flow);
        let words = format!("ip route get {to} from {from} {came_in} ipproto udp sport {sport} dport {dport}");
        let text = scene.output(here, &words);
        let mut words = text.split_whitespace().skip_while(|word| *word != "via").skip(1);
        let gateway = words.next().map(|word| if word == "inet6" { words.next().unwrap_or_default() } else { word });
        let Some(next) = gateway.and_then(|gateway| gateway.rsplit(['.', ':']).next()?.parse().ok()) else {
            panic!("M{here} has no way to {to}: {text}");
        };
        way.push(next);
    }
    way
}

fn a_silent_cut_is_survived() {
    let scene = Scene::new(vec![ChannelModel::Ideal], &config(Family::Ipv4, 1));
    routes_are_there(&scene);
    let probe = Probe::start(&scene, Target::Ipv4, 0);
    wait_for("answers", || if probe.answered() > 50 { Ok(()) } else { Err(probe.answered()) });
    let way = way(&scene, 0);
    scene.set_link(way[0], way[1], 0, None);
    std::thread::sleep(Duration::from_millis(200));
    let before = probe.answered();
    wait_for("answers on another way", || if probe.answered() > before + 50 { Ok(()) } else { Err(probe.answered()) });
    assert_ne!(self::way(&scene, 0)[1], way[1]);
}

/// IP bytes sent by each node.
fn sent_bytes(scene: &Scene) -> Vec<u64> {
    scene.routers.iter().map(|router| router.ask(Question::Status)["sent_bytes"].as_u64().unwrap_or_default()).collect()
}

/// Control bytes per second and node while idle.
fn control_rate(scene: &Scene, time: Duration) -> f64 {
    let (before, begun) = (sent_bytes(scene), Instant::now());
    std::thread::sleep(time);
    rate_since(scene, &before, begun)
}

/// Control bytes per second and node since a moment.
fn rate_since(scene: &Scene, before: &[u64], begun: Instant) -> f64 {
    let (after, spent) = (sent_bytes(scene), begun.elapsed().as_secs_f64());
    let total: u64 = after.iter().zip(before).map(|(after, before)| after - before).sum();
    total as f64 / spent / scene.routers.len() as f64
}

fn silent_cuts(cuts: usize) {
    let mut config = config(Family::Ipv4, 1);
    config.bfd = std::env::var_os("ANABRANCH_BFD").map(|_| BfdSettings::default());
    let scene = Scene::new(vec![ChannelModel::Ideal], &config);
    routes_are_there(&scene);
    // Databases have been exchanged and acknowledged.
    std::thread::sleep(Duration::from_secs(15));
    let rate = control_rate(&scene, Duration::from_secs(60));
    eprintln!("control bytes per second and node, nothing happening: {rate:.1}");
    let probe = Probe::start(&scene, Target::Ipv4, 0);
    let (mut local, mut remote) = (Vec::new(), Vec::new());
    for number in 0..2 * cuts {
        std::thread::sleep(Duration::from_secs(2) + Duration::from_millis(137) * number as u32);
        let way = way(&scene, 0);
        // Alternates between the first and the last link of the route.
        let (from, to, gaps) = match number % 2 {
            0 => (way[0], way[1], &mut local),
            _ => (way[way.len() - 2], way[way.len() - 1], &mut remote),
        };
        let mark = probe.mark();
        scene.set_link(from, to, 0, None);
        std::thread::sleep(AFTER);
        let seen = probe.since(&mark);
        eprintln!("cut M{from}-M{to} of {way:?}: {seen:?}");
        gaps.push(seen.longest_gap.as_secs_f64());
        scene.set_link(from, to, 0, Some(0.0));
        routes_are_there(&scene);
    }
    eprintln!("first link of the way: {}", summary(&mut local));
    eprintln!("last link of the way: {}", summary(&mut remote));
    let rate = control_rate(&scene, Duration::from_secs(30));
    eprintln!("control bytes per second and node, after the cuts: {rate:.1}");
}

pub fn summary(values: &mut [f64]) -> String {
    values.sort_by(f64::total_cmp);
    let count = values.len();
    let at = |place: usize| values.get(place).copied().unwrap_or_default();
    let median = (at(count.saturating_sub(1) / 2) + at(count / 2)) / 2.0;
    let mean = values.iter().sum::<f64>() / count.max(1) as f64;
    format!("median {median:.2}, mean {mean:.2} [{:.2}..{:.2}], n = {count}", at(0), at(count.saturating_sub(1)))
}

/// The configuration with this forecaster, or without one.
fn forecasting(name: Option<&str>) -> RouteConfig {
    let mut config = config(Family::Ipv4, 1);
    // The number of forecasts can be overridden.
    let hold = variable("ANABRANCH_HOLD").unwrap_or(HOLD);
    // 0: alternates around a suspect link, not announced in LSAs.
    let suspect_cost = variable("ANABRANCH_SUSPECT_COST").unwrap_or(0);
    config.router.forecast = name.map(|name| {
        let combination: Combination = format!("forecaster={name}").parse().expect("a forecaster of ours");
        Forecast {
            build: Arc::new(move |_, _| combination.build_forecaster().expect("it was built before")),
            horizon: Span::from_secs(2),
            usage: ForecastUse::Soft(SoftUse { hold, ..SoftUse::default() }),
            period: PERIOD,
            suspect_cost,
            alternates: suspect_cost == 0,
        }
    });
    config
}

/// Fading cuts with a forecaster.
fn fading_cuts(cuts: usize) {
    let names = std::env::var("ANABRANCH_FORECASTERS")
        .unwrap_or_else(|_| "-,persistence,viterbi,forward,online,trend".to_owned());
    for name in names.split(',') {
        let scene = Scene::new(vec![ChannelModel::Ideal], &forecasting(Some(name).filter(|name| *name != "-")));
        routes_are_there(&scene);
        std::thread::sleep(Duration::from_secs(15));
        let probes: Vec<Probe> = (0..FLOWS).map(|flow| Probe::start(&scene, Target::Ipv4, flow)).collect();
        let (before, begun) = (sent_bytes(&scene), Instant::now());
        let mut lost = Vec::new();
        for number in 0..cuts {
            std::thread::sleep(Duration::from_secs(3) + Duration::from_millis(137) * number as u32);
            let all: u32 = fade(&scene, &probes, number).iter().map(|seen| seen.lost).sum();
            eprintln!("{name}: {all} lost of {FLOWS} flows");
            lost.push(f64::from(all));
            routes_are_there(&scene);
        }
        let rate = rate_since(&scene, &before, begun);
        eprintln!("{name}: lost probes of {FLOWS} flows: {}", summary(&mut lost));
        eprintln!("{name}: control bytes per second and node, cuts included: {rate:.1}");
    }
}

/// Fades the first link of a flow's route. Returns the results of all flows' probes.
fn fade(scene: &Scene, probes: &[Probe], number: usize) -> Vec<Seen> {
    let way = way(scene, number as u16 % FLOWS);
    let marks: Vec<_> = probes.iter().map(Probe::mark).collect();
    let steps = FADE * 10;
    for step in 1..=steps {
        scene.set_link(way[0], way[1], 0, Some(step as f64 / steps as f64));
        std::thread::sleep(Duration::from_millis(100));
    }
    std::thread::sleep(AFTER);
    let seen = probes.iter().zip(&marks).map(|(probe, mark)| probe.since(mark)).collect();
    scene.set_link(way[0], way[1], 0, Some(0.0));
    seen
}
