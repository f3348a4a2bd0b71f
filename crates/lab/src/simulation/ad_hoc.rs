//! A run of an ad-hoc network that can be stopped at any simulated time, looked at, and continued.

use super::extras::Extras;
use super::moving::Planned;
use super::{mesh, moving};
use crate::scenario::Scenario;
use anabranch_mptcp::ConnectionInfo;
use anabranch_policy::time::{Duration, Instant};
use anabranch_settings::contender::Contender;
use anabranch_settings::diagnostic::Diagnostic;
use anabranch_sim::mesh::NodeId;
use anabranch_sim::mesh::course::{self, Course};
use anabranch_sim::mesh::cut_network::{CutNetwork, Cuts, PLACES as PLACES_OF_CUTS, REACH};
use anabranch_sim::mesh::moving_network::MovingNetwork;
use anabranch_sim::mesh::moving_run::Looks;
use anabranch_sim::mesh::paper::network::{PLACES, RANGE};
use anabranch_sim::mesh::paper::{Case, Moments, Transfer, network};
use anabranch_sim::radio::{MediumConfig, Position, Reach};
use anabranch_sim::{FlowId, InterfaceId, Side, World};

/// Space in metres around nodes that stand still, into which they can be moved.
const AROUND: f64 = 100.0;

/// The place of a network.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Ground {
    /// Opposite corners, in metres.
    pub least: Position,
    pub most: Position,
    /// Radio range in metres; with path loss, about its mean.
    pub range: f64,
    /// Whether signals fade: a node out of the mean range is heard sometimes.
    pub fades: bool,
}

/// Nodes, links and transfers of a scenario that is an ad-hoc network.
pub struct AdHoc {
    world: World,
    course: Box<dyn Course>,
    end: Instant,
    /// Whether it ends with its transfer.
    finite: bool,
    ground: Ground,
    /// The lanes of the receiver, if there are any: interfaces of one node.
    lanes: Vec<InterfaceId>,
    ends: (NodeId, NodeId),
    /// When connections begin, and how long each lasts; none: there are none.
    connections: Option<(Instant, Duration)>,
}

impl AdHoc {
    /// Builds it at the beginning of time; `paths` are indices of the lanes.
    ///
    /// # Errors
    /// The scenario is not an ad-hoc network, or a policy cannot be built.
    pub fn new(
        scenario: &Scenario,
        contender: &Contender,
        paths: &[usize],
        seed: u64,
        extras: &Extras,
    ) -> Result<Self, Diagnostic> {
        let fail = |error: String| Diagnostic::plain(format!("{}: {error}", contender.name));
        if let Some(mesh) = &scenario.mesh {
            let case = mesh::case(scenario, mesh, contender, paths, seed, extras)?;
            return Self::with_lanes(&case, extras).map_err(fail);
        }
        let moving = scenario.moving.as_ref().ok_or_else(|| fail("it is no ad-hoc network".to_owned()))?;
        match moving::network(scenario, moving, contender, seed, extras)? {
            Planned::Moving(network) => Self::moving(&network, moving.range),
            Planned::Cuts(cuts) => Self::with_cuts(&cuts),
        }
        .map_err(fail)
    }

    fn with_lanes(case: &Case, extras: &Extras) -> Result<Self, String> {
        let manager = || extras.own.path_manager(|| case.combination.path_manager());
        let mut built = network::build_with(case, manager)?;
        built.add_download(case)?;
        let moments = Moments::new(case, &built);
        Ok(Self {
            course: Box::new(moments),
            end: built.start + case.transfer.longest(),
            finite: matches!(case.transfer, Transfer::Bytes(_)),
            ground: around(&PLACES, AROUND, RANGE, false),
            lanes: built.client.lanes,
            ends: (NodeId(0), NodeId(PLACES.len() as u32 - 1)),
            connections: Some((built.start, Duration::MAX)),
            world: built.world,
        })
    }

    fn moving(network: &MovingNetwork, range: f64) -> Result<Self, String> {
        let (least, most) = (Position { x: 0.0, y: 0.0 }, Position { x: network.area.x, y: network.area.y });
        let begin = Instant::ZERO + network.warm_up;
        Ok(Self {
            world: network.build()?,
            course: Box::new(Looks::new(network)),
            end: network.end(),
            finite: false,
            ground: Ground { least, most, range, fades: fades(&network.medium) },
            lanes: Vec::new(),
            ends: (NodeId(0), NodeId(network.nodes.saturating_sub(1) as u32)),
            connections: network.downloads.as_ref().map(|downloads| (begin, downloads.each)),
        })
    }

    fn with_cuts(cuts: &CutNetwork) -> Result<Self, String> {
        Ok(Self {
            world: cuts.build()?,
            course: Box::new(Cuts::new(cuts)),
            end: cuts.end(),
            finite: false,
            ground: around(&PLACES_OF_CUTS, REACH, REACH, fades(&cuts.network.medium)),
            lanes: Vec::new(),
            ends: (NodeId(0), NodeId(PLACES_OF_CUTS.len() as u32 - 1)),
            connections: None,
        })
    }

    /// The longest that it can last.
    pub fn duration(&self) -> Duration {
        self.end.since(Instant::ZERO)
    }

    /// Advances to this time since the beginning, at most to the end. Returns whether it has ended.
    pub fn advance(&mut self, time: Duration) -> bool {
        let time = (Instant::ZERO + time).min(self.end);
        if self.finite {
            return course::advance_until_finished(&mut self.world, &mut *self.course, time) || time >= self.end;
        }
        course::advance(&mut self.world, &mut *self.course, time);
        time >= self.end
    }

    /// Advances to the next delivery of a packet by a link or by radio. Returns whether it has ended.
    pub fn step(&mut self) -> bool {
        let delivered = course::advance_until_delivery(&mut self.world, &mut *self.course, self.end);
        !delivered || (self.finite && self.world.run_until_finished(self.world.now()))
    }

    /// The nodes and hosts.
    pub fn world(&mut self) -> &mut World {
        &mut self.world
    }

    pub fn ground(&self) -> Ground {
        self.ground
    }

    /// Interfaces of the receiver, one for each lane, if it has lanes.
    pub fn lanes(&self) -> &[InterfaceId] {
        &self.lanes
    }

    /// Two nodes whose ways are of interest: those of the transfer, or the first and the last. Of connections between changing
    /// pairs, sender and receiver of the present one.
    pub fn ends(&self) -> (NodeId, NodeId) {
        let present = self.present().filter(|_| self.lanes.is_empty());
        let of_flow = present.and_then(|flow| {
            let (client, server) = self.world.flow_ends(flow)?;
            Some((self.world.node_with(server)?, self.world.node_with(client)?))
        });
        of_flow.unwrap_or(self.ends)
    }

    /// State of the present connection at its sender, the server, and at its receiver; none where it does not exist yet or
    /// any more.
    pub fn info(&self) -> [Option<ConnectionInfo>; 2] {
        let of = |side: Side| {
            let flow = self.present()?;
            let connection = self.world.connection(flow, side)?;
            let (client, server) = self.world.flow_ends(flow)?;
            let host = self.world.host_of(if side == Side::Client { client } else { server })?;
            self.world.endpoint(host).info(self.world.now(), connection)
        };
        [of(Side::Server), of(Side::Client)]
    }

    /// Bytes that the receiver of the present connection has read.
    pub fn delivered(&self) -> u64 {
        self.present().map_or(0, |flow| self.world.bytes_read(flow))
    }

    /// The flow of the present time: they follow each other.
    fn present(&self) -> Option<FlowId> {
        let (begin, each) = self.connections?;
        let since = self.world.now().since(begin);
        let number = since.as_nanos() / each.as_nanos().max(1);
        (self.world.now() >= begin).then(|| FlowId(u32::try_from(number).unwrap_or(u32::MAX)))
    }
}

/// The ground of nodes that stand still.
fn around(places: &[(f64, f64)], space: f64, range: f64, fades: bool) -> Ground {
    let least = |of: fn(&(f64, f64)) -> f64| places.iter().map(of).fold(f64::INFINITY, f64::min) - space;
    let most = |of: fn(&(f64, f64)) -> f64| places.iter().map(of).fold(f64::NEG_INFINITY, f64::max) + space;
    Ground {
        least: Position { x: least(|place| place.0), y: least(|place| place.1) },
        most: Position { x: most(|place| place.0), y: most(|place| place.1) },
        range,
        fades,
    }
}

fn fades(medium: &MediumConfig) -> bool {
    matches!(&medium.reach, Reach::PathLoss(path_loss) if path_loss.fading > 0)
}
