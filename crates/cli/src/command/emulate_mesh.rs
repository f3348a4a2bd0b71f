//! `emulate` on an ad-hoc network: a program at M1 of the paper's mesh, whose eight nodes are hosts of the kernel, with a radio
//! of the lab's between them on each channel and a router of ours in each.

use super::emulate::{programs_with, setting};
use super::remark;
use crate::arguments::EmulateOptions;
use crate::diagnostic::Diagnostic;
use crate::scenario::Scenario;
use crate::scenario::model;
use anabranch_net::emulate::{ChannelModel, Ether, Hosts, Mesh, MeshConfig, Routers, SessionError, mesh, run};
use anabranch_net::route::{Family, MeshInterface, Question, RouteConfig, TABLE, ask};
use anabranch_policy::time::Duration;
use anabranch_routing::InterfaceKind;
use anabranch_routing::lsa_fullness::LsaFullness;
use anabranch_sim::radio::{MediumConfig, Reach};
use serde_json::Value;
use std::process::Command;
use std::time::Instant;

/// The radius within which nodes hear each other, metres.
const RANGE: f64 = 150.0;

/// How long routers have until M1 has a way to M8.
const PATIENCE: std::time::Duration = std::time::Duration::from_secs(40);

/// Runs it; gives the exit code.
pub fn emulate(options: &EmulateOptions, scenario: &Scenario, network: &model::Mesh) -> Result<u8, Diagnostic> {
    if options.pcap.is_some() || options.json.is_some() || options.kernel_congestion.is_some() {
        let message = "an ad-hoc network has no --pcap (run tcpdump in a node: ANABRANCH_AT_M3 and such), no --json and no \
                       --kernel-congestion (say --sysctl net.ipv4.tcp_congestion_control=NAME)";
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
    config.mtu = scenario.connection.mtu.unwrap_or(config.mtu);
    config.settings = options.sysctls.iter().map(|text| setting(text)).collect::<Result<_, _>>()?;
    let (nodes, air, ends) = Mesh::new(&config).map_err(|error| plain(&error))?;
    let ether = Ether::start(air, ends).map_err(|error| plain(&error))?;
    let routers = Routers::start(&nodes, &routing(network)).map_err(|error| plain(&error))?;
    wait_for_routes(&nodes)?;
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
    nodes.end();
    drop(routers);
    let counters = ether.stop().map_err(|error| plain(&error))?;
    if !options.quiet {
        remark(&format!(
            "{}, seed {}: {} frames on the air, {} reached a host, {} refused by full queues, {} given up",
            scenario.name, options.seed, counters.frames, counters.landed, counters.refused, counters.undelivered
        ));
    }
    match outcome {
        Ok(ending) => Ok(ending.code()),
        Err(error @ SessionError::Program { .. }) => {
            remark(&format!("error: {error}"));
            Ok(error.code())
        }
        Err(error) => Err(plain(&error)),
    }
}

/// The paper's settings on e0, and lanes on the other channels.
fn routing(network: &model::Mesh) -> RouteConfig {
    let mut config = RouteConfig { families: vec![Family::Ipv4], keep_settings: true, ..RouteConfig::default() };
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
fn wait_for_routes(nodes: &Mesh) -> Result<(), Diagnostic> {
    let until = Instant::now() + PATIENCE;
    let there = |from: usize, to: usize| {
        let node = nodes.nodes().get(from - 1);
        let answer = node.and_then(|node| node.namespace.run(|| ask(TABLE, Question::Routes)).ok()?.ok());
        let wanted = format!("{}/32", mesh::ipv4(0, to));
        let routes = answer.as_ref().and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        routes.iter().any(|route| route["prefix"] == wanted.as_str() && route["installed"] == true)
    };
    while !(there(1, 8) && there(8, 1)) {
        if Instant::now() >= until {
            return Err(Diagnostic::plain("the routers did not find a way from M1 to M8 in 40 seconds"));
        }
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
    Ok(())
}

/// Lets the kernel's MPTCP have a subflow on each channel: M8 tells of its addresses, and each is reached by its lane.
fn multipath(nodes: &Mesh, channels: usize) {
    let ip = |node: usize, words: String| {
        let run = || Command::new("ip").args(words.split_whitespace()).output();
        // A kernel without MPTCP is as good for all else.
        let _ = nodes.nodes().get(node - 1).map(|node| node.namespace.run(run));
    };
    for node in [1, 8] {
        ip(node, "mptcp limits set subflows 8 add_addr_accepted 8".to_owned());
    }
    for channel in 1..channels {
        ip(8, format!("mptcp endpoint add {} dev {} signal", mesh::ipv4(channel, 8), mesh::device(channel)));
    }
}
