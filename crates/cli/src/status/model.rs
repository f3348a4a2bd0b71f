//! The status: uplinks, clients, connections and counters at one instant.

use super::steered::{Steered, SteeredHost};
use super::uplink::{DatagramPath, Measured, Uplink};
use crate::console::since_1970;
use crate::live::{MAX_CONNECTIONS, Sample};
use crate::uplink_care::Roles;
use anabranch_attach::PathObserver;
use anabranch_capture::{CaptureObserver, FlowReport};
use anabranch_datagram::{Done, Kind, Way};
use anabranch_policy::view::SubflowState;
use anabranch_proxy::{Control, NamedCounters, ProxyCounters};
use anabranch_stack::{ConnectionReport, PathReport, Stack};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

/// A flow of datagrams.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Flow {
    /// `udp`, `echo` or `dns`.
    pub kind: String,
    /// Address of the program.
    pub inside: SocketAddr,
    /// Address of its peer.
    pub outside: SocketAddr,
    /// Datagrams from the program.
    pub sent: u64,
    /// Payload bytes from the program.
    pub sent_bytes: u64,
    /// Datagrams to the program.
    pub received: u64,
    /// Payload bytes to the program.
    pub received_bytes: u64,
}

/// Flows of datagrams used in the last two minutes.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Flows {
    pub count: usize,
    /// The flows with the most bytes.
    pub shown: Vec<Flow>,
}

/// Clients. Totals, except `accepted`, count clients that have left.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Clients {
    pub now: usize,
    /// Maximum at a time.
    pub most: u64,
    pub accepted: u64,
    /// Bytes from clients.
    pub up_bytes: u64,
    /// Bytes to clients.
    pub down_bytes: u64,
    /// How their connections ended, or why they were refused.
    pub ended: BTreeMap<String, u64>,
    /// By the names of their keys, if they have keys of their own.
    #[serde(default)]
    pub named: BTreeMap<String, NamedClient>,
}

/// What the clients with one key do. Bytes are those of connections that have ended.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct NamedClient {
    /// Connections now.
    pub now: usize,
    /// Connections in all.
    pub accepted: u64,
    pub up_bytes: u64,
    pub down_bytes: u64,
}

/// The complete status.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Status {
    /// Version of the program.
    pub version: String,
    /// Name of the command.
    pub command: String,
    /// Process identifier.
    pub process: u32,
    /// Start time, seconds since 1970.
    pub began: u64,
    /// Time of this status, seconds since 1970.
    pub now: u64,
    pub uplinks: Vec<Uplink>,
    pub clients: Clients,
    /// Packets dropped or refused by the engine.
    pub engine: BTreeMap<String, u64>,
    /// Connections of the stack.
    pub connections: Sample,
    /// Flows of datagrams, if they are carried.
    #[serde(default)]
    pub flows: Option<Flows>,
    /// What a server's clients did with datagrams, and what was refused and dropped.
    #[serde(default)]
    pub datagram_events: BTreeMap<String, u64>,
    /// What steers the kernel's connections, if they are those that are told of.
    #[serde(default)]
    pub steered: Option<Steered>,
}

/// Sources of the status.
#[derive(Clone)]
pub struct Source {
    command: &'static str,
    began: u64,
    stacks: Vec<Stack>,
    paths: Option<PathObserver>,
    control: Option<Control>,
    /// The kernel's connections, in place of a stack's.
    kernel: Option<SteeredHost>,
    datagrams: Option<(CaptureObserver, Way)>,
    roles: Option<Roles>,
    /// The counters of a server for datagrams.
    datagram_server: Option<Arc<dyn Fn() -> Done + Send + Sync>>,
}

impl Source {
    /// Status of a command that starts now.
    pub fn new(command: &'static str, stacks: &[Stack], control: Control) -> Self {
        Self { stacks: stacks.to_vec(), control: Some(control), ..Self::of_nothing(command) }
    }

    /// Status of the kernel's connections, of a command that starts now.
    pub fn of_the_kernel(command: &'static str, host: SteeredHost) -> Self {
        Self { kernel: Some(host), ..Self::of_nothing(command) }
    }

    fn of_nothing(command: &'static str) -> Self {
        let (paths, control, kernel, datagrams, roles, datagram_server) = (None, None, None, None, None, None);
        let (began, stacks) = (since_1970().as_secs(), Vec::new());
        Self { command, began, stacks, paths, control, kernel, datagrams, roles, datagram_server }
    }

    /// Adds the stack's paths.
    pub fn with_paths(self, paths: PathObserver) -> Self {
        Self { paths: Some(paths), ..self }
    }

    /// Adds datagrams.
    pub fn with_datagrams(self, capture: CaptureObserver, way: Way) -> Self {
        Self { datagrams: Some((capture, way)), ..self }
    }

    /// Adds the counters of a server for datagrams.
    pub fn with_datagram_server(self, counters: Option<Arc<dyn Fn() -> Done + Send + Sync>>) -> Self {
        Self { datagram_server: counters, ..self }
    }

    /// Adds the roles of uplinks.
    pub fn with_roles(self, roles: Roles) -> Self {
        Self { roles: Some(roles), ..self }
    }

    /// The present status.
    pub fn status(&self) -> Status {
        let reports: Vec<ConnectionReport> =
            self.stacks.iter().flat_map(|stack| stack.connections(MAX_CONNECTIONS)).collect();
        let kernel = self.kernel.as_ref().map(SteeredHost::ask);
        let (uplinks, connections, steered) = match kernel {
            Some(kernel) => (self.in_their_roles(kernel.uplinks), kernel.connections, Some(kernel.steered)),
            None => (self.uplinks(&reports), Sample::of_stacks(&self.stacks, MAX_CONNECTIONS), None),
        };
        Status {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            command: self.command.to_owned(),
            process: std::process::id(),
            began: self.began,
            now: since_1970().as_secs(),
            uplinks,
            clients: self.control.as_ref().map_or_else(Clients::default, clients),
            datagram_events: self
                .datagram_server
                .as_ref()
                .map(|counters| datagram_events(counters()))
                .unwrap_or_default(),
            engine: self.engine(),
            connections,
            flows: self.datagrams.as_ref().map(|(capture, _)| flows(capture)),
            steered,
        }
    }

    fn uplinks(&self, reports: &[ConnectionReport]) -> Vec<Uplink> {
        let paths = self.paths.as_ref().map(PathObserver::paths).unwrap_or_default();
        let uplinks = paths.into_iter().map(|path| {
            let addresses: Vec<IpAddr> = path.addresses.iter().map(|(_, address)| *address).collect();
            let mut uplink =
                Uplink { name: path.name.clone(), up: !addresses.is_empty(), addresses, ..Uplink::default() };
            for counters in self.stacks.iter().filter_map(|stack| stack.device_counters(path.device)) {
                uplink.sent_bytes += counters.bytes_sent;
                uplink.received_bytes += counters.bytes_received;
                uplink.sent_packets += counters.packets_sent;
                uplink.received_packets += counters.packets_received;
                uplink.not_taken_packets += counters.not_taken;
            }
            uplink.measure(reports.iter().flat_map(|report| &report.paths).filter_map(established));
            uplink
        });
        let mut uplinks: Vec<Uplink> = uplinks.collect();
        for report in self.datagrams.iter().flat_map(|(_, way)| way.report()) {
            let datagrams = Some(DatagramPath::of(&report));
            match uplinks.iter_mut().find(|uplink| uplink.name == report.name) {
                Some(uplink) => uplink.datagrams = datagrams,
                // Without a stack nothing else is known.
                None => uplinks.push(Uplink { name: report.name, up: report.usable, datagrams, ..Uplink::default() }),
            }
        }
        self.in_their_roles(uplinks)
    }

    fn in_their_roles(&self, mut uplinks: Vec<Uplink>) -> Vec<Uplink> {
        if let Some(roles) = &self.roles {
            uplinks.iter_mut().for_each(|uplink| uplink.play(roles));
        }
        uplinks
    }

    fn engine(&self) -> BTreeMap<String, u64> {
        let mut totals: BTreeMap<String, u64> = BTreeMap::new();
        for counters in self.stacks.iter().map(Stack::counters) {
            let endpoint = counters.endpoint;
            for (name, count) in [
                ("segments_for_no_connection", endpoint.unknown),
                ("syns_over_the_limit", endpoint.refused_by_limit),
                ("handshakes_given_up", endpoint.evicted_handshakes),
                ("joins_refused", endpoint.refused_joins),
                ("fallbacks_to_tcp", endpoint.fallbacks.total()),
                ("connections_not_accepted_in_time", counters.backlog_overflows),
                ("packets_without_a_device", counters.no_device),
            ] {
                *totals.entry(name.to_owned()).or_default() += count;
            }
        }
        if let Some((capture, _)) = &self.datagrams {
            let drops = capture.drops();
            for (name, count) in [
                ("datagrams_not_sent", drops.datagrams),
                ("packets_over_the_queue", drops.overflowed),
                ("packets_malformed", drops.malformed),
                ("datagrams_with_missing_fragments", drops.unfinished),
            ] {
                totals.insert(name.to_owned(), count);
            }
        }
        totals
    }
}

/// The local address of a subflow that is established, and what it measured.
fn established(path: &PathReport) -> Option<(IpAddr, Measured)> {
    let view = Some(&path.subflow.view).filter(|view| view.state == SubflowState::Established)?;
    Some((path.subflow.local.ip(), Measured { rtt: view.smoothed_rtt, loss_ratio: view.loss_rate }))
}

fn flows(capture: &CaptureObserver) -> Flows {
    let (shown, count) = capture.flows(MAX_CONNECTIONS);
    let flow = |flow: FlowReport| Flow {
        kind: match flow.kind {
            Kind::Udp => "udp",
            Kind::Echo => "echo",
            Kind::Dns | Kind::DnsOverTcp => "dns",
        }
        .to_owned(),
        inside: flow.inside,
        outside: flow.outside,
        sent: flow.datagrams_out,
        sent_bytes: flow.bytes_out,
        received: flow.datagrams_in,
        received_bytes: flow.bytes_in,
    };
    Flows { count, shown: shown.into_iter().map(flow).collect() }
}

fn datagram_events(Done { sessions, mappings }: Done) -> BTreeMap<String, u64> {
    let counts = [
        ("clients", sessions.clients),
        ("handshakes", sessions.handshakes),
        ("unproven", sessions.unproven),
        ("handshakes_over_rate", sessions.not_looked_at),
        ("clients_refused", sessions.refused),
        ("rejected", sessions.rejected),
        ("moved", sessions.moved),
        ("received", sessions.received),
        ("sent", sessions.sent),
        ("mappings", mappings.made),
        ("not_allowed", mappings.not_allowed),
        ("no_room", mappings.no_room),
        ("no_echo", mappings.no_echo),
        ("no_resolver", mappings.no_resolver),
        ("not_taken", mappings.not_taken),
        ("unreachable", mappings.unreachable),
    ];
    counts.into_iter().map(|(kind, count)| (kind.to_owned(), count)).collect()
}

fn named(NamedCounters { now, accepted, bytes_up, bytes_down }: NamedCounters) -> NamedClient {
    NamedClient { now, accepted, up_bytes: bytes_up, down_bytes: bytes_down }
}

fn clients(control: &Control) -> Clients {
    let counters: ProxyCounters = control.counters();
    let ended = [
        ("finished", counters.finished),
        ("over_limit", counters.over_limit),
        ("not_accepted_by_the_system", counters.accept_errors),
        ("reset", counters.reset),
        ("tampered", counters.tampered),
        ("idle", counters.idle),
        ("stopped", counters.stopped),
        ("asked", counters.asked),
        ("left_early", counters.left_early),
        ("malformed", counters.malformed),
        ("unauthorized", counters.unauthorized),
        ("not_allowed", counters.not_allowed),
        ("failed", counters.failed),
        ("unproven", counters.unproven),
        ("too_slow", counters.too_slow),
    ];
    Clients {
        now: control.clients(),
        most: counters.most,
        accepted: counters.accepted,
        up_bytes: counters.bytes_up,
        down_bytes: counters.bytes_down,
        ended: ended.into_iter().map(|(name, count)| (name.to_owned(), count)).collect(),
        named: control.named().into_iter().map(|(name, counters)| (name.to_string(), named(counters))).collect(),
    }
}
