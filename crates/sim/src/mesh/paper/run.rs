//! Runs one experiment.

use super::case::{Case, Transfer};
use super::measure::{Measured, Observer};
use super::network::{self, Built};
use crate::application::{Application, Sending};
use crate::flow::{FlowConfig, Side};
use crate::link::DropCause;
use crate::mesh::cost::MeshCost;
use crate::mesh::snapshot::Snapshot;
use crate::results::RunResult;
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
    let Built { mut world, server, client, start } = network::build(case)?;
    let observer = Observer::install(&mut world, &server, &client, case.single_delays);
    let mut config = case.combination.connection.clone();
    let server_config = config.clone();
    if let Some(bytes) = case.receive_buffer {
        config.receive_buffer = BufferSize::Fixed(bytes);
    }
    let sending = match case.transfer {
        Transfer::For(_) => Sending::Endless,
        Transfer::Bytes(bytes) => Sending::Bytes(bytes),
    };
    let flow = world.add_flow(FlowConfig {
        name: FLOW.to_owned(),
        client: client.host,
        from: client.lanes.first().copied(),
        to: server.lanes.first().copied().ok_or("a host without lanes")?,
        start,
        stop: Instant::NEVER,
        application: Application::download(sending).verified(),
        client_config: config,
        server_config,
        record: Some(case.sample),
    });
    let before = world.node_results();
    let mut snapshots = Vec::new();
    let before_download;
    match case.transfer {
        Transfer::For(duration) => {
            world.run_until(start);
            before_download = world.mesh_cost();
            for moment in 0..MOMENTS {
                world.run_until(start + duration.mul_f64(f64::from(moment) / f64::from(MOMENTS)));
                snapshots.push(world.mesh_snapshot(&client.lanes));
            }
            world.run_until(start + duration);
        }
        Transfer::Bytes(_) => {
            world.run_until(start);
            before_download = world.mesh_cost();
            snapshots.push(world.mesh_snapshot(&client.lanes));
            world.run_until_finished(start + PATIENCE);
        }
    }
    debug_assert!(
        world.connection(flow, Side::Client).is_some() || world.results().drops().get(DropCause::NoRoute) > 0
    );
    let measured = observer.measure(&mut world, case, start, &before);
    let cost = world.mesh_cost() - before_download;
    let memory = world.router_memory() / world.nodes().max(1) as u64;
    Ok(Whole { measured, results: world.results(), snapshots, cost, memory })
}
