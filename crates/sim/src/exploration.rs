//! Whether a connection uses the capacity of its paths: runs over paths with changing rates ([`Walk`]), and their
//! measurements.

use crate::application::{Application, Sending};
use crate::flow::{FlowConfig, FlowId};
use crate::link::LinkConfig;
use crate::recorder::Measurements;
use crate::reference::{PACKET, upload};
use crate::topology::{PathConfig, ServerAddresses, disjoint_paths};
use crate::walk::Walk;
use crate::world::{World, WorldConfig};
use anabranch_mptcp::{BufferSize, ConnectionConfig, EndpointConfig, Policies, TcpConfig};
use anabranch_policy::combination::Combination;
use anabranch_policy::rate::Rate;
use anabranch_policy::time::{Duration, Instant};
use std::sync::Arc;

/// Sampling interval of the recorder in milliseconds.
const LOOK_MS: u64 = 10;
/// Sampling interval of the links in seconds.
const STEP: f64 = 0.05;
/// Interval in seconds for which a path counts as used or unused.
const SPAN: f64 = 0.25;
/// A path is unused if it carries less than this share of its capacity.
const USED: f64 = 0.1;
/// A path with less capacity than this, in Mbit/s, is not judged.
const MISSED: f64 = 3.0;
/// A path has recovered when it carries this share of its capacity.
const BACK: f64 = 0.7;
/// Nothing is judged before this time, in seconds.
pub const WARM_UP: f64 = 3.0;

/// A path with a changing rate.
#[derive(Clone, Debug)]
pub struct Carried {
    pub walk: Walk,
    /// Round-trip time without queueing in milliseconds.
    pub rtt_ms: u64,
    /// Queue limit in packets.
    pub queue: usize,
}

impl Carried {
    pub fn new(walk: Walk, rtt_ms: u64, queue: usize) -> Self {
        Self { walk, rtt_ms, queue }
    }

    fn links(&self) -> (LinkConfig, LinkConfig) {
        let delay = Duration::from_micros(self.rtt_ms * 500);
        let there = self.walk.link(delay, self.queue).expect("the walk carries something");
        (there, LinkConfig::new(Rate::from_bits_per_second(50_000_000), delay, 2_000))
    }
}

/// Wi-Fi with 20 ms and LTE with 60 ms round-trip time and a queue of 1,000 packets, for a seed.
pub fn wifi_and_lte(seed: u64, seconds: u32) -> Vec<Carried> {
    let wifi = Carried::new(Walk::wifi(seed, seconds), 20, 250);
    vec![wifi, Carried::new(Walk::lte(seed, seconds), 60, 1_000)]
}

/// Paths of 20 and 54 Mbit/s with small and large queues that pause for 3 s and keep their queue, each as the first and
/// as the second path next to a steady one, with descriptions.
pub fn held() -> Vec<(String, Vec<Carried>)> {
    let mut all = Vec::new();
    for (name, queue) in [("100 packets", 100), ("1000 packets", 1_000)] {
        for (mbit, rtt) in [(8.0, 60), (20.0, 60), (54.0, 20)] {
            for which in [0, 1] {
                let walk = Walk::steady(mbit, 30, &[(10.0, 13.0)]);
                let mut paths = vec![Carried::new(Walk::steady(10.0, 30, &[]), 80, 200)];
                paths.insert(which, Carried::new(walk, rtt, queue));
                all.push((format!("{mbit} Mbit/s, {rtt} ms, {name}, path {which}"), paths));
            }
        }
    }
    all
}

/// Eight paths of 1 Mbit/s and one of 20 Mbit/s.
pub fn nine() -> Vec<Carried> {
    let mut paths: Vec<Carried> = (0..8).map(|_| Carried::new(Walk::steady(1.0, 30, &[]), 50, 20)).collect();
    paths.push(Carried::new(Walk::steady(20.0, 30, &[]), 50, 100));
    paths
}

/// A path of 1 Mbit/s and 200 ms, and one of 20 Mbit/s and 20 ms.
pub fn bad_and_good() -> [Carried; 2] {
    let path = |mbit, rtt| Carried::new(Walk::steady(mbit, 30, &[]), rtt, 50);
    [path(1.0, 200), path(20.0, 20)]
}

/// Measurements of a run.
#[derive(Clone, Debug)]
pub struct Seen {
    /// In Mbit/s after [`WARM_UP`].
    pub goodput: f64,
    /// Longest time in seconds after [`WARM_UP`] in which the stream did not advance.
    pub stall: f64,
    /// For each path, the longest time in seconds in which it was unused although it had a capacity of 3 Mbit/s.
    pub unused: Vec<f64>,
    /// For each pause of each path, the time from its end until the path carried its share; the time left in the run if
    /// it never did.
    pub back: Vec<Vec<f64>>,
    /// Bytes that arrived as duplicates, as a share of delivered bytes.
    pub wasted: f64,
    /// Arrival of the end of a limited transfer in seconds.
    pub end: Option<f64>,
    pub measured: Box<Measurements>,
}

/// A connection with these policies and buffers of `buffer` bytes.
///
/// # Panics
/// If `words` names no policies.
pub fn config_of(words: &str, multipath: bool, buffer: u64) -> (ConnectionConfig, Combination) {
    let (name, rest) = words.split_once(',').unwrap_or((words, ""));
    let mut combination = Combination::named(name).unwrap_or_default();
    combination.apply(if Combination::named(name).is_some() { rest } else { words }).expect("a combination");
    combination.check().expect("a combination");
    let (one, other) = (combination.clone(), combination.clone());
    let policies = Policies {
        congestion: Arc::new(move || one.build_congestion().expect("it was checked")),
        scheduler: Arc::new(move || other.build_scheduler().expect("it was checked")),
        reliability: anabranch_mptcp::config::fully_reliable(),
    };
    let config = ConnectionConfig {
        multipath,
        receive_buffer: BufferSize::Fixed(buffer),
        send_buffer: buffer,
        tcp: TcpConfig { mtu: PACKET as u16, ..TcpConfig::default() },
        ..ConnectionConfig::new(policies)
    };
    (config, combination)
}

/// Runs a connection over the paths.
///
/// # Panics
/// If `words` names no policies.
pub fn run(words: &str, multipath: bool, paths: &[Carried], sending: Sending, seconds: u32) -> Seen {
    let (config, combination) = config_of(words, multipath, 6 << 20);
    let mut world = World::new(WorldConfig { seed: 1, ..WorldConfig::default() });
    let mut host = |name| {
        let manager = combination.build_path_manager().expect("it was checked");
        world.add_host(name, &EndpointConfig::default(), manager)
    };
    let (client, server) = (host("client"), host("server"));
    let path = |(index, path): (usize, &Carried)| {
        let (access_up, access_down) = path.links();
        PathConfig { name: index.to_string(), access_up, access_down, ..PathConfig::default() }
    };
    let made: Vec<PathConfig> = paths.iter().enumerate().map(path).collect();
    let ends = disjoint_paths(&mut world, client, server, &made, ServerAddresses::One);
    let flow = upload("bulk", (client, ends[0].client), ends[0].server, Instant::ZERO, &config);
    let application = Application::upload(sending);
    let FlowId(index) =
        world.add_flow(FlowConfig { application, record: Some(Duration::from_millis(LOOK_MS)), ..flow });
    // Deliveries of the links: acknowledgements do not show a path that repairs a loss behind a long queue.
    let mut carried: Vec<Vec<f64>> = vec![vec![0.0]; paths.len()];
    for step in 1..=(f64::from(seconds) / STEP).round() as u32 {
        world.run_until(Instant::ZERO + Duration::from_secs_f64(f64::from(step) * STEP));
        for (path, carried) in ends.iter().zip(&mut carried) {
            carried.push(world.link_counters(path.access_up).delivered_bytes as f64);
        }
    }
    let results = world.results();
    let flow = &results.flows[index as usize];
    let measured = flow.measurements.clone().expect("it is recorded");
    let wasted = flow.receiver().stats.duplicate_bytes_received as f64 / flow.receiver().read.max(1) as f64;
    let end = flow.receiver().end_of_stream.map(|at| at.since(Instant::ZERO).as_secs_f64());
    let series = &measured.series;
    let delivered: Vec<u64> = series.delivered_bytes.clone();
    let skipped = (WARM_UP * 1e3) as usize / LOOK_MS as usize;
    let after: u64 = delivered.iter().skip(skipped).sum();
    Seen {
        goodput: after as f64 * 8e-6 / (f64::from(seconds) - WARM_UP),
        stall: longest(delivered.iter().skip(skipped).map(|bytes| *bytes == 0)) as f64 * LOOK_MS as f64 / 1e3,
        unused: paths.iter().zip(&carried).map(|(path, carried)| unused(&path.walk, carried)).collect(),
        back: paths.iter().zip(&carried).map(|(path, carried)| back(&path.walk, carried)).collect(),
        wasted,
        end,
        measured,
    }
}

/// Length of the longest run of `true`.
fn longest(row: impl Iterator<Item = bool>) -> usize {
    let (mut longest, mut now) = (0, 0);
    for holds in row {
        now = if holds { now + 1 } else { 0 };
        longest = longest.max(now);
    }
    longest
}

/// Bytes that a link delivered from `from` to `to`, in seconds, out of its cumulative deliveries per step.
fn delivered_between(carried: &[f64], from: f64, to: f64) -> f64 {
    let at = |seconds: f64| ((seconds / STEP).round() as usize).min(carried.len() - 1);
    carried[at(to)] - carried[at(from)]
}

fn unused(walk: &Walk, carried: &[f64]) -> f64 {
    let end = walk.rates.len() as f64 * crate::walk::TICK;
    let spans = (WARM_UP / SPAN) as u32..(end / SPAN) as u32;
    let row = spans.map(|span| {
        let (from, to) = (f64::from(span) * SPAN, f64::from(span + 1) * SPAN);
        let could = walk.bytes_between(from, to);
        could >= MISSED * 1e6 / 8.0 * SPAN && delivered_between(carried, from, to) < USED * could
    });
    longest(row) as f64 * SPAN
}

fn back(walk: &Walk, carried: &[f64]) -> Vec<f64> {
    let end = walk.rates.len() as f64 * crate::walk::TICK;
    let pauses = walk.pauses.iter().enumerate().filter(|(_, (from, to))| *from >= WARM_UP && to - from >= 0.3);
    pauses
        .map(|(index, (_, to))| {
            let until = walk.pauses.get(index + 1).map_or(end, |(from, _)| *from);
            let spans = ((until - to) / SPAN - 1.0).max(0.0) as u32;
            let is_back = |span: &u32| {
                let (from, to) = (to + f64::from(*span) * SPAN, to + f64::from(span + 2) * SPAN);
                delivered_between(carried, from, to) >= BACK * walk.bytes_between(from, to)
            };
            // Packets held in the queue leave at once, and do not show use of the path afterwards.
            let used = |span: &u32| (*span..*span + 2).all(|next| next >= spans || is_back(&next));
            (0..spans).find(used).map_or(until - to, |span| f64::from(span + 2) * SPAN)
        })
        .collect()
}
