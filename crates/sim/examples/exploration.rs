//! Whether a scheduler finds what its paths carry, and leaves them in time ([`anabranch_sim::exploration`]).
//!
//! - `exploration walks SEEDS [POLICIES...]`: Wi-Fi and LTE walks of a minute each.
//! - `exploration held [POLICIES...]`: a path that pauses for 3 s and holds its queue, beside another.
//! - `exploration nine [POLICIES...]`: eight paths of 1 Mbit/s and one of 20.
//! - `exploration first [POLICIES...]`: 1 MB that begins on a path of 1 Mbit/s.
//! - `exploration trace KIND SEED POLICY`: a run, by quarters of a second.
#![allow(clippy::print_stdout)]

use anabranch_sim::application::Sending;
use anabranch_sim::exploration::{Carried, Seen, bad_and_good, held, nine, run, wifi_and_lte};

const RIVALS: [&str; 6] = [
    "anabranch",
    "anabranch,congestion=bounded_cubic",
    "congestion=cubic",
    "scheduler=ecf,congestion=cubic",
    "anabranch,scheduler=lowest_rtt",
    "anabranch,congestion=bounded_cubic,scheduler=lowest_rtt",
];

fn most(values: impl IntoIterator<Item = f64>) -> f64 {
    values.into_iter().fold(0.0, f64::max)
}

fn line(name: &str, seen: &Seen) {
    let back: Vec<String> =
        seen.back.iter().map(|all| all.iter().map(|back| format!("{back:.2}")).collect::<Vec<_>>().join(" ")).collect();
    println!(
        "{name:58} {:6.2} Mbit/s, stall {:5.2} s, unused {:?} s, back {back:?}, wasted {:.3}{}",
        seen.goodput,
        seen.stall,
        seen.unused,
        seen.wasted,
        seen.end.map_or(String::new(), |end| format!(", end {:.3} s", end))
    );
}

fn walks(seeds: std::ops::Range<u64>, policies: &[&str]) {
    let seconds = 60;
    let count = seeds.end - seeds.start;
    let mut rows: Vec<Vec<Walk>> = vec![Vec::new(); policies.len()];
    for seed in seeds {
        let paths = wifi_and_lte(seed, seconds);
        let single = |path: &Carried| {
            let seen = run("congestion=cubic", false, std::slice::from_ref(path), Sending::Endless, seconds);
            (seen.goodput, seen.stall)
        };
        let better = paths.iter().map(single).max_by(|a, b| a.0.total_cmp(&b.0)).expect("two");
        print!("{seed:3} TCP {:5.1} {:5.2} s", better.0, better.1);
        for (policy, rows) in policies.iter().zip(&mut rows) {
            let seen = run(policy, true, &paths, Sending::Endless, seconds);
            let walk = Walk {
                goodput: seen.goodput,
                stalled_longer: seen.stall - better.1,
                unused: most(seen.unused.iter().copied()),
                back: most(seen.back.concat()),
            };
            print!(" / {:5.1} {:5.2} {:4.1} {:4.1}", walk.goodput, seen.stall, walk.unused, walk.back);
            rows.push(walk);
        }
        println!();
    }
    println!(
        "\n| {count} walks | mean, Mbit/s | with a stall 0.5 s longer than TCP's on the better path (the most) \
         | with a path unused for more than 2 s (the most) | back at its share after more than 2 s \
         | more than 2 % below the best of the others (the most) |\n|---|---|---|---|---|---|"
    );
    for (at, policy) in policies.iter().enumerate() {
        let of = |value: fn(&Walk) -> f64| rows[at].iter().map(value).collect::<Vec<f64>>();
        let behind: Vec<f64> = (0..rows[at].len()).map(|walk| behind(&rows, at, walk)).collect();
        let mean = of(|walk| walk.goodput).iter().sum::<f64>() / count as f64;
        println!(
            "| `{policy}` | {mean:.2} | {} | {} | {} | {} |",
            above(&of(|walk| walk.stalled_longer), 0.5, " s"),
            above(&of(|walk| walk.unused), 2.0, " s"),
            above(&of(|walk| walk.back), 2.0, " s"),
            above(&behind, 2.0, " %"),
        );
    }
}

/// What a policy did on a walk: Mbit/s and seconds.
#[derive(Clone, Copy)]
struct Walk {
    goodput: f64,
    stalled_longer: f64,
    unused: f64,
    back: f64,
}

/// By how many per cent the policy's goodput on a walk is below the best of the others.
fn behind(rows: &[Vec<Walk>], policy: usize, walk: usize) -> f64 {
    let others = rows.iter().enumerate().filter(|(other, _)| *other != policy);
    let best = most(others.map(|(_, walks)| walks[walk].goodput));
    if best > 0.0 { 100.0 * (1.0 - rows[policy][walk].goodput / best) } else { 0.0 }
}

/// How many are above the limit, and the largest.
fn above(values: &[f64], limit: f64, unit: &str) -> String {
    let count = values.iter().filter(|value| **value > limit).count();
    let largest = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    format!("{count} ({largest:.2}{unit})")
}

fn trace(kind: &str, seed: u64, policy: &str) {
    let (paths, seconds) = match kind {
        "walk" => (wifi_and_lte(seed, 60), 60),
        _ => (held().swap_remove(seed as usize).1, 30),
    };
    let seen = run(policy, true, &paths, Sending::Endless, seconds);
    line(policy, &seen);
    for quarter in 0..seconds * 4 {
        let (from, to) = (f64::from(quarter) / 4.0, f64::from(quarter + 1) / 4.0);
        let within = |time: &f64| *time > from + 1e-6 && *time <= to + 1e-6;
        let series = &seen.measured.series;
        let delivered: u64 = series
            .time
            .iter()
            .zip(&series.delivered_bytes)
            .filter(|(time, _)| within(time))
            .map(|(_, bytes)| bytes)
            .sum();
        print!("{from:6.2}: {:5.1}", delivered as f64 * 32e-6);
        for (path, subflow) in paths.iter().zip(&seen.measured.subflows) {
            let rows: Vec<usize> = (0..subflow.time.len()).filter(|at| within(&subflow.time[*at])).collect();
            let acked: u64 = rows.iter().map(|at| subflow.acked_bytes[*at]).sum();
            let Some(&last) = rows.last() else { continue };
            print!(
                " | {:5.1} of {:5.1} cwnd {:7} flight {:7} srtt {:5.3} latest {:5.3} rto {:5.3} timeouts {} {}{}",
                acked as f64 * 32e-6,
                path.walk.bytes_between(from, to) * 32e-6,
                subflow.cwnd[last],
                subflow.in_flight[last],
                subflow.smoothed_rtt[last],
                subflow.latest_rtt[last],
                subflow.rto[last],
                subflow.timeouts[last],
                if subflow.recovering[last] { "R" } else { "." },
                if subflow.ssthresh[last] > subflow.cwnd[last] { "S" } else { "." },
            );
        }
        println!();
    }
}

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let kind = words.first().map_or("held", String::as_str);
    let named: Vec<&str> = words.iter().skip(if kind == "walks" { 3 } else { 1 }).map(String::as_str).collect();
    let policies: Vec<&str> = if named.is_empty() { RIVALS.to_vec() } else { named };
    let number = |at: usize| words.get(at).map_or(0, |word| word.parse().expect("a number"));
    match kind {
        "walks" => walks(number(1)..number(2), &policies),
        "trace" => trace(&words[1], number(2), &words[3]),
        "nine" => {
            let paths = nine();
            policies.iter().for_each(|policy| line(policy, &run(policy, true, &paths, Sending::Endless, 30)));
        }
        "first" => {
            let [bad, good] = bad_and_good();
            for policy in &policies {
                let bytes = || Sending::Bytes(1_000_000);
                let seen = run(policy, true, &[bad.clone(), good.clone()], bytes(), 30);
                line(policy, &seen);
                for subflow in &seen.measured.subflows {
                    let begin = subflow.time.iter().zip(&subflow.sent_bytes).find(|(_, sent)| **sent > 0);
                    let sent: u64 = subflow.sent_bytes.iter().sum();
                    println!("  {:?}: first data at {:?} s, {sent} bytes", subflow.id, begin.map(|(time, _)| time));
                }
                line("  the good one first", &run(policy, true, &[good.clone(), bad.clone()], bytes(), 30));
                line("  the good one alone", &run(policy, true, std::slice::from_ref(&good), bytes(), 30));
            }
        }
        _ => {
            for (name, paths) in held() {
                println!("{name}");
                policies.iter().for_each(|policy| line(policy, &run(policy, true, &paths, Sending::Endless, 30)));
            }
        }
    }
}
