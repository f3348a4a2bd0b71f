//! What a congestion control leaves to others: RFC 9743's questions on a grid of bottlenecks.
//!
//! - `beside CONTROL RIVAL [SECONDS]`: one connection of CONTROL with one and with two subflows beside one and four plain TCP
//!   connections of RIVAL; shares of the fair share, of the rivals' mean and of its own.
//! - `apart CONTROL RIVAL [SECONDS]`: two subflows, each over a bottleneck of its own beside one of RIVAL: the share of each path that
//!   the connection has; half is fair.
//! - `crowd CONTROL [SECONDS]`: 10, 30 and 50 of its own beside each other; loss, Jain's index, the least share.
//! - `crowds CONTROL [SECONDS]`: the same for 35 other crowds of 20 to 60.
//! - `alone CONTROL [SECONDS]`: random loss; goodput as a share of the path, and the queue.
//! - `slow CONTROL RIVAL [SECONDS]`: slow paths with a short round trip and a queue of 500 packets, beside receivers that
//!   delay acknowledgements and that do not; alone, and beside RIVAL in a queue of 40.
//! - `unsteady CONTROL RIVAL [SECONDS]`: delays that vary; alone with random loss, and beside RIVAL without.
#![allow(clippy::print_stdout)]

use anabranch_mptcp::ConnectionConfig;
use anabranch_policy::rate::Rate;
use anabranch_policy::time::{Duration, Instant};
use anabranch_sim::World;
use anabranch_sim::link::{DelayModel, LinkConfig, LossModel};
use anabranch_sim::reference::{
    Bottleneck, PACKET, apart, crowd, link_with, recorded, round_trips, shared_link, unlimited,
};

fn config(control: &str, multipath: bool) -> ConnectionConfig {
    unlimited(Box::leak(control.to_owned().into_boxed_str()), multipath, 64 << 20)
}

/// Queues in bandwidth-delay products; none is CoDel ([`link_with`]).
const QUEUES: [Option<f64>; 6] = [Some(0.05), Some(0.25), Some(0.5), Some(1.0), Some(4.0), None];

/// Rate, Mbit/s, and queue in bandwidth-delay products of 40 ms that crowds meet.
const CROWDED: [(u64, f64); 4] = [(100, 0.05), (100, 0.5), (100, 2.0), (20, 1.0)];
const MORE_CROWDED: [(u64, f64); 7] = [(100, 0.5), (100, 0.1), (100, 1.0), (20, 1.0), (50, 1.0), (20, 0.25), (20, 4.0)];

fn name(queue: Option<f64>) -> String {
    queue.map_or("codel".to_owned(), |share| share.to_string())
}

fn read(world: &mut World, seconds: f64) -> Vec<u64> {
    world.run_until(Instant::ZERO + Duration::from_secs_f64(seconds));
    world.results().flows.iter().map(|flow| flow.receiver().read).collect()
}

/// Mbit/s of each flow in the later two thirds.
fn rates(world: &mut World, seconds: f64) -> Vec<f64> {
    let before = read(world, seconds / 3.0);
    let after = read(world, seconds);
    after.iter().zip(before).map(|(after, before)| (after - before) as f64 * 8e-6 / (seconds * 2.0 / 3.0)).collect()
}

fn beside(control: &str, rival: &str, seconds: f64) {
    println!("{control} beside {rival}: their share / its own share, of the fair share");
    print!("{:28}", "");
    QUEUES.iter().for_each(|queue| print!("{:>12}", name(*queue)));
    println!();
    let (mut least_theirs, mut least_own, mut cells, mut good) = (f64::MAX, f64::MAX, 0, 0);
    for (subflows, rivals) in [(1, 1), (1, 4), (2, 1), (2, 4)] {
        for mbit in [20, 100] {
            for rtt in [20, 40, 160] {
                print!("{subflows} + {rivals}: {mbit:3} Mbit/s {rtt:3} ms    ");
                for queue in QUEUES {
                    let there = link_with(mbit, rtt, queue);
                    let back = link_with(mbit, rtt, Some(100.0));
                    let (own, other) = (config(control, subflows > 1), config(rival, false));
                    let mut world = shared_link(1, (subflows, rivals), (&there, &back), &own, &other);
                    let rates = rates(&mut world, seconds);
                    let fair = rates.iter().sum::<f64>() / (rivals + 1) as f64;
                    let theirs = rates[1..].iter().sum::<f64>() / rivals as f64 / fair;
                    let own = rates[0] / fair;
                    print!("{theirs:>6.2}/{own:<5.2}");
                    (least_theirs, least_own) = (least_theirs.min(theirs), least_own.min(own));
                    cells += 1;
                    good += usize::from(theirs >= 0.8 && own >= 0.6);
                }
                println!();
            }
        }
    }
    println!(
        "least of theirs {least_theirs:.2}, of its own {least_own:.2}; {good} of {cells} with theirs >= 0.8 and own >= 0.6"
    );
}

fn on_two(control: &str, rival: &str, seconds: f64) {
    println!("{control} over two bottlenecks, each beside one {rival}: of all that both carry");
    for (first, second) in [((20, 40), (20, 40)), ((100, 40), (100, 40)), ((100, 20), (20, 80)), ((20, 160), (20, 160))]
    {
        print!("{first:?} {second:?} Mbit/s, ms   ");
        for queue in QUEUES {
            let there = [first, second].map(|(mbit, rtt)| link_with(mbit, rtt, queue));
            let back = [first, second].map(|(mbit, rtt)| link_with(mbit, rtt, Some(100.0)));
            let links = [(&there[0], &back[0]), (&there[1], &back[1])];
            let mut world = apart(1, 1, links, &config(control, true), &config(rival, false));
            let rates = rates(&mut world, seconds);
            print!(" {:>5}: {:.2}", name(queue), rates[0] / rates.iter().sum::<f64>());
        }
        println!();
    }
}

/// Crowds over links of so many Mbit/s, 40 ms and so many bandwidth-delay products of queue.
fn in_crowds(control: &str, links: &[(u64, f64)], crowds: &[usize], seconds: f64) {
    for &(mbit, share) in links {
        for &flows in crowds {
            let product = mbit as f64 * 1e6 / 8.0 * 0.04 / f64::from(PACKET);
            let bottleneck = Bottleneck::new(mbit, 20, ((product * share) as usize).max(2));
            let mut world = crowd(1, flows, &bottleneck, &config(control, false));
            let mut last = read(&mut world, seconds / 3.0);
            let first = last.clone();
            let mut silent = vec![0u32; flows];
            let mut longest = 0;
            for half in 1..=(seconds * 4.0 / 3.0) as u32 {
                let now = read(&mut world, seconds / 3.0 + f64::from(half) / 2.0);
                for (n, silent) in silent.iter_mut().enumerate() {
                    *silent = if now[n] == last[n] { *silent + 1 } else { 0 };
                    longest = longest.max(*silent);
                }
                last = now;
            }
            let rates: Vec<f64> = last.iter().zip(&first).map(|(to, from)| (to - from) as f64).collect();
            let sum: f64 = rates.iter().sum();
            let jain = sum * sum / (flows as f64 * rates.iter().map(|rate| rate * rate).sum::<f64>());
            let results = world.results();
            let link = &results.link("bottleneck").expect("the bottleneck").counters;
            let lost = link.drops.total() as f64;
            println!(
                "{flows:2} on {mbit:3} Mbit/s, 40 ms, {share} BDP: {:6.2} Mbit/s, loss {:5.2} %, Jain {jain:.3}, least {:.2}, silent {:.1} s",
                sum * 8e-6 / (seconds * 2.0 / 3.0),
                100.0 * lost / (lost + link.delivered_packets as f64),
                rates.iter().fold(f64::MAX, |least, rate| least.min(*rate)) / sum * flows as f64,
                f64::from(longest) / 2.0,
            );
        }
    }
}

fn at(sorted: &[f64], share: f64) -> f64 {
    sorted[((sorted.len() - 1) as f64 * share) as usize]
}

fn alone(control: &str, seconds: f64) {
    for mbit in [20, 100] {
        for rtt in [20, 60, 200] {
            for loss in [0.0, 0.001, 0.01, 0.03] {
                let product = mbit as f64 * 1e6 / 8.0 * rtt as f64 / 1e3 / f64::from(PACKET);
                let bottleneck =
                    Bottleneck { loss, ..Bottleneck::new(mbit, rtt / 2, ((product * 1.0) as usize).max(2)) };
                let mut world = recorded(&bottleneck.forward(), &bottleneck.backward(), &config(control, false));
                let rate = rates(&mut world, seconds)[0];
                let seen = round_trips(&mut world, Duration::from_secs_f64(seconds / 3.0));
                let most = mbit as f64 * 1400.0 / f64::from(PACKET) * (1.0 - loss);
                println!(
                    "{mbit:3} Mbit/s {rtt:3} ms {:4.1} %: {:.2} of what the path has, RTT {:.1} ms, 95 % {:.1}",
                    loss * 100.0,
                    rate / most,
                    at(&seen, 0.5),
                    at(&seen, 0.95)
                );
            }
        }
    }
}

/// Slow paths, where a segment takes a large part of the round trip.
fn slow(control: &str, rival: &str, seconds: f64) {
    let back = link_with(1000, 0, Some(100.0));
    for kbit in [300, 500, 1000, 2000, 5000] {
        for rtt in [4, 20, 50] {
            print!("{:4.1} Mbit/s {rtt:2} ms ", kbit as f64 / 1e3);
            for delayed in [40, 0] {
                let rate = Rate::from_bits_per_second(kbit * 1000);
                let link = |queue| LinkConfig::new(rate, Duration::from_millis(rtt), queue);
                let [mut own, other] = [control, rival].map(|name| config(name, false));
                own.tcp.delayed_ack = Duration::from_millis(delayed);
                let mut world = recorded(&link(500), &back, &own);
                let alone = rates(&mut world, seconds)[0];
                let both = rates(&mut shared_link(1, (1, 1), (&link(40), &back), &own, &other), seconds);
                let most = kbit as f64 / 1e3 * 1400.0 / f64::from(PACKET);
                let seen = round_trips(&mut world, Duration::from_secs_f64(seconds / 3.0));
                let theirs = 2.0 * both[1] / (both[0] + both[1]);
                let (share, usual, long) = (alone / most, at(&seen, 0.5), at(&seen, 0.95));
                print!("  {delayed:2} ms: {share:.2}, RTT {usual:.0}, 95 % {long:.0}; beside {theirs:.2}");
            }
            println!();
        }
    }
}

/// Delays that are drawn anew every 5 ms between that of the path and one that is longer by so many ms.
fn unsteady(control: &str, rival: &str, seconds: f64) {
    let back = link_with(1000, 0, Some(100.0));
    for (mbit, rtt) in [(20, 20), (20, 60), (100, 20), (100, 60)] {
        print!("{mbit:3} Mbit/s {rtt:3} ms ");
        for longer in [0, 1, 2, 5, 20] {
            let steady = link_with(mbit, 2 * rtt, Some(0.5));
            let min = Duration::from_millis(rtt);
            let max = min + Duration::from_millis(longer);
            let delay = DelayModel::Varying { min, max, interval: Duration::from_millis(5) };
            let shared = LinkConfig { delay, ..steady };
            let lossy = LinkConfig { loss: vec![LossModel::Uniform(0.01)], ..shared.clone() };
            let (own, other) = (config(control, false), config(rival, false));
            let alone = rates(&mut shared_link(1, (1, 0), (&lossy, &back), &own, &other), seconds)[0];
            let both = rates(&mut shared_link(1, (1, 1), (&shared, &back), &own, &other), seconds);
            let most = mbit as f64 * 1400.0 / f64::from(PACKET) * 0.99;
            print!("  {longer:2} ms: {:.2}, beside {:.2}", alone / most, 2.0 * both[1] / (both[0] + both[1]));
        }
        println!();
    }
}

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let word = |at: usize, default: &str| words.get(at).cloned().unwrap_or_else(|| default.to_owned());
    let seconds = |at: usize, default: f64| words.get(at).map_or(default, |word| word.parse().expect("seconds"));
    match word(0, "beside").as_str() {
        "crowd" => in_crowds(&word(1, "anabranch"), &CROWDED, &[10, 30, 50], seconds(2, 45.0)),
        "crowds" => in_crowds(&word(1, "anabranch"), &MORE_CROWDED, &[20, 35, 45, 50, 60], seconds(2, 45.0)),
        "apart" => on_two(&word(1, "anabranch"), &word(2, "cubic"), seconds(3, 60.0)),
        "slow" => slow(&word(1, "anabranch"), &word(2, "cubic"), seconds(3, 60.0)),
        "unsteady" => unsteady(&word(1, "anabranch"), &word(2, "cubic"), seconds(3, 60.0)),
        "alone" => alone(&word(1, "anabranch"), seconds(2, 45.0)),
        _ => beside(&word(1, "anabranch"), &word(2, "cubic"), seconds(3, 60.0)),
    }
}
