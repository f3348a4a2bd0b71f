//! The state of a running router as JSON.

use super::bfd::Peer;
use super::config::Family;
use super::control::Question;
use super::daemon::RouteDaemon;
use super::ground::Network;
use super::instance::Instance;
use anabranch_policy::time::Instant;
use anabranch_routing::counters::DropReason;
use anabranch_routing::neighborhood::Level;
use anabranch_routing::show::{InterfaceView, NeighborView};
use anabranch_routing::{InterfaceState, NeighborState, NextHop};
use anabranch_wire::bfd::State;
use anabranch_wire::ospf::{AgedLsa, InterfaceId, LsaType, RouterId};
use serde_json::{Map, Value, json};
use std::net::Ipv4Addr;

/// The names of the packet types, in order of their numbers.
const TYPES: [&str; 5] =
    ["hello", "database_description", "link_state_request", "link_state_update", "link_state_acknowledgment"];

impl RouteDaemon {
    /// The answer to a query.
    pub(super) fn answer(&self, question: Question) -> Value {
        let now = self.clock.now();
        match question {
            Question::Status => self.status(now),
            Question::Neighbors => self.each_neighbor(now, |neighbor| self.neighbor(neighbor)),
            Question::Forecast => self.each_neighbor(now, |neighbor| self.forecast(neighbor)),
            Question::Database => self.database(now),
            Question::Routes => self.routes(),
        }
    }

    fn status(&self, now: Instant) -> Value {
        let counters = &self.counters;
        let mesh = self.ports.iter().filter(|port| port.is_mesh());
        let interfaces =
            mesh.map(|port| json!({ "name": port.name, "up": port.source.is_some(), "link_local": port.source }));
        let refused = counters.refused.iter().map(|(refusal, count)| (refusal.name().to_owned(), (*count).into()));
        json!({
            "router_id": self.instances.first().map(Instance::router_id),
            "router_id_conflicts": self.identity.sightings,
            "router_id_changes": self.identity.changes,
            "seconds": now.as_secs_f64(),
            "table": self.config.table,
            "way_out_ipv4": self.way_out(Family::Ipv4),
            "way_out_ipv6": self.way_out(Family::Ipv6),
            "way_out_changes": self.gateway.as_ref().map(|gateway| gateway.changes),
            "interfaces": interfaces.collect::<Vec<_>>(),
            "instances": self.instances.iter().map(|instance| self.instance(instance)).collect::<Vec<_>>(),
            "sent_packets": counters.sent.0,
            "sent_bytes": counters.sent.1,
            "received_packets": counters.received.0,
            "received_bytes": counters.received.1,
            "not_sent": counters.not_sent,
            "of_other_instances": counters.other_instances,
            "refused": refused.collect::<Map<String, Value>>(),
            "bfd": self.bfd.as_ref().map(|bfd| json!({ "lost_neighbors": bfd.lost, "discarded": bfd.discarded })),
            "neighbors_lost": counters.lost.0,
            "interfaces_lost": counters.lost.1,
            "mtu_changes": counters.mtu_changes,
            "configurations_taken": counters.configurations.0,
            "configurations_refused": counters.configurations.1,
            "routes_set": counters.kernel.set,
            "routes_removed": counters.kernel.removed,
            "routes_and_rules_restored": counters.kernel.restored,
            "settings_restored": counters.settings_restored,
            "routes_refused_by_the_kernel": counters.kernel.refused,
        })
    }

    /// The uplink by which this router is a gateway.
    fn way_out(&self, family: Family) -> Option<&str> {
        self.gateway.as_ref()?.uplinks.get(&family)?.as_deref()
    }

    fn instance(&self, instance: &Instance) -> Value {
        let counters = instance.router.counters();
        let by_type = |counts: &[u64; 5]| -> Map<String, Value> {
            TYPES.iter().zip(counts).map(|(name, count)| ((*name).to_owned(), (*count).into())).collect()
        };
        let dropped = DropReason::ALL.into_iter().map(|(reason, name)| (name, counters.dropped(reason)));
        let dropped = dropped.filter(|(_, count)| *count > 0).map(|(name, count)| (name.to_owned(), count.into()));
        let interface = |view: InterfaceView| {
            json!({
                "name": self.name(view.id),
                "state": interface_state(view.state),
                "level": level(view.selection.level),
                "parent": view.selection.parent.map(dotted),
                "backup_parent": view.selection.backup_parent.map(dotted),
            })
        };
        json!({
            "family": instance.family.name(),
            "instance": instance.number,
            "interfaces": instance.router.interfaces().map(interface).collect::<Vec<_>>(),
            "sent_packets": by_type(&counters.sent),
            "sent_bytes": by_type(&counters.sent_bytes),
            "received_packets": by_type(&counters.received),
            "dropped": dropped.collect::<Map<String, Value>>(),
            "lsas_flooded": counters.lsas_flooded,
            "lsas_retransmitted": counters.lsas_retransmitted,
            "lsas_originated": counters.lsas_originated,
            "exchanges_failed": counters.exchanges_failed,
            "restarts_helped": counters.restarts_helped,
            "calculations": counters.calculations,
        })
    }

    /// `describe` of each neighbour, with its family.
    fn each_neighbor(&self, now: Instant, describe: impl Fn(&NeighborView) -> Value) -> Value {
        let all = self.instances.iter().flat_map(|instance| {
            let describe = &describe;
            instance.router.neighbors(now).map(move |neighbor| {
                let mut said = describe(&neighbor);
                if let Some(object) = said.as_object_mut() {
                    object.insert("family".to_owned(), instance.family.name().into());
                }
                said
            })
        });
        all.collect()
    }

    fn neighbor(&self, neighbor: &NeighborView) -> Value {
        let peer = Peer { port: neighbor.interface, address: neighbor.address };
        let bfd = self.bfd.as_ref().and_then(|bfd| bfd.state(peer));
        json!({
            "interface": self.name(neighbor.interface),
            "router": dotted(neighbor.router),
            "address": neighbor.address,
            "state": neighbor_state(neighbor.state),
            "priority": neighbor.priority,
            "level": level(neighbor.level),
            "dependent": neighbor.dependent,
            // RFC 5614, section 2.4, has the word for neighbours on a MANET interface; routes lead to every Full one.
            "routable": neighbor.routable || neighbor.state == NeighborState::Full,
            "advertised": neighbor.selected,
            "cost": neighbor.cost,
            "heard_seconds_ago": (neighbor.state > NeighborState::Down).then(|| neighbor.heard.as_secs_f64()),
            "unacknowledged": neighbor.unacknowledged,
            "bfd": bfd.map(State::name),
        })
    }

    fn forecast(&self, neighbor: &NeighborView) -> Value {
        let installed = self.kernel.installed().values().flatten();
        let port = self.ports.iter().find(|port| port.id == neighbor.interface);
        let index = port.and_then(|port| port.index);
        // An IPv4 next hop may be an IPv4 address of the neighbour; the router's routes map it to the neighbour.
        let hops = self.instances.iter().flat_map(|instance| instance.router.routes().prefixes.values());
        let addresses: Vec<_> = hops
            .flat_map(|route| route.next_hops.iter())
            .filter(|hop| hop.router == neighbor.router && hop.interface == neighbor.interface)
            .map(|hop| hop.address)
            .collect();
        let used = installed.filter(|way| Some(way.interface) == index && addresses.contains(&way.gateway)).count();
        let horizon = self.config.router.forecast.as_ref().map(|forecast| forecast.horizon.as_secs_f64());
        json!({
            "interface": self.name(neighbor.interface),
            "router": dotted(neighbor.router),
            "state": neighbor_state(neighbor.state),
            "probability_up": neighbor.forecast,
            "horizon_seconds": horizon,
            "routes_by_it": used,
        })
    }

    fn database(&self, now: Instant) -> Value {
        let all = self.instances.iter().flat_map(|instance| {
            let lsas = instance.router.lsas(now);
            lsas.map(move |(interface, lsa)| self.lsa(instance, interface, &lsa))
        });
        all.collect()
    }

    fn lsa(&self, instance: &Instance, interface: Option<InterfaceId>, lsa: &AgedLsa) -> Value {
        let header = lsa.header();
        json!({
            "family": instance.family.name(),
            "interface": interface.map(|interface| self.name(interface)),
            "type": lsa_type(header.key.kind),
            "id": Ipv4Addr::from_bits(header.key.id.0),
            "advertising_router": dotted(header.key.advertising),
            "age": header.age,
            "sequence": format!("{:#010x}", header.sequence.0),
            "bytes": header.length,
        })
    }

    fn routes(&self) -> Value {
        let mut routes = Vec::new();
        for instance in &self.instances {
            for (prefix, route) in &instance.router.routes().prefixes {
                let Some(address) = instance.family.address(*prefix) else { continue };
                let network = Network { address, length: prefix.length() };
                routes.push(json!({
                    "family": instance.family.name(),
                    "prefix": format!("{address}/{}", network.length),
                    "cost": route.cost,
                    "router": dotted(route.destination),
                    "installed": self.kernel.installed().contains_key(&network),
                    "next_hops": route.next_hops.iter().map(|hop| self.next_hop(hop, network)).collect::<Vec<_>>(),
                }));
            }
        }
        Value::Array(routes)
    }

    fn next_hop(&self, hop: &NextHop, network: Network) -> Value {
        let index = self.ports.iter().find(|port| port.id == hop.interface).and_then(|port| port.index);
        let ways = self.kernel.installed().get(&network).into_iter().flatten();
        let way = ways.into_iter().find(|way| Some(way.interface) == index && way.gateway == hop.address);
        json!({
            "interface": self.name(hop.interface),
            "router": dotted(hop.router),
            "address": hop.address,
            "weight": way.map(|way| way.weight),
        })
    }

    fn name(&self, interface: InterfaceId) -> &str {
        self.ports.iter().find(|port| port.id == interface).map_or("-", |port| port.name.as_str())
    }
}

fn dotted(router: RouterId) -> Ipv4Addr {
    Ipv4Addr::from_bits(router.0)
}

const fn level(level: Level) -> &'static str {
    match level {
        Level::Other => "other",
        Level::BackupMdr => "backup_mdr",
        Level::Mdr => "mdr",
    }
}

const fn neighbor_state(state: NeighborState) -> &'static str {
    match state {
        NeighborState::Down => "down",
        NeighborState::Init => "init",
        NeighborState::TwoWay => "2-way",
        NeighborState::ExStart => "exstart",
        NeighborState::Exchange => "exchange",
        NeighborState::Loading => "loading",
        NeighborState::Full => "full",
    }
}

const fn interface_state(state: InterfaceState) -> &'static str {
    match state {
        InterfaceState::Down => "down",
        InterfaceState::Loopback => "loopback",
        InterfaceState::Waiting => "waiting",
        InterfaceState::PointToPoint => "point-to-point",
        InterfaceState::DrOther => "mdr_other",
        InterfaceState::Backup => "backup_mdr",
        InterfaceState::Dr => "mdr",
    }
}

fn lsa_type(kind: LsaType) -> String {
    let name = match kind.0 {
        0x2001 => "router",
        0x2002 => "network",
        0x2003 => "inter-area-prefix",
        0x2004 => "inter-area-router",
        0x4005 => "as-external",
        0x0008 => "link",
        0x2009 => "intra-area-prefix",
        other => return format!("{other:#06x}"),
    };
    name.to_owned()
}
