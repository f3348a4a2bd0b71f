//! What can be said on the command line.

use clap::{Args, Parser, Subcommand};
use std::path::PathBuf;

/// Multipath TCP in virtual time: scenarios in; tables, reports and captures out.
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
    /// List the policies of the five families with their parameters and sources, the metrics, and the scenarios
    List {
        /// Print as JSON
        #[arg(long)]
        json: bool,
    },
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
