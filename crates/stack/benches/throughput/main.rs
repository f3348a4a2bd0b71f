//! Throughput over TUN devices in network namespaces of their own: our stack with the kernel's MPTCP at the other end, and
//! the kernel's with the kernel's, in alternation. Needs root and two cores; without, it says so and measures nothing.
//!
//! `cargo bench -p anabranch-stack -- [--rounds N] [--seconds S] [--mtu BYTES] [--offload false] [--only WORD]`

#![allow(clippy::print_stdout)] // its results

mod kernel;
mod ours;
mod report;
mod transfer;

use report::Report;
use std::time::Duration;
use transfer::{Pins, Rate, Setting};

/// What is asked for on the command line.
struct Request {
    rounds: usize,
    seconds: f64,
    mtu: u16,
    offload: bool,
    only: Option<String>,
}

fn request() -> Result<Request, String> {
    let mut request = Request { rounds: 7, seconds: 1.0, mtu: 1500, offload: true, only: None };
    let mut words = std::env::args().skip(1).filter(|word| word != "--bench");
    while let Some(word) = words.next() {
        let value = words.next().ok_or(format!("{word} needs a value"))?;
        let wrong = |_| format!("{word} {value}: not a number");
        match word.as_str() {
            "--rounds" => request.rounds = value.parse().map_err(|_| wrong(()))?,
            "--seconds" => request.seconds = value.parse().map_err(|_| wrong(()))?,
            "--mtu" => request.mtu = value.parse().map_err(|_| wrong(()))?,
            "--offload" => request.offload = value.parse().map_err(|_| format!("{word} {value}: true or false?"))?,
            "--only" => request.only = Some(value),
            _ => return Err(format!("{word}: no such option")),
        }
    }
    Ok(request)
}

type Case = (&'static str, fn(&Setting) -> Rate);

/// Core 0 has all that the path and our end need, core 1 the other end's application.
const CASES: &[Case] = &[
    ("ours to kernel", |setting| ours::sends(setting)),
    ("kernel to kernel, sender and path on core 0", |setting| kernel::moves(setting, Pins::WITH_SENDER)),
    ("kernel to ours", |setting| ours::receives(setting)),
    ("kernel to kernel, receiver and path on core 0", |setting| kernel::moves(setting, Pins::WITH_RECEIVER)),
    ("kernel to kernel, path on either core", |setting| kernel::moves(setting, Pins::PATH_FREE)),
];

fn main() {
    let request = match request() {
        Ok(request) => request,
        Err(error) => {
            eprintln!("{error}");
            std::process::exit(2);
        }
    };
    if let Some(reason) = transfer::missing() {
        println!("skipped: {reason}");
        return;
    }
    for paths in [1, 2] {
        let (mtu, offload) = (request.mtu, request.offload);
        let setting = Setting { paths, mtu, offload, time: Duration::from_secs_f64(request.seconds) };
        let wanted = |case: &&Case| request.only.as_ref().is_none_or(|word| case.0.contains(word.as_str()));
        let cases: Vec<&Case> = CASES.iter().filter(wanted).collect();
        let mut report = Report::new(cases.iter().map(|case| case.0));
        for _ in 0..request.rounds {
            for (at, case) in cases.iter().enumerate() {
                report.add(at, (case.1)(&setting));
            }
        }
        let with = if offload { "with offloads" } else { "without offloads" };
        println!("\n{paths} path(s), MTU {mtu}, {with}, {} rounds of {} s", request.rounds, request.seconds);
        report.print();
    }
}
