//! How soon the default has found the capacity of a path with random loss.

use anabranch_policy::time::{Duration, Instant};
use anabranch_sim::reference::{Bottleneck, connection, direct, goodput};

/// Goodput of the default between these seconds as a share of the path's capacity without loss; mean of four seeds.
fn share(path: Bottleneck, from: u64, to: u64) -> f64 {
    let at = |seconds| Instant::ZERO + Duration::from_secs(seconds);
    let of = |seed| {
        let (mut world, _) = direct(seed, &[path], &connection("anabranch", false));
        goodput(&mut world, 0, at(from), at(to)) / (path.mbit as f64 * (1.0 - path.loss))
    };
    (1..=4).map(of).sum::<f64>() / 4.0
}

/// Random loss does not end the start-up, and its excess does not make the path count as slowed down.
#[test]
fn a_path_that_loses_packets_is_found_within_five_seconds() {
    for (loss, least) in [(0.0, 0.9), (0.02, 0.85), (0.07, 0.8)] {
        for queue in [94, 284] {
            let path = Bottleneck { loss, ..Bottleneck::new(11, 100, queue) };
            let seen = share(path, 5, 10);
            assert!(seen > least, "{loss} lost, queue of {queue}: {seen}");
        }
    }
}

#[test]
#[ignore = "prints a table of docs/measurements/default-policy.md"]
#[expect(clippy::print_stdout, reason = "that is what it is for")]
fn table() {
    println!(
        "\n| path, queue of half a product | lost | first 2 s | to 5 s | to 10 s | to 25 s |\n|---|---|---|---|---|---|"
    );
    for (mbit, round_trip_ms, queue) in [(11, 200, 94), (50, 50, 106)] {
        for loss in [0.0, 0.02, 0.07] {
            let path = Bottleneck { loss, ..Bottleneck::new(mbit, round_trip_ms / 2, queue) };
            let [two, five, ten, last] = [(0, 2), (2, 5), (5, 10), (10, 25)].map(|(from, to)| share(path, from, to));
            let lost = (100.0 * loss).round();
            println!("| {mbit} Mbit/s, {round_trip_ms} ms | {lost} % | {two:.2} | {five:.2} | {ten:.2} | {last:.2} |");
        }
    }
}
