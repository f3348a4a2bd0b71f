//! What users run: `anabranch proxy` and `anabranch serve` with a key, in two network namespaces with a veth pair for each
//! path. Bulk throughput, policies in alternation, and connections set up per second. Needs root and nft; without, it says so
//! and measures nothing.
//!
//! `cargo bench -p anabranch-cli --no-default-features --bench proxy -- [--rounds N] [--seconds S] [--minute SECONDS] [--at-once N]
//! [--policies A,B] [--paths 1,2] [--modes tun,udp] [--ways up,down] [--delay MS] [--only bulk|rate] [--program FILE]`

#![allow(clippy::print_stdout, clippy::print_stderr)] // its results

mod bulk;
mod rate;
mod scene;

use scene::{Mode, Scene, Setting};
use std::path::PathBuf;
use std::time::Duration;

/// What is asked for on the command line.
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
    only: Option<String>,
    program: PathBuf,
}

/// The elements of a list with commas.
fn list<T>(text: &str, read: impl Fn(&str) -> Option<T>) -> Result<Vec<T>, String> {
    text.split(',').map(|word| read(word).ok_or_else(|| format!("{word}: what is that?"))).collect()
}

fn request() -> Result<Request, String> {
    let mut request = Request {
        rounds: 3,
        seconds: 3.0,
        minute: 60,
        at_once: 8,
        policies: vec!["anabranch".to_owned(), "plain".to_owned()],
        paths: vec![1, 2],
        modes: vec![Mode::Tun, Mode::Udp],
        ways: vec![bulk::Way::Up],
        delay: 0,
        only: None,
        program: PathBuf::from(env!("CARGO_BIN_EXE_anabranch")),
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
            "--policies" => request.policies = list(&value, |word| Some(word.to_owned()))?,
            "--paths" => request.paths = list(&value, |word| word.parse().ok())?,
            "--modes" => request.modes = list(&value, Mode::named)?,
            "--ways" => request.ways = list(&value, bulk::Way::named)?,
            "--only" => request.only = Some(value),
            "--program" => request.program = value.into(),
            _ => return Err(format!("{word}: no such option")),
        }
    }
    Ok(request)
}

fn main() {
    let request = request().unwrap_or_else(|error| {
        eprintln!("{error}");
        std::process::exit(2);
    });
    if let Some(reason) = scene::missing() {
        println!("skipped: {reason}");
        return;
    }
    let wanted = |what: &str| request.only.as_ref().is_none_or(|only| only == what);
    for &paths in &request.paths {
        for &mode in &request.modes {
            let setting = |policy: &str| Setting {
                mode,
                paths,
                policy: policy.to_owned(),
                delay: request.delay,
                program: request.program.clone(),
            };
            for &way in request.ways.iter().filter(|_| wanted("bulk")) {
                compare(&request, way, &setting);
            }
            if wanted("rate") {
                let setting = setting(request.policies.first().map_or("anabranch", String::as_str));
                println!("\n{setting}: connections set up, {} at a time", request.at_once);
                rate::measure(&Scene::new(&setting), request.minute, request.at_once);
            }
        }
    }
}

/// Bulk throughput of all policies in alternation.
fn compare(request: &Request, way: bulk::Way, setting: &impl Fn(&str) -> Setting) {
    let mut rates = vec![Vec::new(); request.policies.len()];
    for _ in 0..request.rounds {
        for (policy, rates) in request.policies.iter().zip(&mut rates) {
            let scene = Scene::new(&setting(policy));
            rates.push(bulk::measure(&scene, way, Duration::from_secs_f64(request.seconds)));
        }
    }
    for (policy, rates) in request.policies.iter().zip(&rates) {
        println!("\n{}, {way}: median of {} x {} s", setting(policy), request.rounds, request.seconds);
        bulk::print(rates);
    }
    if let [first, second, ..] = rates.as_slice() {
        bulk::print_ratio(&format!("{} / {}", request.policies[0], request.policies[1]), first, second);
    }
}
