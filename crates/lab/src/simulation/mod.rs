//! Builds the network and hosts of a scenario, runs it, and measures it.

mod beside;
pub mod capacity;
mod capture;
mod competition;
mod datagrams;
mod extras;
mod generators;
mod measure;
mod mesh;
mod mesh_metrics;
mod moving;
pub mod network;
mod settings;
mod steering;
pub mod traffic;
pub mod video;
mod window;

pub use extras::{Extras, SentFile};

use crate::record::Record;
use crate::scenario::Scenario;
use crate::scenario::model::{Heading, Transfer};
use anabranch_mptcp::{ConnectionConfig, EndpointConfig};
use anabranch_policy::combination::Combination;
use anabranch_policy::time::{Duration, Instant};
use anabranch_settings::contender::Contender;
use anabranch_settings::diagnostic::Diagnostic;
use anabranch_settings::quantity::Share;
use anabranch_sim::application::Sending;
use anabranch_sim::{Application, FlowConfig, World, WorldConfig};
use extras::check_wire;

/// Connection settings of both ends for `contender`.
pub fn connection(scenario: &Scenario, contender: &Contender) -> ConnectionConfig {
    settings::connection(scenario, contender)
}

/// Runs `contender` over the given path indices of the scenario.
pub fn run(
    scenario: &Scenario,
    contender: &Contender,
    paths: &[usize],
    seed: u64,
    extras: &Extras,
) -> Result<Record, Diagnostic> {
    if let Some(mesh) = &scenario.mesh {
        return mesh::run(scenario, mesh, contender, paths, seed, extras);
    }
    if let Some(moving) = &scenario.moving {
        return moving::run(scenario, moving, contender, seed, extras);
    }
    let kept;
    let scenario = if contender.oracle {
        kept = without_losses(scenario);
        &kept
    } else {
        scenario
    };
    let mut world = World::new(WorldConfig { seed, wire: extras.wire, ..WorldConfig::default() });
    let manager = |policies: &Combination| {
        policies.build_path_manager().map_err(|error| Diagnostic::plain(format!("{}: {error}", contender.name)))
    };
    let client = world.add_host("client", &EndpointConfig::default(), manager(&contender.policies)?);
    // Both ends have path managers, since either may send: LM3 and similar ones act at the sender.
    let server = world.add_host("server", &EndpointConfig::default(), manager(&contender.policies)?);
    let lines = network::build(&mut world, scenario, paths, client, server);
    traffic::add(&mut world, scenario, paths, &lines);
    generators::add(&mut world, scenario, paths, &lines);
    beside::add(&mut world, scenario, paths, &lines);

    let config = settings::connection(scenario, contender);
    let first = lines.interfaces.first().copied();
    let transfer = FlowConfig {
        name: beside::own_name(0),
        client,
        from: first,
        to: lines.server,
        start: Instant::ZERO,
        stop: Instant::NEVER,
        application: application(scenario, extras),
        client_config: config.clone(),
        server_config: config,
        record: Some(scenario.sample),
    };
    beside::add_own(&mut world, scenario, transfer);
    datagrams::add(&mut world, scenario, contender, &lines)?;
    let steered = steering::add(&mut world, scenario, contender, (client, server))?;
    let capture = match &extras.pcap {
        Some(directory) => {
            let name = capture::file_name(scenario, contender, paths);
            Some(capture::start(&mut world, &directory.join(name), &lines)?)
        }
        _ => None,
    };
    let end = Instant::ZERO + scenario.duration;
    let mut before = None;
    if matches!(scenario.transfer, Transfer::Finite(_) | Transfer::Video) || extras.send.is_some() {
        world.run_until_finished(end);
    } else {
        if scenario.warm_up > Duration::ZERO {
            world.run_until(Instant::ZERO + scenario.warm_up);
            before = Some(world.results());
        }
        world.run_until(end);
    }
    let results = world.results();
    drop(world);
    capture.map_or(Ok(()), capture::Capture::finish)?;
    check_wire(&results)?;
    let window = window::Window { scenario, paths, before: before.as_ref(), after: &results };
    let mut record = measure::record(scenario, contender, paths, &window, extras.curves)?;
    record.metrics.extend(steered.iter().flat_map(steering::metrics));
    Ok(record)
}

/// The scenario of an oracle: links have no loss, since lost packets would not be sent.
fn without_losses(scenario: &Scenario) -> Scenario {
    let mut kept = scenario.clone();
    let links = kept.paths.iter_mut().flat_map(|path| &mut path.links).chain(&mut kept.shared);
    for link in links {
        (link.loss, link.burst_loss) = (None, None);
        link.coverage.iter_mut().for_each(|point| point.loss = Share(0.0));
    }
    kept
}

fn application(scenario: &Scenario, extras: &Extras) -> Application {
    if let Some(file) = &extras.send {
        return Application::file(file.content.clone());
    }
    let one_way = |sending| match scenario.heading {
        Heading::Upload => Application::upload(sending).verified(),
        Heading::Download => Application::download(sending).verified(),
    };
    match scenario.transfer {
        // Not used by any connection.
        Transfer::None => one_way(Sending::Nothing),
        // Validated with the scenario.
        Transfer::Video => scenario
            .video
            .as_ref()
            .map_or_else(|| one_way(Sending::Nothing), |video| Application::video(video::sent(video).schedule)),
        Transfer::Endless => one_way(Sending::Endless),
        Transfer::Finite(size) => one_way(Sending::Bytes(size.0)),
        Transfer::Messages { size, interval } => {
            one_way(Sending::Messages { size: size.0, interval }).in_messages(size.0)
        }
        Transfer::RequestResponse { request, response, pause } => {
            // More than a run can hold: at most one request per 10 microseconds.
            let count = scenario.duration.as_micros() / 10 + 1;
            Application::requests(request.0, response.0, pause.max(Duration::from_micros(10)), count).verified()
        }
    }
}
