//! The goals of the default's scheduler on paths with changing rates, with both of its congestion controls. The grid is
//! `cargo run --release -p anabranch-sim --example exploration`.

use anabranch_sim::application::Sending;
use anabranch_sim::exploration::{Carried, Seen, bad_and_good, held, nine, run, wifi_and_lte};
use anabranch_sim::walk::Walk;

const OWN: [&str; 2] = ["anabranch", "anabranch,congestion=bounded_cubic"];

fn most(values: impl IntoIterator<Item = f64>) -> f64 {
    values.into_iter().fold(0.0, f64::max)
}

#[test]
fn a_path_that_paused_and_held_its_queue_carries_its_share_within_two_seconds() {
    for (name, paths) in held() {
        for policy in OWN {
            let seen = run(policy, true, &paths, Sending::Endless, 30);
            let (unused, back) = (most(seen.unused.iter().copied()), most(seen.back.concat()));
            assert!(back <= 2.0 && unused <= 1.0, "{policy}: back after {back} s, unused for {unused} s: {name}");
            assert!(seen.stall < 0.5, "{policy}: {} s: {name}", seen.stall);
        }
    }
}

#[test]
fn a_ninth_path_is_used() {
    for policy in OWN {
        let seen = run(policy, true, &nine(), Sending::Endless, 30);
        assert!(seen.goodput > 24.5, "{policy}: {} Mbit/s", seen.goodput);
    }
}

/// Joins wait for the first DATA_ACK (RFC 8684, section 3.2): two round trips of 200 ms. Then follow two of 20 ms, and
/// 0.47 s for the rest, as over the good path alone.
#[test]
fn a_first_path_that_is_bad_is_left_as_soon_as_there_is_another() {
    let (begin, joined) = (0.4, 0.04);
    for policy in OWN {
        let [bad, good] = bad_and_good();
        let end = |paths: &[_]| run(policy, true, paths, Sending::Bytes(1_000_000), 10).end.expect("it ends");
        let (both, alone) = (end(&[bad, good.clone()]), end(&[good]));
        assert!(both < begin + joined + alone + 0.05, "{policy}: {both} s, {alone} over the good one");
    }
}

/// The retransmission timer of the path expires during the pause, and all that was sent again had arrived. What was taken
/// for lost then had once kept the second path at a tenth of its rate.
#[test]
fn a_path_that_pauses_in_its_start_up_carries_its_share_afterwards() {
    let steady = Carried::new(Walk::steady(38.0, 6, &[]), 76, 274);
    let pausing = Carried::new(Walk::steady(200.0, 6, &[(0.25, 0.65)]), 48, 1_970);
    for paths in [[steady.clone(), pausing.clone()], [pausing, steady]] {
        for policy in OWN {
            let seen = run(policy, true, &paths, Sending::Endless, 6);
            assert!(seen.goodput > 0.9 * 238.0, "{policy}, first {} ms: {} Mbit/s", paths[0].rtt_ms, seen.goodput);
        }
    }
}

/// Runs the walks of some seeds; returns the results by policy.
fn walks(seeds: core::ops::Range<u64>, policy: &str) -> Vec<Seen> {
    seeds.map(|seed| run(policy, true, &wifi_and_lte(seed, 60), Sending::Endless, 60)).collect()
}

fn mean(all: &[Seen]) -> f64 {
    all.iter().map(|seen| seen.goodput).sum::<f64>() / all.len() as f64
}

#[test]
fn on_walks_of_wifi_and_lte_no_path_is_left_unused_and_nothing_stalls_longer_than_tcp() {
    let seeds = 100..106;
    let rivals =
        ["congestion=cubic", "scheduler=ecf,congestion=cubic"].map(|policy| mean(&walks(seeds.clone(), policy)));
    let tcp_stalls = seeds.clone().map(|seed| {
        let tcp = wifi_and_lte(seed, 60).into_iter().map(|path| {
            let seen = run("congestion=cubic", false, &[path], Sending::Endless, 60);
            (seen.goodput, seen.stall)
        });
        let (_, stall) = tcp.max_by(|a, b| a.0.total_cmp(&b.0)).expect("two");
        stall
    });
    let tcp_stalls: Vec<f64> = tcp_stalls.collect();
    for policy in OWN {
        let seen = walks(seeds.clone(), policy);
        let least = most(rivals).max(mean(&walks(seeds.clone(), &format!("{policy},scheduler=lowest_rtt")))) * 0.98;
        assert!(mean(&seen) > least, "{policy}: {} of {least} Mbit/s", mean(&seen));
        for ((seed, seen), stall) in seeds.clone().zip(&seen).zip(&tcp_stalls) {
            let unused = most(seen.unused.iter().copied());
            assert!(unused <= 2.0, "{policy}, seed {seed}: unused for {unused} s");
            assert!(seen.stall <= stall + 0.5, "{policy}, seed {seed}: {} s, TCP {stall} s", seen.stall);
        }
    }
}
