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
use super::course::{self, Course};
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
pub const REACH: f64 = 150.0;

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
    /// Adds what was sent and has arrived between two times.
    fn add(&mut self, before: Probed, after: Probed) {
        let sent = after.sent - before.sent;
        self.sent += sent;
        self.lost += sent as i64 - (after.arrived - before.arrived) as i64;
    }
}

/// Probes so far.
#[derive(Clone, Copy, Default)]
struct Probed {
    sent: u64,
    arrived: u64,
}

impl Probed {
    fn by_now(world: &World) -> Self {
        let arrived = world.node_results().iter().map(|node| node.counters.delivered).sum();
        Self { sent: world.probes_sent(), arrived }
    }
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
    /// Duration of a cut with its quiet times.
    fn one(&self) -> Duration {
        QUIET + self.leaving() + AFTER + self.leaving() + QUIET
    }
    /// Number of cuts in the duration: at least one.
    pub fn cuts(&self) -> u32 {
        let cuts = self.network.duration.as_nanos() / self.one().as_nanos();
        u32::try_from(cuts).unwrap_or(u32::MAX).max(1)
    }
    /// When the last relay has been back for a while.
    pub fn end(&self) -> Instant {
        Instant::ZERO + self.network.warm_up + self.one().mul_f64(f64::from(self.cuts()))
    }
    /// Builds the network.
    ///
    /// # Errors
    /// If a router refuses its configuration, as text.
    pub fn build(&self) -> Result<World, String> {
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
        let mut cuts = Cuts::new(self);
        while cuts.due() != Instant::NEVER {
            let due = cuts.due();
            course::advance(&mut world, &mut cuts, due);
        }
        Ok(cuts.sum_up(&mut world))
    }
}

/// What happens next.
#[derive(Clone, Copy)]
enum Phase {
    WarmUp,
    Quiet,
    /// A relay leaves, since that time.
    Leaving(Relay, Instant),
    Gone(Relay),
    Returning(Relay, Instant),
    Back,
    Over,
}

/// A relay and its place.
#[derive(Clone, Copy)]
struct Relay {
    node: NodeId,
    place: Position,
}

/// The cuts of a run: which relay leaves, when, and what is lost meanwhile.
pub struct Cuts {
    plan: CutNetwork,
    phase: Phase,
    /// When it ends, or its next step is due.
    due: Instant,
    /// Cuts still to be made.
    left: u32,
    /// At the begin of the interval in which losses are counted.
    probed: Probed,
    nodes: Vec<NodeResult>,
    quiet: Lost,
    cut: Lost,
    back: Lost,
    /// At the end of the warm-up.
    begin: (Instant, u64, MeshCost),
}

impl Course for Cuts {
    fn due(&self) -> Instant {
        self.due
    }
    fn act(&mut self, world: &mut World) {
        let now = world.now();
        match self.phase {
            Phase::WarmUp => {
                self.begin = (now, control_bytes(world), world.mesh_cost());
                self.be_quiet(world);
            }
            Phase::Quiet => {
                self.quiet.add(self.probed, Probed::by_now(world));
                self.probed = Probed::by_now(world);
                let node = NodeId(busiest(&self.nodes, &world.node_results()) as u32);
                let relay = Relay { node, place: world.position(node) };
                self.walk(Phase::Leaving(relay, now), now);
            }
            Phase::Leaving(relay, since) => {
                let gone = self.gone(now, since);
                world.move_node(relay.node, away(relay.place, gone));
                if now < since + self.plan.leaving() {
                    return self.walk(self.phase, since);
                }
                // Out of range from its present position too.
                world.move_node(relay.node, away(relay.place, GONE * 10.0));
                (self.phase, self.due) = (Phase::Gone(relay), now + AFTER);
            }
            Phase::Gone(relay) => {
                self.cut.add(self.probed, Probed::by_now(world));
                self.probed = Probed::by_now(world);
                self.walk(Phase::Returning(relay, now), now);
            }
            Phase::Returning(relay, since) => {
                let gone = self.gone(now, since);
                world.move_node(relay.node, away(relay.place, GONE - gone));
                if now < since + self.plan.leaving() {
                    return self.walk(self.phase, since);
                }
                world.move_node(relay.node, relay.place);
                (self.phase, self.due) = (Phase::Back, now + QUIET);
            }
            Phase::Back => {
                self.back.add(self.probed, Probed::by_now(world));
                self.left = self.left.saturating_sub(1);
                if self.left > 0 {
                    self.be_quiet(world);
                } else {
                    (self.phase, self.due) = (Phase::Over, Instant::NEVER);
                }
            }
            Phase::Over => self.due = Instant::NEVER,
        }
    }
}

impl Cuts {
    /// Before the run begins.
    pub fn new(plan: &CutNetwork) -> Self {
        Self {
            plan: plan.clone(),
            phase: Phase::WarmUp,
            due: Instant::ZERO + plan.network.warm_up,
            left: plan.cuts(),
            probed: Probed::default(),
            nodes: Vec::new(),
            quiet: Lost::default(),
            cut: Lost::default(),
            back: Lost::default(),
            begin: (Instant::ZERO, 0, MeshCost::default()),
        }
    }
    fn be_quiet(&mut self, world: &World) {
        (self.probed, self.nodes) = (Probed::by_now(world), world.node_results());
        (self.phase, self.due) = (Phase::Quiet, world.now() + QUIET);
    }
    /// Goes on with a walk that began at that time. A step is due.
    fn walk(&mut self, phase: Phase, since: Instant) {
        (self.phase, self.due) = (phase, (self.due + STEP).min(since + self.plan.leaving()));
    }
    /// The distance covered, in metres.
    fn gone(&self, now: Instant, since: Instant) -> f64 {
        (now.since(since).as_secs_f64() * self.plan.speed).min(GONE)
    }
    fn sum_up(&self, world: &mut World) -> CutsSeen {
        let (begin, bytes, cost) = self.begin;
        let seconds = world.now().since(begin).as_secs_f64();
        let cuts = self.plan.cuts();
        let lost_per_cut = self.cut.lost as f64 / f64::from(cuts);
        CutsSeen {
            cuts,
            lost_per_cut,
            outage: lost_per_cut * self.plan.network.probe_interval.as_secs_f64(),
            lost_per_return: self.back.lost as f64 / f64::from(cuts),
            lost_in_quiet: self.quiet.lost as f64 / self.quiet.sent.max(1) as f64,
            overhead: (control_bytes(world) - bytes) as f64 * 8.0 / seconds,
            cost: world.mesh_cost() - cost,
            memory: world.router_memory() / PLACES.len() as u64,
            seconds,
            trace_hash: world.results().trace_hash,
        }
    }
}

/// Bytes of all routing packets so far.
fn control_bytes(world: &World) -> u64 {
    world.node_results().iter().map(|node| node.counters.control.bytes.iter().sum::<u64>()).sum()
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
