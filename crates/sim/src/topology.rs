//! Frequently used networks: disjoint paths between two hosts, and the dumbbell.

use crate::address::InterfaceId;
use crate::identifiers::{HostId, LinkId, RouterId};
use crate::link::LinkConfig;
use crate::network::End;
use crate::world::World;
use anabranch_mptcp::EndpointConfig;
use anabranch_policy::path_manager::{PathAction, PathEvent, PathManager};
use anabranch_policy::time::Instant;

/// A path manager without actions, for hosts of cross traffic.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoPaths;

impl PathManager for NoPaths {
    fn handle(&mut self, _now: Instant, _event: &PathEvent<'_>, _actions: &mut Vec<PathAction>) {}
}

/// Configuration of a path between a client and a server: the client's access link, a router, and the core behind it.
#[derive(Clone, Debug, Default)]
pub struct PathConfig {
    /// Its links are called `name/access up` and so on, up being from client to server.
    pub name: String,
    /// From the client to the router.
    pub access_up: LinkConfig,
    /// From the router to the client.
    pub access_down: LinkConfig,
    /// From the router to the server.
    pub core_up: LinkConfig,
    /// From the server to the router.
    pub core_down: LinkConfig,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum ServerAddresses {
    #[default]
    OnePerPath,
    /// One address, reached by all paths.
    One,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Path {
    /// From the client to the router.
    pub access_up: LinkId,
    /// From the router to the client.
    pub access_down: LinkId,
    /// From the router to the server.
    pub core_up: LinkId,
    /// From the server to the router.
    pub core_down: LinkId,
    /// Between access and core.
    pub router: RouterId,
    /// The client's end.
    pub client: InterfaceId,
    /// The server's end.
    pub server: InterfaceId,
}

/// Connects a client and a server by disjoint paths. Interfaces are added to both hosts in the order of the paths, so
/// that the client's address identifiers number the paths from 1.
pub fn disjoint_paths(
    world: &mut World,
    client: HostId,
    server: HostId,
    paths: &[PathConfig],
    addresses: ServerAddresses,
) -> Vec<Path> {
    let shared = (addresses == ServerAddresses::One).then(|| {
        let router = world.add_router();
        (router, attach_to_router(world, "server", server, router))
    });
    let mut made = Vec::new();
    for config in paths {
        let router = world.add_router();
        let far = shared.map_or(End::Hosts, |(router, _)| End::Router(router));
        let mut link = |what: &str, link: &LinkConfig, from: End, to: End| {
            world.add_link(&format!("{}/{what}", config.name), link, from, to)
        };
        let access_up = link("access up", &config.access_up, End::Hosts, End::Router(router));
        let access_down = link("access down", &config.access_down, End::Router(router), End::Hosts);
        let core_up = link("core up", &config.core_up, End::Router(router), far);
        let core_down = link("core down", &config.core_down, far, End::Router(router));
        let client = world.add_interface(client, access_up, &[access_down]);
        let server = match shared {
            Some((_, interface)) => interface,
            None => world.add_interface(server, core_down, &[core_up]),
        };
        made.push(Path { access_up, access_down, core_up, core_down, router, client, server });
    }
    made
}

/// Adds an interface to a host, attached to a router by transparent links.
pub fn attach_to_router(world: &mut World, name: &str, host: HostId, router: RouterId) -> InterfaceId {
    attach_by_link(world, name, host, router, &LinkConfig::default())
}

/// Adds an interface to a host, attached to a router by a pair of links of the same configuration.
pub(crate) fn attach_by_link(
    world: &mut World,
    name: &str,
    host: HostId,
    router: RouterId,
    link: &LinkConfig,
) -> InterfaceId {
    let out = world.add_link(&format!("{name}/out"), link, End::Hosts, End::Router(router));
    let into = world.add_link(&format!("{name}/in"), link, End::Router(router), End::Hosts);
    world.add_interface(host, out, &[into])
}

/// Two hosts for cross traffic over the access link of a path: a station that shares the client's access link, and a
/// host at the router. Traffic to the station competes with the client's downloads, traffic from it with its uploads.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CrossHosts {
    /// On the client's side of the access link.
    pub station: InterfaceId,
    /// On the router's side.
    pub remote: InterfaceId,
}

pub fn cross_hosts(world: &mut World, name: &str, path: &Path) -> CrossHosts {
    let config = EndpointConfig::default();
    let station = world.add_host(&format!("{name}/station"), &config, Box::new(NoPaths));
    let station = world.add_interface(station, path.access_up, &[path.access_down]);
    let remote = world.add_host(&format!("{name}/remote"), &config, Box::new(NoPaths));
    let remote = attach_to_router(world, &format!("{name}/remote"), remote, path.router);
    CrossHosts { station, remote }
}

/// A dumbbell: pairs of hosts that share a bottleneck.
#[derive(Clone, Debug)]
pub struct Dumbbell {
    /// From left to right.
    pub bottleneck: LinkId,
    /// From right to left.
    pub back: LinkId,
    pub left_router: RouterId,
    pub right_router: RouterId,
    pub left: Vec<InterfaceId>,
    pub right: Vec<InterfaceId>,
}

/// Connects hosts on the left with hosts on the right by one link in each direction; every host has its own access link
/// of the same configuration.
pub fn dumbbell(
    world: &mut World,
    left: &[HostId],
    right: &[HostId],
    access: &LinkConfig,
    bottleneck: &LinkConfig,
    back: &LinkConfig,
) -> Dumbbell {
    let (left_router, right_router) = (world.add_router(), world.add_router());
    let (near, far) = (End::Router(left_router), End::Router(right_router));
    let bottleneck = world.add_link("bottleneck", bottleneck, near, far);
    let back = world.add_link("bottleneck back", back, far, near);
    let mut attach = |side: &str, hosts: &[HostId], router: End| -> Vec<InterfaceId> {
        let mut interfaces = Vec::new();
        for (index, host) in hosts.iter().enumerate() {
            let out = world.add_link(&format!("{side} {index}/out"), access, End::Hosts, router);
            let into = world.add_link(&format!("{side} {index}/in"), access, router, End::Hosts);
            interfaces.push(world.add_interface(*host, out, &[into]));
        }
        interfaces
    };
    let left = attach("left", left, near);
    let right = attach("right", right, far);
    Dumbbell { bottleneck, back, left_router, right_router, left, right }
}
