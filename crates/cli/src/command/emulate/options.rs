//! Options of `emulate`.

use anabranch_emulate::{Captured, Programs};
use anabranch_policy::time::Duration;
use anabranch_settings::diagnostic::Diagnostic;
use anabranch_settings::quantity;
use clap::Args;
use std::ffi::OsString;
use std::path::PathBuf;

/// End of the help of `emulate`.
pub const EXAMPLES: &str = "\
The server has the addresses 10.0.0.2 and fd00::2, the client 10.0.N.1 and fd00:N::1 on path N, from 1. COMMAND finds
ANABRANCH_SERVER, ANABRANCH_SERVER6, ANABRANCH_PATHS (its devices) and ANABRANCH_AT_SERVER (to be put before a command that is
to run at the server's end). Needs root.

A scenario with an ad-hoc network is eight hosts, M1 to M8, with a radio of the lab's on each channel and a router in each
(`anabranch route`). COMMAND runs in M1, the server is M8: 112.26.X.8 on channel X, from 0. ANABRANCH_AT_M1 to ANABRANCH_AT_M8
run a command in a node.

Examples:
  anabranch emulate wifi-lte --server 'iperf3 -s' -- iperf3 -c 10.0.0.2 -t 10
  anabranch emulate wifi-lte --server 'mptcpize run iperf3 -s' -- mptcpize run iperf3 -c 10.0.0.2 -t 10
  anabranch emulate manet_homogeneous --server 'mptcpize run iperf3 -s' -- mptcpize run iperf3 -c 112.26.0.8 -t 20
  anabranch emulate wifi-lte --set paths.wifi.links.air.loss='3 %' --seed 7 --pcap wifi.pcapng -- bash

Exit codes: that of COMMAND; 128 and the signal that ended it; 124 after --duration; 127 if there is no such program, 126 if it
cannot be run; 2 if an argument is wrong.";

/// What to run on which paths.
#[derive(Clone, Debug, Args)]
pub struct EmulateOptions {
    /// Scenario: a file, or the name of a built-in one (see `list`)
    pub scenario: PathBuf,
    /// Program and arguments, run at the client's end
    #[arg(last = true, required = true, value_name = "COMMAND")]
    pub command: Vec<OsString>,
    /// Run this at the server's end first (with `sh -c`, output to standard error), wait until it listens, and stop
    /// it at the end
    #[arg(long, value_name = "COMMAND")]
    pub server: Option<OsString>,
    /// TCP or UDP port that the server must listen on before COMMAND starts [default: any]
    #[arg(long, value_name = "PORT", requires = "server")]
    pub port: Option<u16>,
    /// Stop COMMAND after this time, e.g. "30 s", with exit code 124
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub duration: Option<Duration>,
    /// Seed; packet losses are the same as in the simulator with this seed
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// Change a value of the scenario: a dotted path, list elements by number or name, e.g.
    /// --set paths.wifi.links.air.loss="2 %" (repeatable)
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub set: Vec<String>,
    /// Congestion control of the kernel's connections [default: this machine's]
    #[arg(long, value_name = "NAME")]
    pub kernel_congestion: Option<String>,
    /// A sysctl in both namespaces, e.g. --sysctl net.ipv4.tcp_rmem="4096 131072 262144" (repeatable)
    #[arg(long = "sysctl", value_name = "KEY=VALUE")]
    pub sysctls: Vec<String>,
    /// Keep the kernel's default MPTCP settings, which use one path only
    #[arg(long)]
    pub no_mptcp_setup: bool,
    /// Write the hosts' packets (pcapng, for Wireshark), with an interface per path and one for the server
    #[arg(long, value_name = "FILE")]
    pub pcap: Option<PathBuf>,
    /// Write link counters and the emulation's lateness as JSON
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Print no summary unless the emulation was late
    #[arg(long)]
    pub quiet: bool,
}

fn time(text: &str) -> Result<Duration, String> {
    let time = quantity::parse(text)?;
    if time > Duration::ZERO { Ok(time) } else { Err("the command could not begin".to_owned()) }
}

/// Parses `KEY=VALUE` of `--sysctl`.
pub fn setting(text: &str) -> Result<(String, String), Diagnostic> {
    let split = text.split_once('=').filter(|(key, _)| !key.is_empty());
    let split = split.map(|(key, value)| (key.trim().to_owned(), value.trim().to_owned()));
    split.ok_or_else(|| Diagnostic::option(&format!("--sysctl {text}"), "write it like net.ipv4.tcp_sack=0"))
}

/// What is missing in a capture, for a warning.
pub fn missing_in_capture(capture: &Captured) -> Option<String> {
    match &capture.error {
        Some(error) => Some(format!("the capture ends early, since it could not be written: {error}")),
        None if capture.missing > 0 => {
            Some(format!("{} packets are missing in the capture, since the disk was too slow", capture.missing))
        }
        None => None,
    }
}

/// The programs to run, with their environment.
pub fn programs_with(options: &EmulateOptions, environment: Vec<(String, String)>) -> Programs {
    Programs {
        command: options.command.clone(),
        server: options.server.clone(),
        port: options.port,
        duration: options.duration.map(|time| std::time::Duration::from_nanos(time.as_nanos())),
        environment,
    }
}
