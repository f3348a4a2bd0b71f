//! What can be said on the command line.

use crate::command::{ProxyOptions, ServeOptions};
use crate::perf::PerfOptions;
use crate::route::RouteOptions;
use crate::scenario::quantity;
use crate::stream::StreamCommand;
use anabranch_policy::time::Duration;
use clap::{Args, Parser, Subcommand};
use std::ffi::OsString;
use std::path::PathBuf;

/// Multipath TCP in a lab and on real networks: scenarios, measurements, emulated paths, and a proxy over several uplinks.
#[derive(Debug, Parser)]
#[command(name = "anabranch", version, max_term_width = 100)]
pub struct Arguments {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run a scenario with its first policy, or with those given, and sum up the runs
    Run {
        /// The scenario: a file, or the name of one that comes with the program (see `list`)
        scenario: PathBuf,
        /// Carry this file instead of the scenario's transfer, once per policy, and check its SHA-256 at the receiver
        #[arg(long, value_name = "FILE")]
        send: Option<PathBuf>,
        #[command(flatten)]
        options: Options,
    },
    /// Run a scenario with each of its policies, or with those given, on the same seeds, side by side
    Compare {
        /// The scenario: a file, or the name of one that comes with the program (see `list`)
        scenario: PathBuf,
        #[command(flatten)]
        options: Options,
    },
    /// Reproduce the papers' experiments and write a report with their figures
    Reproduce {
        /// Which one, by its name or the beginning of it; all of them if not given
        experiment: Option<String>,
        #[command(flatten)]
        options: Options,
    },
    /// Hold the lab against real time: a set of networks in the lab, emulated with the engine, emulated with Linux
    Calibrate {
        #[command(flatten)]
        options: CalibrateOptions,
    },
    /// Hold every policy against TCP on each single path, on a thousand networks that fill the space of what paths are like
    Sweep {
        #[command(flatten)]
        options: SweepOptions,
    },
    /// Put a program on a scenario's paths in real time: two network namespaces, the lab's links between them
    #[command(after_help = EMULATE_EXAMPLES)]
    Emulate(EmulateOptions),
    /// Let programs of this host go out over several paths: SOCKS5, HTTP CONNECT, and forwarded ports
    Proxy {
        #[command(flatten)]
        options: Box<ProxyOptions>,
    },
    /// End connections of MPTCP clients, with a shared key those of `proxy`, and go on to their targets
    Serve {
        #[command(flatten)]
        options: Box<ServeOptions>,
    },
    /// Make the key that `proxy` and `serve` share
    Key {
        /// The new file
        file: PathBuf,
    },
    /// Be a router of an ad-hoc network: OSPF-MDR on this host's interfaces, routes with several next hops in its kernel
    #[command(after_help = ROUTE_EXAMPLES)]
    Route {
        #[command(flatten)]
        options: Box<RouteOptions>,
    },
    /// Measure what the paths carry, second by second and path by path: a client and a server, like iperf3
    Perf {
        #[command(flatten)]
        options: Box<PerfOptions>,
    },
    /// Carry live streams over several paths, with an end to the waiting
    Stream {
        #[command(subcommand)]
        command: StreamCommand,
    },
    /// List the policies of the five families with their parameters and sources, the metrics, and the scenarios
    List {
        /// Print as JSON
        #[arg(long)]
        json: bool,
    },
}

/// What to run on which paths.
#[derive(Clone, Debug, Args)]
pub struct EmulateOptions {
    /// The scenario: a file, or the name of one that comes with the program (see `list`)
    pub scenario: PathBuf,
    /// The program and its arguments; it runs at the client's end of the paths
    #[arg(last = true, required = true, value_name = "COMMAND")]
    pub command: Vec<OsString>,
    /// Run this at the server's end first (by `sh -c`, its output goes to standard error), wait until it listens, and end
    /// it at the end
    #[arg(long, value_name = "COMMAND")]
    pub server: Option<OsString>,
    /// The port, TCP or UDP, that the server must have before COMMAND starts [default: any]
    #[arg(long, value_name = "PORT", requires = "server")]
    pub port: Option<u16>,
    /// End COMMAND after this time, e.g. "30 s"; the exit code is 124 then
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub duration: Option<Duration>,
    /// The run's luck: packet by packet the same losses as in the lab with this seed
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// Change a value of the scenario: a dotted path, list elements by number or name, e.g.
    /// --set paths.wifi.links.air.loss="2 %" (repeatable)
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub set: Vec<String>,
    /// Congestion control of the kernel's connections [default: this machine's]
    #[arg(long, value_name = "NAME")]
    pub kernel_congestion: Option<String>,
    /// A setting of the kernel in both namespaces, e.g. --sysctl net.ipv4.tcp_rmem="4096 131072 262144" (repeatable)
    #[arg(long = "sysctl", value_name = "KEY=VALUE")]
    pub sysctls: Vec<String>,
    /// Leave the kernel's MPTCP as it is in a new namespace: it uses one path
    #[arg(long)]
    pub no_mptcp_setup: bool,
    /// Write what leaves and reaches the hosts (pcapng, for Wireshark): an interface per path, and one for the server
    #[arg(long, value_name = "FILE")]
    pub pcap: Option<PathBuf>,
    /// Write what the links did and how late the emulation was, as JSON
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Say nothing at the end, unless the emulation was late
    #[arg(long)]
    pub quiet: bool,
}

/// What stands below the help of `route`.
const ROUTE_EXAMPLES: &str = "\
Needs root. It routes until it is ended by SIGTERM, SIGINT or SIGHUP, and leaves nothing on the host then; what a killed one left
is removed by the next. See docs/route.md.

Examples:
  anabranch route --interface wlan0 --profile multipath
  anabranch route --interface wlan0 --point-to-point eth0=10 --passive lan0 --network 0.0.0.0/0
  anabranch route --show neighbors
  anabranch route --show routes --json";

/// What stands below the help of `emulate`.
const EMULATE_EXAMPLES: &str = "\
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
cannot be run; 2 if something given is wrong.";

fn time(text: &str) -> Result<Duration, String> {
    quantity::parse(text)
}

/// How to do it.
#[derive(Clone, Debug, Args)]
pub struct Options {
    /// A policy of the scenario, `plain`, `plain_tcp`, a member of any family, or a combination such as
    /// congestion=olia,scheduler=redundant,path_manager.PARAMETER=VALUE (repeatable)
    #[arg(long = "policy", value_name = "POLICY")]
    pub policies: Vec<String>,
    /// Change a value of the scenario: a dotted path, list elements by number or name, e.g.
    /// --set paths.B.links.bottleneck.loss="2 %" (repeatable)
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub set: Vec<String>,
    /// Runs per policy, with seeds 1 to N [default: the scenario's]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub seeds: Option<u32>,
    /// Directory for results
    #[arg(long, value_name = "DIR", default_value = "results")]
    pub out: PathBuf,
    /// Also write a capture of the first seed of each policy (pcapng, for Wireshark)
    #[arg(long)]
    pub pcap: bool,
    /// Encode every segment to bytes and decode it again on each hop; results are the same
    #[arg(long)]
    pub wire: bool,
    /// Fewer seeds and fewer points of sweeps
    #[arg(long)]
    pub quick: bool,
    /// Print the machine-readable summary on standard output, and nothing else there
    #[arg(long)]
    pub json: bool,
}

/// How to calibrate.
#[derive(Clone, Debug, Args)]
pub struct CalibrateOptions {
    /// Only the cases whose names begin like this, e.g. two or one_07 (repeatable)
    #[arg(long = "case", value_name = "NAME")]
    pub cases: Vec<String>,
    /// Runs of each case, with seeds 1 to N [default: 3]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100))]
    pub seeds: Option<u32>,
    /// Directory for results
    #[arg(long, value_name = "DIR", default_value = "results")]
    pub out: PathBuf,
    /// A few cases, shorter and with one seed: under a minute
    #[arg(long)]
    pub quick: bool,
    /// Print the results as JSON on standard output, and nothing else there
    #[arg(long)]
    pub json: bool,
}

/// How to sweep.
#[derive(Clone, Debug, Args)]
pub struct SweepOptions {
    /// Who takes part: a name from the table, or whatever --policy of `compare` takes (repeatable) [default: all]
    #[arg(long = "policy", value_name = "POLICY")]
    pub policies: Vec<String>,
    /// Points of the design; a power of two fills it evenly [default: 1024, with --quick 32]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=65_536))]
    pub points: Option<u32>,
    /// The first of them; those before it are left out
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub from: u32,
    /// Seed of the design: 1 is the one that the default combination is developed on, any other gives points never seen
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u32,
    /// Also try this policy on every subset of the paths, to know the best one in hindsight (repeatable)
    /// [default: anabranch]
    #[arg(long, value_name = "POLICY")]
    pub subsets: Vec<String>,
    /// Hold the policies against TCP with this congestion control, or `own` for each policy's own [default: cubic]
    #[arg(long, value_name = "NAME")]
    pub reference: Option<String>,
    /// Leave out the messages at half load
    #[arg(long)]
    pub no_messages: bool,
    /// Show the points on which each policy does worst
    #[arg(long, value_name = "N")]
    pub worst: Option<usize>,
    /// Print the network of a point as a scenario for `run`, and nothing else (repeatable)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(..65_536))]
    pub point: Vec<u32>,
    /// Run in real time against the kernel's MPTCP, Linux receiving, on 30 points on which nothing changes; as root. --policy
    /// names who takes part on our side [default: anabranch]
    #[arg(long, conflicts_with_all = ["subsets", "reference", "no_messages", "worst", "point", "jobs"])]
    pub rivals: bool,
    /// Runs at the same time [default: the number of cores]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub jobs: Option<u16>,
    /// Take results that another build of the program left in the directory
    #[arg(long)]
    pub any_program: bool,
    /// Directory for results; what is there of the same runs is not done again
    #[arg(long, value_name = "DIR", default_value = "results")]
    pub out: PathBuf,
    /// Few points, and schedulers with LIA only: under a minute
    #[arg(long)]
    pub quick: bool,
    /// Print the scores as JSON on standard output, and nothing else there
    #[arg(long)]
    pub json: bool,
}
