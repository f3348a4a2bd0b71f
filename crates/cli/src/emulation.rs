//! Builds a scenario's network for real time: the lab's links between ports, with the same random streams.

use anabranch_emulate::{Hop, LinkId, Network, PortId, Prefix, address};
use anabranch_lab::scenario::Scenario;
use anabranch_lab::scenario::model::Link;
use anabranch_lab::simulation::{network, traffic};
use anabranch_settings::diagnostic::Diagnostic;
use anabranch_sim::{InterfaceId, LinkConfig};

/// Maximum number of paths: a path is one byte of its addresses.
const MOST_PATHS: usize = 250;

/// Builds the network for the given path indices. Ports are the client's end of each path in this order, then the
/// server. Addresses are those of [`address`], with the first of `paths` as path 1.
///
/// # Errors
/// The scenario uses a feature that exists only in the lab.
pub fn build(scenario: &Scenario, paths: &[usize], seed: u64) -> Result<Network, Diagnostic> {
    if paths.len() > MOST_PATHS {
        let message = format!("{} paths are too many to emulate: at most {MOST_PATHS} are possible", paths.len());
        return Err(Diagnostic::plain(message));
    }
    if !scenario.generators.is_empty() {
        let message = "the scenario's generators of cross traffic exist in the lab alone: leave them out with --set generators=[]";
        return Err(Diagnostic::plain(message));
    }
    if !scenario.beside.is_empty() {
        let message =
            "the scenario's connections of others exist in the lab alone: leave them out with --set beside=[]";
        return Err(Diagnostic::plain(message));
    }
    let mut network = Network::new(seed);
    let clients: Vec<PortId> = paths.iter().map(|_| network.add_port()).collect();
    let server = network.add_port();

    // From the far end to the near end, since a link needs its destination.
    let shared = numbered("shared", &scenario.shared);
    let to_server = chain(&mut network, seed, shared.iter().rev(), 0, Hop::Port(server));
    let mut routes: Vec<(Prefix, Hop)> = Vec::new();
    for ((place, client), number) in paths.iter().zip(&clients).zip(1u8..) {
        let Some(path) = scenario.paths.get(*place) else { continue };
        let links = numbered(&path.name, &path.links);
        let forward = chain(&mut network, seed, links.iter().rev(), 0, to_server);
        network.connect(*client, forward);
        let backward = chain(&mut network, seed, links.iter(), 1, Hop::Port(*client));
        routes.extend(address::prefixes(number).map(|prefix| (prefix, backward)));
        if let (Some(background), Hop::Link(first)) = (&path.background, forward) {
            load(&mut network, path, background, first)?;
        }
    }
    let apart = Hop::Routes(network.add_routes(routes));
    let from_server = chain(&mut network, seed, shared.iter(), 1, apart);
    network.connect(server, from_server);
    Ok(network)
}

/// Links named by their index, as in the lab.
fn numbered<'a>(part: &str, links: &'a [Link]) -> Vec<(String, &'a Link)> {
    links.iter().enumerate().map(|(at, link)| (format!("{part}/{at}"), link)).collect()
}

/// Adds one direction (0 forward, 1 backward) of links, the last one first. Returns the start of the chain.
fn chain<'a>(
    network: &mut Network,
    seed: u64,
    links: impl Iterator<Item = &'a (String, &'a Link)>,
    direction: usize,
    to: Hop,
) -> Hop {
    links.fold(to, |to, (name, link)| {
        let both: [(String, LinkConfig); 2] = network::directions(seed, name, link);
        match both.get(direction) {
            Some((name, config)) => Hop::Link(network.add_link(name, config, to)),
            None => to,
        }
    })
}

/// Cross traffic on the first link of a path.
fn load(
    network: &mut Network,
    path: &anabranch_lab::scenario::model::Path,
    background: &anabranch_lab::scenario::model::Background,
    link: LinkId,
) -> Result<(), Diagnostic> {
    if background.tcp.0 > 0.0 && background.tcp_flows > 0 {
        let message = format!(
            "the cross traffic of path '{0}' has a TCP part, which exists in the lab alone: emulate its UDP part with \
             --set paths.{0}.background.tcp=\"0 %\"",
            path.name
        );
        return Err(Diagnostic::plain(message));
    }
    // Here the link includes the source.
    let nowhere = InterfaceId(0);
    if let Some(source) = traffic::load(path, background, nowhere, nowhere).udp() {
        network.add_cross_traffic(source, link);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_lab::scenario::Document;
    use anabranch_mptcp::EndpointConfig;
    use anabranch_policy::rate::Rate;
    use anabranch_policy::time::{Duration, Instant};
    use anabranch_sim::network::Tapped;
    use anabranch_sim::topology::NoPaths;
    use anabranch_sim::udp::PacketSizes;
    use anabranch_sim::{UdpConfig, UdpSource, World, WorldConfig};
    use std::sync::{Arc, Mutex};

    /// Two paths of one and two links, and two shared ones, with every random impairment.
    const SCENARIO: &str = r#"
        name = "both"
        duration = "10 s"
        transfer = { kind = "endless" }
        connection = { receive_buffer = "1 MB" }
        [[paths]]
        name = "A"
        [[paths.links]]
        rate = "3 Mbit/s"
        delay = { uniform = "4..9 ms", drawn = "slowly_varying", every = "100 ms" }
        queue = "10 packets"
        burst_loss = { average = "2 %", burst = "3 packets" }
        [[paths]]
        name = "B"
        [[paths.links]]
        rate = "2 Mbit/s"
        delay = { uniform = "5..50 ms", drawn = "per_run" }
        loss = { uniform = "1..5 %", drawn = "per_run" }
        down = ["2..3 s"]
        [[paths.links]]
        rate = "4 Mbit/s"
        coverage = [{ at = "3 s" }, { at = "6 s", rate = "40 %", loss = "10 %" }]
        queue = { discipline = "codel", limit = "50 packets" }
        [[shared]]
        rate = "4 Mbit/s"
        queue = "20 kB"
        duplication = "1 %"
        [[shared]]
        rate = "3500 kbit/s"
        loss = "1 %"
        loss_direction = "forward"
    "#;

    const END: Instant = Instant::from_nanos(8_000_000_000);

    fn stream(name: &str, from: InterfaceId, to: InterfaceId) -> UdpConfig {
        let sizes = PacketSizes::Mix(vec![(1.0, 60), (1.0, 700), (2.0, 1500)]);
        let rate = Rate::from_bits_per_second(2_200_000);
        UdpConfig { sizes, stop: END, ..UdpConfig::steady(name, from, to, rate, 1500) }
    }

    /// Send times and sizes of a source.
    fn departures(config: UdpConfig, seed: u64) -> Vec<(Instant, u32)> {
        let (mut at, mut sends, stop) = (config.start, false, config.stop);
        let mut source = UdpSource::new(config, seed);
        let mut departures = Vec::new();
        while at < stop {
            if sends {
                departures.push((at, source.packet()));
            }
            (at, sends) = source.next(at);
        }
        departures
    }

    /// Arrivals at the end of the links in the lab.
    fn in_the_lab(scenario: &Scenario, seed: u64, upwards: bool) -> Vec<(Instant, u32)> {
        let mut world = World::new(WorldConfig { seed, ..WorldConfig::default() });
        let [client, server] =
            ["client", "server"].map(|name| world.add_host(name, &EndpointConfig::default(), Box::new(NoPaths)));
        let lines = network::build(&mut world, scenario, &[0, 1], client, server);
        for (name, interface) in ["a", "b"].into_iter().zip(&lines.interfaces) {
            let (from, to) = if upwards { (*interface, lines.server) } else { (lines.server, *interface) };
            world.add_udp(stream(name, from, to));
        }
        let arrived = Arc::new(Mutex::new(Vec::new()));
        let arrivals = Arc::clone(&arrived);
        let ends: Vec<_> = match upwards {
            true => vec![lines.server_links.0],
            false => lines.ends().map(|end| end.backward).collect(),
        };
        let tap = move |now: Instant, _, tapped: Tapped| {
            let Tapped::Udp { length, .. } = tapped else { return };
            arrivals.lock().expect("nobody panics").push((now, length));
        };
        world.tap(&ends, Box::new(tap));
        world.run_until(END + Duration::from_secs(2));
        arrived.lock().expect("nobody panics").clone()
    }

    /// Arrivals of real packets.
    fn emulated(scenario: &Scenario, seed: u64, upwards: bool) -> Vec<(Instant, u32)> {
        let mut network = build(scenario, &[0, 1], seed).expect("it can be emulated");
        let mut sent: Vec<(Instant, u32, u8)> = Vec::new();
        for (name, path) in [("a", 1), ("b", 2)] {
            let of_path = departures(stream(name, InterfaceId(0), InterfaceId(0)), seed);
            sent.extend(of_path.into_iter().map(|(at, length)| (at, length, path)));
        }
        sent.sort();
        for (at, length, path) in sent {
            let (client, server) = ([10, 0, path, 1], [10, 0, 0, 2]);
            let (port, ends) = if upwards { (usize::from(path) - 1, [client, server]) } else { (2, [server, client]) };
            let mut packet = vec![0x45, 0, 0, 0, 0, 0, 0, 0, 64, 17, 0, 0];
            packet.extend(ends.concat());
            packet.resize(length as usize, 0);
            network.handle_packet(at, PortId(port), &packet);
        }
        network.handle_timeout(END + Duration::from_secs(2));
        let out = core::iter::from_fn(|| network.poll_delivery());
        out.map(|delivery| (delivery.at, delivery.frame.bytes().len() as u32)).collect()
    }

    #[test]
    fn generators_are_refused_with_the_way_to_leave_them_out() {
        let maps = anabranch_lab::library::SCENARIOS.iter().find(|known| known.name == "maps").expect("it is there");
        let built = |options: &[String]| {
            let scenario = maps.document(options).scenario().expect("it is a scenario");
            build(&scenario, &[0, 1], 1).map(drop).map_err(|error| error.to_string())
        };
        assert!(built(&[]).unwrap_err().contains("--set generators=[]"));
        assert_eq!(built(&["generators=[]".to_owned()]), Ok(()));
    }

    #[test]
    fn connections_of_others_are_refused_with_the_way_to_leave_them_out() {
        let text = SCENARIO.to_owned() + "\n[[beside]]\ncongestion = \"cubic\"\npath = \"A\"\n";
        let built = |options: &[String]| {
            let scenario = Document::embedded("both.toml", &text, options).scenario().expect("it is a scenario");
            build(&scenario, &[0, 1], 1).map(drop).map_err(|error| error.to_string())
        };
        assert!(built(&[]).unwrap_err().contains("--set beside=[]"));
        assert_eq!(built(&["beside=[]".to_owned()]), Ok(()));
    }

    #[test]
    fn packets_arrive_when_they_do_in_the_lab() {
        let scenario = Document::embedded("both.toml", SCENARIO, &[]).scenario().expect("it is a scenario");
        for seed in 1..=5 {
            for upwards in [true, false] {
                let (lab, real) = (in_the_lab(&scenario, seed, upwards), emulated(&scenario, seed, upwards));
                assert!(lab.len() > 1_000, "{}", lab.len());
                let differs = lab.iter().zip(&real).position(|(one, other)| one != other);
                assert_eq!((lab.len(), None), (real.len(), differs), "seed {seed}, upwards: {upwards}");
            }
        }
    }
}
