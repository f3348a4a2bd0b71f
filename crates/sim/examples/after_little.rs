//! How long a transfer takes after some little traffic: a connection that has written a little now and then must not have
//! left start-up for it.
//!
//! `after_little SEED CASES [lossy | paused | young]` draws the cases: one path or two of 10 to 400 Mbit/s, round trips of
//! 4 to 160 ms and queues of half to three bandwidth-delay products; messages of 0.3 to 60 kB each 4 to 300 ms, for 0.3 to
//! 8 s, in half of the cases behind a first transfer of a second; then what the paths carry in two seconds. Lossy paths lose
//! 0.05 to 2 %. Paused ones stand still for 10 to 300 ms each 50 to 500 ms, both ways, until the transfer begins. Young
//! connections begin with the transfer, and their paths pause in its first 0.6 s. All are even in the logarithm. Prints each
//! case in which a policy takes 1.3 times as long as the best, and a table.
#![allow(clippy::print_stdout)]

use anabranch_mptcp::{ConnectionConfig, EndpointConfig, Framing};
use anabranch_policy::combination::Combination;
use anabranch_policy::reliability::ESSENTIAL;
use anabranch_policy::time::{Duration, Instant};
use anabranch_sim::application::FrameToSend;
use anabranch_sim::link::LinkConfig;
use anabranch_sim::random::RandomStream;
use anabranch_sim::reference::{Bottleneck, upload};
use anabranch_sim::topology::{PathConfig, ServerAddresses, disjoint_paths};
use anabranch_sim::{Application, FlowConfig, World, WorldConfig};

const POLICIES: [&str; 4] =
    ["anabranch,congestion=bounded_cubic", "anabranch", "anabranch,congestion=cubic", "anabranch,congestion=bbr"];
/// Bytes of each of the messages that a transfer is made of.
const PART: u32 = 1_000_000;
/// A policy is slow if it takes this many times as long as the best.
const SLOW: f64 = 1.3;

struct Case {
    paths: Vec<Bottleneck>,
    /// When each of them stands still.
    pauses: Vec<Vec<(Instant, Instant)>>,
    /// Milliseconds and bytes of each message.
    messages: Vec<(u64, u32)>,
    name: String,
}

fn case(random: &mut RandomStream, kind: &str) -> Case {
    let mut between = |from: f64, to: f64| from * (to / from).powf(random.uniform());
    let path = |between: &mut dyn FnMut(f64, f64) -> f64| {
        let (mbit, delay_ms) = (between(10.0, 400.0) as u64, between(2.0, 80.0) as u64);
        let product = mbit as f64 * 1e6 / 12e3 * 2e-3 * delay_ms as f64;
        let queue = ((product * between(0.5, 3.0)) as usize).max(8);
        let loss = if kind == "lossy" { between(5e-4, 2e-2) } else { 0.0 };
        Bottleneck { loss, ..Bottleneck::new(mbit, delay_ms, queue) }
    };
    let count = if between(1.0, 4.0) < 2.0 { 1 } else { 2 };
    let paths: Vec<Bottleneck> = (0..count).map(|_| path(&mut between)).collect();
    let (bytes, every, length) = (between(300.0, 60e3) as u32, between(4.0, 300.0) as u64, between(300.0, 8e3) as u64);
    let begin = if between(1.0, 4.0) < 2.0 { 0 } else { 4_000 };
    let (begin, length) = if kind == "young" { (0, 0) } else { (begin, length) };
    let carried = paths.iter().map(|path| path.mbit).sum::<u64>() * 1_000_000 / 8;
    let parts = |seconds: u64| 0..(carried * seconds / u64::from(PART)).max(2);
    let first = parts(u64::from(begin > 0)).filter(|_| begin > 0).map(|_| (0, PART));
    let little = (0..length / every).map(|number| (begin + number * every, bytes));
    let transfer = parts(2).map(|_| (begin + length, PART));
    let told = |path: &Bottleneck| {
        let share = 100.0 * path.loss;
        format!("{} Mbit/s {} ms {} packets {share:.2} %", path.mbit, 2 * path.delay_ms, path.queue)
    };
    let lines: Vec<String> = paths.iter().map(told).collect();
    let name = format!("{}; {bytes} B each {every} ms from {begin} ms for {length} ms", lines.join(" and "));
    let paused_until = Duration::from_millis(match kind {
        "paused" => begin + length,
        "young" => 600,
        _ => 0,
    });
    let mut pauses = |_| {
        let (mut list, mut at) = (Vec::new(), Duration::ZERO);
        while at < paused_until {
            let from = at + Duration::from_secs_f64(between(0.05, 0.5));
            at = from + Duration::from_secs_f64(between(0.01, 0.3));
            list.push((Instant::ZERO + from, Instant::ZERO + at));
        }
        list
    };
    let pauses = (0..count).map(&mut pauses).collect();
    Case { messages: first.chain(little).chain(transfer).collect(), paths, pauses, name }
}

/// Seconds from when the application had the transfer to when its last byte was read.
fn run(words: &str, case: &Case) -> f64 {
    let combination: Combination = words.parse().expect("a combination");
    let manager = || combination.build_path_manager().expect("a path manager");
    let mut world = World::new(WorldConfig { seed: 1, ..WorldConfig::default() });
    let [client, server] = ["client", "server"].map(|name| world.add_host(name, &EndpointConfig::default(), manager()));
    let path = |(path, pauses): (&Bottleneck, &Vec<(Instant, Instant)>)| PathConfig {
        access_up: LinkConfig { pauses: pauses.clone(), ..path.forward() },
        access_down: LinkConfig { pauses: pauses.clone(), ..path.backward() },
        ..PathConfig::default()
    };
    let paths: Vec<PathConfig> = case.paths.iter().zip(&case.pauses).map(path).collect();
    let paths = disjoint_paths(&mut world, client, server, &paths, ServerAddresses::One);
    let frame = |(millis, bytes): &(u64, u32)| {
        let at = Duration::from_millis(*millis);
        FrameToSend { at, play_out: at, importance: ESSENTIAL, lifetime: None, bytes: *bytes }
    };
    let frames: Vec<FrameToSend> = case.messages.iter().map(frame).collect();
    let last = frames.last().map_or(Duration::ZERO, |frame| frame.at);
    let mut config = ConnectionConfig::of(&combination).expect("a combination");
    config.framing = Framing::Messages;
    config.grow_buffers();
    let flow = upload("after little", (client, paths[0].client), paths[0].server, Instant::ZERO, &config);
    world.add_flow(FlowConfig { application: Application::video(frames.into()), ..flow });
    world.run_until_finished(Instant::ZERO + Duration::from_secs(120));
    let results = world.results();
    let start = results.flows[0].client.established.expect("it is established");
    let read = results.flows[0].server.video.as_deref().and_then(|video| video.messages.last().copied().flatten());
    read.map_or(f64::INFINITY, |read| read.read.since(start + last).as_secs_f64())
}

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let number = |at: usize| words.get(at).map_or(1, |word| word.parse().expect("a number"));
    let mut random = RandomStream::new(number(0), "after little");
    let mut slow = [(0, 0.0_f64); POLICIES.len()];
    let count = number(1);
    for _ in 0..count {
        let case = case(&mut random, words.get(2).map_or("", String::as_str));
        let times = POLICIES.map(|policy| run(policy, &case));
        let best = times.iter().copied().fold(f64::INFINITY, f64::min);
        for (time, (count, most)) in times.iter().zip(&mut slow) {
            *count += u64::from(*time > SLOW * best);
            *most = most.max(*time / best);
        }
        if times[0] > SLOW * best {
            println!("{}: {times:.2?} s", case.name);
        }
    }
    println!("\n| {count} cases | more than {SLOW} times as long as the best | at most |\n|---|---|---|");
    for (policy, (count, most)) in POLICIES.iter().zip(slow) {
        println!("| `{policy}` | {count} | {most:.1} times |");
    }
}
