//! Runs a contender over the lanes of an ad-hoc network.

use super::{Extras, measure, settings};
use crate::contender::Contender;
use crate::diagnostic::Diagnostic;
use crate::record::Record;
use crate::scenario::Scenario;
use crate::scenario::model::{Heading, Mesh, Transfer};
use anabranch_sim::mesh::paper::combination::Combination;
use anabranch_sim::mesh::paper::measure::Measured;
use anabranch_sim::mesh::paper::network::{LANES, Routes};
use anabranch_sim::mesh::paper::{self, Case, Rates, Whole};

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
    let Whole { measured, results, snapshots } = paper::run_whole(&case).map_err(|error| fail(&error))?;
    super::check_wire(&results)?;
    let mut record = measure::record(scenario, contender, paths, &results, extras.curves)?;
    record.metrics.extend(own_metrics(&measured, mesh));
    if extras.curves {
        record.mesh = snapshots;
    }
    Ok(record)
}

/// What is only measured on a mesh.
fn own_metrics(measured: &Measured, mesh: &Mesh) -> Vec<(String, f64)> {
    let again = measured.lanes.iter().map(|lane| lane.sent_again).sum::<u64>();
    let twice = measured.lanes.iter().map(|lane| lane.received_again).sum::<u64>();
    let mut metrics =
        vec![("segments_sent_again".to_owned(), again as f64), ("segments_received_again".to_owned(), twice as f64)];
    if mesh.routers.is_some() {
        metrics.push(("control_traffic".to_owned(), measured.control));
    }
    metrics
}
