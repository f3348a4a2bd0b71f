//! A hundred routers on a channel that they can fill.

use anabranch_policy::rate::Rate;
use anabranch_policy::time::Duration;
use anabranch_routing::lsa_fullness::LsaFullness;
use anabranch_sim::mesh::moving_network::MovingNetwork;
use anabranch_sim::mesh::moving_run::Seen;
use anabranch_sim::mobility::{Model, Span};

/// A number from the environment.
fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

/// 100 nodes (or `ANABRANCH_NODES`) of RFC 5614's appendix E with a range of 250 m, with broadcast frames at 1 Mbit/s
/// (`ANABRANCH_MBIT`).
fn crowd(seed: u64, moves: bool, seconds: u64) -> MovingNetwork {
    let mut network =
        MovingNetwork::appendix_e(number("ANABRANCH_NODES", 100) as usize, 250.0, LsaFullness::MinCost, seed);
    let rate = Rate::from_bits_per_second(1_000_000 * number("ANABRANCH_MBIT", 1));
    network.medium.basic_rate = rate;
    if !moves {
        network.model = Model::RandomWaypoint { speed: Span::new(0.000_1, 0.000_2), pause: Span::only(0.0) };
    }
    network.duration = Duration::from_secs(seconds);
    network
}

fn tell(what: &str, seconds: u64, seen: &Seen) {
    let names = ["Hello", "description", "request", "update", "acknowledgment"];
    let kinds: Vec<String> = names
        .iter()
        .zip(seen.by_type)
        .map(|(name, (packets, bytes))| {
            format!("{name} {:.1}/s {:.1}", packets as f64 / seconds as f64, bytes as f64 * 0.008 / seconds as f64)
        })
        .collect();
    eprintln!(
        "{what}: delivered {:.3}, {:.1} kbit/s ({}), adjacent {:.2}, changes {:.3}/s, neighbours {:.1} of {:.1}, no route {}, lost {}",
        seen.delivery(),
        seen.overhead / 1000.0,
        kinds.join(", "),
        seen.adjacent,
        seen.adjacency_changes,
        seen.bidirectional,
        seen.neighbors,
        seen.no_route,
        seen.not_acknowledged
    );
}

/// All start within 2 s. Before, a third of the Hellos and then neighbours were lost in the exchanges of the start, each router
/// that heard few others elected itself: 0.87 were delivered at 1,450 kbit/s, and it grew.
#[test]
fn a_hundred_routers_that_start_at_once_on_a_slow_channel_stay_whole() {
    let mut network = crowd(3, false, 20);
    network.warm_up = Duration::from_secs(20);
    let seen = network.run().expect("a network that can be");
    assert!(seen.delivery() > 0.9 && seen.bidirectional > 0.9 * seen.neighbors, "{seen:?}");
    assert!(seen.overhead < 1e6, "{} bit/s", seen.overhead);
}

/// `ANABRANCH_RUNS=10 cargo test --release -p anabranch-sim --test mesh -- crowded::whole --ignored --nocapture` prints what
/// becomes of ten networks that stand still, and of ten that move; `ANABRANCH_SEED`, `ANABRANCH_SECONDS` and `ANABRANCH_MBIT` change
/// the first seed, the time and the rate of broadcast frames.
#[test]
#[ignore = "minutes"]
fn whole() {
    let (first, runs) = (number("ANABRANCH_SEED", 1), number("ANABRANCH_RUNS", 3));
    let seconds = number("ANABRANCH_SECONDS", 120);
    for (moves, what) in [(false, "standing"), (true, "moving")] {
        for seed in first..first + runs {
            let seen = crowd(seed, moves, seconds).run().expect("a network that can be");
            tell(what, seconds, &seen);
        }
    }
}
