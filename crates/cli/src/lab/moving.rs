//! Runs a contender's routers on nodes that move.

use super::Extras;
use crate::contender::Contender;
use crate::diagnostic::Diagnostic;
use crate::record::Record;
use crate::scenario::Scenario;
use crate::scenario::model::Moving;
use anabranch_policy::combination::Choice;
use anabranch_routing::config::{Config, Forecast, Manet};
use anabranch_routing::lsa_fullness::LsaFullness;
use anabranch_sim::forecast_score::Setting;
use anabranch_sim::mesh::NodeId;
use anabranch_sim::mesh::moving_network::{MovingNetwork, RouterChange, Seen};
use anabranch_sim::mobility::{Area, Model, Span};
use anabranch_sim::radio::{MediumConfig, Overlap, PathLoss, Reach};
use std::sync::Arc;

/// What a link that is doubted costs more, as `anabranch route` has it.
const DOUBT_COST: u16 = 2;

/// Runs it.
pub fn run(
    scenario: &Scenario,
    moving: &Moving,
    contender: &Contender,
    seed: u64,
    extras: &Extras,
) -> Result<Record, Diagnostic> {
    let fail = |what: &str| Diagnostic::plain(format!("{}, seed {seed}: {what}", contender.name));
    if extras.send.is_some() || extras.pcap.is_some() {
        return Err(fail("moving nodes carry probes, and there is no capture of them: leave --send and --pcap out"));
    }
    let fullness = contender.mesh.fullness.unwrap_or(LsaFullness::MinCost);
    let mut network = MovingNetwork::appendix_e(moving.nodes, moving.range, fullness, seed);
    network.area = Area { x: moving.area.0, y: moving.area.1 };
    if let Some(nodes) = moving.same_density {
        network.nodes = nodes;
        network = network.with_nodes(moving.nodes);
    }
    network.model = Model::RandomWaypoint { speed: Span::new(moving.speed.0, moving.speed.1), pause: Span::only(0.0) };
    network.medium = medium(moving);
    network.manet = Manet {
        lsa_fullness: fullness,
        two_hop_refresh: contender.mesh.two_hop_refresh.unwrap_or(3),
        ..Manet::default()
    };
    network.hello_interval = moving.hello_interval;
    network.router_dead_interval = moving.dead_interval;
    network.probe_interval = moving.probe_interval;
    network.warm_up = scenario.warm_up;
    network.duration = scenario.duration - scenario.warm_up;
    network.wire = extras.wire;
    if contender.mesh.predicted {
        network.router = Some(forecast_by(&contender.policies.forecaster).map_err(|error| fail(&error))?);
    }
    let seen = network.run().map_err(|error| fail(&error))?;
    Ok(Record { seed, trace_hash: seen.trace_hash, metrics: metrics(&seen), ..Record::default() })
}

/// The radio: a disk; or path loss that reaches as far in the mean, with the shadows and the fading of the comparison of
/// forecasters.
fn medium(moving: &Moving) -> MediumConfig {
    let basic = MediumConfig { basic_rate: moving.broadcast_rate, ..MediumConfig::default() };
    if !moving.shadows {
        return MediumConfig { reach: Reach::disk(moving.range), ..basic };
    }
    let standard = Setting::standard();
    // Of the standard setting the mean reach is 250 m.
    let farther = (moving.range / 250.0).log10() * 10.0 * standard.path_loss.exponent;
    let path_loss = PathLoss {
        transmit_power: standard.path_loss.transmit_power + farther,
        fading: standard.fading.shape,
        decode: standard.fading.sensitivity as f32,
        ..standard.path_loss
    };
    let (reach, overlap) = (Reach::PathLoss(path_loss), Overlap::Capture(10.0));
    MediumConfig { reach, overlap, ..basic }
}

/// Gives every router forecasters of its links.
fn forecast_by(choice: &Choice) -> Result<RouterChange, String> {
    let chosen = Forecast::chosen(choice).map_err(|error| error.to_string())?;
    let chosen = Forecast { doubt_cost: DOUBT_COST, ..chosen };
    Ok(Arc::new(move |_: NodeId, config: &mut Config| config.forecast = Some(chosen.clone())))
}

fn metrics(seen: &Seen) -> Vec<(String, f64)> {
    let share = |count: u64| count as f64 / seen.probes.max(1) as f64 * 100.0;
    let values = [
        ("overhead", seen.overhead / 1e3),
        ("delivery", share(seen.delivered)),
        ("undelivered", share(seen.probes.saturating_sub(seen.delivered))),
        ("dead_next_hop", share(seen.not_acknowledged)),
        ("no_route", share(seen.no_route)),
        ("hops", seen.hops),
        ("neighbors", seen.neighbors),
        ("neighbor_changes", seen.neighbor_changes),
        ("route_changes", seen.route_changes),
    ];
    values.map(|(name, value)| (name.to_owned(), value)).to_vec()
}
