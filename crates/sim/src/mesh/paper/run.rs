//! Runs one experiment.

use super::case::{Case, Transfer};
use super::measure::{Measured, Observer};
use super::network::{self, Built};
use crate::address::InterfaceId;
use crate::application::{Application, Sending};
use crate::flow::{FlowConfig, FlowId, Side};
use crate::link::DropCause;
use crate::mesh::cost::MeshCost;
use crate::mesh::course::{self, Course};
use crate::mesh::snapshot::Snapshot;
use crate::results::RunResult;
use crate::world::World;
use anabranch_mptcp::config::BufferSize;
use anabranch_policy::time::{Duration, Instant};

/// The name of the download among the flows of the world.
pub const FLOW: &str = "transfer";

/// Time limit of a file transfer.
pub const PATIENCE: Duration = Duration::from_secs(1800);

/// Runs an experiment and returns its measurements.
///
/// # Errors
/// If a policy or a router refuses its settings, as text.
pub fn run(case: &Case) -> Result<Measured, String> {
    run_whole(case).map(|whole| whole.measured)
}

/// All results of a run.
#[derive(Clone, Debug)]
pub struct Whole {
    pub measured: Measured,
    /// The world's results, in which the download is the flow [`FLOW`].
    pub results: RunResult,
    /// The mesh at [`MOMENTS`] times, the first at the start of the download, with the next hops to M8's lanes.
    pub snapshots: Vec<Snapshot>,
    /// Energy of the radios and work of the routers during the download.
    pub cost: MeshCost,
    /// Bytes of a router's state at the end, mean over the nodes; 0 without routers.
    pub memory: u64,
}

/// Number of snapshots of a download of fixed duration; others have one.
pub const MOMENTS: u32 = 6;

/// Runs an experiment and returns all results.
///
/// # Errors
/// If a policy or a router refuses its settings, as text.
pub fn run_whole(case: &Case) -> Result<Whole, String> {
    let mut built = network::build(case)?;
    let observer = Observer::install(&mut built.world, &built.server, &built.client, case.single_delays);
    let flow = built.add_download(case)?;
    let before = built.world.node_results();
    let mut moments = Moments::new(case, &built);
    let end = built.start + case.transfer.longest();
    let (mut world, start) = (built.world, built.start);
    match case.transfer {
        Transfer::For(_) => course::advance(&mut world, &mut moments, end),
        Transfer::Bytes(_) => {
            course::advance_until_finished(&mut world, &mut moments, end);
        }
    }
    debug_assert!(
        world.connection(flow, Side::Client).is_some() || world.results().drops().get(DropCause::NoRoute) > 0
    );
    let measured = observer.measure(&mut world, case, start, &before);
    let cost = world.mesh_cost() - moments.cost;
    let memory = world.router_memory() / world.nodes().max(1) as u64;
    Ok(Whole { measured, results: world.results(), snapshots: moments.snapshots, cost, memory })
}

impl Transfer {
    /// After its start.
    pub fn longest(self) -> Duration {
        match self {
            Self::For(duration) => duration,
            Self::Bytes(_) => PATIENCE,
        }
    }
}

impl Built {
    /// Adds the download of a case, from M1 to M8.
    ///
    /// # Errors
    /// If a host has no lanes, as text.
    pub fn add_download(&mut self, case: &Case) -> Result<FlowId, String> {
        let mut config = case.combination.connection.clone();
        let server_config = config.clone();
        if let Some(bytes) = case.receive_buffer {
            config.receive_buffer = BufferSize::Fixed(bytes);
        }
        let sending = match case.transfer {
            Transfer::For(_) => Sending::Endless,
            Transfer::Bytes(bytes) => Sending::Bytes(bytes),
        };
        Ok(self.world.add_flow(FlowConfig {
            name: FLOW.to_owned(),
            client: self.client.host,
            from: self.client.lanes.first().copied(),
            to: self.server.lanes.first().copied().ok_or("a host without lanes")?,
            start: self.start,
            stop: Instant::NEVER,
            application: Application::download(sending).verified(),
            client_config: config,
            server_config,
            record: Some(case.sample),
        }))
    }
}

/// Takes the snapshots.
pub struct Moments {
    /// The next, out of how many, in which time.
    next: u32,
    count: u32,
    during: Duration,
    start: Instant,
    lanes: Vec<InterfaceId>,
    snapshots: Vec<Snapshot>,
    /// At the start.
    cost: MeshCost,
}

impl Moments {
    /// Before the run begins.
    pub fn new(case: &Case, built: &Built) -> Self {
        let (count, during) = match case.transfer {
            Transfer::For(duration) => (MOMENTS, duration),
            Transfer::Bytes(_) => (1, Duration::ZERO),
        };
        let (start, lanes) = (built.start, built.client.lanes.clone());
        Self { next: 0, count, during, start, lanes, snapshots: Vec::new(), cost: MeshCost::default() }
    }
}

impl Course for Moments {
    fn due(&self) -> Instant {
        if self.next >= self.count {
            return Instant::NEVER;
        }
        self.start + self.during.mul_f64(f64::from(self.next) / f64::from(self.count))
    }
    fn act(&mut self, world: &mut World) {
        if self.next == 0 {
            self.cost = world.mesh_cost();
        }
        self.snapshots.push(world.mesh_snapshot(&self.lanes));
        self.next += 1;
    }
}
