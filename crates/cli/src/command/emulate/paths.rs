//! `emulate` on paths: two hosts connected by the scenario's links.

use super::options::{EmulateOptions, missing_in_capture, programs_with, setting};
use crate::console::remark;
use crate::emulation;
use crate::table;
use anabranch_emulate::{Capture, Ending, Hosts, HostsConfig, Programs, Relay, Report, SessionError, address, run};
use anabranch_lab::files::write;
use anabranch_lab::scenario::Scenario;
use anabranch_policy::time::Duration;
use anabranch_settings::diagnostic::Diagnostic;
use serde_json::{Value, json};
use std::io;
use std::path::Path;

/// Default MTU.
const MTU: u16 = 1500;
/// If more than this share of packets is over 1 ms late, the result depends on the machine more than on the paths.
const MUCH: f64 = 0.001;

/// Runs it; returns the exit code.
pub fn emulate(options: &EmulateOptions, scenario: &Scenario) -> Result<u8, Diagnostic> {
    let places: Vec<usize> = (0..scenario.paths.len()).collect();
    let network = emulation::build(scenario, &places, options.seed)?;
    let config = HostsConfig {
        paths: scenario.paths.iter().map(|path| path.name.clone()).collect(),
        mtu: scenario.connection.mtu().unwrap_or(MTU),
        mptcp: !options.no_mptcp_setup,
        congestion: options.kernel_congestion.clone(),
        settings: options.sysctls.iter().map(|text| setting(text)).collect::<Result<_, _>>()?,
    };
    let (hosts, ends) = Hosts::new(&config).map_err(|error| Diagnostic::plain(error.to_string()))?;
    let capture = options.pcap.as_deref().map(|path| capture(path, &hosts)).transpose()?;
    // Created now, so that an invalid path is reported before the work.
    options.json.as_deref().map_or(Ok(()), |path| write(path, ""))?;
    let relay = Relay::start(network, ends, capture).map_err(relay_failed)?;
    let outcome = run(&hosts, &programs(options, &hosts));
    // Counters must be read while the devices exist.
    let unread = hosts.dropped().map_err(relay_failed)?;
    let report = relay.stop().map_err(relay_failed)?;
    let session = match outcome {
        Ok(session) => session,
        Err(error @ SessionError::Program { .. }) => {
            remark(&format!("error: {error}"));
            return Ok(error.code());
        }
        Err(error) => return Err(Diagnostic::plain(error.to_string())),
    };
    if let Some(path) = &options.json {
        write(path, &format!("{:#}\n", as_json(scenario, options.seed, &report, unread, session.ending)))?;
    }
    if !options.quiet {
        remark(summary(scenario, options.seed, &report).trim_end());
    }
    let warnings = warnings(&report, unread).into_iter().chain(session.warning());
    warnings.for_each(|warning| remark(&format!("warning: {warning}")));
    Ok(session.ending.code())
}

fn relay_failed(error: io::Error) -> Diagnostic {
    Diagnostic::plain(format!("the emulation failed: {error}"))
}

fn capture(path: &Path, hosts: &Hosts) -> Result<Capture, Diagnostic> {
    let names: Vec<String> = hosts.devices().iter().cloned().chain(["server".to_owned()]).collect();
    Capture::start(path, &names).map_err(|error| Diagnostic::file(path, "write the capture", &error))
}

fn programs(options: &EmulateOptions, hosts: &Hosts) -> Programs {
    let [server, server6] = address::server();
    let environment = [
        ("ANABRANCH_SERVER", server.to_string()),
        ("ANABRANCH_SERVER6", server6.to_string()),
        ("ANABRANCH_PATHS", hosts.devices().join(" ")),
        ("ANABRANCH_AT_SERVER", hosts.at_server()),
    ];
    programs_with(options, environment.map(|(name, value)| (name.to_owned(), value)).to_vec())
}

/// The scenario's links in both directions, in its order: names in the network, and labels.
fn links(scenario: &Scenario) -> Vec<(String, String)> {
    let parts = scenario.paths.iter().map(|path| (path.name.as_str(), path.links.as_slice()));
    let parts = parts.chain([("shared", scenario.shared.as_slice())]);
    let links = parts.flat_map(|(part, links)| {
        links.iter().enumerate().map(move |(at, link)| (format!("{part}/{at}"), format!("{part}/{}", link.name)))
    });
    let both = |(name, label): (String, String)| {
        [("forward", "to the server"), ("backward", "to the client")]
            .map(|(direction, words)| (format!("{name}/{direction}"), format!("{label} {words}")))
    };
    links.flat_map(both).collect()
}

/// The summary at the end.
fn summary(scenario: &Scenario, seed: u64, report: &Report) -> String {
    let seconds = report.time.as_secs_f64();
    let row = |(name, label): (String, String)| {
        let counters = &report.links.iter().find(|link| link.name == name)?.counters;
        let drops = counters.drops.iter().filter(|(_, count)| *count > 0);
        let drops: Vec<String> = drops.map(|(cause, count)| format!("{} {count}", cause.name())).collect();
        Some(vec![
            label,
            counters.offered_packets.to_string(),
            counters.delivered_packets.to_string(),
            format!("{:.2}", counters.delivered_bytes as f64 * 8e-6 / seconds.max(1e-9)),
            counters.peak_queue_packets.to_string(),
            if drops.is_empty() { "-".to_owned() } else { drops.join(", ") },
        ])
    };
    let rows: Vec<Vec<String>> = links(scenario).into_iter().filter_map(row).collect();
    let head = ["link", "offered", "delivered", "Mbit/s", "longest queue", "dropped"];
    let lateness = &report.lateness;
    format!(
        "{}, seed {seed}: {seconds:.1} s emulated\n{}packets left the links {} late on average, 99 % within {}, at worst {}; \
         {} of {} more than 1 ms\n",
        scenario.name,
        table::render(&head, &rows),
        readable(lateness.mean()),
        readable(lateness.quantile(0.99)),
        readable(lateness.max()),
        lateness.over_a_millisecond(),
        lateness.count(),
    )
}

fn readable(time: Duration) -> String {
    if time < Duration::from_millis(1) {
        format!("{:.0} µs", time.as_secs_f64() * 1e6)
    } else {
        format!("{:.1} ms", time.as_secs_f64() * 1e3)
    }
}

/// Warnings about results that may not match the scenario.
fn warnings(report: &Report, unread: u64) -> Vec<String> {
    let mut warnings = Vec::new();
    if report.lateness.late_share() > MUCH {
        let share = report.lateness.late_share() * 100.0;
        warnings.push(format!(
            "the machine was too busy: {share:.1} % of the packets were more than 1 ms late; run it again alone"
        ));
    }
    if let Some(stopped) = report.stopped {
        warnings.push(format!(
            "the emulation stood still for up to {}, since its process was stopped or the machine was too busy; run it again",
            readable(stopped)
        ));
    }
    let not_taken: u64 = report.ports.iter().map(|port| port.not_taken).sum();
    let lost = unread + not_taken + report.network.overruns;
    if lost > 0 {
        warnings.push(format!("{lost} packets were lost outside the links, since the machine was too busy"));
    }
    warnings.extend(report.captured.as_ref().and_then(missing_in_capture));
    warnings
}

fn as_json(scenario: &Scenario, seed: u64, report: &Report, unread: u64, ending: Ending) -> Value {
    let link = |(name, label): &(String, String)| {
        let counters = &report.links.iter().find(|link| link.name == *name)?.counters;
        let drops: serde_json::Map<String, Value> =
            counters.drops.iter().map(|(cause, count)| (cause.name().to_owned(), count.into())).collect();
        Some(json!({
            "name": name,
            "label": label,
            "offered_packets": counters.offered_packets,
            "offered_bytes": counters.offered_bytes,
            "delivered_packets": counters.delivered_packets,
            "delivered_bytes": counters.delivered_bytes,
            "drops": drops,
            "marked": counters.marked,
            "duplicated": counters.duplicated,
            "corrupted": counters.corrupted,
            "held_back": counters.held_back,
            "peak_queue_packets": counters.peak_queue_packets,
            "peak_queue_bytes": counters.peak_queue_bytes,
        }))
    };
    let port_names = scenario.paths.iter().map(|path| path.name.as_str()).chain(["server"]);
    let ports: Vec<Value> = port_names
        .zip(&report.ports)
        .map(|(name, port)| {
            let (from, to) = (port.read_packets, port.written_packets);
            json!({ "name": name, "packets_from_host": from, "packets_to_host": to, "not_taken": port.not_taken })
        })
        .collect();
    let lateness = &report.lateness;
    json!({
        "scenario": scenario.name,
        "seed": seed,
        "seconds": report.time.as_secs_f64(),
        "exit_code": ending.code(),
        "time_up": ending == Ending::TimeUp,
        "links": links(scenario).iter().filter_map(link).collect::<Vec<_>>(),
        "ports": ports,
        "no_route": report.network.no_route,
        "malformed": report.network.malformed,
        "stopped_us": report.stopped.map_or(0.0, |time| time.as_secs_f64() * 1e6),
        "lost_outside_links": unread + report.network.overruns,
        "lateness": {
            "packets": lateness.count(),
            "mean_us": lateness.mean().as_secs_f64() * 1e6,
            "p50_us": lateness.quantile(0.5).as_secs_f64() * 1e6,
            "p99_us": lateness.quantile(0.99).as_secs_f64() * 1e6,
            "max_us": lateness.max().as_secs_f64() * 1e6,
            "over_1_ms": lateness.over_a_millisecond(),
            "real_time_priority": report.priority == anabranch_system::Priority::RealTime,
        },
    })
}
