//! The experiments of the paper on ad-hoc networks, one line each: `mesh_paper [SECONDS [SEED]]`.

#![allow(clippy::print_stdout)]

use anabranch_policy::time::Duration;
use anabranch_sim::mesh::paper::combination::all;
use anabranch_sim::mesh::paper::{Case, Rates, Transfer, run};

fn main() -> Result<(), String> {
    let mut arguments = std::env::args().skip(1);
    let mut number = |default: u64| arguments.next().and_then(|word| word.parse().ok()).unwrap_or(default);
    let (seconds, seed) = (number(180), number(1));
    println!(
        "kB/s, packets out of order at most; per interface: new+again sent, again received, delay and round trip in ms"
    );
    for (name, rates) in [("homogeneous", Rates::HOMOGENEOUS), ("heterogeneous", Rates::HETEROGENEOUS)] {
        for combination in all() {
            let mut case = Case::new(combination, rates, seed);
            case.transfer = Transfer::For(Duration::from_secs(seconds));
            let seen = run(&case)?;
            print!("{} {:10} {:6.1} {:8}", name, case.combination.name, seen.goodput / 1e3, seen.most_out_of_order);
            for lane in &seen.lanes {
                let delay = lane.delay.mean().as_secs_f64() * 1e3;
                print!(
                    " | {}+{} {} {delay:.0} {:.0}",
                    lane.sent,
                    lane.sent_again,
                    lane.received_again,
                    lane.round_trip * 1e3
                );
            }
            println!(" | {:?}", seen.forwarded);
        }
    }
    Ok(())
}
