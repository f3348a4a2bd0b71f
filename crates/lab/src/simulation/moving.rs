//! Runs a contender's routers on mobile nodes.

use super::extras::Extras;
use super::settings;
use crate::record::Record;
use crate::scenario::Scenario;
use crate::scenario::model::Moving;
use crate::statistics::median;
use anabranch_policy::combination::Choice;
use anabranch_routing::LinkCost;
use anabranch_routing::config::{Config, Forecast, Manet};
use anabranch_routing::lsa_fullness::LsaFullness;
use anabranch_settings::contender::Contender;
use anabranch_settings::diagnostic::Diagnostic;
use anabranch_sim::forecast_score::Setting;
use anabranch_sim::mesh::NodeId;
use anabranch_sim::mesh::cut_network::{CutNetwork, CutsSeen, PLACES};
use anabranch_sim::mesh::downloads::Downloads;
use anabranch_sim::mesh::moving_network::{MovingNetwork, RouterChange};
use anabranch_sim::mesh::moving_run::Seen;
use anabranch_sim::mobility::{Area, Model, Span};
use anabranch_sim::radio::{MediumConfig, Reach};
use std::sync::Arc;

/// Cost of a link without loss where ETX counts: its parts are told apart.
const ETX_COST: u16 = 10;

/// Additional cost of a suspect link if it is flooded in LSAs.
const SUSPECT_COST: u16 = 2;

pub fn run(
    scenario: &Scenario,
    moving: &Moving,
    contender: &Contender,
    seed: u64,
    extras: &Extras,
) -> Result<Record, Diagnostic> {
    let fail = |what: &str| failure(contender, seed, what);
    let network = match network(scenario, moving, contender, seed, extras)? {
        Planned::Cuts(cuts) => {
            let seen = cuts.run().map_err(|error| fail(&error))?;
            return Ok(Record { seed, trace_hash: seen.trace_hash, metrics: cut_metrics(&seen), ..Record::default() });
        }
        Planned::Moving(network) => network,
    };
    let seen = network.run().map_err(|error| fail(&error))?;
    let metrics = metrics(&seen, &network);
    let mesh = if extras.curves { seen.snapshots } else { Vec::new() };
    Ok(Record { seed, trace_hash: seen.trace_hash, metrics, mesh, ..Record::default() })
}

fn failure(contender: &Contender, seed: u64, what: &str) -> Diagnostic {
    Diagnostic::plain(format!("{}, seed {seed}: {what}", contender.name))
}

/// A network to run.
pub enum Planned {
    Moving(MovingNetwork),
    Cuts(CutNetwork),
}

/// The network of a scenario.
///
/// # Errors
/// A forecaster cannot be built, or the extras ask for what there is not.
pub fn network(
    scenario: &Scenario,
    moving: &Moving,
    contender: &Contender,
    seed: u64,
    extras: &Extras,
) -> Result<Planned, Diagnostic> {
    let fail = |what: &str| failure(contender, seed, what);
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
    if let Some((least, most)) = moving.speed {
        network.model = Model::RandomWaypoint { speed: Span::new(least, most), pause: Span::only(0.0) };
    }
    network.medium = medium(moving);
    network.manet = Manet {
        lsa_fullness: fullness,
        two_hop_refresh: contender.mesh.two_hop_refresh.unwrap_or(3),
        ..Manet::default()
    };
    network.hello_interval = moving.hello_interval;
    network.router_dead_interval = moving.dead_interval;
    network.probe_interval = moving.probe_interval;
    network.probe_bytes = moving.probe_bytes;
    let mut connection = settings::connection(scenario, contender);
    extras.own.apply(&mut connection);
    network.downloads = moving.download.map(|each| Downloads { each, connection });
    if contender.mesh.etx {
        network.cost = (ETX_COST, LinkCost::Etx);
    }
    network.warm_up = scenario.warm_up;
    network.duration = scenario.duration - scenario.warm_up;
    network.wire = extras.wire;
    if contender.mesh.predicted {
        let flood = contender.mesh.flood_suspects;
        network.router = Some(forecast_by(&contender.policies.forecaster, flood).map_err(|error| fail(&error))?);
    }
    Ok(match moving.cut_speed {
        Some(speed) => Planned::Cuts(cuts(network, speed)),
        None => Planned::Moving(network),
    })
}

/// The same routers while one node repeatedly leaves.
fn cuts(network: MovingNetwork, speed: f64) -> CutNetwork {
    let plain = CutNetwork::new(network.manet.lsa_fullness, speed, network.seed);
    let medium = MediumConfig { basic_rate: network.medium.basic_rate, ..plain.network.medium };
    CutNetwork { network: MovingNetwork { medium, ..network }, speed }
}

fn cut_metrics(seen: &CutsSeen) -> Vec<(String, f64)> {
    let nodes = PLACES.len() as f64;
    let values = [
        ("lost_per_cut", seen.lost_per_cut),
        ("outage", seen.outage),
        ("lost_per_return", seen.lost_per_return),
        ("lost_in_quiet", seen.lost_in_quiet * 100.0),
        ("overhead", seen.overhead / 1e3),
        ("control_traffic", seen.overhead / 8.0 / nodes),
        ("energy", seen.cost.joules / nodes),
        ("energy_active", seen.cost.joules_active / nodes),
        ("calculations", seen.cost.calculations as f64 / nodes / seen.seconds),
        ("lsas_received", seen.cost.lsas_received as f64 / nodes / seen.seconds),
        ("router_memory", seen.memory as f64 / 1e3),
    ];
    values.map(|(name, value)| (name.to_owned(), value)).to_vec()
}

/// The radio: a disk, or path loss with the same mean range and the shadowing and fading of the comparison of
/// forecasters.
fn medium(moving: &Moving) -> MediumConfig {
    let radio = if moving.shadows {
        Setting::standard_radio(moving.range)
    } else {
        MediumConfig { reach: Reach::disk(moving.range), ..MediumConfig::default() }
    };
    MediumConfig { basic_rate: moving.broadcast_rate, ..radio }
}

/// Configures forecasters of links in every router. Suspect links are avoided if there is another path and announced to
/// neighbours only, as in `anabranch route`; or a higher cost is flooded.
fn forecast_by(choice: &Choice, flood_suspects: bool) -> Result<RouterChange, String> {
    let chosen = Forecast::chosen(choice).map_err(|error| error.to_string())?;
    let suspect_cost = if flood_suspects { SUSPECT_COST } else { 0 };
    let chosen = Forecast { suspect_cost, alternates: !flood_suspects, ..chosen };
    Ok(Arc::new(move |_: NodeId, config: &mut Config| config.forecast = Some(chosen.clone())))
}

fn metrics(seen: &Seen, network: &MovingNetwork) -> Vec<(String, f64)> {
    let share = |count: u64| count as f64 / seen.probes.max(1) as f64 * 100.0;
    let (nodes, seconds) = (network.nodes.max(1) as f64, network.duration.as_secs_f64());
    let of_probes = [
        ("delivery", share(seen.delivered)),
        ("undelivered", share(seen.probes.saturating_sub(seen.delivered))),
        ("dead_next_hop", share(seen.not_acknowledged)),
        ("no_route", share(seen.no_route)),
        ("hops", seen.hops),
    ];
    let silent = seen.downloads.iter().filter(|throughput| **throughput == 0.0).count();
    let of_downloads = [
        ("download", seen.downloads.iter().sum::<f64>() / seen.downloads.len().max(1) as f64 / 1e6),
        ("download_median", median(&seen.downloads) / 1e6),
        ("download_none", silent as f64 / seen.downloads.len().max(1) as f64 * 100.0),
        ("download_hops", seen.hops),
    ];
    let of_traffic = if network.downloads.is_some() { &of_downloads[..] } else { &of_probes };
    let of_routing = [("overhead", seen.overhead / 1e3), ("control_traffic", seen.overhead / 8.0 / nodes)];
    let values = [
        ("neighbors", seen.neighbors),
        ("neighbor_changes", seen.neighbor_changes),
        ("route_changes", seen.route_changes),
        ("energy", seen.cost.joules / nodes),
        ("energy_active", seen.cost.joules_active / nodes),
        ("calculations", seen.cost.calculations as f64 / nodes / seconds),
        ("lsas_received", seen.cost.lsas_received as f64 / nodes / seconds),
        ("router_memory", seen.memory as f64 / 1e3),
    ];
    let all = of_routing.iter().chain(of_traffic).chain(&values);
    let mut metrics: Vec<_> = all.map(|(name, value)| ((*name).to_owned(), *value)).collect();
    let [paper, spread, planned] = &seen.lanes.rules;
    let shares = [
        ("disjoint_lanes", spread.nodes_share()),
        ("disjoint_lanes_paper", paper.nodes_share()),
        ("disjoint_lanes_planned", planned.nodes_share()),
        ("link_disjoint_lanes", spread.links_share()),
    ];
    metrics.extend(shares.into_iter().filter_map(|(name, share)| Some((name.to_owned(), share? * 100.0))));
    metrics
}
