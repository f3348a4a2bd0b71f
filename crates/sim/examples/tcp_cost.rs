//! What transport costs in the lab, on the scenarios for which there are figures of ns-3, and as connections grow many.
//!
//! `tcp_cost [one|two|fifty|deep|many CONNECTIONS|live] [SECONDS]`; without words the first three for 100 simulated seconds, then
//! the same with an access link of 1 Gbit/s at each host, as other simulators' topologies have them (`access-one` and so on). `deep`
//! is `fifty` with a queue of 500 packets. The hash
//! is that of the trace: what changes speed only leaves it as it is.
#![allow(clippy::print_stdout)]

use anabranch_policy::time::{Duration, Instant};
use anabranch_sim::World;
use anabranch_sim::reference::{
    Bottleneck, FIFTY_FLOWS, ONE_LINK, TWO_LINKS, access_link, behind_access, connection, crowd, crowd_behind, direct,
    live,
};

fn run(name: &str, mut world: World, seconds: u64) {
    let began = std::time::Instant::now();
    world.run_until(Instant::ZERO + Duration::from_secs(seconds));
    let took = began.elapsed();
    let result = world.results();
    let read: u64 = result.flows.iter().map(|flow| flow.server.read).sum();
    let packets: u64 =
        result.flows.iter().map(|flow| flow.client.stats.segments_sent + flow.server.stats.segments_sent).sum();
    println!(
        "{name}: {:.3} Mbit/s goodput, {packets} packets, {} deliveries, hash {:016x}, {:.3} s, {:.0} ns per packet",
        read as f64 * 8e-6 / seconds as f64,
        result.deliveries,
        result.trace_hash,
        took.as_secs_f64(),
        took.as_nanos() as f64 / packets.max(1) as f64
    );
}

fn one() -> World {
    direct(1, &[ONE_LINK], &connection("new_reno", false)).0
}
fn two() -> World {
    direct(1, &TWO_LINKS, &connection("lia", true)).0
}
fn fifty() -> World {
    crowd(1, 50, &FIFTY_FLOWS, &connection("new_reno", false))
}
fn access_one() -> World {
    behind_access(1, &[ONE_LINK], &connection("new_reno", false))
}
fn access_two() -> World {
    behind_access(1, &TWO_LINKS, &connection("lia", true))
}
fn access_fifty() -> World {
    crowd_behind(1, 50, (&access_link(), &FIFTY_FLOWS), &connection("new_reno", false))
}
/// As in published comparisons: a queue of 500 packets, which hardly ever overflows.
const DEEP: Bottleneck = Bottleneck { queue: 500, ..FIFTY_FLOWS };
fn deep() -> World {
    crowd(1, 50, &DEEP, &connection("new_reno", false))
}
fn access_deep() -> World {
    crowd_behind(1, 50, (&access_link(), &DEEP), &connection("new_reno", false))
}
/// The more connections, the wider the bottleneck: 1 Mbit/s for each.
fn many(connections: usize) -> World {
    let bottleneck = Bottleneck::new(connections as u64, 20, 10 * connections);
    crowd(1, connections, &bottleneck, &connection("new_reno", false))
}

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let number = |at: usize, default: u64| words.get(at).map_or(default, |word| word.parse().expect("a whole number"));
    match words.first().map(String::as_str) {
        Some("one") => run("one flow", one(), number(1, 100)),
        Some("two") => run("two paths", two(), number(1, 100)),
        Some("fifty") => run("fifty flows", fifty(), number(1, 100)),
        Some("access-one") => run("one flow behind access links", access_one(), number(1, 100)),
        Some("access-two") => run("two paths behind access links", access_two(), number(1, 100)),
        Some("access-fifty") => run("fifty flows behind access links", access_fifty(), number(1, 100)),
        Some("deep") => run("fifty flows, deep queue", deep(), number(1, 100)),
        Some("access-deep") => run("fifty flows, deep queue, behind access links", access_deep(), number(1, 100)),
        Some("many") => {
            let connections = number(1, 100);
            run(&format!("{connections} flows"), many(connections as usize), number(2, 10));
        }
        Some("live") => run("live messages", live(1, number(1, 10)), number(1, 10) + 1),
        Some(other) => panic!("no such scenario: {other}"),
        None => {
            run("one flow", one(), 100);
            run("two paths", two(), 100);
            run("fifty flows", fifty(), 100);
            run("one flow behind access links", access_one(), 100);
            run("two paths behind access links", access_two(), 100);
            run("fifty flows behind access links", access_fifty(), 100);
        }
    }
}
