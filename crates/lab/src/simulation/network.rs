//! Builds the network: per path, a chain of links and routers from the client's interface to the router where all paths
//! meet; then the shared links and the server.
//!
//! The client has one interface per path; the server has one. So a connection has one possible subflow per path, whose
//! packets stay on the path in both directions.

use crate::scenario::Scenario;
use crate::scenario::model::{self, Direction, Draw, Drawn, LinkRate};
use anabranch_policy::time::{Duration, Instant};
use anabranch_settings::quantity::Share;
use anabranch_sim::link::{
    Coverage, CoveragePoint, DelayModel, Discipline, Impairments, LinkMtu, LossModel, QueueConfig, QueueLimit,
    RateModel, Schedule,
};
use anabranch_sim::random::RandomStream;
use anabranch_sim::{End, HostId, InterfaceId, LinkConfig, LinkId, RouterId, World};

/// Identifiers of parts of the network.
#[derive(Clone, Debug)]
pub struct Lines {
    /// The client's interfaces, one per path in use.
    pub interfaces: Vec<InterfaceId>,
    pub server: InterfaceId,
    /// Per path in use: its links from the client on, and per shared link, both directions of each.
    pub links: Vec<Vec<PathEnd>>,
    pub shared: Vec<PathEnd>,
    /// Paths used only by cross traffic, by index: they compete with other paths for shared links.
    pub others: Vec<(usize, PathEnd)>,
    /// The last link to the server, and the first link from it.
    pub server_links: (LinkId, LinkId),
}

/// Both directions of a link: the client's end of a path, or one behind it.
#[derive(Clone, Copy, Debug)]
pub struct PathEnd {
    /// Link from the client.
    pub forward: LinkId,
    /// Link to the client.
    pub backward: LinkId,
    /// Router after it.
    pub router: RouterId,
}

impl Lines {
    /// Per path in use: the client's end.
    pub fn ends(&self) -> impl Iterator<Item = PathEnd> + '_ {
        self.links.iter().filter_map(|chain| chain.first().copied())
    }
}

pub fn build(world: &mut World, scenario: &Scenario, paths: &[usize], client: HostId, server: HostId) -> Lines {
    let meeting = world.add_router();
    let (mut interfaces, mut links, mut shared) = (Vec::new(), Vec::new(), Vec::new());
    for path in paths.iter().filter_map(|place| scenario.paths.get(*place)) {
        let chain = chain(world, &path.name, &path.links, End::Hosts, meeting);
        let Some(end) = chain.first() else { continue };
        interfaces.push(world.add_interface(client, end.forward, &[end.backward]));
        links.push(chain);
    }
    let unused = |place: &usize| !paths.contains(place);
    let others = present(scenario, paths).into_iter().filter(unused).filter_map(|place| {
        let path = scenario.paths.get(place)?;
        Some((place, chain(world, &path.name, &path.links, End::Hosts, meeting).remove(0)))
    });
    let others = others.collect();
    let mut last = meeting;
    for (at, link) in scenario.shared.iter().enumerate() {
        let next = world.add_router();
        let (forward, backward) = pair(world, &format!("shared/{at}"), link, End::Router(last), End::Router(next));
        shared.push(PathEnd { forward, backward, router: next });
        last = next;
    }
    let nothing = LinkConfig { queue: unlimited(), ..LinkConfig::default() };
    let arrive = world.add_link("server/in", &nothing, End::Router(last), End::Hosts);
    let leave = world.add_link("server/out", &nothing, End::Hosts, End::Router(last));
    let server = world.add_interface(server, leave, &[arrive]);
    Lines { interfaces, server, links, shared, others, server_links: (arrive, leave) }
}

/// Indices of the paths in use and of those with cross traffic only.
pub fn present(scenario: &Scenario, paths: &[usize]) -> Vec<usize> {
    let mut present = paths.to_vec();
    if !scenario.shared.is_empty() {
        for beside in &scenario.beside {
            if !present.contains(&beside.path) {
                present.push(beside.path);
            }
        }
    }
    present
}

/// An unlimited queue, for links without a real counterpart.
pub fn unlimited() -> QueueConfig {
    QueueConfig { limit: QueueLimit::Unlimited, discipline: Discipline::DropTail }
}

/// Adds the links of a path with routers between them; returns both directions of each link and its far router.
fn chain(world: &mut World, path: &str, links: &[model::Link], from: End, to: RouterId) -> Vec<PathEnd> {
    let mut here = from;
    let mut made = Vec::new();
    for (at, link) in links.iter().enumerate() {
        let router = if at + 1 == links.len() { to } else { world.add_router() };
        let (forward, backward) = pair(world, &format!("{path}/{at}"), link, here, End::Router(router));
        made.push(PathEnd { forward, backward, router });
        here = End::Router(router);
    }
    made
}

/// Adds both directions of a link. Random streams derive from link names, so they do not depend on the paths in use.
fn pair(world: &mut World, name: &str, link: &model::Link, from: End, to: End) -> (LinkId, LinkId) {
    let [forward, backward] = directions(world.seed(), name, link);
    (world.add_link(&forward.0, &forward.1, from, to), world.add_link(&backward.0, &backward.1, to, from))
}

/// Names and settings of a link in this run, forward and backward. `name` is `PATH/INDEX` or `shared/INDEX`, from 0.
pub fn directions(seed: u64, name: &str, link: &model::Link) -> [(String, LinkConfig); 2] {
    let mut forward = config(seed, name, link);
    let mut backward = forward.clone();
    let spared = match link.loss_direction {
        Direction::Forward => Some(&mut backward),
        Direction::Backward => Some(&mut forward),
        Direction::Both => None,
    };
    if let Some(config) = spared {
        config.loss.clear();
        let no_loss = |point: &model::CoveragePoint| model::CoveragePoint { loss: Share(0.0), ..*point };
        config.coverage = coverage(&link.coverage.iter().map(no_loss).collect::<Vec<_>>());
    }
    [(format!("{name}/forward"), forward), (format!("{name}/backward"), backward)]
}

fn config(seed: u64, name: &str, link: &model::Link) -> LinkConfig {
    let loss = link.loss.map(|loss| LossModel::Uniform(per_run(seed, &format!("{name}/loss"), loss)));
    let bursts = link.burst_loss.map(|loss| LossModel::bursts(loss.average.0, loss.burst));
    let (reordering, held_back) = link.reordering.map_or((0.0, Duration::ZERO), |(share, delay)| (share.0, delay));
    LinkConfig {
        queue: queue(link.queue),
        rate: match &link.rate {
            LinkRate::Fixed(rate) => RateModel::Fixed(*rate),
            LinkRate::Trace(trace) => RateModel::Trace(trace.clone()),
        },
        delay: delay(seed, name, link.delay),
        loss: loss.into_iter().chain(bursts).collect(),
        impairments: Impairments {
            duplication: link.duplication.map_or(0.0, |share| share.0),
            corruption: link.corruption.map_or(0.0, |share| share.0),
            reordering,
            held_back,
        },
        coverage: coverage(&link.coverage),
        schedule: schedule(&link.down),
        pauses: link.paused.iter().map(|(from, to)| (Instant::ZERO + *from, Instant::ZERO + *to)).collect(),
        mtu: link.mtu.map(|(size, from)| LinkMtu { bytes: size.0 as u32, from: Instant::ZERO + from }),
        ..LinkConfig::default()
    }
}

pub fn queue(queue: model::Queue) -> QueueConfig {
    let limit = |limit| match limit {
        model::QueueLimit::Packets(packets) => QueueLimit::Packets(packets.0 as usize),
        model::QueueLimit::Bytes(size) => QueueLimit::Bytes(size.0),
    };
    match queue {
        model::Queue::DropTail(most) => QueueConfig { limit: limit(most), discipline: Discipline::DropTail },
        model::Queue::CoDel { target, interval, limit: most } => {
            QueueConfig { limit: limit(most), discipline: Discipline::CoDel { target, interval } }
        }
    }
}

fn delay(seed: u64, name: &str, delay: Draw<Duration>) -> DelayModel {
    match delay {
        Draw::Fixed(delay) => DelayModel::Fixed(delay),
        Draw::Uniform { low, high, drawn: Drawn::PerPacket } => DelayModel::Uniform { min: low, max: high },
        Draw::Uniform { low, high, drawn: Drawn::SlowlyVarying(interval) } => {
            DelayModel::Varying { min: low, max: high, interval }
        }
        Draw::Uniform { .. } => {
            let seconds = per_run(seed, &format!("{name}/delay"), delay);
            DelayModel::Fixed(Duration::from_secs_f64(seconds))
        }
    }
}

/// The value of this run in the base unit. It derives from the name, so both directions of a link share it.
pub fn per_run<Q: anabranch_settings::quantity::Quantity>(seed: u64, name: &str, draw: Draw<Q>) -> f64 {
    match draw {
        Draw::Fixed(value) => value.to_base(),
        Draw::Uniform { low, high, .. } => {
            RandomStream::new(seed, &format!("drawn/{name}")).between(low.to_base(), high.to_base())
        }
    }
}

fn coverage(points: &[model::CoveragePoint]) -> Coverage {
    let point = |point: &model::CoveragePoint| CoveragePoint {
        at: Instant::ZERO + point.at,
        rate: point.rate.0,
        loss: point.loss.0,
    };
    Coverage::new(points.iter().map(point).collect())
}

fn schedule(down: &[(Duration, Option<Duration>)]) -> Schedule {
    if down.is_empty() {
        return Schedule::AlwaysUp;
    }
    let span = |(from, to): &(Duration, Option<Duration>)| {
        (Instant::ZERO + *from, to.map_or(Instant::NEVER, |to| Instant::ZERO + to))
    };
    Schedule::DownDuring(down.iter().map(span).collect())
}
