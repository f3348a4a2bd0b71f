//! A status in the Prometheus text format, version 0.0.4.

use super::model::{Clients, Status};
use super::steered::Steered;
use super::uplink::{DatagramPath, Uplink};
use std::fmt::Write as _;

/// A family of metrics that is written to a text.
struct Family<'a> {
    text: &'a mut String,
    name: &'static str,
}

/// Starts a family.
fn family<'a>(text: &'a mut String, name: &'static str, kind: &str, help: &str) -> Family<'a> {
    let _ = write!(text, "# HELP {name} {help}\n# TYPE {name} {kind}\n");
    Family { text, name }
}

impl Family<'_> {
    fn value(&mut self, labels: &[(&str, &str)], value: f64) {
        let labels: Vec<String> = labels.iter().map(|(name, value)| format!("{name}=\"{}\"", escape(value))).collect();
        let labels = if labels.is_empty() { String::new() } else { format!("{{{}}}", labels.join(",")) };
        let _ = writeln!(self.text, "{}{labels} {value}", self.name);
    }
}

fn escape(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

pub fn render(status: &Status) -> String {
    let mut text = String::new();
    let info = [("version", status.version.as_str()), ("command", status.command.as_str())];
    family(&mut text, "anabranch_info", "gauge", "The program.").value(&info, 1.0);
    family(&mut text, "anabranch_start_time_seconds", "gauge", "When it began, seconds since 1970.")
        .value(&[], status.began as f64);
    uplinks(&mut text, &status.uplinks);
    datagrams(&mut text, status);
    clients(&mut text, status);
    family(&mut text, "anabranch_connections", "gauge", "Connections, those of a stack in TIME-WAIT included.")
        .value(&[], status.connections.count as f64);
    let mut engine =
        family(&mut text, "anabranch_engine_events_total", "counter", "What the stack dropped or refused, by kind.");
    for (kind, count) in &status.engine {
        engine.value(&[("kind", kind)], *count as f64);
    }
    if !status.datagram_events.is_empty() {
        let mut events = family(
            &mut text,
            "anabranch_datagram_server_events_total",
            "counter",
            "What clients did with datagrams, and what was refused and dropped, by kind.",
        );
        status.datagram_events.iter().for_each(|(kind, count)| events.value(&[("kind", kind)], *count as f64));
    }
    status.steered.iter().for_each(|kernel| steered(&mut text, kernel));
    text
}

fn steered(text: &mut String, kernel: &Steered) {
    let info = [("policy", kernel.policy.as_str()), ("path_manager", kernel.path_manager.as_str())];
    family(text, "anabranch_steer_info", "gauge", "What steers the kernel's connections.").value(&info, 1.0);
    for (name, help, label, counts) in [
        ("anabranch_steer_commands_total", "Commands to the kernel, by kind.", "kind", &kernel.commands),
        ("anabranch_steer_events_total", "What should not happen often, by kind.", "kind", &kernel.events),
        ("anabranch_steer_mptcp_lost_total", "Connections without MPTCP, by cause.", "cause", &kernel.lost),
    ] {
        let mut family = family(text, name, "counter", help);
        counts.iter().for_each(|(kind, count)| family.value(&[(label, kind)], *count as f64));
    }
}

/// Name, type, help and value of a metric of an uplink.
type OfUplink = (&'static str, &'static str, &'static str, fn(&Uplink) -> Option<f64>);

fn uplinks(text: &mut String, uplinks: &[Uplink]) {
    let metrics: [OfUplink; 12] = [
        ("anabranch_uplink_up", "gauge", "Whether the uplink can be used, 0 or 1.", |u| {
            Some(f64::from(u8::from(u.up)))
        }),
        (
            "anabranch_uplink_subflows",
            "gauge",
            "Established subflows on the uplink, of the first 256 connections.",
            |u| Some(u.subflows as f64),
        ),
        ("anabranch_uplink_rtt_seconds", "gauge", "Lowest smoothed round-trip time of these subflows.", |u| {
            u.rtt_ms.map(|ms| ms / 1e3)
        }),
        ("anabranch_uplink_loss_ratio", "gauge", "Mean smoothed share of segments lost of these subflows.", |u| {
            u.loss_ratio
        }),
        ("anabranch_uplink_sent_bytes_total", "counter", "Bytes of IP sent.", |u| Some(u.sent_bytes as f64)),
        ("anabranch_uplink_received_bytes_total", "counter", "Bytes of IP received.", |u| {
            Some(u.received_bytes as f64)
        }),
        ("anabranch_uplink_sent_packets_total", "counter", "Packets sent.", |u| Some(u.sent_packets as f64)),
        ("anabranch_uplink_received_packets_total", "counter", "Packets received.", |u| {
            Some(u.received_packets as f64)
        }),
        ("anabranch_uplink_portal", "gauge", "Whether a portal keeps it from being used, 0 or 1.", |u| {
            (!u.role.is_empty()).then(|| f64::from(u8::from(u.portal)))
        }),
        ("anabranch_uplink_quota_bytes", "gauge", "What may pass it in a day or a month.", |u| {
            u.quota_bytes.map(|bytes| bytes as f64)
        }),
        ("anabranch_uplink_quota_used_bytes", "gauge", "What has passed it in this day or month.", |u| {
            u.quota_used_bytes.map(|bytes| bytes as f64)
        }),
        ("anabranch_uplink_not_taken_packets_total", "counter", "Packets that the system did not take.", |u| {
            Some(u.not_taken_packets as f64)
        }),
    ];
    let mut roles = family(text, "anabranch_uplink_role", "gauge", "1 for the role that it has.");
    for uplink in uplinks.iter().filter(|uplink| !uplink.role.is_empty()) {
        roles.value(&[("uplink", &uplink.name), ("role", &uplink.role)], 1.0);
    }
    for (name, kind, help, of) in metrics {
        let mut family = family(text, name, kind, help);
        for uplink in uplinks {
            if let Some(value) = of(uplink) {
                family.value(&[("uplink", &uplink.name)], value);
            }
        }
    }
}

/// Like [`OfUplink`], for datagrams.
type OfDatagrams = (&'static str, &'static str, &'static str, fn(&DatagramPath) -> Option<f64>);

fn datagrams(text: &mut String, status: &Status) {
    let Some(flows) = &status.flows else { return };
    let metrics: [OfDatagrams; 8] = [
        ("anabranch_datagram_path_usable", "gauge", "Whether datagrams on the uplink are answered, 0 or 1.", |path| {
            Some(f64::from(u8::from(path.usable)))
        }),
        ("anabranch_datagram_path_rtt_seconds", "gauge", "Smoothed round-trip time.", |path| {
            path.rtt_ms.map(|ms| ms / 1e3)
        }),
        ("anabranch_datagram_path_loss_ratio", "gauge", "Share of datagrams lost lately.", |path| {
            Some(path.loss_ratio)
        }),
        ("anabranch_datagram_path_jitter_seconds", "gauge", "Smoothed variation of the delay.", |path| {
            Some(path.jitter_ms / 1e3)
        }),
        ("anabranch_datagram_path_sent_total", "counter", "Datagrams sent.", |path| Some(path.sent as f64)),
        ("anabranch_datagram_path_sent_bytes_total", "counter", "Their bytes, without the outer headers.", |path| {
            Some(path.sent_bytes as f64)
        }),
        ("anabranch_datagram_path_received_total", "counter", "Datagrams received.", |path| Some(path.received as f64)),
        (
            "anabranch_datagram_path_received_bytes_total",
            "counter",
            "Their bytes, without the outer headers.",
            |path| Some(path.received_bytes as f64),
        ),
    ];
    for (name, kind, help, of) in metrics {
        let mut family = family(text, name, kind, help);
        for (uplink, path) in status.uplinks.iter().filter_map(|uplink| Some((uplink, uplink.datagrams.as_ref()?))) {
            if let Some(value) = of(path) {
                family.value(&[("uplink", &uplink.name)], value);
            }
        }
    }
    family(text, "anabranch_datagram_flows", "gauge", "Flows of datagrams that were used in the last two minutes.")
        .value(&[], flows.count as f64);
}

fn clients(text: &mut String, status: &Status) {
    let clients = &status.clients;
    family(text, "anabranch_clients", "gauge", "Clients that are served now.").value(&[], clients.now as f64);
    family(text, "anabranch_clients_accepted_total", "counter", "Clients accepted.")
        .value(&[], clients.accepted as f64);
    let mut ended =
        family(text, "anabranch_clients_ended_total", "counter", "How connections of clients ended, by outcome.");
    for (outcome, count) in &clients.ended {
        ended.value(&[("outcome", outcome)], *count as f64);
    }
    let mut bytes =
        family(text, "anabranch_client_bytes_total", "counter", "Bytes of clients that have gone, by direction.");
    bytes.value(&[("direction", "up")], clients.up_bytes as f64);
    bytes.value(&[("direction", "down")], clients.down_bytes as f64);
    named(text, clients);
}

fn named(text: &mut String, clients: &Clients) {
    if clients.named.is_empty() {
        return;
    }
    let mut now = family(text, "anabranch_key_connections", "gauge", "Connections of clients with the key.");
    clients.named.iter().for_each(|(name, client)| now.value(&[("key", name)], client.now as f64));
    let mut all = family(text, "anabranch_key_connections_total", "counter", "Connections of clients with the key.");
    clients.named.iter().for_each(|(name, client)| all.value(&[("key", name)], client.accepted as f64));
    let help = "Bytes of connections of clients with the key that have ended, by direction.";
    let mut bytes = family(text, "anabranch_key_bytes_total", "counter", help);
    for (name, client) in &clients.named {
        bytes.value(&[("key", name), ("direction", "up")], client.up_bytes as f64);
        bytes.value(&[("key", name), ("direction", "down")], client.down_bytes as f64);
    }
}

#[cfg(test)]
mod tests {
    use super::super::model::{Flows, NamedClient};
    use super::*;
    use std::collections::BTreeSet;

    fn status() -> Status {
        let uplink = Uplink {
            name: "wl\"an\\0".to_owned(),
            up: true,
            rtt_ms: Some(12.5),
            sent_bytes: 1_500,
            datagrams: Some(DatagramPath { usable: true, jitter_ms: 2.0, sent: 9, ..DatagramPath::default() }),
            ..Uplink::default()
        };
        let metered = Uplink {
            name: "wwan0".to_owned(),
            role: "metered".to_owned(),
            portal: true,
            quota_used_bytes: Some(300),
            quota_bytes: Some(1_000),
            ..Uplink::default()
        };
        Status {
            version: "1".to_owned(),
            command: "proxy".to_owned(),
            process: 1,
            began: 1_000,
            now: 2_000,
            uplinks: vec![uplink, metered],
            clients: Clients {
                now: 3,
                ended: [("finished".to_owned(), 7)].into(),
                named: [("ann".to_owned(), NamedClient { now: 2, accepted: 5, up_bytes: 10, down_bytes: 20 })].into(),
                ..Clients::default()
            },
            engine: [("joins_refused".to_owned(), 2)].into(),
            connections: crate::live::Sample::default(),
            flows: Some(Flows { count: 4, shown: Vec::new() }),
            datagram_events: [("clients_refused".to_owned(), 3)].into(),
            steered: Some(Steered {
                policy: "lm3".to_owned(),
                commands: [("demote".to_owned(), 5)].into(),
                lost: [("blackhole".to_owned(), 1)].into(),
                ..Steered::default()
            }),
        }
    }

    #[test]
    fn values_have_units_and_uplinks_without_one_have_no_line() {
        let text = render(&status());
        for line in [
            "anabranch_info{version=\"1\",command=\"proxy\"} 1",
            "anabranch_uplink_up{uplink=\"wl\\\"an\\\\0\"} 1",
            "anabranch_uplink_up{uplink=\"wwan0\"} 0",
            "anabranch_uplink_rtt_seconds{uplink=\"wl\\\"an\\\\0\"} 0.0125",
            "anabranch_uplink_sent_bytes_total{uplink=\"wl\\\"an\\\\0\"} 1500",
            "anabranch_datagram_path_usable{uplink=\"wl\\\"an\\\\0\"} 1",
            "anabranch_datagram_path_jitter_seconds{uplink=\"wl\\\"an\\\\0\"} 0.002",
            "anabranch_datagram_path_sent_total{uplink=\"wl\\\"an\\\\0\"} 9",
            "anabranch_datagram_flows 4",
            "anabranch_uplink_role{uplink=\"wwan0\",role=\"metered\"} 1",
            "anabranch_uplink_portal{uplink=\"wwan0\"} 1",
            "anabranch_uplink_quota_used_bytes{uplink=\"wwan0\"} 300",
            "anabranch_uplink_quota_bytes{uplink=\"wwan0\"} 1000",
            "anabranch_clients 3",
            "anabranch_datagram_server_events_total{kind=\"clients_refused\"} 3",
            "anabranch_clients_ended_total{outcome=\"finished\"} 7",
            "anabranch_key_connections{key=\"ann\"} 2",
            "anabranch_key_connections_total{key=\"ann\"} 5",
            "anabranch_key_bytes_total{key=\"ann\",direction=\"down\"} 20",
            "anabranch_engine_events_total{kind=\"joins_refused\"} 2",
            "anabranch_steer_commands_total{kind=\"demote\"} 5",
            "anabranch_steer_mptcp_lost_total{cause=\"blackhole\"} 1",
        ] {
            assert!(text.lines().any(|found| found == line), "{line}:\n{text}");
        }
        assert!(!text.contains("rtt_seconds{uplink=\"wwan0\"}"), "{text}");
    }

    #[test]
    fn each_family_is_described_once_before_its_values_and_counters_are_called_totals() {
        let text = render(&status());
        let (mut described, mut current) = (BTreeSet::new(), String::new());
        for line in text.lines() {
            if let Some(rest) = line.strip_prefix("# HELP ") {
                current = rest.split(' ').next().expect("a name").to_owned();
                assert!(described.insert(current.clone()), "{current} twice");
            } else if let Some(rest) = line.strip_prefix("# TYPE ") {
                let (name, kind) = rest.split_once(' ').expect("a name and a kind");
                assert_eq!(name, current);
                assert_eq!(kind == "counter", name.ends_with("_total"), "{line}");
            } else {
                assert_eq!(line.split(['{', ' ']).next(), Some(current.as_str()), "{line}");
                assert!(line.rsplit(' ').next().expect("a value").parse::<f64>().is_ok(), "{line}");
            }
        }
        assert!(described.len() >= 12);
    }
}
