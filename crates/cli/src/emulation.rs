//! Builds the network that a scenario describes for real time: the links of the lab, with the lab's luck, between ports.

use crate::diagnostic::Diagnostic;
use crate::lab::{network, traffic};
use crate::scenario::Scenario;
use crate::scenario::model::Link;
use anabranch_net::emulate::{Hop, LinkId, Network, PortId, Prefix, address};
use anabranch_sim::{InterfaceId, LinkConfig};

/// Most paths: each has a byte of its addresses.
const MOST_PATHS: usize = 250;

/// Builds it for those `paths` of the scenario, given by their places. The ports are the client's end of each path in this
/// order, and then the server. The addresses are those of [`address`], with the first of `paths` as path 1.
///
/// # Errors
/// If there is something in the scenario that exists in the lab alone.
pub fn build(scenario: &Scenario, paths: &[usize], seed: u64) -> Result<Network, Diagnostic> {
    if paths.len() > MOST_PATHS {
        let message = format!("{} paths are too many to emulate: at most {MOST_PATHS} are possible", paths.len());
        return Err(Diagnostic::plain(message));
    }
    let mut network = Network::new(seed);
    let clients: Vec<PortId> = paths.iter().map(|_| network.add_port()).collect();
    let server = network.add_port();

    // From the far ends to the near ones, as a link must know where it leads to.
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

/// The links of a stretch, named by their places as in the lab.
fn numbered<'a>(stretch: &str, links: &'a [Link]) -> Vec<(String, &'a Link)> {
    links.iter().enumerate().map(|(at, link)| (format!("{stretch}/{at}"), link)).collect()
}

/// Adds one direction (0 forwards, 1 backwards) of links, the last one on the way first; gives where the way begins.
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

/// Other people's traffic on the first link of a path.
fn load(
    network: &mut Network,
    path: &crate::scenario::model::Path,
    background: &crate::scenario::model::Background,
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
    // The station that sends it is part of the link here.
    let nowhere = InterfaceId(0);
    if let Some(source) = traffic::load(path, background, nowhere, nowhere).udp() {
        network.add_cross_traffic(source, link);
    }
    Ok(())
}
