//! The goals of coupled congestion control (RFC 6356, section 2; the papers on OLIA and BALIA):
//!
//! 1. at least the rate of TCP on the best path;
//! 2. at most the rate of TCP on any path, so that over a shared bottleneck all subflows together take the share of one
//!    TCP;
//! 3. traffic moves away from congested paths as far as the first two allow.
//!
//! Subflows and TCP connections meet random loss here: it is the same for all, so that the shares are those of the
//! algorithms. A drop-tail queue without other traffic and without randomness has a pattern of its own, in which the
//! same packet of each round is dropped; one such share means little, so means over several queues are asserted.

use anabranch_policy::time::{Duration, Instant};
use anabranch_sim::reference::{Bottleneck, TWO_LINKS, connection, direct, goodput, shared};

const SEEDS: u64 = 4;
const COUPLED: [&str; 3] = ["lia", "olia", "balia"];

fn at(seconds: u64) -> Instant {
    Instant::ZERO + Duration::from_secs(seconds)
}

const fn lossy(delay_ms: u64, loss: f64) -> Bottleneck {
    Bottleneck { loss, ..Bottleneck::new(50, delay_ms, 1000) }
}

/// Rate of the multipath connection relative to the mean of the NewReno connections.
fn share(congestion: &'static str, subflows: usize, bottleneck: &Bottleneck) -> f64 {
    share_in(SEEDS, congestion, subflows, bottleneck)
}

fn share_in(seeds: u64, congestion: &'static str, subflows: usize, bottleneck: &Bottleneck) -> f64 {
    share_against("new_reno", seeds, congestion, subflows, bottleneck)
}

/// The same relative to single-path connections under `rival`.
fn share_against(
    rival: &'static str,
    seeds: u64,
    congestion: &'static str,
    subflows: usize,
    bottleneck: &Bottleneck,
) -> f64 {
    const TCP: usize = 2;
    let (mut multipath, mut single) = (0, 0);
    let read = |world: &mut anabranch_sim::World| -> Vec<u64> {
        world.results().flows.iter().map(|flow| flow.receiver().read).collect()
    };
    for seed in 1..=seeds {
        let (many, one) = (connection(congestion, true), connection(rival, false));
        let mut world = shared(seed, subflows, TCP, bottleneck, &many, &one);
        world.run_until(at(5));
        let before = read(&mut world);
        world.run_until(at(65));
        let gained: Vec<u64> = read(&mut world).iter().zip(before).map(|(after, before)| after - before).collect();
        multipath += gained[0];
        single += gained[1..].iter().sum::<u64>();
    }
    multipath as f64 / (single as f64 / TCP as f64)
}

/// Mean Mbit/s over these paths.
fn over(congestion: &'static str, paths: &[Bottleneck]) -> f64 {
    let multipath = paths.len() > 1;
    let sum: f64 = (1..=SEEDS)
        .map(|seed| {
            let (mut world, _) = direct(seed, paths, &connection(congestion, multipath));
            goodput(&mut world, 0, at(5), at(65))
        })
        .sum();
    sum / SEEDS as f64
}

#[test]
fn two_subflows_over_one_bottleneck_take_no_more_than_one_tcp() {
    for congestion in COUPLED {
        let share = share(congestion, 2, &lossy(20, 0.005));
        // With LIA the mean of 40 seeds is 1.09 (the reason is given below).
        let most = if congestion == "lia" { 1.15 } else { 1.1 };
        assert!((0.85..=most).contains(&share), "{congestion}: {share}");
    }
}

#[test]
fn four_subflows_over_one_bottleneck_take_no_more_than_one_tcp() {
    for congestion in COUPLED {
        let share = share(congestion, 4, &lossy(20, 0.005));
        // LIA's alpha contains the largest of the windows (RFC 6356, equation 2). Windows oscillate, and the largest of
        // four is about a quarter above their mean: this makes the whole connection about a tenth faster than one TCP.
        // OLIA and BALIA do not have this effect.
        let most = if congestion == "lia" { 1.25 } else { 1.1 };
        assert!((0.8..=most).contains(&share), "{congestion}: {share}");
    }
}

#[test]
fn uncoupled_subflows_take_a_share_each() {
    let two = share("new_reno", 2, &lossy(20, 0.005));
    assert!((1.8..=2.2).contains(&two), "{two}");
    let four = share("new_reno", 4, &lossy(20, 0.005));
    assert!((3.6..=4.4).contains(&four), "{four}");
}

#[test]
fn coupled_subflows_leave_a_drop_tail_bottleneck_to_others_uncoupled_ones_do_not() {
    // Each of ten queues has a pattern of its own, with 0.75 to 1.5 times the share of a TCP; only the mean can be
    // asserted.
    let queues = (0..10).map(|n| Bottleneck::new(30, 15 + n, 60 + 5 * (n as usize * 7 % 10)));
    let queues: Vec<Bottleneck> = queues.collect();
    for congestion in COUPLED {
        let shares: Vec<f64> = queues.iter().map(|queue| share_in(1, congestion, 2, queue)).collect();
        let mean = shares.iter().sum::<f64>() / shares.len() as f64;
        assert!((0.85..=1.15).contains(&mean), "{congestion}: {mean} of {shares:.2?}");
    }
    let uncoupled = share_in(1, "new_reno", 2, &queues[0]);
    assert!(uncoupled > 1.6, "{uncoupled}");
}

#[test]
fn over_disjoint_paths_a_connection_gets_at_least_what_tcp_gets_on_the_best() {
    let cases = [[lossy(20, 0.004), lossy(20, 0.004)], [lossy(20, 0.002), lossy(20, 0.02)]];
    for paths in cases {
        let tcp = paths.map(|path| over("new_reno", &[path]));
        let best = tcp[0].max(tcp[1]);
        for congestion in COUPLED {
            let rate = over(congestion, &paths);
            // Goal 1, and goal 2: at most the sum.
            assert!(rate > 0.9 * best && rate < 0.95 * (tcp[0] + tcp[1]), "{congestion}: {rate} of {tcp:?}");
        }
    }
}

#[test]
fn over_disjoint_paths_of_unlike_round_trips_a_connection_is_as_fast_as_tcp_on_the_best() {
    let paths = [lossy(10, 0.004), lossy(50, 0.004)];
    let best = over("new_reno", &paths[..1]);
    for congestion in COUPLED {
        let rate = over(congestion, &paths);
        assert!((0.88..=1.2).contains(&(rate / best)), "{congestion}: {rate} of {best}");
    }
}

#[test]
fn paths_that_are_nobody_elses_are_filled() {
    // 10 and 5 Mbit/s; 28 bytes of each segment become DSS instead of data, so 1372 of 1454 are payload.
    let most = 15.0 * 1372.0 / 1454.0;
    for congestion in ["new_reno", "lia", "olia", "balia"] {
        let (mut world, _) = direct(1, &TWO_LINKS, &connection(congestion, true));
        let rate = goodput(&mut world, 0, at(10), at(60));
        assert!(rate > 0.93 * most, "{congestion}: {rate} of {most}");
        // Data that arrived before the window began may be read in it, after a gap was filled.
        assert!(rate < 1.01 * most, "{congestion}: {rate} of {most}");
    }
}

#[test]
fn traffic_moves_away_from_the_path_that_loses_more() {
    let paths = [lossy(20, 0.002), lossy(20, 0.02)];
    let sent = |congestion: &'static str| {
        let (mut world, _) = direct(1, &paths, &connection(congestion, true));
        world.run_until(at(60));
        let result = world.results();
        let delivered = |name: &str| result.link(name).unwrap().counters.delivered_bytes as f64;
        delivered("1/access up") / delivered("0/access up")
    };
    // Uncoupled: as the square root of the losses, 1 to 3.2. LIA: about inversely to the losses, 1 to 10; OLIA further.
    let uncoupled = sent("new_reno");
    assert!((0.2..=0.45).contains(&uncoupled), "{uncoupled}");
    for congestion in COUPLED {
        let share = sent(congestion);
        assert!(share < 0.6 * uncoupled, "{congestion}: {share} against {uncoupled}");
    }
}

#[test]
fn weighted_vegas_shares_a_bottleneck_with_its_like_and_loses_against_reno() {
    for queue in [60, 120] {
        let bottleneck = Bottleneck::new(30, 20, queue);
        let alike = share_against("wvegas", 2, "wvegas", 2, &bottleneck);
        assert!((0.75..=1.1).contains(&alike), "queue {queue}: {alike}");
        // Reno fills the queue, which makes Vegas slow down.
        let reno = share_in(2, "wvegas", 2, &bottleneck);
        assert!(reno < 0.7, "queue {queue}: {reno}");
    }
}

#[test]
fn bbr_takes_more_than_its_share_from_reno() {
    let bottleneck = Bottleneck::new(30, 20, 60);
    let (one, two) = (share_in(1, "bbr", 1, &bottleneck), share_in(1, "bbr", 2, &bottleneck));
    assert!(one > 2.0 && two > 2.0 * one, "{one} {two}");
}
