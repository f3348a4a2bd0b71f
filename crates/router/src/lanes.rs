//! Lanes on a host: interfaces on separate channels without OSPF. Their routes are copied from the first interface of
//! the mesh (`anabranch_routing::lanes`).
//!
//! Another router's address on a channel is the one within the host's own network on that channel.

use super::config::Family;
use super::ground::{Ground, Network};
use super::kernel::{Table, Way};
use super::ports::{Port, Role};
use anabranch_routing::Router;
use anabranch_routing::lanes::{LanePolicy, LaneSettings};
use anabranch_wire::ospf::RouterId;
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

/// The networks of a family on the lanes, the first interface's first; fewer than two mean no lanes.
fn networks<'a>(ports: &'a [Port], ground: &Ground, family: Family) -> Vec<(&'a Port, Network)> {
    let first = ports.iter().find(|port| matches!(port.role, Role::Mesh { point_to_point: false, .. }));
    let others = ports.iter().filter(|port| port.role == Role::Lane);
    let network = |port: &'a Port| {
        let device = ground.devices.get(&port.name).filter(|device| device.running)?;
        let own = device.networks.iter().find(|network| family.has(network.address))?;
        Some((port, own.masked()))
    };
    first.into_iter().chain(others).filter_map(network).collect()
}

/// Replaces the router's routes to lane addresses with the routes over the lanes.
pub(super) fn replace(
    table: &mut Table,
    router: &Router,
    family: Family,
    settings: &LaneSettings,
    ports: &[Port],
    ground: &Ground,
) {
    let lanes = networks(ports, ground, family);
    if lanes.len() < 2 {
        return;
    }
    let mut addresses: BTreeMap<(RouterId, usize), IpAddr> = BTreeMap::new();
    for (prefix, route) in &router.routes().prefixes {
        let Some(address) = family.address(*prefix) else { continue };
        let host = Network { address, length: prefix.length() };
        let lane = lanes.iter().position(|(_, network)| {
            host.host() == host && Network { address, length: network.length }.masked() == *network
        });
        if let Some(lane) = lane {
            addresses.insert((route.destination, lane), address);
        }
    }
    let interfaces: Vec<_> = lanes.iter().map(|(port, _)| port.id).collect();
    for (destination, route) in &router.routes().routers {
        let chosen: Vec<_> = router.choose(&route.next_hops).iter().map(|one| one.hop).collect();
        let address = |router, lane| addresses.get(&(router, lane)).copied();
        // The router itself routes over the first lane.
        let plan = match settings.policy {
            LanePolicy::Disjoint => router.plan_lanes(*destination, interfaces.len() - 1),
            LanePolicy::Spread | LanePolicy::Paper => Vec::new(),
        };
        let planned = |lane: usize| plan.get(lane.checked_sub(1)?).copied().flatten();
        let routes = settings.planned_routes(&interfaces, &chosen, *destination, address, planned);
        for lane in routes.iter().filter(|lane| lane.lane > 0) {
            let ways: BTreeSet<Way> = lane
                .next_hops
                .iter()
                .filter_map(|hop| {
                    let interface = ports.iter().find(|port| port.id == hop.interface)?.index?;
                    Some(Way { interface, gateway: hop.address, weight: 1 })
                })
                .collect();
            if !ways.is_empty() {
                table.insert(Network { address: lane.destination, length: 0 }.host(), ways);
            }
        }
    }
}
