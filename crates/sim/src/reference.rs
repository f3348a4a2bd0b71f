//! The small networks on which the lab is validated and timed; each takes a few lines in any other simulator.
//!
//! Segments carry [`SEGMENT`] bytes, which are [`PACKET`] bytes of IP with headers and timestamps. ns-3 adds two bytes
//! of PPP to each packet, so a link that is compared with ns-3 has a proportionally lower rate ([`Bottleneck::rate`]):
//! a full segment has the same transmission time in both.

use crate::address::InterfaceId;
use crate::application::{Application, FrameToSend, Sending};
use crate::flow::{FlowConfig, FlowId};
use crate::identifiers::HostId;
use crate::link::{Discipline, LinkConfig, LossModel};
use crate::network::End;
use crate::topology::{NoPaths, Path, PathConfig, ServerAddresses, attach_by_link, disjoint_paths, dumbbell};
use crate::world::{World, WorldConfig};
use anabranch_mptcp::{BufferSize, ConnectionConfig, EndpointConfig, Framing, Policies, TcpConfig};
use anabranch_policy::path_manager::PathManager;
use anabranch_policy::rate::Rate;
use anabranch_policy::table::{self, Settings};
use anabranch_policy::time::{Duration, Instant};
use anabranch_policy::{congestion, path_manager, reliability, scheduler};
use std::sync::Arc;

/// Payload of a full segment in bytes.
pub const SEGMENT: u32 = 1400;
/// With the headers of IPv4 (20) and TCP (20) and timestamps (12), in bytes.
pub const PACKET: u32 = 1452;
/// On a point-to-point link of ns-3, in bytes.
pub const PACKET_IN_NS3: u32 = 1454;

/// The bottleneck of a path.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Bottleneck {
    /// Rate in Mbit/s, of packets with two bytes of PPP.
    pub mbit: u64,
    /// One-way delay in milliseconds, equal in both directions.
    pub delay_ms: u64,
    /// Queue limit in packets, without the one in transmission.
    pub queue: usize,
    /// Loss probability of the forward direction; the backward one has none.
    pub loss: f64,
}

impl Bottleneck {
    /// Without random loss.
    pub const fn new(mbit: u64, delay_ms: u64, queue: usize) -> Self {
        Self { mbit, delay_ms, queue, loss: 0.0 }
    }
    /// The rate of IP packets.
    pub fn rate(&self) -> Rate {
        let bits = self.mbit * 1_000_000 * u64::from(PACKET) / u64::from(PACKET_IN_NS3);
        Rate::from_bits_per_second(bits)
    }
    pub fn forward(&self) -> LinkConfig {
        let loss = if self.loss > 0.0 { vec![LossModel::Uniform(self.loss)] } else { Vec::new() };
        LinkConfig { loss, ..self.backward() }
    }
    pub fn backward(&self) -> LinkConfig {
        LinkConfig::new(self.rate(), Duration::from_millis(self.delay_ms), self.queue)
    }
}

/// The comparison with ns-3 on one path: 10 Mbit/s, 20 ms, 50 packets.
pub const ONE_LINK: Bottleneck = Bottleneck::new(10, 20, 50);
/// The comparison with ns-3 on two paths.
pub const TWO_LINKS: [Bottleneck; 2] = [Bottleneck::new(10, 10, 50), Bottleneck::new(5, 40, 50)];
/// The comparison of fifty flows.
pub const FIFTY_FLOWS: Bottleneck = Bottleneck::new(100, 20, 50);

/// The connection of the comparison with ns-3: buffers of 4 MB, delayed acknowledgements of at most 200 ms, a
/// retransmission timeout of at least 1 s; `congestion` and the scheduler `lowest_rtt` with their defaults.
///
/// # Panics
/// If there is no congestion control of this name.
pub fn connection(congestion: &'static str, multipath: bool) -> ConnectionConfig {
    let policies = Policies {
        congestion: Arc::new(move || {
            table::build(congestion::TABLE, congestion, &Settings::new()).expect("a name in the table")
        }),
        scheduler: Arc::new(|| {
            table::build(scheduler::TABLE, "lowest_rtt", &Settings::new()).expect("a name in the table")
        }),
        reliability: anabranch_mptcp::config::fully_reliable(),
    };
    ConnectionConfig {
        multipath,
        receive_buffer: BufferSize::Fixed(4_000_000),
        send_buffer: 4_000_000,
        tcp: TcpConfig {
            mtu: PACKET as u16,
            delayed_ack: Duration::from_millis(200),
            min_rto: Duration::from_secs(1),
            ..TcpConfig::default()
        },
        ..ConnectionConfig::new(policies)
    }
}

/// A link with a queue of `queue` bandwidth-delay products, or with CoDel and room for four of them if that is `None`.
/// Its delay is half of the round-trip time.
pub fn link_with(mbit: u64, rtt_ms: u64, queue: Option<f64>) -> LinkConfig {
    let product = mbit as f64 * 1e6 / 8.0 * rtt_ms as f64 / 1e3 / f64::from(PACKET);
    let packets = (product * queue.unwrap_or(4.0)) as usize;
    let rate = Rate::from_bits_per_second(mbit * 1_000_000);
    let mut link = LinkConfig::new(rate, Duration::from_micros(rtt_ms * 500), packets.max(1));
    if queue.is_none() {
        link.queue.discipline = Discipline::CODEL;
    }
    link
}

/// [`connection`] with the timers of the engine, and buffers of `buffer` bytes that limit nothing.
pub fn unlimited(congestion: &'static str, multipath: bool, buffer: u64) -> ConnectionConfig {
    ConnectionConfig {
        receive_buffer: BufferSize::Fixed(buffer),
        send_buffer: buffer,
        tcp: TcpConfig { mtu: PACKET as u16, ..TcpConfig::default() },
        ..connection(congestion, multipath)
    }
}

/// An endless upload from `client` to `to`, starting at `start`.
pub fn upload(
    name: &str,
    (client, from): (HostId, InterfaceId),
    to: InterfaceId,
    start: Instant,
    config: &ConnectionConfig,
) -> FlowConfig {
    FlowConfig {
        name: name.to_owned(),
        client,
        from: Some(from),
        to,
        start,
        stop: Instant::NEVER,
        application: Application::upload(Sending::Endless),
        client_config: config.clone(),
        server_config: config.clone(),
        record: None,
    }
}

fn full_mesh() -> Box<dyn PathManager> {
    table::build(path_manager::TABLE, "full_mesh", &Settings::new()).expect("a name in the table")
}

fn world(seed: u64) -> World {
    World::new(WorldConfig { seed, ..WorldConfig::default() })
}

/// A client and a server, without links.
fn client_and_server(world: &mut World) -> (HostId, HostId) {
    let mut host = |name| world.add_host(name, &EndpointConfig::default(), full_mesh());
    (host("client"), host("server"))
}

/// A client with an address on each path, and a server with one address; each path is only a bottleneck.
pub fn two_hosts(seed: u64, paths: &[Bottleneck]) -> (World, HostId, Vec<Path>) {
    let links: Vec<_> = paths.iter().map(|path| (path.forward(), path.backward())).collect();
    two_hosts_over(seed, &links)
}

/// As [`two_hosts`], with the links of each path to the server and back.
pub fn two_hosts_over(seed: u64, links: &[(LinkConfig, LinkConfig)]) -> (World, HostId, Vec<Path>) {
    let mut world = world(seed);
    let (client, server) = client_and_server(&mut world);
    let path = |(index, (up, down)): (usize, &(LinkConfig, LinkConfig))| PathConfig {
        name: index.to_string(),
        access_up: up.clone(),
        access_down: down.clone(),
        ..PathConfig::default()
    };
    let paths: Vec<PathConfig> = links.iter().enumerate().map(path).collect();
    let paths = disjoint_paths(&mut world, client, server, &paths, ServerAddresses::One);
    (world, client, paths)
}

/// The access link of hosts in other simulators' topologies: 1 Gbit/s, no delay, 100 packets.
pub fn access_link() -> LinkConfig {
    LinkConfig::new(Rate::from_bits_per_second(1_000_000_000), Duration::ZERO, 100)
}

/// One connection between hosts as in [`two_hosts`], with an [`access_link`] at the client's end of each path and one
/// at the server's.
pub fn behind_access(seed: u64, paths: &[Bottleneck], config: &ConnectionConfig) -> World {
    let mut world = world(seed);
    let (client, server) = client_and_server(&mut world);
    let far = world.add_router();
    let to = attach_by_link(&mut world, "server", server, far, &access_link());
    let mut interfaces = Vec::new();
    for (index, path) in paths.iter().enumerate() {
        let near = world.add_router();
        let (left, right) = (End::Router(near), End::Router(far));
        world.add_link(&format!("{index}/core up"), &path.forward(), left, right);
        world.add_link(&format!("{index}/core down"), &path.backward(), right, left);
        interfaces.push(attach_by_link(&mut world, &index.to_string(), client, near, &access_link()));
    }
    world.add_flow(upload("bulk", (client, interfaces[0]), to, Instant::ZERO, config));
    world
}

/// One connection between [`two_hosts`].
pub fn direct(seed: u64, paths: &[Bottleneck], config: &ConnectionConfig) -> (World, FlowId) {
    let (mut world, client, paths) = two_hosts(seed, paths);
    let flow = world.add_flow(upload("bulk", (client, paths[0].client), paths[0].server, Instant::ZERO, config));
    (world, flow)
}

const RECORDED: Duration = Duration::from_millis(10);

/// One connection over a link there and one back, recorded every 10 ms.
pub fn recorded(there: &LinkConfig, back: &LinkConfig, config: &ConnectionConfig) -> World {
    let (mut world, client, paths) = two_hosts_over(1, &[(there.clone(), back.clone())]);
    let flow = upload("bulk", (client, paths[0].client), paths[0].server, Instant::ZERO, config);
    world.add_flow(FlowConfig { record: Some(RECORDED), ..flow });
    world
}

/// The round-trip times of the first subflow of a [`recorded`] run from `from` on, sorted, in milliseconds.
pub fn round_trips(world: &mut World, from: Duration) -> Vec<f64> {
    let results = world.results();
    let series = &results.flows[0].measurements.as_ref().expect("it is recorded").subflows[0].latest_rtt;
    let mut seen: Vec<f64> =
        series[(from.as_nanos() / RECORDED.as_nanos()) as usize..].iter().map(|seconds| seconds * 1e3).collect();
    seen.sort_by(f64::total_cmp);
    seen
}

/// The two paths of [`live`], each with more than half of the stream's rate, and losses.
pub const LIVE_LINKS: [Bottleneck; 2] = [
    Bottleneck { loss: 0.001, ..Bottleneck::new(15, 10, 50) },
    Bottleneck { loss: 0.001, ..Bottleneck::new(15, 30, 50) },
];

/// A live stream over [`LIVE_LINKS`]: 20 Mbit/s for `seconds` seconds, in messages of 1,316 bytes (seven packets of
/// MPEG-TS), with a delivery deadline of 200 ms at the receiver.
pub fn live(seed: u64, seconds: u64) -> World {
    let reliability = || {
        let settings = Settings::new().with("latency", 200);
        table::build(reliability::TABLE, "spe", &settings).expect("a name in the table")
    };
    let mut config = ConnectionConfig { framing: Framing::Messages, ..connection("new_reno", true) };
    config.tcp.min_rto = TcpConfig::default().min_rto;
    config.policies.reliability = Arc::new(reliability);
    let interval = Duration::from_nanos(1_316 * 8 * 1_000 / 20);
    let frame = |number: u64| {
        let at = interval * number;
        FrameToSend { at, play_out: at, importance: 1, lifetime: None, bytes: 1_316 }
    };
    let frames = (0..seconds * 1_000_000_000 / interval.as_nanos()).map(frame).collect();
    let (mut world, client, paths) = two_hosts(seed, &LIVE_LINKS);
    let (from, to) = ((client, paths[0].client), paths[0].server);
    let application = Application::video(frames);
    world.add_flow(FlowConfig { application, ..upload("live", from, to, Instant::ZERO, &config) });
    world
}

/// Plain TCP connections over one bottleneck, each between its own hosts, starting every 10 ms.
pub fn crowd(seed: u64, flows: usize, bottleneck: &Bottleneck, config: &ConnectionConfig) -> World {
    crowd_behind(seed, flows, (&LinkConfig::default(), bottleneck), config)
}

/// As [`crowd`], with an access link at each host.
pub fn crowd_behind(
    seed: u64,
    flows: usize,
    (access, bottleneck): (&LinkConfig, &Bottleneck),
    config: &ConnectionConfig,
) -> World {
    let mut world = world(seed);
    let mut hosts = |side: &str| -> Vec<HostId> {
        let endpoint = EndpointConfig::default();
        (0..flows).map(|n| world.add_host(&format!("{side} {n}"), &endpoint, Box::new(NoPaths))).collect()
    };
    let (left, right) = (hosts("left"), hosts("right"));
    let bell = dumbbell(&mut world, &left, &right, access, &bottleneck.forward(), &bottleneck.backward());
    for (n, (from, to)) in bell.left.iter().zip(&bell.right).enumerate() {
        let start = Instant::ZERO + Duration::from_millis(10) * n as u64;
        world.add_flow(upload(&format!("flow {n}"), (left[n], *from), *to, start, config));
    }
    world
}

/// A multipath connection of `subflows` subflows (the first flow) and `tcp` plain TCP connections over one bottleneck.
/// The connections start `spread` apart, the multipath one first.
pub fn shared(
    seed: u64,
    subflows: usize,
    tcp: usize,
    bottleneck: &Bottleneck,
    multipath: &ConnectionConfig,
    single: &ConnectionConfig,
) -> World {
    shared_link(seed, (subflows, tcp), (&bottleneck.forward(), &bottleneck.backward()), multipath, single)
}

/// As [`shared`], over any link in each direction.
pub fn shared_link(
    seed: u64,
    (subflows, tcp): (usize, usize),
    (there, back): (&LinkConfig, &LinkConfig),
    multipath: &ConnectionConfig,
    single: &ConnectionConfig,
) -> World {
    let mut world = world(seed);
    let (client, server) = client_and_server(&mut world);
    let (mut left, mut right) = (vec![client; subflows], vec![server]);
    for n in 0..tcp {
        left.push(world.add_host(&format!("left {n}"), &EndpointConfig::default(), Box::new(NoPaths)));
        right.push(world.add_host(&format!("right {n}"), &EndpointConfig::default(), Box::new(NoPaths)));
    }
    let free = LinkConfig::default();
    let bell = dumbbell(&mut world, &left, &right, &free, there, back);
    world.add_flow(upload("multipath", (client, bell.left[0]), bell.right[0], Instant::ZERO, multipath));
    for n in 0..tcp {
        let (from, to) = (bell.left[subflows + n], bell.right[1 + n]);
        let start = Instant::ZERO + Duration::from_millis(50) * (n as u64 + 1);
        world.add_flow(upload(&format!("tcp {n}"), (left[subflows + n], from), to, start, single));
    }
    world
}

/// A multipath connection of two subflows (the first flow), each over its own bottleneck, which it shares with plain
/// TCP connections.
pub fn apart(
    seed: u64,
    tcp: usize,
    bottlenecks: [(&LinkConfig, &LinkConfig); 2],
    multipath: &ConnectionConfig,
    single: &ConnectionConfig,
) -> World {
    let mut world = world(seed);
    let (client, server) = client_and_server(&mut world);
    let free = LinkConfig::default();
    let mut others = Vec::new();
    let mut first = None;
    for (path, (there, back)) in bottlenecks.into_iter().enumerate() {
        let (mut left, mut right) = (vec![client], vec![server]);
        for n in 0..tcp {
            let mut host = |side: &str| {
                world.add_host(&format!("{side} {path} {n}"), &EndpointConfig::default(), Box::new(NoPaths))
            };
            left.push(host("left"));
            right.push(host("right"));
        }
        let bell = dumbbell(&mut world, &left, &right, &free, there, back);
        first.get_or_insert((bell.left[0], bell.right[0]));
        others.extend((1..=tcp).map(|n| ((left[n], bell.left[n]), bell.right[n])));
    }
    if let Some((from, to)) = first {
        world.add_flow(upload("multipath", (client, from), to, Instant::ZERO, multipath));
    }
    for (n, (from, to)) in others.into_iter().enumerate() {
        let start = Instant::ZERO + Duration::from_millis(50) * (n as u64 + 1);
        world.add_flow(upload(&format!("tcp {n}"), from, to, start, single));
    }
    world
}

/// Payload rate of flow `index` between `from` and `to` in Mbit/s; runs the world to `to`.
pub fn goodput(world: &mut World, index: usize, from: Instant, to: Instant) -> f64 {
    world.run_until(from);
    let before = world.results().flows[index].receiver().read;
    world.run_until(to);
    let read = world.results().flows[index].receiver().read - before;
    read as f64 * 8e-6 / (to - from).as_secs_f64()
}
