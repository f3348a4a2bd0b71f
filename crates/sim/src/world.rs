//! The world: hosts, the network between them, and its traffic.

mod carrying;
mod event_kinds;
mod run;
pub mod view;

use crate::address::InterfaceId;
use crate::datagrams::Session;
use crate::event_queue::Target;
use crate::flow::{Flow, FlowConfig, FlowId, Side};
use crate::identifiers::{HostId, LinkId, RouterId};
use crate::link::{LinkConfig, LinkCounters, QueueLimit};
use crate::network::{End, Network, Tap, WireCheck};
use crate::random::derive_key;
use crate::results::{HostResult, LinkResult, RunResult};
use crate::supervisor::Supervisor;
use crate::udp::{UdpConfig, UdpSource};
use anabranch_mptcp::{Endpoint, EndpointConfig};
use anabranch_policy::ids::ConnectionId;
use anabranch_policy::path_manager::PathManager;
use anabranch_policy::rate::Rate;
use anabranch_policy::time::{Duration, Instant};
use core::net::IpAddr;
use event_kinds::{CHANGE_EVENT, SAMPLE_EVENT, START_EVENT, STOP_EVENT, SUPERVISOR_EVENT, UDP_EVENT};
use std::collections::BTreeMap;

/// Settings of a world.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct WorldConfig {
    /// All random streams are derived from it.
    pub seed: u64,
    /// Emit every packet as bytes and parse it again when a host sends it. The result must be the same.
    pub wire: bool,
    /// Hosts have IPv6 addresses instead of IPv4 ones.
    pub ipv6: bool,
}

/// A scheduled change.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Change {
    /// A link goes up or down. Its hosts are not notified.
    LinkState(LinkId, bool),
    /// A link has this fixed rate from now on.
    LinkRate(LinkId, Rate),
    /// A link has this fixed delay from now on.
    LinkDelay(LinkId, Duration),
    /// A link loses each packet with this probability from now on, in place of its loss models.
    LinkLoss(LinkId, f64),
    /// The queue of a link has this limit from now on.
    LinkQueue(LinkId, QueueLimit),
    /// The address of a host's interface comes up or goes down.
    Address(InterfaceId, bool),
    /// One end of a flow aborts its connection.
    Abort(FlowId, Side),
    /// The application at one end of a flow changes its priority.
    Priority(FlowId, Side, u8),
    /// The application at one end of a flow learns how much the other end's player has buffered.
    PlayOutLeft(FlowId, Side, Option<Duration>),
}

struct Host {
    endpoint: Endpoint,
    /// The earliest event of its timer in the queue.
    armed: Instant,
    last_timeout: Instant,
    /// Consecutive timeouts at the same time.
    timeouts_at_once: u32,
    interfaces: Vec<InterfaceId>,
    connections: BTreeMap<ConnectionId, (FlowId, Side)>,
    listeners: BTreeMap<u16, FlowId>,
    /// Whether any of its connections is measured.
    traced: bool,
    supervisor: Option<Box<dyn Supervisor>>,
    result: HostResult,
}

/// The server port of the first flow.
const FIRST_PORT: u16 = 5001;

pub struct World {
    config: WorldConfig,
    now: Instant,
    pub(crate) network: Network,
    hosts: Vec<Host>,
    flows: Vec<Flow>,
    udp: Vec<UdpSource>,
    sessions: Vec<Session>,
    changes: Vec<Change>,
    /// Finite flows that have not ended.
    unfinished: usize,
    /// Packets whose data has been sent before are marked.
    marks_repeats: bool,
}

impl World {
    /// An empty world at time zero.
    pub fn new(config: WorldConfig) -> Self {
        let mut network = Network::new();
        network.wire = config.wire.then(WireCheck::default);
        Self {
            config,
            now: Instant::ZERO,
            network,
            hosts: Vec::new(),
            flows: Vec::new(),
            udp: Vec::new(),
            sessions: Vec::new(),
            changes: Vec::new(),
            unfinished: 0,
            marks_repeats: false,
        }
    }
    pub fn now(&self) -> Instant {
        self.now
    }
    pub fn seed(&self) -> u64 {
        self.config.seed
    }
    pub(crate) fn uses_ipv6(&self) -> bool {
        self.config.ipv6
    }
    pub fn add_router(&mut self) -> RouterId {
        self.network.add_router()
    }
    /// Adds a unidirectional link. Its random streams are derived from its name, which must be unique.
    pub fn add_link(&mut self, name: &str, config: &LinkConfig, from: End, to: End) -> LinkId {
        self.network.add_link(self.config.seed, name, config, from, to)
    }
    /// Adds a host without interfaces. The seed in `config` is replaced by one derived from the run's seed and the
    /// name.
    pub fn add_host(&mut self, name: &str, config: &EndpointConfig, path_manager: Box<dyn PathManager>) -> HostId {
        let seed = derive_key(self.config.seed, &format!("host/{name}"));
        let endpoint = Endpoint::new(EndpointConfig { seed, ..config.clone() }, path_manager);
        self.hosts.push(Host {
            endpoint,
            armed: Instant::NEVER,
            last_timeout: Instant::NEVER,
            timeouts_at_once: 0,
            interfaces: Vec::new(),
            connections: BTreeMap::new(),
            listeners: BTreeMap::new(),
            traced: false,
            supervisor: None,
            result: HostResult { name: name.to_owned(), ..HostResult::default() },
        });
        HostId(self.hosts.len() as u32 - 1)
    }
    /// Adds the supervisor of a host, in place of an earlier one.
    pub fn add_supervisor(&mut self, host: HostId, supervisor: Box<dyn Supervisor>) {
        self.network.events.put(self.now + supervisor.interval(), Target::new(SUPERVISOR_EVENT, host.index()));
        self.hosts[host.index()].supervisor = Some(supervisor);
    }
    /// Adds an interface to a host, and tells the host that its address can be used. Packets from its address leave on
    /// one link; packets to its address arrive on the given links. Several interfaces may share a link.
    pub fn add_interface(&mut self, host: HostId, sends_on: LinkId, receives_on: &[LinkId]) -> InterfaceId {
        let interface = self.network.add_interface(host, sends_on, receives_on);
        self.hosts[host.index()].interfaces.push(interface);
        self.apply(Change::Address(interface, true));
        interface
    }
    pub fn address(&self, interface: InterfaceId) -> IpAddr {
        if self.config.ipv6 { interface.ipv6() } else { interface.ipv4() }
    }
    pub fn host_of(&self, interface: InterfaceId) -> Option<HostId> {
        self.network.host_of(interface)
    }
    pub fn endpoint(&self, host: HostId) -> &Endpoint {
        &self.hosts[host.index()].endpoint
    }
    /// The connection at one end of a flow, once it exists.
    pub fn connection(&self, flow: FlowId, side: Side) -> Option<ConnectionId> {
        self.flows.get(flow.0 as usize)?.ends[side as usize].connection
    }
    /// Calls `tap` for everything that these links deliver from now on.
    pub fn tap(&mut self, links: &[LinkId], tap: Tap) {
        links.iter().for_each(|link| self.network.set_tapped(*link, true));
        self.network.tap = Some(tap);
    }
    /// Adds a flow: its server listens at once; its client connects at the flow's start.
    ///
    /// If no link added so far has an MTU, hosts are told so: an outage is not taken for a black hole, and segments
    /// keep their length ([`anabranch_mptcp::TcpConfig::path_mtu_discovery`] is off).
    ///
    /// # Panics
    /// If the flow's destination is no interface of this world, or its server has no free port.
    pub fn add_flow(&mut self, mut config: FlowConfig) -> FlowId {
        let id = FlowId(self.flows.len() as u32);
        let server = self.host_of(config.to).expect("a flow leads to an interface of this world");
        let place = u16::try_from(self.hosts[server.index()].listeners.len()).ok();
        let port = place.and_then(|place| FIRST_PORT.checked_add(place)).expect("a host has 60,000 ports for flows");
        if let Some(interval) = config.record {
            (config.client_config.trace, config.server_config.trace) = (true, true);
            self.hosts[config.client.index()].traced = true;
            self.hosts[server.index()].traced = true;
            self.network.events.put(config.start + interval, Target::new(SAMPLE_EVENT, id.0 as usize));
        }
        self.network.events.put(config.start, Target::new(START_EVENT, id.0 as usize));
        if config.stop != Instant::NEVER {
            self.network.events.put(config.stop, Target::new(STOP_EVENT, id.0 as usize));
        }
        if !self.network.has_mtu() {
            config.client_config.tcp.path_mtu_discovery = false;
            config.server_config.tcp.path_mtu_discovery = false;
        }
        let host = &mut self.hosts[server.index()];
        host.listeners.insert(port, id);
        let listening = host.endpoint.listen(port, config.server_config.clone());
        let mut flow = Flow::new(config, server, port, self.config.seed);
        flow.failed = listening.err();
        self.unfinished += usize::from(flow.is_finite());
        self.flows.push(flow);
        id
    }
    pub fn add_udp(&mut self, config: UdpConfig) {
        let index = self.udp.len();
        self.network.events.put(config.start, Target::new(UDP_EVENT, index << 1));
        self.udp.push(UdpSource::new(config, self.config.seed));
    }
    pub fn schedule(&mut self, time: Instant, change: Change) {
        self.network.events.put(time, Target::new(CHANGE_EVENT, self.changes.len()));
        self.changes.push(change);
    }

    /// The measurements so far.
    pub fn results(&mut self) -> RunResult {
        self.network.settle(self.now);
        for flow in &mut self.flows {
            for end in &mut flow.ends {
                end.update_stats(&self.hosts[end.host.index()].endpoint);
            }
        }
        let links = self.network.links();
        RunResult {
            seed: self.config.seed,
            end: self.now,
            trace_hash: self.network.hash.value(),
            deliveries: self.network.hash.deliveries(),
            events: self.network.events.total(),
            flows: self.flows.iter().map(|flow| flow.result(self.now)).collect(),
            links: links.map(|(name, link)| LinkResult { name: name.to_owned(), counters: *link.counters() }).collect(),
            hosts: self.hosts.iter().map(|host| host.result.clone()).collect(),
            udp: self.udp.iter().map(|source| source.result.clone()).collect(),
            datagrams: self.sessions.iter().map(|session| session.result.clone()).collect(),
            node_drops: self.network.node_drops(),
            wire: self.network.wire.clone(),
        }
    }
    /// The counters of a link so far.
    pub fn link_counters(&mut self, link: LinkId) -> LinkCounters {
        self.network.settle(self.now);
        self.network.links().nth(link.index()).map_or(LinkCounters::default(), |(_, link)| *link.counters())
    }
    pub fn packets_under_way(&self) -> usize {
        self.network.packets_under_way()
    }
}
