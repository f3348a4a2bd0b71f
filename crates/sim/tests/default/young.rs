//! How soon the default has found what a path carries that loses packets by chance.

use anabranch_policy::time::{Duration, Instant};
use anabranch_sim::reference::{Bottleneck, connection, direct, goodput};

/// Share of what the path carries without losses that the default delivered between these seconds; mean of four seeds.
fn share(path: Bottleneck, from: u64, to: u64) -> f64 {
    let at = |seconds| Instant::ZERO + Duration::from_secs(seconds);
    let of = |seed| {
        let (mut world, _) = direct(seed, &[path], &connection("anabranch", false));
        goodput(&mut world, 0, at(from), at(to)) / (path.mbit as f64 * (1.0 - path.loss))
    };
    (1..=4).map(of).sum::<f64>() / 4.0
}

/// Losses by chance do not end the start-up, and what it sent too much does not count as a path that has become slow.
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
