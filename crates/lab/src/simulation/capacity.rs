//! Capacity of a scenario's paths beside cross traffic, and the share of it that a transfer used: the metrics
//! `available_capacity`, `capacity_share` and `background_loss`.
//!
//! The capacity of a path at one time follows from its links in sequence: the arriving rate, at most the link's rate
//! while it is up, less its loss. On the first link, cross traffic is subtracted, as delivered in a run with the same
//! seed *without the transfer*: cross traffic that yields to the transfer does not increase the capacity. Generators at
//! routers load the links between them likewise, and the sum of the paths passes the shared links. Capacity counts
//! whole packets but a transfer counts payload, so headers reduce its share.

use super::{generators, network, traffic};
use crate::record::Record;
use crate::scenario::Scenario;
use crate::scenario::model::{Link, Path};
use anabranch_mptcp::EndpointConfig;
use anabranch_policy::time::{Duration, Instant};
use anabranch_sim::link::{DropCause, LinkCounters, RateModel};
use anabranch_sim::topology::NoPaths;
use anabranch_sim::{LinkConfig, RunResult, World, WorldConfig};

/// Parts of a sampling interval over which link capacity is integrated; each is sampled at its middle.
const PIECES: u64 = 10;

/// Results of a run without the transfer.
#[derive(Clone, PartialEq, Debug)]
pub struct Reference {
    /// Bytes available to the transfer in each sampling interval, of which the last may be shorter; empty if undefined.
    available: Vec<f64>,
    /// Bytes of cross traffic delivered per path.
    background: Vec<(usize, u64)>,
}

/// Simulates all paths without the transfer. If greedy sources fill a link, available capacity is undefined and counts
/// as zero.
pub fn reference(scenario: &Scenario, seed: u64) -> Reference {
    let all: Vec<usize> = (0..scenario.paths.len()).collect();
    let count = scenario.duration.as_nanos().div_ceil(scenario.sample.as_nanos().max(1)) as usize;
    let nothing: Vec<Vec<f64>> = scenario.paths.iter().map(|path| vec![0.0; path.links.len()]).collect();
    let mut carried = vec![nothing; count];
    let mut background = Vec::new();
    let mut filled = false;
    if !scenario.generators.is_empty() || scenario.paths.iter().any(|path| path.background.is_some()) {
        let mut world = World::new(WorldConfig { seed, ..WorldConfig::default() });
        let client = world.add_host("client", &EndpointConfig::default(), Box::new(NoPaths));
        let server = world.add_host("server", &EndpointConfig::default(), Box::new(NoPaths));
        let lines = network::build(&mut world, scenario, &all, client, server);
        traffic::add(&mut world, scenario, &all, &lines);
        generators::add(&mut world, scenario, &all, &lines);
        let mut before = delivered(scenario, &world.results());
        for (at, row) in carried.iter_mut().enumerate() {
            world.run_until(interval_start(scenario, at + 1));
            let now = delivered(scenario, &world.results());
            let since = |(now, before): (&Vec<f64>, &Vec<f64>)| now.iter().zip(before).map(|(a, b)| a - b).collect();
            *row = now.iter().zip(&before).map(since).collect();
            before = now;
        }
        let results = world.results();
        background = self::background(scenario, &all, &results);
        filled = generators::is_greedy(scenario) && overflows(scenario, &results);
    }
    if filled {
        return Reference { available: Vec::new(), background };
    }
    let parts = Parts::of(scenario, seed);
    let available = carried.iter().enumerate().map(|(at, carried)| parts.available(scenario, at, carried)).collect();
    Reference { available, background }
}

/// Counters of a link of a path in the direction of the transfer.
fn forward<'a>(path: &Path, at: usize, results: &'a RunResult) -> Option<&'a LinkCounters> {
    results.link(&format!("{}/{at}/forward", path.name)).map(|link| &link.counters)
}

/// Bytes delivered so far by each link of each path.
fn delivered(scenario: &Scenario, results: &RunResult) -> Vec<Vec<f64>> {
    let link =
        |path, at| forward(path, at, results).map_or(0.0, |counters: &LinkCounters| counters.delivered_bytes as f64);
    scenario.paths.iter().map(|path| (0..path.links.len()).map(|at| link(path, at)).collect()).collect()
}

/// Whether a queue on a path overflowed.
fn overflows(scenario: &Scenario, results: &RunResult) -> bool {
    let full = |path, at| {
        let drops = forward(path, at, results).map(|counters| counters.drops);
        drops.is_some_and(|drops| drops.get(DropCause::Overflow) + drops.get(DropCause::CoDel) > 0)
    };
    scenario.paths.iter().any(|path| (0..path.links.len()).any(|at| full(path, at)))
}

/// Whether two scenarios have the same reference runs.
pub fn same_reference(one: &Scenario, other: &Scenario) -> bool {
    one.paths == other.paths
        && one.generators == other.generators
        && one.shared == other.shared
        && (one.duration, one.sample) == (other.duration, other.sample)
}

/// The start of a sampling interval; the run ends with the last one.
fn interval_start(scenario: &Scenario, at: usize) -> Instant {
    Instant::ZERO + (scenario.sample * at as u64).min(scenario.duration)
}

/// Bytes of cross traffic delivered per path: TCP payload and whole UDP packets.
pub fn background(scenario: &Scenario, paths: &[usize], results: &RunResult) -> Vec<(usize, u64)> {
    let of_path = |place: &usize| {
        let path = scenario.paths.get(*place)?;
        if path.background.is_none() && !generators::load(scenario, *place) {
            return None;
        }
        let (remote, flows) = (format!("background/{}/remote", path.name), format!("background/{}/tcp ", path.name));
        let generators = generators::prefix(path);
        let is_sink = |name: &str| name == remote || name.starts_with(&generators);
        let is_flow = |name: &str| name.starts_with(&flows) || name.starts_with(&generators);
        let udp: u64 = results.hosts.iter().filter(|host| is_sink(&host.name)).map(|host| host.udp_bytes).sum();
        let tcp = results.flows.iter().filter(|flow| is_flow(&flow.name));
        Some((*place, udp + tcp.map(|flow| flow.server.read).sum::<u64>()))
    };
    paths.iter().filter_map(of_path).collect()
}

/// A link of this run, in the direction from client to server.
struct Stage<'a> {
    link: &'a Link,
    config: LinkConfig,
    /// Delivery ratio at full coverage.
    kept: f64,
}

impl<'a> Stage<'a> {
    fn new(seed: u64, name: &str, link: &'a Link) -> Self {
        let [(_, config), _] = network::directions(seed, name, link);
        let losses = config.loss.iter().map(|loss| 1.0 - loss.mean()).product::<f64>();
        Self { link, kept: losses * (1.0 - config.impairments.corruption), config }
    }
    /// Bytes of `offered`, evenly spread over `from` to `to`, that this link delivers next to `taken` bytes of cross
    /// traffic.
    fn passes(&self, offered: f64, (from, to): (Instant, Instant), taken: f64) -> f64 {
        let middle = from + (to - from) / 2;
        let since_start = middle - Instant::ZERO;
        let down = |(begin, end): &(Duration, Option<Duration>)| {
            *begin <= since_start && end.is_none_or(|end| since_start < end)
        };
        let paused = |(begin, end): &(Duration, Duration)| (*begin..*end).contains(&since_start);
        if self.link.down.iter().any(down) || self.link.paused.iter().any(paused) {
            return 0.0;
        }
        let (factor, loss) = self.config.coverage.at(middle);
        let most = match &self.config.rate {
            RateModel::Unlimited => f64::INFINITY,
            RateModel::Fixed(rate) => rate.bits_per_second() as f64 / 8.0 * factor * (to - from).as_secs_f64(),
            RateModel::Trace(trace) => trace.bytes_between(from, to) as f64,
        };
        let kept = self.kept * (1.0 - loss);
        (offered * kept).min(most * kept - taken).max(0.0)
    }
}

struct Parts<'a> {
    paths: Vec<Vec<Stage<'a>>>,
    shared: Vec<Stage<'a>>,
}

impl<'a> Parts<'a> {
    fn of(scenario: &'a Scenario, seed: u64) -> Self {
        let stages = |part: &str, links: &'a [Link]| -> Vec<Stage<'a>> {
            let stage = |(at, link)| Stage::new(seed, &format!("{part}/{at}"), link);
            links.iter().enumerate().map(stage).collect()
        };
        Self {
            paths: scenario.paths.iter().map(|path| stages(&path.name, &path.links)).collect(),
            shared: stages("shared", &scenario.shared),
        }
    }
    /// Bytes that can be delivered in a sampling interval, given the cross traffic `carried` by each link of each path.
    fn available(&self, scenario: &Scenario, at: usize, carried: &[Vec<f64>]) -> f64 {
        let (begin, end) = (interval_start(scenario, at), interval_start(scenario, at + 1));
        let piece = |number: u64| begin + (end - begin) * number / PIECES;
        (0..PIECES)
            .map(|number| {
                let span = (piece(number), piece(number + 1));
                let path = |(stages, taken): (&Vec<Stage<'_>>, &Vec<f64>)| {
                    let pass = |offered, (stage, taken): (&Stage<'_>, &f64)| {
                        stage.passes(offered, span, *taken / PIECES as f64)
                    };
                    stages.iter().zip(taken).fold(f64::INFINITY, pass)
                };
                let together: f64 = self.paths.iter().zip(carried).map(path).sum();
                self.shared.iter().fold(together, |offered, stage| stage.passes(offered, span, 0.0))
            })
            .sum()
    }
}

impl Reference {
    /// Bytes available between two times, in seconds. Those of an interval are spread evenly over it.
    fn available_in(&self, scenario: &Scenario, (from, to): (f64, f64)) -> f64 {
        let start = |at: usize| interval_start(scenario, at).since(Instant::ZERO).as_secs_f64();
        let part = |(at, bytes): (usize, &f64)| {
            let (begin, end) = (start(at), start(at + 1));
            bytes * (end.min(to) - begin.max(from)).max(0.0) / (end - begin)
        };
        self.available.iter().enumerate().map(part).sum()
    }

    /// Adds the transfer's share of the available capacity and the cross traffic's loss to a record.
    pub fn add_to(&self, scenario: &Scenario, record: &mut Record) {
        let span = match record.metric("completion") {
            Some(completion) => (0.0, completion),
            None => (scenario.warm_up.as_secs_f64(), scenario.duration.as_secs_f64()),
        };
        let available = self.available_in(scenario, span) * 8e-6 / (span.1 - span.0);
        if available.is_finite() && available > 0.0 {
            record.metrics.push(("available_capacity".to_owned(), available));
            let share = record.metric("throughput").map(|throughput| 100.0 * throughput / available);
            record.metrics.extend(share.map(|share| ("capacity_share".to_owned(), share)));
        }
        // After the end of a transfer, cross traffic is undisturbed: the runs cannot be compared.
        if record.metric("completion").is_none() {
            let alone =
                self.background.iter().filter(|(path, _)| record.background.iter().any(|(used, _)| used == path));
            let alone: u64 = alone.map(|(_, bytes)| bytes).sum();
            let beside: u64 = record.background.iter().map(|(_, bytes)| bytes).sum();
            if alone > 0 {
                record.metrics.push(("background_loss".to_owned(), 100.0 * (1.0 - beside as f64 / alone as f64)));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::Document;

    fn scenario(text: &str) -> Scenario {
        let text = format!(
            "name = \"s\"\nduration = \"20 s\"\nsample = \"1 s\"\nconnection.receive_buffer = \"1 MB\"\n{text}"
        );
        Document::embedded("s.toml", &text, &[]).scenario().expect("it is a scenario")
    }

    /// Mbit/s, over the whole run.
    fn available(text: &str) -> f64 {
        reference(&scenario(text), 1).available.iter().sum::<f64>() * 8e-6 / 20.0
    }

    #[test]
    fn a_link_has_its_rate_while_it_is_up_less_what_it_loses() {
        // 15 of 20 s at 10 Mbit/s, 2 % lost: 10 * 0.75 * 0.98 = 7.35.
        let text = "[[paths]]\nlinks = [{ rate = \"10 Mbit/s\", loss = \"2 %\", down = [\"5..10 s\"] }]";
        assert!((available(text) - 7.35).abs() < 1e-9);
    }

    #[test]
    fn the_capacity_does_not_depend_on_how_often_is_sampled() {
        // 10 Mbit/s for 18 of 20 s, the last 2 of which are in no whole interval of 3 or 7 s.
        let record = |sample: &str, warm_up: &str, metrics: &[(&str, f64)]| {
            let link = "[[paths]]\nlinks = [{ rate = \"10 Mbit/s\", down = [\"18..20 s\"] }]";
            let head = format!("name = \"s\"\nduration = \"20 s\"\nsample = \"{sample}\"\nwarm_up = \"{warm_up}\"");
            let text = format!("{head}\nconnection.receive_buffer = \"1 MB\"\n{link}");
            let scenario = Document::embedded("s.toml", &text, &[]).scenario().expect("it is a scenario");
            let metrics = metrics.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect();
            let mut record = Record { metrics, ..Record::default() };
            reference(&scenario, 1).add_to(&scenario, &mut record);
            record.metric("available_capacity").expect("there is some")
        };
        for sample in ["500 ms", "1 s", "2 s"] {
            assert!((record(sample, "0 s", &[]) - 9.0).abs() < 1e-9, "{sample}");
            // 8 of 10 s.
            assert!((record(sample, "10 s", &[]) - 8.0).abs() < 1e-9, "{sample}");
            assert!((record(sample, "0 s", &[("completion", 9.3)]) - 10.0).abs() < 1e-9, "{sample}");
        }
        for sample in ["3 s", "6 s"] {
            // The tenths of an interval are counted by their middles.
            assert!((record(sample, "0 s", &[]) - 9.0).abs() < 0.15, "{sample}: {}", record(sample, "0 s", &[]));
        }
    }

    #[test]
    fn the_narrowest_link_of_a_path_and_what_all_paths_share_bound_it() {
        // A: min(8, 5) = 5, of which 10 % are lost: 4.5. B: 3. Together 7.5, of which 7 pass.
        let text = "[[paths]]\nlinks = [{ rate = \"8 Mbit/s\" }, { rate = \"5 Mbit/s\", loss = \"10 %\" }]\n\
                    [[paths]]\nlinks = [{ rate = \"3 Mbit/s\" }]\n[[shared]]\nrate = \"7 Mbit/s\"";
        assert!((available(text) - 7.0).abs() < 1e-9);
    }

    #[test]
    fn coverage_counts_as_it_changes() {
        // From 1 at 0 s to 0 (nearly) at 20 s: half of 10 Mbit/s.
        let text = "[[paths]]\nlinks = [{ rate = \"10 Mbit/s\", \
                    coverage = [{ at = \"0 s\" }, { at = \"20 s\", rate = \"0.0001 %\" }] }]";
        assert!((available(text) - 5.0).abs() < 1e-4);
    }

    #[test]
    fn cross_traffic_counts_as_it_is_without_the_transfer() {
        // 30 % of 10 Mbit/s is UDP in packets at random times: about 12,500 in 20 s, with a standard deviation of 112
        // or 0.9 %.
        let text = "[[paths]]\nlinks = [{ rate = \"10 Mbit/s\", delay = \"1 ms\" }]\n\
                    background = { share = \"30 %\", tcp = \"0 %\", sizes = [{ share = \"100 %\", size = \"600 B\" }] }";
        let scenario = scenario(text);
        let reference = reference(&scenario, 1);
        let free = reference.available.iter().sum::<f64>() * 8e-6 / 20.0;
        assert!((free - 7.0).abs() < 0.1, "{free}");
        // A transfer at 3.5 Mbit/s uses half. If a tenth of the cross traffic is missing, its loss is 0.1.
        let &[(0, alone)] = reference.background.as_slice() else { panic!("one path has cross traffic") };
        let metrics = vec![("throughput".to_owned(), free / 2.0)];
        let mut record = Record { metrics, background: vec![(0, alone * 9 / 10)], ..Record::default() };
        reference.add_to(&scenario, &mut record);
        assert!((record.metric("capacity_share").unwrap() - 50.0).abs() < 1e-9);
        assert!((record.metric("background_loss").unwrap() - 10.0).abs() < 0.001);
        assert!((record.metric("available_capacity").unwrap() - free).abs() < 1e-9);
    }

    /// A path with a middle link of 10 Mbit/s that carries the generators' traffic.
    fn with_generators(generators: &str) -> Scenario {
        scenario(&format!(
            "[[paths]]\nname = \"A\"\nrouters = [\"R1\", \"R2\"]\nlinks = [{{ rate = \"50 Mbit/s\" }}, \
             {{ rate = \"10 Mbit/s\", delay = \"10 ms\", queue = \"50 packets\" }}, {{ rate = \"50 Mbit/s\" }}]\n\
             [[generators]]\nroutes = [[\"R1\", \"R2\"]]\naccess = {{ rate = \"100 Mbit/s\", delay = \"25 ms\" }}\n{generators}"
        ))
    }

    #[test]
    fn generators_take_from_the_link_that_they_load() {
        // 3 of 10 Mbit/s, less 36 ms of 20 s until the first packet is delivered.
        let scenario = with_generators("kind = \"vbr\"\nrate = \"3 Mbit/s\"\nsizes = \"1000 B\"");
        let found = reference(&scenario, 1);
        let free = found.available.iter().sum::<f64>() * 8e-6 / 20.0;
        assert!((free - 7.0).abs() < 0.02, "{free}");
        // It arrives 60 ms after it was sent: 19.94 s at 375,000 bytes/s.
        let &[(0, alone)] = found.background.as_slice() else { panic!("one path has cross traffic") };
        assert!((alone as f64 / 7_477_500.0 - 1.0).abs() < 0.001, "{alone}");
    }

    #[test]
    fn nothing_is_said_to_be_available_where_greedy_sources_fill_a_link() {
        // 20 packets per 0.12 s are 1.32 Mbit/s: two flows leave capacity, ten do not.
        let capacity = |count: u32| {
            let scenario = with_generators(&format!("kind = \"ftp\"\ncount = {count}"));
            let metrics = vec![("throughput".to_owned(), 1.0)];
            let mut record = Record { metrics, background: vec![(0, 1)], ..Record::default() };
            reference(&scenario, 1).add_to(&scenario, &mut record);
            assert!(record.metric("background_loss").is_some());
            record.metric("available_capacity")
        };
        let two = capacity(2).expect("two leave something");
        // 2 * 1.32 Mbit/s of payload are 2.75 with headers.
        assert!((two - 7.25).abs() < 0.1, "{two}");
        assert_eq!(capacity(10), None);
    }
}
