//! Routers from end to end of a network like the MANET paper's, in which the relay that carries the probes repeatedly
//! moves away: the cost of such a cut, and whether forecasts reduce it.
//!
//! The columns are the paper's. The rows are 25 m apart, so that each node of a column hears all of the next, and the
//! radio fades: with the paper's disks, no signal weakens before it is lost. The relay of the first column that
//! forwarded most moves away at right angles to the route of the probes; at a very high speed the cut is sudden. A
//! minute after it is out of range it returns the same way.
//!
//! The cost of a cut is the probes lost from the start of the relay's move until it turns around; that of its return
//! the probes lost from then until half a minute after it is in its place again. Losses in the following quiet half
//! minute are counted separately.

use super::cost::MeshCost;
use super::moving_network::MovingNetwork;
use super::probes::ProbeConfig;
use super::results::NodeResult;
use super::{NodeId, RadioId};
use crate::address::InterfaceId;
use crate::radio::{MediumConfig, Overlap, PathLoss, Position, Reach};
use crate::random::RandomStream;
use crate::topology::NoPaths;
use crate::world::{World, WorldConfig};
use anabranch_mptcp::EndpointConfig;
use anabranch_policy::time::{Duration, Instant};
use anabranch_routing::lsa_fullness::LsaFullness;

/// Positions of the nodes in metres; the first and the last are the ends.
pub const PLACES: [(f64, f64); 8] = [
    (0.0, 0.0),
    (100.0, 25.0),
    (100.0, 0.0),
    (100.0, -25.0),
    (200.0, 25.0),
    (200.0, 0.0),
    (200.0, -25.0),
    (300.0, 0.0),
];

/// The relays of the first column.
const RELAYS: core::ops::Range<usize> = 1..4;

/// Mean range of a frame in metres: a neighbour at 112 m loses one frame in 15, one at 200 m all but one in 250.
const REACH: f64 = 150.0;

/// Distance in metres from its place at which a relay is out of range.
const GONE: f64 = 250.0;

/// Quiet time before each cut.
const QUIET: Duration = Duration::from_secs(30);
/// Time out of range.
const AFTER: Duration = Duration::from_secs(60);
/// Interval of position updates.
const STEP: Duration = Duration::from_millis(100);

/// Settings of the cuts.
#[derive(Clone)]
pub struct CutNetwork {
    /// The routers, the probes and the length of the run; its movement is not used.
    pub network: MovingNetwork,
    /// Speed of the leaving relay in metres per second.
    pub speed: f64,
}

/// Results of the cuts.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct CutsSeen {
    /// Number of cuts.
    pub cuts: u32,
    /// Probes lost per cut.
    pub lost_per_cut: f64,
    /// The same in seconds of the probe stream: the time until there is another route.
    pub outage: f64,
    /// Probes lost per return.
    pub lost_per_return: f64,
    /// Share of probes lost in the quiet times before the cuts.
    pub lost_in_quiet: f64,
    /// Routing traffic after the warm-up in bits per second, in the whole network, IPv6 headers included.
    pub overhead: f64,
    /// Energy and work after the warm-up.
    pub cost: MeshCost,
    /// Bytes of a router's state, mean over the nodes.
    pub memory: u64,
    /// Duration without the warm-up in seconds.
    pub seconds: f64,
    pub trace_hash: u64,
}

/// Probes sent, and those of them lost, per interval. A probe under way at the end of an interval counts in the
/// interval of its arrival.
#[derive(Clone, Copy, Default)]
struct Lost {
    sent: u64,
    lost: i64,
}

impl Lost {
    fn during(&mut self, world: &mut World, what: impl FnOnce(&mut World)) {
        let (sent, arrived) = (world.probes_sent(), arrived(world));
        what(world);
        let sent = world.probes_sent() - sent;
        self.sent += sent;
        self.lost += sent as i64 - (self::arrived(world) - arrived) as i64;
    }
}

fn arrived(world: &World) -> u64 {
    world.node_results().iter().map(|node| node.counters.delivered).sum()
}

impl CutNetwork {
    /// HelloInterval 1 s, RouterDeadInterval 3 s, 2HopRefresh 3, 20 probes of 40 bytes per second.
    pub fn new(fullness: LsaFullness, speed: f64, seed: u64) -> Self {
        let mut network = MovingNetwork::appendix_e(PLACES.len(), REACH, fullness, seed);
        network.medium = medium();
        network.hello_interval = Duration::from_secs(1);
        network.router_dead_interval = Duration::from_secs(3);
        network.probe_interval = Duration::from_millis(50);
        network.duration = Duration::from_secs(840);
        Self { network, speed }
    }
    /// Time until a relay is out of range.
    fn leaving(&self) -> Duration {
        Duration::from_secs_f64(GONE / self.speed.max(0.1))
    }
    /// Number of cuts in the duration: at least one.
    pub fn cuts(&self) -> u32 {
        let one = QUIET + self.leaving() + AFTER + self.leaving() + QUIET;
        u32::try_from(self.network.duration.as_nanos() / one.as_nanos()).unwrap_or(u32::MAX).max(1)
    }
    /// Builds the network.
    ///
    /// # Errors
    /// If a router refuses its configuration, as text.
    fn build(&self) -> Result<World, String> {
        let network = &self.network;
        let mut world = World::new(WorldConfig { seed: network.seed, wire: network.wire, ipv6: false });
        let channel = world.add_channel("channel", network.medium.clone());
        let mut random = RandomStream::new(network.seed, "starts of the routers");
        let mut hosts: Vec<InterfaceId> = Vec::new();
        for (index, (x, y)) in PLACES.into_iter().enumerate() {
            let node = world.add_node(&format!("M{}", index + 1), Position { x, y });
            let radio: RadioId = world.add_radio(node, channel);
            let host = world.add_host(&format!("host {index}"), &EndpointConfig::default(), Box::new(NoPaths));
            let interface = world.attach_to_node(host, node);
            hosts.push(interface);
            let start = Instant::ZERO + network.start_within.mul_f64(random.uniform());
            network.add_router(&mut world, node, radio, interface, start)?;
        }
        let ends = [hosts.first(), hosts.last()];
        world.add_probes(ProbeConfig {
            name: "probes".to_owned(),
            among: ends.into_iter().flatten().copied().collect(),
            one_way: true,
            interval: network.probe_interval,
            bytes: network.probe_bytes,
            start: Instant::ZERO,
            stop: Instant::NEVER,
        });
        Ok(world)
    }
    /// Builds the network and makes as many cuts as fit into the duration.
    ///
    /// # Errors
    /// As [`MovingNetwork::build`].
    pub fn run(&self) -> Result<CutsSeen, String> {
        let mut world = self.build()?;
        world.run_until(Instant::ZERO + self.network.warm_up);
        let (nodes, cost, begin) = (world.node_results(), world.mesh_cost(), world.now());
        let cuts = self.cuts();
        let (mut quiet, mut cut, mut back) = (Lost::default(), Lost::default(), Lost::default());
        for _ in 0..cuts {
            let before = world.node_results();
            let quiet_end = world.now() + QUIET;
            quiet.during(&mut world, |world| world.run_until(quiet_end));
            let relay = busiest(&before, &world.node_results());
            let node = NodeId(relay as u32);
            let place = world.position(node);
            cut.during(&mut world, |world| {
                self.walk(world, node, place, |gone| gone);
                // Out of range from its present position too.
                world.move_node(node, away(place, GONE * 10.0));
                let end = world.now() + AFTER;
                world.run_until(end);
            });
            back.during(&mut world, |world| {
                self.walk(world, node, place, |gone| GONE - gone);
                world.move_node(node, place);
                let end = world.now() + QUIET;
                world.run_until(end);
            });
        }
        let seconds = world.now().since(begin).as_secs_f64();
        let bytes = |nodes: &[NodeResult]| {
            nodes.iter().map(|node| node.counters.control.bytes.iter().sum::<u64>()).sum::<u64>()
        };
        let lost_per_cut = cut.lost as f64 / f64::from(cuts);
        Ok(CutsSeen {
            cuts,
            lost_per_cut,
            outage: lost_per_cut * self.network.probe_interval.as_secs_f64(),
            lost_per_return: back.lost as f64 / f64::from(cuts),
            lost_in_quiet: quiet.lost as f64 / quiet.sent.max(1) as f64,
            overhead: (bytes(&world.node_results()) - bytes(&nodes)) as f64 * 8.0 / seconds,
            cost: world.mesh_cost() - cost,
            memory: world.router_memory() / PLACES.len() as u64,
            seconds,
            trace_hash: world.results().trace_hash,
        })
    }
    /// Moves a relay for as long as it takes to leave the range; `distance` maps the distance covered to that from its
    /// place.
    fn walk(&self, world: &mut World, node: NodeId, place: Position, distance: impl Fn(f64) -> f64) {
        let begin = world.now();
        let end = begin + self.leaving();
        let mut at = begin;
        while at < end {
            at = (at + STEP).min(end);
            world.run_until(at);
            let gone = (at.since(begin).as_secs_f64() * self.speed).min(GONE);
            world.move_node(node, away(place, distance(gone)));
        }
    }
}

/// A position at some distance outwards, away from all others; the middle relay passes one neighbour.
fn away(place: Position, distance: f64) -> Position {
    let side = if place.y < 0.0 { -1.0 } else { 1.0 };
    Position { x: place.x, y: place.y + side * distance }
}

/// The relay that forwarded most between `before` and `after`.
fn busiest(before: &[NodeResult], after: &[NodeResult]) -> usize {
    let forwarded = |relay: usize| {
        let count = |nodes: &[NodeResult]| nodes.get(relay).map_or(0, |node| node.counters.forwarded);
        count(after) - count(before)
    };
    RELAYS.max_by_key(|relay| forwarded(*relay)).unwrap_or(RELAYS.start)
}

/// Path loss with exponent 4 and mild fading.
fn medium() -> MediumConfig {
    let plain = PathLoss { exponent: 4.0, fading: 3, ..PathLoss::default() };
    let decode = plain.transmit_power - plain.reference_loss - 10.0 * plain.exponent * libm::log10(REACH);
    let path_loss =
        PathLoss { decode: decode as f32, interfere: decode as f32 - 10.0, sense: decode as f32 - 10.0, ..plain };
    MediumConfig { reach: Reach::PathLoss(path_loss), overlap: Overlap::Capture(10.0), ..MediumConfig::default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sudden_cut_costs_about_the_dead_interval() {
        let mut cuts = CutNetwork::new(LsaFullness::Full, 2500.0, 1);
        cuts.network.duration = Duration::from_secs(450);
        let seen = cuts.run().unwrap();
        // Each takes 30 + 0.1 + 60 + 0.1 + 30 s.
        assert_eq!(seen.cuts, 3);
        // The neighbour is declared dead 2 to 3 s after its last Hello but one; calculating another route takes
        // negligible time.
        assert!((1.5..3.5).contains(&seen.outage), "{seen:?}");
        assert!(seen.lost_in_quiet < 0.05, "{seen:?}");
    }
}
