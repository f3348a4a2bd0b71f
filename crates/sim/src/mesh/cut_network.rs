//! Routers from one end to the other of a network like the MANET paper's, of which the one that carries the probes goes away,
//! again and again: what a cut costs, and whether a forecast sees it coming.
//!
//! The columns are the paper's. Its rows are 25 m apart, so that each node of a column hears all of the next, with a
//! radio that fades: with the paper's disks no signal falls before it is gone. The relay of the first column that forwarded
//! most goes off at right angles to the way of the probes, at a speed; at a very high one the cut is sudden. A minute after it
//! is out of reach it comes back as it went.
//!
//! A cut costs the probes that do not arrive from when the relay begins to go until it turns around, its return those from
//! then until half a minute after it is in its place again. What is lost in the half minute that follows, when all is quiet,
//! is distinguished.

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

/// Where the nodes are, in metres, first and last the ends.
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

/// How far a frame is received on average, metres: a neighbour at 112 m loses one frame in 15, one at 200 m all but one in 250.
const REACH: f64 = 150.0;

/// Beyond this distance from its place nothing of a relay is left, metres.
const GONE: f64 = 250.0;

/// Before each cut, when nothing has happened for as long.
const QUIET: Duration = Duration::from_secs(30);
/// After a relay is out of reach.
const AFTER: Duration = Duration::from_secs(60);
/// How often the relay moves on.
const STEP: Duration = Duration::from_millis(100);

/// What can be chosen about the cuts.
#[derive(Clone)]
pub struct CutNetwork {
    /// The routers, the probes and the length of the run; who moves where is not taken from it.
    pub network: MovingNetwork,
    /// How fast a relay goes away, metres per second.
    pub speed: f64,
}

/// What was seen of the cuts.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct CutsSeen {
    /// How many cuts there were.
    pub cuts: u32,
    /// Probes that a cut cost.
    pub lost_per_cut: f64,
    /// The same as seconds of the stream of probes: how long it takes until there is another way.
    pub outage: f64,
    /// Probes that a return cost.
    pub lost_per_return: f64,
    /// Share of the probes that was lost in the quiet times before the cuts.
    pub lost_in_quiet: f64,
    /// What routers sent after the warm-up, bits per second in the whole network, IPv6 headers included.
    pub overhead: f64,
    /// Energy and work after the warm-up.
    pub cost: MeshCost,
    /// Bytes that a router needs for what it knows of the network, mean over the nodes.
    pub memory: u64,
    /// How long all of it was, warm-up left out, seconds.
    pub seconds: f64,
    /// The trace hash.
    pub trace_hash: u64,
}

/// Probes that were sent, and those of them that did not arrive, in intervals of time. One that is under way at the end of an
/// interval counts where it arrives.
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
    /// How long it takes a relay to be out of reach.
    fn leaving(&self) -> Duration {
        Duration::from_secs_f64(GONE / self.speed.max(0.1))
    }
    /// How many cuts there is time for: one at least.
    pub fn cuts(&self) -> u32 {
        let one = QUIET + self.leaving() + AFTER + self.leaving() + QUIET;
        u32::try_from(self.network.duration.as_nanos() / one.as_nanos()).unwrap_or(u32::MAX).max(1)
    }
    /// Makes the network.
    ///
    /// # Errors
    /// When a router cannot be: the text says why.
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
    /// Makes the network and cuts it as often as there is time for.
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
                // Wherever it is now, it is not heard.
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
    /// Lets a relay walk for as long as it takes to be out of reach; `distance` says how far it is from its place, by how far it
    /// has gone.
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

/// So far from a place. Outwards, so that it comes nearer to nobody; the middle one passes one neighbour.
fn away(place: Position, distance: f64) -> Position {
    let side = if place.y < 0.0 { -1.0 } else { 1.0 };
    Position { x: place.x, y: place.y + side * distance }
}

/// The relay that forwarded most in between.
fn busiest(before: &[NodeResult], after: &[NodeResult]) -> usize {
    let forwarded = |relay: usize| {
        let count = |nodes: &[NodeResult]| nodes.get(relay).map_or(0, |node| node.counters.forwarded);
        count(after) - count(before)
    };
    RELAYS.max_by_key(|relay| forwarded(*relay)).unwrap_or(RELAYS.start)
}

/// Path loss with the exponent 4 and mild fading.
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
        // The relay is missed 2 to 3 s after its last Hello but one; the search for another way takes no time worth mention.
        assert!((1.5..3.5).contains(&seen.outage), "{seen:?}");
        assert!(seen.lost_in_quiet < 0.05, "{seen:?}");
    }
}
