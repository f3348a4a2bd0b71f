//! What a router at work says to those who ask, as JSON.

use super::control::Question;
use super::daemon::RouteDaemon;
use super::ground::Network;
use super::instance::Instance;
use anabranch_routing::NextHop;
use serde_json::{Map, Value, json};

/// Names of the packet types, in the order of their numbers.
const TYPES: [&str; 5] =
    ["hello", "database_description", "link_state_request", "link_state_update", "link_state_acknowledgment"];

impl RouteDaemon {
    /// The answer to a question.
    pub(super) fn answer(&self, question: Question) -> Value {
        match question {
            Question::Status => self.status(),
            Question::Neighbors | Question::Database | Question::Forecast => Value::Null,
            Question::Routes => self.routes(),
        }
    }

    fn status(&self) -> Value {
        let router = self.instances.first().map(|instance| instance.router.config().router_id.to_string());
        let interfaces: Vec<Value> = self
            .ports
            .iter()
            .filter(|port| port.is_mesh())
            .map(|port| json!({ "name": port.name, "up": port.source.is_some(), "link_local": port.source }))
            .collect();
        let refused: Map<String, Value> =
            self.counters.refused.iter().map(|(refusal, count)| (refusal.name().to_owned(), (*count).into())).collect();
        json!({
            "router_id": router,
            "seconds": self.clock.now().as_secs_f64(),
            "table": self.config.table,
            "interfaces": interfaces,
            "instances": self.instances.iter().map(instance).collect::<Vec<_>>(),
            "sent_packets": self.counters.sent.0,
            "sent_bytes": self.counters.sent.1,
            "received_packets": self.counters.received.0,
            "received_bytes": self.counters.received.1,
            "not_sent": self.counters.not_sent,
            "of_other_instances": self.counters.other_instances,
            "refused": refused,
            "routes_set": self.counters.kernel.set,
            "routes_removed": self.counters.kernel.removed,
            "routes_refused_by_the_kernel": self.counters.kernel.refused,
        })
    }

    fn routes(&self) -> Value {
        let mut routes = Vec::new();
        for instance in &self.instances {
            for (prefix, route) in &instance.router.routes().prefixes {
                let Some(address) = instance.family.address(*prefix) else { continue };
                let network = Network { address, length: prefix.length() };
                let installed = self.kernel.installed().contains_key(&network);
                routes.push(json!({
                    "family": instance.family.name(),
                    "prefix": format!("{address}/{}", prefix.length()),
                    "cost": route.cost,
                    "router": route.destination.to_string(),
                    "installed": installed,
                    "next_hops": route.next_hops.iter().map(|hop| self.next_hop(hop)).collect::<Vec<_>>(),
                }));
            }
        }
        Value::Array(routes)
    }

    fn next_hop(&self, hop: &NextHop) -> Value {
        let port = self.ports.iter().find(|port| port.id == hop.interface);
        json!({
            "interface": port.map(|port| &port.name),
            "router": hop.router.to_string(),
            "address": hop.address,
        })
    }
}

fn instance(instance: &Instance) -> Value {
    let counters = instance.router.counters();
    let by_type = |counts: &[u64; 5]| -> Map<String, Value> {
        TYPES.iter().zip(counts).map(|(name, count)| ((*name).to_owned(), (*count).into())).collect()
    };
    json!({
        "family": instance.family.name(),
        "instance": instance.number,
        "sent_packets": by_type(&counters.sent),
        "sent_bytes": by_type(&counters.sent_bytes),
        "received_packets": by_type(&counters.received),
        "lsas_flooded": counters.lsas_flooded,
        "lsas_retransmitted": counters.lsas_retransmitted,
        "lsas_originated": counters.lsas_originated,
        "calculations": counters.calculations,
    })
}
