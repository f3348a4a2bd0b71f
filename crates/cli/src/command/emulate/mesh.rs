//! `emulate` on an ad-hoc network: a program at M1 of the paper's mesh. Its eight nodes are network namespaces with a
//! router each, connected by emulated radios on each channel.

use super::options::{EmulateOptions, missing_in_capture, programs_with, setting};
use crate::console::remark;
use anabranch_emulate::{
    AntennaId, Capture, ChannelModel, Ending, Ether, EtherReport, Hosts, Mesh, MeshConfig, Node, Routers, Session,
    SessionError, mesh, run,
};
use anabranch_lab::files::write;
use anabranch_lab::scenario::Scenario;
use anabranch_lab::scenario::model;
use anabranch_policy::time::Duration;
use anabranch_router::{Family, MAIN_TABLE, MeshInterface, Question, RouteConfig, ask};
use anabranch_routing::InterfaceKind;
use anabranch_routing::lsa_fullness::LsaFullness;
use anabranch_settings::diagnostic::Diagnostic;
use anabranch_sim::radio::{MediumConfig, Reach};
use serde_json::{Value, json};
use std::path::Path;
use std::process::Command;
use std::time::Instant;

/// Radio range, metres.
const RANGE: f64 = 150.0;

/// Timeout until M1 has a route to M8.
const PATIENCE: std::time::Duration = std::time::Duration::from_secs(40);

/// Runs it; returns the exit code.
pub fn emulate(options: &EmulateOptions, scenario: &Scenario, network: &model::Mesh) -> Result<u8, Diagnostic> {
    if options.kernel_congestion.is_some() {
        let message = "an ad-hoc network has no --kernel-congestion: say --sysctl net.ipv4.tcp_congestion_control=NAME";
        return Err(Diagnostic::plain(message));
    }
    let plain = |error: &dyn std::fmt::Display| Diagnostic::plain(error.to_string());
    let channel = |rate: &anabranch_policy::rate::Rate| {
        ChannelModel::Radio(Box::new(MediumConfig {
            data_rate: *rate,
            rts_threshold: if network.reservations { 0 } else { u32::MAX },
            reach: Reach::disk(RANGE),
            ..MediumConfig::as_in_ns3()
        }))
    };
    let mut config = MeshConfig::figure_8(network.rates.iter().map(channel).collect());
    config.seed = options.seed;
    config.mtu = scenario.connection.mtu().unwrap_or(config.mtu);
    config.settings = options.sysctls.iter().map(|text| setting(text)).collect::<Result<_, _>>()?;
    let (nodes, air, ends) = Mesh::new(&config).map_err(|error| plain(&error))?;
    // Both files are created now, so that an invalid name is reported before the work.
    let capture = options.pcap.as_deref().map(|path| capture(path, &nodes)).transpose()?;
    options.json.as_deref().map_or(Ok(()), |path| write(path, ""))?;
    let ether = Ether::start(air, ends, capture).map_err(|error| plain(&error))?;
    let routers = Routers::start(&nodes, &routing(network)).map_err(|error| plain(&error))?;
    wait_for_routes(&nodes, network.rates.len())?;
    if !options.no_mptcp_setup {
        multipath(&nodes, network.rates.len());
    }
    let ([client, .., server], devices) = (nodes.nodes(), (0..network.rates.len()).map(mesh::device)) else {
        return Err(Diagnostic::plain("the mesh has no two nodes"));
    };
    let hosts = Hosts::of(client.namespace.clone(), server.namespace.clone(), devices.collect());
    let mut environment = vec![
        ("ANABRANCH_SERVER".to_owned(), mesh::ipv4(0, 8).to_string()),
        ("ANABRANCH_PATHS".to_owned(), hosts.devices().join(" ")),
        ("ANABRANCH_AT_SERVER".to_owned(), hosts.at_server()),
    ];
    environment.extend(nodes.nodes().iter().map(|node| (format!("ANABRANCH_AT_{}", node.name), node.at())));
    let outcome = run(&hosts, &programs_with(options, environment));
    let statuses = statuses(&nodes);
    nodes.end();
    drop(routers);
    let report = ether.stop().map_err(|error| plain(&error))?;
    if let Some(path) = &options.json {
        let head = (scenario.name.as_str(), options.seed);
        let json = as_json(head, &nodes, &report, &statuses, outcome.as_ref().ok().map(|session| &session.ending));
        write(path, &format!("{json:#}\n"))?;
    }
    if !options.quiet {
        let counters = &report.air;
        remark(&format!(
            "{}, seed {}: {} frames on the air, {} reached a host, {} refused by full queues, {} dropped",
            scenario.name, options.seed, counters.frames, counters.landed, counters.refused, counters.undelivered
        ));
    }
    let server_failed = outcome.as_ref().ok().and_then(Session::warning);
    let warnings = report.captured.as_ref().and_then(missing_in_capture).into_iter().chain(server_failed);
    warnings.for_each(|warning| remark(&format!("warning: {warning}")));
    match outcome {
        Ok(session) => Ok(session.ending.code()),
        Err(error @ SessionError::Program { .. }) => {
            remark(&format!("error: {error}"));
            Ok(error.code())
        }
        Err(error) => Err(plain(&error)),
    }
}

/// A capture with one interface per device of each node: `M1/e0` and so on.
fn capture(path: &Path, nodes: &Mesh) -> Result<Capture, Diagnostic> {
    let devices =
        |node: &Node| (0..node.antennas.len()).map(|at| format!("{}/{}", node.name, mesh::device(at))).collect();
    let names: Vec<String> = nodes.nodes().iter().flat_map(|node| -> Vec<String> { devices(node) }).collect();
    Capture::start(path, &names).map_err(|error| Diagnostic::file(path, "write the capture", &error))
}

/// Status of the routers in order of their nodes.
fn statuses(nodes: &Mesh) -> Vec<Value> {
    let status = |node: &Node| node.namespace.run(|| ask(MAIN_TABLE, Question::Status)).ok().and_then(Result::ok);
    nodes.nodes().iter().map(|node| status(node).unwrap_or_default()).collect()
}

fn as_json(
    (name, seed): (&str, u64),
    nodes: &Mesh,
    report: &EtherReport,
    statuses: &[Value],
    ending: Option<&Ending>,
) -> Value {
    let device = |(at, antenna): (usize, &AntennaId)| {
        let counters = report.antennas.get(antenna.0).copied().unwrap_or_default();
        json!({
            "name": mesh::device(at),
            "frames_from_host": counters.frames_from_host,
            "bytes_from_host": counters.bytes_from_host,
            "frames_to_host": counters.frames_to_host,
            "bytes_to_host": counters.bytes_to_host,
            "not_taken": counters.not_taken,
        })
    };
    let node = |(node, status): (&Node, &Value)| {
        let devices: Vec<Value> = node.antennas.iter().enumerate().map(device).collect();
        json!({ "name": node.name, "devices": devices, "router": status })
    };
    json!({
        "scenario": name,
        "seed": seed,
        "seconds": report.time.as_secs_f64(),
        "exit_code": ending.map(|ending| ending.code()),
        "time_up": ending == Some(&Ending::TimeUp),
        "frames": report.air.frames,
        "reached_a_host": report.air.landed,
        "refused_by_full_queues": report.air.refused,
        "for_nobody": report.air.unaddressed,
        "given_up": report.air.undelivered,
        "nodes": nodes.nodes().iter().zip(statuses).map(node).collect::<Vec<_>>(),
    })
}

/// The paper's settings on e0, and lanes on the other channels.
fn routing(network: &model::Mesh) -> RouteConfig {
    let mut config =
        RouteConfig { families: vec![Family::Ipv4], keep_settings: true, table: MAIN_TABLE, ..RouteConfig::default() };
    config.interfaces.push(MeshInterface { name: mesh::device(0), point_to_point: false, cost: None });
    config.lanes = (1..network.rates.len()).map(mesh::device).collect();
    config.manet.hello_interval = Duration::from_secs(1);
    config.manet.router_dead_interval = Duration::from_secs(3);
    if let InterfaceKind::Manet(manet) = &mut config.manet.kind {
        manet.two_hop_refresh = 3;
        manet.lsa_fullness = network.routers.unwrap_or(LsaFullness::Full);
    }
    config
}

/// Waits until M1 and M8 have routes to all of each other's addresses.
fn wait_for_routes(nodes: &Mesh, channels: usize) -> Result<(), Diagnostic> {
    let until = Instant::now() + PATIENCE;
    let there = |from: usize, to: usize| {
        let node = nodes.nodes().get(from - 1);
        let answer = node.and_then(|node| node.namespace.run(|| ask(MAIN_TABLE, Question::Routes)).ok()?.ok());
        let routes = answer.as_ref().and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        (0..channels)
            .map(|channel| format!("{}/32", mesh::ipv4(channel, to)))
            .all(|wanted| routes.iter().any(|route| route["prefix"] == wanted.as_str() && route["installed"] == true))
    };
    while !(there(1, 8) && there(8, 1)) {
        if Instant::now() >= until {
            return Err(Diagnostic::plain("the routers did not find a way from M1 to M8 in 40 seconds"));
        }
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
    Ok(())
}

/// Configures the kernel's MPTCP for one subflow per channel: M8 signals its addresses, and each is reached over its
/// lane.
fn multipath(nodes: &Mesh, channels: usize) {
    let ip = |node: usize, words: String| {
        let run = || Command::new("ip").args(words.split_whitespace()).output();
        // A kernel without MPTCP can do everything else.
        let _ = nodes.nodes().get(node - 1).map(|node| node.namespace.run(run));
    };
    for node in [1, 8] {
        ip(node, "mptcp limits set subflows 8 add_addr_accepted 8".to_owned());
    }
    for channel in 1..channels {
        ip(8, format!("mptcp endpoint add {} dev {} signal", mesh::ipv4(channel, 8), mesh::device(channel)));
    }
}
