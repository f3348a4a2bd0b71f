//! Adds generators of cross traffic to the routers of the paths in use.

use super::network::{self, Lines};
use super::settings;
use crate::scenario::Scenario;
use crate::scenario::model::{AccessLink, Generator, GeneratorKind, GeneratorRoute, Path};
use anabranch_policy::combination::{Choice, Combination};
use anabranch_policy::time::{Duration, Instant};
use anabranch_sim::generator::{Source, ns2_tcp};
use anabranch_sim::link::{DelayModel, RateModel};
use anabranch_sim::{LinkConfig, World};

pub fn add(world: &mut World, scenario: &Scenario, paths: &[usize], lines: &Lines) {
    for generator in &scenario.generators {
        let source = source(generator);
        for route in &generator.routes {
            let used = paths.iter().zip(&lines.links).find(|(path, _)| **path == route.path);
            let Some((_, links)) = used else { continue };
            // A router's index counts the links before it; the first router is after the first link.
            let router = |place: usize| place.checked_sub(1).and_then(|at| links.get(at)).map(|link| link.router);
            let (Some(from), Some(to)) = (router(route.from.1), router(route.to.1)) else { continue };
            for name in names(scenario, generator, route) {
                let start = network::per_run(world.seed(), &format!("{name}/start"), generator.start);
                let start = Instant::ZERO + Duration::from_secs_f64(start);
                let (access, source) = (link(&generator.access), source.clone());
                anabranch_sim::Generator { name, from, to, access, start, source }.add(world);
            }
        }
    }
}

/// Prefix of the names of a path's sources and sinks.
pub fn prefix(path: &Path) -> String {
    format!("generators/{}/", path.name)
}

/// Names of the sources of a generator on a route.
pub fn names(scenario: &Scenario, generator: &Generator, route: &GeneratorRoute) -> Vec<String> {
    let Some(path) = scenario.paths.get(route.path) else { return Vec::new() };
    let name = format!("{}{}/{} to {}", prefix(path), generator.name, route.from.0, route.to.0);
    (0..generator.count).map(|number| format!("{name}/{number}")).collect()
}

/// Whether any generator loads a path.
pub fn load(scenario: &Scenario, path: usize) -> bool {
    let on_path =
        |generator: &Generator| generator.count > 0 && generator.routes.iter().any(|route| route.path == path);
    scenario.generators.iter().any(on_path)
}

/// Whether any generator is greedy.
pub fn is_greedy(scenario: &Scenario) -> bool {
    scenario.generators.iter().any(|generator| matches!(generator.kind, GeneratorKind::Ftp { .. }))
}

fn source(generator: &Generator) -> Source {
    match &generator.kind {
        GeneratorKind::Ftp { window, congestion } => {
            let policies = Combination { congestion: Choice::new(congestion), ..Combination::default() };
            Source::Ftp(Box::new(ns2_tcp(settings::policies(&policies), *window)))
        }
        GeneratorKind::Vbr { rate, sizes, on_off } => Source::Vbr { rate: *rate, sizes: *sizes, on_off: *on_off },
    }
}

fn link(access: &AccessLink) -> LinkConfig {
    LinkConfig {
        queue: network::queue(access.queue),
        rate: RateModel::Fixed(access.rate),
        delay: DelayModel::Fixed(access.delay),
        ..LinkConfig::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::library;
    use crate::scenario::Document;
    use anabranch_mptcp::EndpointConfig;
    use anabranch_sim::topology::NoPaths;
    use anabranch_sim::{RunResult, WorldConfig};

    /// A run with the generators only.
    fn alone(scenario: &Scenario, paths: &[usize], seed: u64) -> RunResult {
        let mut world = World::new(WorldConfig { seed, ..WorldConfig::default() });
        let [client, server] =
            ["client", "server"].map(|name| world.add_host(name, &EndpointConfig::default(), Box::new(NoPaths)));
        let lines = network::build(&mut world, scenario, paths, client, server);
        add(&mut world, scenario, paths, &lines);
        world.run_until(Instant::ZERO + scenario.duration);
        world.results()
    }

    #[test]
    fn the_generators_of_maps_make_the_mix_of_tcp_and_udp_that_the_paper_names() {
        let maps = library::SCENARIOS.iter().find(|known| known.name == "maps").expect("it comes with the program");
        let scenario = maps.document(&[]).scenario().expect("it is a scenario");
        // The seeds of the experiment.
        let shares = (1..=20).flat_map(|seed| {
            let results = alone(&scenario, &[0, 1], seed);
            ["R1 to R2", "R3 to R4"].map(|route| {
                let flows = results.flows.iter().filter(|flow| flow.name.contains(route));
                let hosts = results.hosts.iter().filter(|host| host.name.contains(route));
                let (tcp, udp): (u64, u64) =
                    (flows.map(|flow| flow.server.read).sum(), hosts.map(|host| host.udp_bytes).sum());
                tcp as f64 / (tcp + udp) as f64
            })
        });
        let shares: Vec<f64> = shares.collect();
        // Section 3.1: 80 to 83 % of TCP and 17 to 20 % of UDP. Here this results from windows, delays and losses only.
        let mean = shares.iter().sum::<f64>() / shares.len() as f64;
        assert!((0.80..=0.83).contains(&mean), "{mean}");
        assert!(shares.iter().all(|share| (0.75..=0.88).contains(share)), "{shares:?}");
    }

    const TWO: &str = r#"
        name = "s"
        duration = "5 s"
        connection.receive_buffer = "1 MB"
        [[paths]]
        name = "A"
        routers = ["R1", "R2"]
        links = [{ rate = "50 Mbit/s" }, { rate = "10 Mbit/s", delay = "1 ms" }, { rate = "50 Mbit/s" }]
        [[paths]]
        name = "B"
        routers = ["R3"]
        links = [{ rate = "5 Mbit/s" }, { rate = "5 Mbit/s" }]
        [[generators]]
        kind = "vbr"
        count = 2
        rate = "1 Mbit/s"
        sizes = "1000 B"
        routes = [["R2", "R1"]]
        access = { rate = "100 Mbit/s" }
        start = { uniform = "0..1 s", drawn = "per_run" }
    "#;

    #[test]
    fn a_source_loads_the_links_between_its_router_and_that_of_its_sink() {
        let scenario = Document::embedded("s.toml", TWO, &[]).scenario().expect("it is a scenario");
        let results = alone(&scenario, &[0, 1], 1);
        let delivered = |link: &str| results.link(link).expect("it is there").counters.delivered_bytes as f64;
        // Two sources of 1 Mbit/s that start within the first second.
        assert!((1_000_000.0..1_250_000.0).contains(&delivered("A/1/backward")));
        for idle in ["A/0/backward", "A/0/forward", "A/1/forward", "A/2/backward", "B/0/forward", "B/1/backward"] {
            assert_eq!(delivered(idle), 0.0, "{idle}");
        }
        let started = |source: &str| delivered(&format!("generators/A/vbr/R2 to R1/{source}/source/out"));
        assert_ne!(started("0"), started("1"), "each draws its own time");
    }

    #[test]
    fn the_generators_of_a_path_that_is_not_used_are_not_there() {
        let scenario = Document::embedded("s.toml", TWO, &[]).scenario().expect("it is a scenario");
        assert!(alone(&scenario, &[1], 1).udp.is_empty());
        assert_eq!(alone(&scenario, &[0], 1).udp, alone(&scenario, &[0, 1], 1).udp);
    }
}
