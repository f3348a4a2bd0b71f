//! Benchmark of `anabranch proxy` and `anabranch serve` with a key, in two network namespaces with a veth pair per
//! path: bulk throughput, alternating between policies, and connections per second; with `--only slow` the memory that readers
//! who stop cost. `--only gate` judges, for CI. Needs
//! root and nft; without, it reports that and measures nothing. The policy `wireguard` is wireguard-go between the same
//! hosts, and is skipped if that is not installed.
//!
//! `cargo bench -p anabranch-cli --no-default-features --bench proxy -- [--rounds N] [--seconds S] [--minute SECONDS] [--at-once N]
//! [--policies A,B] [--paths 1,2] [--modes tun,udp] [--ways up,down] [--delay MS] [--mbit N] [--workers N] [--connections N]
//! [--buffer-memory SIZE]
//! [--only bulk|rate|slow|gate] [--program FILE] [--wireguard FILE]`

#![allow(clippy::print_stdout, clippy::print_stderr)] // its results

mod bulk;
mod gate;
mod rate;
mod relay;
mod scene;
mod slow;
mod wireguard;

use anabranch_system::{Need, missing};
use scene::{Mode, SHIPPED, Scene, Setting, WIREGUARD, WIREGUARD_PROGRAM};
use std::path::PathBuf;
use std::time::Duration;

/// Interval of reports on connections.
const STRETCH: Duration = Duration::from_secs(5);

/// The command line.
struct Request {
    rounds: usize,
    seconds: f64,
    minute: u64,
    at_once: usize,
    policies: Vec<String>,
    paths: Vec<u8>,
    modes: Vec<Mode>,
    ways: Vec<bulk::Way>,
    delay: u32,
    mbit: u32,
    /// 0: the default of the programs.
    workers: Vec<u8>,
    connections: usize,
    /// The option of both programs.
    buffer_memory: Option<String>,
    only: Option<String>,
    program: PathBuf,
    wireguard: PathBuf,
}

/// Parses a comma-separated list.
fn list<T>(text: &str, read: impl Fn(&str) -> Option<T>) -> Result<Vec<T>, String> {
    text.split(',').map(|word| read(word).ok_or_else(|| format!("{word}: what is that?"))).collect()
}

fn request() -> Result<Request, String> {
    let mut request = Request {
        rounds: 3,
        seconds: 3.0,
        minute: 60,
        at_once: 8,
        policies: vec![SHIPPED.to_owned(), "plain".to_owned()],
        paths: vec![1, 2],
        modes: vec![Mode::Tun, Mode::Udp],
        ways: vec![bulk::Way::Up],
        delay: 0,
        mbit: 0,
        workers: vec![0],
        connections: 1,
        buffer_memory: None,
        only: None,
        program: PathBuf::from(env!("CARGO_BIN_EXE_anabranch")),
        wireguard: PathBuf::from(WIREGUARD_PROGRAM),
    };
    let mut words = std::env::args().skip(1).filter(|word| word != "--bench");
    while let Some(word) = words.next() {
        let value = words.next().ok_or(format!("{word} needs a value"))?;
        let wrong = || format!("{word} {value}: not a number");
        match word.as_str() {
            "--rounds" => request.rounds = value.parse().map_err(|_| wrong())?,
            "--seconds" => request.seconds = value.parse().map_err(|_| wrong())?,
            "--minute" => request.minute = value.parse().map_err(|_| wrong())?,
            "--at-once" => request.at_once = value.parse().map_err(|_| wrong())?,
            "--delay" => request.delay = value.parse().map_err(|_| wrong())?,
            "--mbit" => request.mbit = value.parse().map_err(|_| wrong())?,
            "--workers" => request.workers = list(&value, |word| word.parse().ok())?,
            "--connections" => request.connections = value.parse().map_err(|_| wrong())?,
            "--policies" => request.policies = list(&value, |word| Some(word.to_owned()))?,
            "--paths" => request.paths = list(&value, |word| word.parse().ok())?,
            "--modes" => request.modes = list(&value, Mode::named)?,
            "--ways" => request.ways = list(&value, bulk::Way::named)?,
            "--buffer-memory" => request.buffer_memory = Some(value),
            "--only" => request.only = Some(value),
            "--program" => request.program = value.into(),
            "--wireguard" => request.wireguard = value.into(),
            _ => return Err(format!("{word}: no such option")),
        }
    }
    Ok(request)
}

fn main() {
    let mut request = request().unwrap_or_else(|error| {
        eprintln!("{error}");
        std::process::exit(2);
    });
    if let Some(reason) = missing(&[Need::Programs(&["ip", "nft", "sysctl"]), Need::Namespaces]) {
        println!("skipped: {reason}");
        return;
    }
    if request.only.as_deref() == Some("gate") {
        if !gate::holds(&request.program) {
            std::process::exit(1);
        }
        return;
    }
    let wireguard = request.wireguard.to_string_lossy();
    if request.policies.iter().any(|policy| policy == WIREGUARD)
        && let Some(reason) = missing(&[Need::Programs(&[&wireguard])])
    {
        println!("skipped: {WIREGUARD}, {reason}");
        request.policies.retain(|policy| policy != WIREGUARD);
    }
    let wanted = |what: &str| request.only.as_ref().is_none_or(|only| only == what);
    for &paths in &request.paths {
        for &mode in &request.modes {
            let setting = |policy: &str, workers: u8| Setting {
                mode,
                paths,
                policy: policy.to_owned(),
                delay: request.delay,
                mbit: request.mbit,
                workers,
                buffer_memory: request.buffer_memory.clone(),
                program: request.program.clone(),
                wireguard: request.wireguard.clone(),
            };
            for &way in request.ways.iter().filter(|_| wanted("bulk")) {
                compare(&request, way, &setting);
            }
            for policy in request.policies.iter().filter(|_| request.only.as_deref() == Some("slow")) {
                let setting = setting(policy, 0);
                println!("\n{setting}: {} readers that stop", request.connections);
                slow::measure(&Scene::new(&setting), request.connections);
            }
            for &workers in request.workers.iter().filter(|_| wanted("rate")) {
                let setting = setting(request.policies.first().map_or(SHIPPED, String::as_str), workers);
                println!("\n{setting}: connections set up, {} at a time", request.at_once);
                let stretches = (request.minute / STRETCH.as_secs()).max(1) as usize;
                rate::measure(&Scene::new(&setting), stretches, STRETCH, request.at_once);
            }
        }
    }
}

/// Bulk throughput of all policies and numbers of workers, alternating.
fn compare(request: &Request, way: bulk::Way, setting: &impl Fn(&str, u8) -> Setting) {
    let each = |policy: &String| request.workers.iter().map(|&workers| setting(policy, workers)).collect::<Vec<_>>();
    let settings: Vec<Setting> = request.policies.iter().flat_map(each).collect();
    let mut rates = vec![Vec::new(); settings.len()];
    for _ in 0..request.rounds {
        for (setting, rates) in settings.iter().zip(&mut rates) {
            let (scene, time) = (Scene::new(setting), Duration::from_secs_f64(request.seconds));
            rates.push(bulk::measure(&scene, way, time, request.connections));
        }
    }
    for (setting, rates) in settings.iter().zip(&rates) {
        let Request { rounds, seconds, connections, .. } = request;
        println!("\n{setting}, {connections} connection(s), {way}: median of {rounds} x {seconds} s");
        bulk::print(rates);
    }
    if let ([one, others @ ..], [first, rest @ ..]) = (settings.as_slice(), rates.as_slice()) {
        for (other, second) in others.iter().zip(rest) {
            bulk::print_ratio(&format!("{one} / {other}"), first, second);
        }
    }
}
