//! Runs a contender over the lanes of an ad-hoc network.

use super::extras::{Extras, check_wire};
use super::{measure, settings};
use crate::contender::Contender;
use crate::diagnostic::Diagnostic;
use crate::record::Record;
use crate::scenario::Scenario;
use crate::scenario::model::{Heading, Mesh, Transfer};
use anabranch_sim::mesh::NodeId;
use anabranch_sim::mesh::paper::combination::Combination;
use anabranch_sim::mesh::paper::measure::LaneMeasured;
use anabranch_sim::mesh::paper::network::{LANES, PLACES, Routes};
use anabranch_sim::mesh::paper::{self, Case, Rates, Whole};
use anabranch_sim::mesh::snapshot::Snapshot;

/// Runs `contender` over those lanes of the scenario's mesh, given by their places.
pub fn run(
    scenario: &Scenario,
    mesh: &Mesh,
    contender: &Contender,
    paths: &[usize],
    seed: u64,
    extras: &Extras,
) -> Result<Record, Diagnostic> {
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
    let case = Case {
        rates: Rates(mesh.rates),
        routes: mesh.routers.map_or(Routes::Static, |fullness| Routes::Routers { fullness }),
        reservations: mesh.reservations,
        transfer,
        receive_buffer: None,
        sample: scenario.sample,
        seed,
        wire: extras.wire,
        combination: Combination {
            name: contender.name.clone(),
            lanes: paths.len(),
            routes: contender.mesh.lanes,
            predicted: contender.mesh.predicted,
            policies: contender.policies.clone(),
            connection,
        },
    };
    let whole = paper::run_whole(&case).map_err(|error| fail(&error))?;
    check_wire(&whole.results)?;
    let mut record = measure::record(scenario, contender, paths, &whole.results, extras.curves)?;
    record.metrics.extend(own_metrics(scenario, mesh, &whole));
    if extras.curves {
        record.mesh = whole.snapshots;
    }
    Ok(record)
}

/// What is only measured on a mesh.
fn own_metrics(scenario: &Scenario, mesh: &Mesh, whole: &Whole) -> Vec<(String, f64)> {
    let Whole { measured, snapshots, cost, memory, .. } = whole;
    let total = |count: fn(&LaneMeasured) -> u64| measured.lanes.iter().map(count).sum::<u64>() as f64;
    let volume = measured.bytes as f64 / 1e6;
    let nodes = PLACES.len() as f64;
    let mut metrics = vec![
        ("volume".to_owned(), volume),
        ("segments_sent".to_owned(), total(|lane| lane.sent)),
        ("segments_received".to_owned(), total(|lane| lane.received)),
        ("segments_sent_again".to_owned(), total(|lane| lane.sent_again)),
        ("segments_received_again".to_owned(), total(|lane| lane.received_again)),
        ("energy".to_owned(), cost.joules / nodes),
        ("energy_active".to_owned(), cost.joules_active / nodes),
    ];
    if volume > 0.0 {
        metrics.push(("energy_per_megabyte".to_owned(), cost.joules / volume));
    }
    for (at, lane) in measured.lanes.iter().enumerate().filter(|(_, lane)| lane.delay.count() > 0) {
        metrics.push((format!("segment_delay_e{at}"), lane.delay.mean().as_secs_f64() * 1e3));
        metrics.push((format!("segment_delay_p95_e{at}"), lane.delay.quantile(0.95).as_secs_f64() * 1e3));
    }
    metrics.extend(disjoint_lanes(snapshots, measured.lanes.len()).map(|share| ("disjoint_lanes".to_owned(), share)));
    if mesh.routers.is_some() {
        let seconds = measured.duration.unwrap_or(scenario.duration).as_secs_f64();
        metrics.push(("control_traffic".to_owned(), measured.control));
        metrics.push(("calculations".to_owned(), cost.calculations as f64 / nodes / seconds));
        metrics.push(("lsas_received".to_owned(), cost.lsas_received as f64 / nodes / seconds));
        metrics.push(("router_memory".to_owned(), *memory as f64 / 1e3));
    }
    metrics
}

/// Per cent of the pairs of lanes that had no node in common, over the moments at which the network was looked at. The first
/// lane has all next hops whatever the others have, so it does not count.
fn disjoint_lanes(snapshots: &[Snapshot], lanes: usize) -> Option<f64> {
    let seen = snapshots.iter().map(|snapshot| snapshot.disjointness(NodeId(0), 1..lanes));
    let (pairs, disjoint) = seen.fold((0, 0), |sum, seen| (sum.0 + seen.pairs, sum.1 + seen.disjoint));
    (pairs > 0).then(|| disjoint as f64 / pairs as f64 * 100.0)
}
