//! What there is to tell: uplinks, clients, connections and counters at one moment.

use crate::live::{MAX_CONNECTIONS, Sample};
use crate::uplink_care::Roles;
use anabranch_attach::PathObserver;
use anabranch_capture::{CaptureObserver, FlowReport};
use anabranch_datagram::{Kind, Way};
use anabranch_policy::view::SubflowState;
use anabranch_proxy::{Control, ProxyCounters};
use anabranch_stack::{ConnectionReport, PathReport, Stack};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::time::{SystemTime, UNIX_EPOCH};

/// An uplink. Totals are since its device was opened.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Uplink {
    /// The interface's name.
    pub name: String,
    /// Whether it has an address that can be used.
    pub up: bool,
    /// The stack's addresses there.
    pub addresses: Vec<IpAddr>,
    /// Established subflows of the connections that are looked at.
    pub subflows: usize,
    /// The lowest smoothed round-trip time among them, milliseconds.
    pub rtt_ms: Option<f64>,
    /// The mean of their smoothed shares of segments lost, 0 to 1.
    pub loss_ratio: Option<f64>,
    /// Bytes of IP sent.
    pub sent_bytes: u64,
    /// Bytes of IP received.
    pub received_bytes: u64,
    /// Packets sent.
    pub sent_packets: u64,
    /// Packets received.
    pub received_packets: u64,
    /// Packets that the operating system did not take.
    pub not_taken_packets: u64,
    /// `primary`, `backup` or `metered`; empty where all are alike.
    #[serde(default)]
    pub role: String,
    /// Whether a portal is in the way, so that it is not used.
    #[serde(default)]
    pub portal: bool,
    /// Octets that have passed its interface in this day or month, if it has a quota.
    #[serde(default)]
    pub quota_used_bytes: Option<u64>,
    /// How many may.
    #[serde(default)]
    pub quota_bytes: Option<u64>,
    /// What is carried beside TCP, if anything is.
    #[serde(default)]
    pub datagrams: Option<DatagramPath>,
}

/// Datagrams of an uplink.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct DatagramPath {
    /// Whether they are answered, as far as is known.
    pub usable: bool,
    /// The smoothed round-trip time, milliseconds.
    pub rtt_ms: Option<f64>,
    /// The share lost lately, 0 to 1; 0 without a server, where nobody counts.
    pub loss_ratio: f64,
    /// The smoothed variation of the delay, milliseconds.
    pub jitter_ms: f64,
    /// Sent, with what this program adds.
    pub sent: u64,
    /// Their bytes, without the outer headers.
    pub sent_bytes: u64,
    /// Received, likewise.
    pub received: u64,
    /// Their bytes, likewise.
    pub received_bytes: u64,
}

/// A flow of datagrams.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Flow {
    /// `udp`, `echo` or `dns`.
    pub kind: String,
    /// The program.
    pub inside: SocketAddr,
    /// Whom it talks to.
    pub outside: SocketAddr,
    /// Datagrams from it.
    pub sent: u64,
    /// Bytes of payload from it.
    pub sent_bytes: u64,
    /// Datagrams to it.
    pub received: u64,
    /// Bytes of payload to it.
    pub received_bytes: u64,
}

/// Flows of datagrams that were used in the last two minutes.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Flows {
    /// How many.
    pub count: usize,
    /// Those with most bytes.
    pub shown: Vec<Flow>,
}

/// Who is served. Totals are of those who have gone, except those accepted.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Clients {
    /// Now.
    pub now: usize,
    /// The most at a time.
    pub most: u64,
    /// Accepted.
    pub accepted: u64,
    /// Bytes from them.
    pub up_bytes: u64,
    /// Bytes to them.
    pub down_bytes: u64,
    /// How their connections ended, or why they were not connected.
    pub ended: BTreeMap<String, u64>,
}

/// All.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Status {
    /// The program's version.
    pub version: String,
    /// What it was started as.
    pub command: String,
    /// Its process.
    pub process: u32,
    /// When it began, seconds since 1970.
    pub began: u64,
    /// When this was true, likewise.
    pub now: u64,
    /// The uplinks.
    pub uplinks: Vec<Uplink>,
    /// Who is served.
    pub clients: Clients,
    /// What was dropped or refused below.
    pub engine: BTreeMap<String, u64>,
    /// Connections of the stack.
    pub connections: Sample,
    /// Flows of datagrams, where they are carried.
    #[serde(default)]
    pub flows: Option<Flows>,
}

/// Where all that is found out.
#[derive(Clone)]
pub struct Source {
    command: &'static str,
    began: u64,
    stacks: Vec<Stack>,
    paths: Option<PathObserver>,
    control: Control,
    datagrams: Option<(CaptureObserver, Way)>,
    roles: Option<Roles>,
}

/// Seconds since 1970.
fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}

impl Source {
    /// Of a command that has begun just now.
    pub fn new(command: &'static str, stacks: &[Stack], control: Control) -> Self {
        Self { command, began: now(), stacks: stacks.to_vec(), paths: None, control, datagrams: None, roles: None }
    }

    /// With the stack's paths.
    pub fn with_paths(self, paths: PathObserver) -> Self {
        Self { paths: Some(paths), ..self }
    }

    /// With what is carried beside TCP.
    pub fn with_datagrams(self, capture: CaptureObserver, way: Way) -> Self {
        Self { datagrams: Some((capture, way)), ..self }
    }

    /// With what is known of uplinks that are not like the others.
    pub fn with_roles(self, roles: Roles) -> Self {
        Self { roles: Some(roles), ..self }
    }

    /// All of it, now.
    pub fn status(&self) -> Status {
        let reports: Vec<ConnectionReport> =
            self.stacks.iter().flat_map(|stack| stack.connections(MAX_CONNECTIONS)).collect();
        Status {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            command: self.command.to_owned(),
            process: std::process::id(),
            began: self.began,
            now: now(),
            uplinks: self.uplinks(&reports),
            clients: clients(self.control.clients(), &self.control.counters()),
            engine: self.engine(),
            connections: Sample::of_stacks(&self.stacks, MAX_CONNECTIONS),
            flows: self.datagrams.as_ref().map(|(capture, _)| flows(capture)),
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
            uplink.measure(reports);
            uplink
        });
        let mut uplinks: Vec<Uplink> = uplinks.collect();
        for report in self.datagrams.iter().flat_map(|(_, way)| way.report()) {
            let datagrams = Some(DatagramPath::of(&report));
            match uplinks.iter_mut().find(|uplink| uplink.name == report.name) {
                Some(uplink) => uplink.datagrams = datagrams,
                // Without a stack this is all that is known.
                None => uplinks.push(Uplink { name: report.name, up: report.usable, datagrams, ..Uplink::default() }),
            }
        }
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
        totals
    }
}

impl DatagramPath {
    fn of(report: &anabranch_datagram::PathReport) -> Self {
        Self {
            usable: report.usable,
            rtt_ms: report.round_trip.map(|time| time.as_secs_f64() * 1e3),
            loss_ratio: report.loss,
            jitter_ms: report.jitter.as_secs_f64() * 1e3,
            sent: report.datagrams_sent,
            sent_bytes: report.bytes_sent,
            received: report.datagrams_received,
            received_bytes: report.bytes_received,
        }
    }
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

impl Uplink {
    /// What it is used for.
    fn play(&mut self, roles: &Roles) {
        let governed = roles.of(&self.name);
        governed.role.clone_into(&mut self.role);
        self.portal = governed.portal;
        (self.quota_used_bytes, self.quota_bytes) = governed.quota.unzip();
    }

    /// What the subflows on it know.
    fn measure(&mut self, reports: &[ConnectionReport]) {
        let is_here = |path: &&PathReport| self.addresses.contains(&path.subflow.local.ip());
        let paths: Vec<&PathReport> = reports.iter().flat_map(|report| &report.paths).filter(is_here).collect();
        let (mut losses, mut rtt) = (0.0, f64::INFINITY);
        for view in
            paths.into_iter().map(|path| &path.subflow.view).filter(|view| view.state == SubflowState::Established)
        {
            self.subflows += 1;
            losses += view.loss_rate;
            let sample = view.smoothed_rtt.as_secs_f64() * 1e3;
            rtt = if sample > 0.0 { rtt.min(sample) } else { rtt };
        }
        self.loss_ratio = (self.subflows > 0).then(|| losses / self.subflows as f64);
        // Nothing was measured yet where it would take weeks.
        self.rtt_ms = (rtt < 1e9).then_some(rtt);
    }
}

fn clients(now: usize, counters: &ProxyCounters) -> Clients {
    let ended = [
        ("finished", counters.finished),
        ("over_limit", counters.over_limit),
        ("not_accepted_by_the_system", counters.accept_errors),
        ("reset", counters.reset),
        ("tampered", counters.tampered),
        ("idle", counters.idle),
        ("stopped", counters.stopped),
        ("left_early", counters.left_early),
        ("malformed", counters.malformed),
        ("unauthorized", counters.unauthorized),
        ("not_allowed", counters.not_allowed),
        ("failed", counters.failed),
        ("unproven", counters.unproven),
        ("too_slow", counters.too_slow),
    ];
    Clients {
        now,
        most: counters.most,
        accepted: counters.accepted,
        up_bytes: counters.bytes_up,
        down_bytes: counters.bytes_down,
        ended: ended.into_iter().map(|(name, count)| (name.to_owned(), count)).collect(),
    }
}
