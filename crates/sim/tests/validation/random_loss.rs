//! Random loss: the square-root law for NewReno, the response function of CUBIC, and ns-3's figures for both.
//!
//! Mathis et al. (1997): goodput = C MSS / (RTT sqrt(p)), with C = sqrt(3/2) = 1.22 if losses are evenly spaced and
//! every segment is acknowledged; for independent losses C is 1.31. Two effects lower it as p grows: a window grows by
//! whole segments only, and not in the round trip that repairs a loss.
//!
//! The link has 100 Mbit/s and a long queue, so that only the random losses matter.

use super::golden;
use anabranch_policy::time::{Duration, Instant};
use anabranch_sim::reference::{Bottleneck, SEGMENT, connection, direct, goodput};
use core::fmt::Write;

const LOSS: [f64; 4] = [0.001, 0.003, 0.01, 0.03];
const SEEDS: u64 = 3;

/// Mean of the seeds in Mbit/s, at a round trip of `rtt_ms`, over `seconds` from the second `begin` on.
fn rate(congestion: &'static str, rtt_ms: u64, loss: f64, begin: u64, seconds: u64) -> f64 {
    let bottleneck = Bottleneck { loss, ..Bottleneck::new(100, rtt_ms / 2, 2000) };
    let begin = Instant::ZERO + Duration::from_secs(begin);
    let sum: f64 = (1..=SEEDS)
        .map(|seed| {
            let (mut world, _) = direct(seed, &[bottleneck], &connection(congestion, false));
            goodput(&mut world, 0, begin, begin + Duration::from_secs(seconds))
        })
        .sum();
    sum / SEEDS as f64
}

/// The slope of y over x, by least squares.
fn slope(points: &[(f64, f64)]) -> f64 {
    let n = points.len() as f64;
    let (x, y) = points.iter().fold((0.0, 0.0), |(x, y), point| (x + point.0 / n, y + point.1 / n));
    let (up, down) = points.iter().fold((0.0, 0.0), |(up, down), point| {
        (up + (point.0 - x) * (point.1 - y), down + (point.0 - x) * (point.0 - x))
    });
    up / down
}

/// A table of both round trips, and the rates in the order of its rows.
fn measure(congestion: &'static str, ns3: [(u64, [f64; 4]); 2]) -> (String, Vec<(u64, f64, f64, f64)>) {
    let mut table = format!(
        "# {congestion}: Mbit/s with random loss, mean of {SEEDS} seeds\n# RTT ms, loss, Mbit/s, C (Mathis), ns-3.44\n"
    );
    let mut cells = Vec::new();
    for (rtt, ns3) in ns3 {
        for (loss, ns3) in LOSS.iter().zip(ns3) {
            let rate = rate(congestion, rtt, *loss, 10, 100);
            let c = rate * 1e6 * (rtt as f64 * 1e-3) * loss.sqrt() / f64::from(SEGMENT * 8);
            writeln!(table, "{rtt:3} {loss:5.3} {rate:9.6} {c:5.3} {ns3:6.3}").unwrap();
            cells.push((rtt, *loss, rate, ns3));
        }
    }
    (table, cells)
}

/// The exponent of the loss probability at one round trip, and that of the round trip at the same loss.
fn exponents(cells: &[(u64, f64, f64, f64)]) -> (Vec<f64>, Vec<f64>) {
    let logs = |half: &[(u64, f64, f64, f64)]| {
        slope(&half.iter().map(|(_, loss, rate, _)| (loss.ln(), rate.ln())).collect::<Vec<_>>())
    };
    let (short, long) = cells.split_at(4);
    let by_rtt = short.iter().zip(long).map(|(a, b)| (b.2 / a.2).ln() / (b.0 as f64 / a.0 as f64).ln());
    (vec![logs(short), logs(long)], by_rtt.collect())
}

#[test]
fn new_reno_obeys_the_square_root_law() {
    // ns-3's TcpNewReno with every segment acknowledged, where its growth equals ours; at 100 ms measured with delayed
    // acknowledgements only, where it grows half as fast: about 1/sqrt(2).
    let ns3 = [(50, [9.022, 4.901, 2.547, 1.156]), (100, [3.000, 1.635, 0.822, 0.407])];
    let (table, cells) = measure("new_reno", ns3);
    let (by_loss, by_rtt) = exponents(&cells);
    for (rtt, loss, rate, ns3) in &cells {
        let c = rate * 1e6 * (*rtt as f64 * 1e-3) * loss.sqrt() / f64::from(SEGMENT * 8);
        assert!((0.9..=1.4).contains(&c), "C = {c}\n{table}");
        let expected = if *rtt == 50 { *ns3 } else { ns3 * 2_f64.sqrt() };
        assert!((rate / expected - 1.0).abs() < 0.12, "{rate} is not {expected}\n{table}");
    }
    assert!(by_loss.iter().all(|exponent| (exponent + 0.5).abs() < 0.1), "{by_loss:?}\n{table}");
    assert!(by_rtt.iter().all(|exponent| (exponent + 1.0).abs() < 0.1), "{by_rtt:?}\n{table}");
    golden::check("random_loss_new_reno.txt", &table);
}

#[test]
fn cubic_is_as_fast_as_reno_where_its_own_function_would_be_slower() {
    // At these losses and round trips W_est dominates (RFC 9438, section 4.3), so the square-root law holds here too.
    let ns3 = [(50, [9.351, 5.108, 2.769, 1.323]), (100, [5.066, 2.722, 1.427, 0.706])];
    let (table, cells) = measure("cubic", ns3);
    let (by_loss, by_rtt) = exponents(&cells);
    for (_, _, rate, ns3) in &cells {
        assert!((rate / ns3 - 1.0).abs() < 0.15, "{rate} is not {ns3}\n{table}");
    }
    assert!(by_loss.iter().all(|exponent| (exponent + 0.55).abs() < 0.1), "{by_loss:?}\n{table}");
    assert!(by_rtt.iter().all(|exponent| (exponent + 0.95).abs() < 0.1), "{by_rtt:?}\n{table}");
    golden::check("random_loss_cubic.txt", &table);
}

#[test]
fn cubic_follows_its_response_function_where_losses_are_rare_and_the_way_is_long() {
    // RFC 9438, equation 5 with C = 0.4 and beta = 0.7: average window 1.054 (RTT / p)^(3/4) segments if losses are
    // evenly spaced. Integrated over independent losses, with fast convergence, it is 1.14 times that; and several
    // losses in one window, 4 % of them here, count as one.
    let predicted = |rtt: f64, loss: f64| 1.054 * (rtt / loss).powf(0.75) * f64::from(SEGMENT * 8) * 1e-6 / rtt;
    let measured = |rtt_ms: u64, loss: f64| rate("cubic", rtt_ms, loss, 60, 200);
    let (far, rare, near) = (measured(200, 0.0003), measured(200, 0.0001), measured(100, 0.0001));
    let table = format!("{far:.3} {rare:.3} {near:.3}");
    for (rate, predicted) in
        [(far, predicted(0.2, 0.0003)), (rare, predicted(0.2, 0.0001)), (near, predicted(0.1, 0.0001))]
    {
        assert!((1.0..=1.4).contains(&(rate / predicted)), "{rate} is not {predicted}: {table}");
    }
    // Three times the losses cost a factor of 3^(3/4) = 2.28 (Reno: 1.73); half the round trip gains 2^(1/4) = 1.19
    // (Reno: 2).
    assert!((1.9..=2.8).contains(&(rare / far)), "{table}");
    assert!((1.0..=1.45).contains(&(near / rare)), "{table}");
}
