//! The command line.

#[cfg(feature = "lab")]
use crate::calibrate::CalibrateOptions;
#[cfg(feature = "lab")]
use crate::command::{EMULATE_EXAMPLES, EmulateOptions, Options, ReproduceOptions};
use crate::command::{ProxyOptions, ServeOptions, StatusQuery};
use crate::configuration;
use crate::diagnostic::Diagnostic;
use crate::perf::PerfOptions;
use crate::route::RouteOptions;
use crate::stream::StreamCommand;
#[cfg(feature = "lab")]
use crate::sweep::SweepOptions;
use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use std::path::PathBuf;

/// Multipath TCP in a lab and on real networks: scenarios, measurements, emulated paths, and a proxy over several uplinks.
#[derive(Debug, Parser)]
#[command(name = "anabranch", version, max_term_width = 100)]
pub struct Arguments {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// Value names of options that take numbers or quantities.
const QUANTITIES: [&str; 6] = ["TIME", "RATE", "SIZE", "N", "SECONDS", "BYTES"];

impl Arguments {
    /// Reads the command line, and the configuration file that it names; prints an error and ends the program if the command line is
    /// wrong.
    ///
    /// # Errors
    /// What is wrong with the file.
    pub fn read() -> Result<Self, Diagnostic> {
        let command = Self::program();
        let words = configuration::complete(&command, std::env::args_os().collect())?;
        let matches = command.get_matches_from(words);
        Ok(Self::from_arg_matches(&matches).unwrap_or_else(|error| error.exit()))
    }

    /// The program with all commands, as it is read.
    pub fn program() -> clap::Command {
        with_signs(Self::command())
    }
}

/// Lets negative quantities through to their own error message: clap would take `-3` for an unknown option.
fn with_signs(command: clap::Command) -> clap::Command {
    let is_quantity = |argument: &clap::Arg| {
        let names = argument.get_value_names().unwrap_or_default();
        names.first().is_some_and(|name| QUANTITIES.contains(&name.as_str()))
    };
    command
        .mut_args(|argument| if is_quantity(&argument) { argument.allow_hyphen_values(true) } else { argument })
        .mut_subcommands(with_signs)
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    #[cfg(feature = "lab")]
    /// Run a scenario with its first policy, or with those of --policy, and sum up the runs
    Run {
        /// The scenario: a file, or the name of one that comes with the program (see `list`)
        scenario: PathBuf,
        /// Carry this file instead of the scenario's transfer, once per policy, and check its SHA-256 at the receiver
        #[arg(long, value_name = "FILE")]
        send: Option<PathBuf>,
        #[command(flatten)]
        options: Options,
    },
    #[cfg(feature = "lab")]
    /// Run a scenario with each of its policies, or with those of --policy, on the same seeds, side by side
    Compare {
        /// The scenario: a file, or the name of one that comes with the program (see `list`)
        scenario: PathBuf,
        #[command(flatten)]
        options: Options,
    },
    #[cfg(feature = "lab")]
    /// Reproduce the papers' experiments and write a report with their figures
    Reproduce {
        /// Which one, by its name or the beginning of it; all of them by default
        experiment: Option<String>,
        #[command(flatten)]
        options: ReproduceOptions,
    },
    #[cfg(feature = "lab")]
    /// Compare the lab with real time: the same networks in the lab, emulated with the engine, and emulated with Linux
    Calibrate {
        #[command(flatten)]
        options: CalibrateOptions,
    },
    #[cfg(feature = "lab")]
    /// Compare every policy with TCP on each single path, on a thousand networks of a space-filling design
    Sweep {
        #[command(flatten)]
        options: SweepOptions,
    },
    #[cfg(feature = "lab")]
    /// Run a program over a scenario's paths in real time: two network namespaces with the lab's links between them
    #[command(after_help = EMULATE_EXAMPLES)]
    Emulate(EmulateOptions),
    /// Carry connections of this host's programs over several paths: SOCKS5, HTTP CONNECT, and forwarded ports
    Proxy {
        #[command(flatten)]
        options: Box<ProxyOptions>,
    },
    /// Terminate MPTCP connections, from `proxy` with a shared key, and forward them to their targets
    Serve {
        #[command(flatten)]
        options: Box<ServeOptions>,
    },
    /// Make the key that `proxy` and `serve` share
    Key {
        /// The new file
        file: PathBuf,
    },
    /// Print how the `proxy` and `serve` that run on this host do: uplinks, clients, connections and their paths
    Status {
        #[command(flatten)]
        query: StatusQuery,
        /// Print all of it as JSON, a list of programs
        #[arg(long)]
        json: bool,
    },
    /// Show the connections of the `proxy` and `serve` that run on this host, with rates, until q is pressed
    Top {
        #[command(flatten)]
        query: StatusQuery,
    },
    /// Say whether a configuration file of `proxy` and `serve` is right; needs no right, changes nothing
    CheckConfig {
        /// The file
        file: PathBuf,
    },
    #[cfg(feature = "manual")]
    /// Write pages for man(1) and completions for shells
    #[command(hide = true)]
    Manual {
        /// Where to
        directory: PathBuf,
    },
    /// Run an OSPF-MDR router of an ad-hoc network on this host, with multipath routes in the kernel
    #[command(after_help = ROUTE_EXAMPLES)]
    Route {
        #[command(flatten)]
        options: Box<RouteOptions>,
    },
    /// Measure throughput per second and per path: a client and a server, like iperf3
    Perf {
        #[command(flatten)]
        options: Box<PerfOptions>,
    },
    /// Carry live streams over several paths with a delivery deadline: late data is dropped
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

/// The end of the help of `route`.
const ROUTE_EXAMPLES: &str = "\
Needs root. It runs until SIGTERM, SIGINT or SIGHUP, and then removes its routes and settings. The next run removes what a killed
one left. See docs/route.md.

Examples:
  anabranch route --interface wlan0 --profile multipath
  anabranch route --interface wlan0 --point-to-point eth0=10 --passive lan0 --network 0.0.0.0/0
  anabranch route --show neighbors
  anabranch route --show routes --json";
