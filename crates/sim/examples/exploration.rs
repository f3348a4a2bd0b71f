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
    println!("policy: goodput over best rival, stall over TCP's on the better path, longest unused");
    let mut rows: Vec<Vec<(f64, f64, f64, f64)>> = vec![Vec::new(); policies.len()];
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
            let unused = most(seen.unused.iter().copied());
            let over = seen.stall - better.1;
            print!(" | {:5.1} {:5.2} {unused:4.1} {:4.1}", seen.goodput, seen.stall, most(seen.back.concat()));
            rows.push((seen.goodput, over, unused, most(seen.back.concat())));
        }
        println!();
    }
    for (policy, rows) in policies.iter().zip(&rows) {
        let mean = rows.iter().map(|row| row.0).sum::<f64>() / rows.len() as f64;
        let late = rows.iter().filter(|row| row.1 > 0.5).count();
        let unused = rows.iter().filter(|row| row.2 > 2.0).count();
        println!(
            "{policy:58} mean {mean:6.2} Mbit/s, {late} of {} stall more than 0.5 s longer (most {:.2}), {unused} have a path unused for more than 2 s (most {:.2})",
            rows.len(),
            most(rows.iter().map(|row| row.1)),
            most(rows.iter().map(|row| row.2)),
        );
    }
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
