//! Runs a contender over the lanes of an ad-hoc network.

use super::extras::{Extras, check_wire};
use super::window::Window;
use super::{measure, mesh_metrics, settings};
use crate::record::{Record, SegmentDelay};
use crate::scenario::Scenario;
use crate::scenario::model::{FigureKind, Heading, Mesh, Transfer};
use anabranch_mptcp::BufferSize;
use anabranch_settings::contender::Contender;
use anabranch_settings::diagnostic::Diagnostic;
use anabranch_sim::mesh::paper::combination::Combination;
use anabranch_sim::mesh::paper::measure::SingleDelay;
use anabranch_sim::mesh::paper::network::{LANES, Routes};
use anabranch_sim::mesh::paper::{self, Case, Rates};

/// Runs `contender` over the lanes with these indices of the scenario's mesh.
pub fn run(
    scenario: &Scenario,
    mesh: &Mesh,
    contender: &Contender,
    paths: &[usize],
    seed: u64,
    extras: &Extras,
) -> Result<Record, Diagnostic> {
    let case = case(scenario, mesh, contender, paths, seed, extras)?;
    let receive_buffer = match case.combination.connection.receive_buffer {
        BufferSize::Fixed(bytes) => Some(bytes),
        BufferSize::Auto { .. } => None,
    };
    let whole = paper::run_whole(&case).map_err(|error| Diagnostic::plain(format!("{}: {error}", contender.name)))?;
    check_wire(&whole.results)?;
    let mut record = {
        let window = Window { scenario, paths, before: None, after: &whole.results };
        measure::record(scenario, contender, paths, &window, extras.curves)?
    };
    record.metrics.extend(mesh_metrics::metrics(scenario, mesh, &whole, receive_buffer));
    if extras.curves {
        record.mesh = whole.snapshots;
    }
    let kept = |one: &SingleDelay| SegmentDelay {
        path: paths[one.lane],
        sent: one.sent.as_secs_f64(),
        delay: one.delay.as_secs_f64() * 1e3,
    };
    record.segment_delays = whole.measured.single_delays.iter().map(kept).collect();
    Ok(record)
}

/// The experiment of a contender over the lanes with these indices of the scenario's mesh.
///
/// # Errors
/// The scenario, or the extras, ask for what a mesh does not have.
pub fn case(
    scenario: &Scenario,
    mesh: &Mesh,
    contender: &Contender,
    paths: &[usize],
    seed: u64,
    extras: &Extras,
) -> Result<Case, Diagnostic> {
    let fail = |what: &str| Diagnostic::plain(format!("{}: {what}", contender.name));
    let transfer = match (scenario.transfer, scenario.heading) {
        (Transfer::Endless, Heading::Download) => paper::Transfer::For(scenario.duration),
        (Transfer::Finite(size), Heading::Download) => paper::Transfer::Bytes(size.0),
        _ => return Err(fail("what a mesh carries is an endless or a finite download")),
    };
    if extras.send.is_some() || extras.pcap.is_some() {
        return Err(fail(
            "a mesh carries no file of yours, and there is no capture of it: leave --send and --pcap out",
        ));
    }
    if paths.iter().enumerate().any(|(at, place)| at != *place) {
        return Err(fail("lanes are used from the first: paths = [\"e0\"], [\"e0\", \"e1\"], and so on"));
    }
    let mut connection = settings::connection(scenario, contender);
    connection.max_subflows = LANES * LANES;
    extras.own.apply(&mut connection);
    Ok(Case {
        rates: Rates(mesh.rates),
        routes: mesh.routers.map_or(Routes::Static, |fullness| Routes::Routers { fullness }),
        reservations: mesh.reservations,
        transfer,
        receive_buffer: None,
        sample: scenario.sample,
        seed,
        wire: extras.wire,
        single_delays: extras.curves && shows_single_delays(scenario),
        combination: Combination {
            name: contender.name.clone(),
            lanes: paths.len(),
            routes: contender.mesh.lanes,
            predicted: contender.mesh.predicted,
            policies: contender.policies.clone(),
            connection,
        },
    })
}

/// Whether a figure needs the delays of single segments.
fn shows_single_delays(scenario: &Scenario) -> bool {
    scenario.results.figures.iter().any(|figure| matches!(figure.kind, FigureKind::SegmentDelays { .. }))
}
