//! The command line.

#[cfg(feature = "lab")]
use crate::calibrate::CalibrateOptions;
#[cfg(feature = "lab")]
use crate::command::{DataOptions, EMULATE_EXAMPLES, EmulateOptions, Options, ReproduceOptions};
#[cfg(feature = "uplinks")]
use crate::command::{ProxyOptions, RUN_PROGRAM_NOTES, RunProgramOptions, ServeOptions, StatusQuery, UpOptions};
use crate::configuration;
#[cfg(feature = "perf")]
use crate::perf::PerfOptions;
#[cfg(feature = "lab")]
use crate::play::PlayOptions;
use crate::route::RouteOptions;
#[cfg(feature = "uplinks")]
use crate::steer::SteerOptions;
#[cfg(feature = "stream")]
use crate::stream::StreamCommand;
#[cfg(feature = "lab")]
use crate::sweep::SweepOptions;
use anabranch_settings::diagnostic::Diagnostic;
use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use std::ffi::OsString;
use std::path::PathBuf;

/// Multipath TCP in a lab and on real networks: scenarios, measurements, emulated paths, and a proxy over several
/// uplinks.
#[derive(Debug, Parser)]
#[command(name = "anabranch", version, max_term_width = 100)]
pub struct Arguments {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// Value names of options with numbers or quantities.
const QUANTITIES: [&str; 6] = ["TIME", "RATE", "SIZE", "N", "SECONDS", "BYTES"];

impl Arguments {
    /// Parses the command line and the configuration file that it names. Exits with a message if the command line is
    /// invalid.
    ///
    /// # Errors
    /// The configuration file is invalid.
    pub fn read() -> Result<Self, Diagnostic> {
        let command = Self::program();
        let words = configuration::complete(&command, of_a_program(std::env::args_os().collect()))?;
        let matches = command.get_matches_from(words);
        Ok(Self::from_arg_matches(&matches).unwrap_or_else(|error| error.exit()))
    }

    /// The complete command as it is parsed.
    pub fn program() -> clap::Command {
        with_signs(Self::command())
    }
}

/// `run` is two commands: it runs a program if `--` or a server follows, else a scenario.
fn of_a_program(mut words: Vec<OsString>) -> Vec<OsString> {
    let says_so = |word: &OsString| word == "--" || word.to_str().is_some_and(|word| word.starts_with("--server"));
    let of_a_program = words.get(2..).is_some_and(|rest| rest.iter().any(says_so));
    if let Some(command) = words.get_mut(1).filter(|command| *command == "run" && of_a_program) {
        *command = "exec".into();
    }
    words
}

/// Passes negative quantities to their own parser: clap would report `-3` as an unknown option. Where the value may be left
/// out, what follows may be the next option.
fn with_signs(command: clap::Command) -> clap::Command {
    let is_quantity = |argument: &clap::Arg| {
        let names = argument.get_value_names().unwrap_or_default();
        let is_needed = argument.get_num_args().is_none_or(|count| count.min_values() > 0);
        is_needed && names.first().is_some_and(|name| QUANTITIES.contains(&name.as_str()))
    };
    command
        .mut_args(|argument| if is_quantity(&argument) { argument.allow_hyphen_values(true) } else { argument })
        .mut_subcommands(with_signs)
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    #[cfg(feature = "lab")]
    /// Simulate a scenario with its first policy or those of --policy; with `-- PROGRAM`, the same as `exec`
    #[command(
        override_usage = "anabranch run [OPTIONS] <SCENARIO>\n       anabranch run [OPTIONS OF exec] -- <PROGRAM> [ARGUMENTS]...",
        after_help = "With `-- PROGRAM`, runs that program with its traffic over all uplinks: see `anabranch exec --help`."
    )]
    Run {
        /// Scenario: a file, or the name of a built-in one (see `list`)
        scenario: PathBuf,
        /// Transfer this file instead of the scenario's data, once per policy, and check its SHA-256 at the receiver
        #[arg(long, value_name = "FILE", conflicts_with_all = ["grid", "shard"])]
        send: Option<PathBuf>,
        #[command(flatten)]
        options: Options,
        #[command(flatten)]
        rows: DataOptions,
    },
    #[cfg(feature = "lab")]
    /// Simulate a scenario with each of its policies, or those of --policy, on the same seeds
    Compare {
        /// Scenario: a file, or the name of a built-in one (see `list`)
        scenario: PathBuf,
        #[command(flatten)]
        options: Options,
        #[command(flatten)]
        rows: DataOptions,
    },
    #[cfg(feature = "lab")]
    /// Watch a scenario in a browser: packets, queues and decisions, with sliders for its paths
    Play {
        #[command(flatten)]
        options: PlayOptions,
    },
    #[cfg(feature = "lab")]
    /// Put rows of several directories or shards together in one runs.parquet; says which shards are missing
    Merge {
        /// Files of rows (runs.jsonl, runs-I-of-N.jsonl), or directories with them
        #[arg(required = true)]
        places: Vec<PathBuf>,
        /// Directory for the result; rows that are there stay
        #[arg(long, value_name = "DIR", default_value = "results")]
        out: PathBuf,
    },
    #[cfg(feature = "lab")]
    /// Reproduce the papers' experiments and write a report
    Reproduce {
        /// Experiments to run, by names or prefixes [default: all]
        #[arg(value_name = "EXPERIMENT")]
        experiments: Vec<String>,
        #[command(flatten)]
        options: ReproduceOptions,
    },
    #[cfg(feature = "lab")]
    /// Compare the simulator with real time: the same networks simulated, emulated with the engine, and emulated with
    /// Linux
    Calibrate {
        #[command(flatten)]
        options: CalibrateOptions,
    },
    #[cfg(feature = "lab")]
    /// Compare every policy with single-path TCP on a thousand networks of a space-filling design
    Sweep {
        #[command(flatten)]
        options: SweepOptions,
    },
    #[cfg(feature = "lab")]
    /// Run a program over a scenario's paths in real time, between two network namespaces
    #[command(after_help = EMULATE_EXAMPLES)]
    Emulate(EmulateOptions),
    #[cfg(feature = "uplinks")]
    /// Run a program with its traffic over all uplinks, without privileges; the same as `run -- PROGRAM`
    #[command(
        override_usage = "anabranch run [--server <HOST:PORT> --key <FILE>] [OPTIONS] -- <PROGRAM> [ARGUMENTS]...",
        after_help = RUN_PROGRAM_NOTES
    )]
    Exec {
        #[command(flatten)]
        options: Box<RunProgramOptions>,
    },
    #[cfg(feature = "uplinks")]
    /// Become the program of `exec`
    #[command(hide = true)]
    Inside {
        /// The number of the channel
        channel: i32,
        /// The program and its arguments
        #[arg(last = true, required = true)]
        program: Vec<OsString>,
    },
    #[cfg(feature = "uplinks")]
    /// Proxy for programs on this host, over several paths: SOCKS5, HTTP CONNECT, and forwarded ports
    Proxy {
        #[command(flatten)]
        options: Box<ProxyOptions>,
    },
    #[cfg(feature = "uplinks")]
    /// Terminate MPTCP connections, from `proxy` with a shared key, and forward them to their targets
    Serve {
        #[command(flatten)]
        options: Box<ServeOptions>,
    },
    #[cfg(feature = "uplinks")]
    /// Route all traffic of this host over several uplinks, through your own server or directly
    #[command(after_help = UP_NOTES)]
    Up {
        #[command(flatten)]
        options: Box<UpOptions>,
    },
    #[cfg(feature = "uplinks")]
    /// Steer the MPTCP connections of this host's kernel: open, close and demote their paths by a policy
    #[command(after_help = STEER_NOTES)]
    Steer {
        #[command(flatten)]
        options: Box<SteerOptions>,
    },
    #[cfg(feature = "uplinks")]
    /// Generate the key that `proxy` and `serve`, or the routers of a mesh, share
    Key {
        /// The new file
        file: PathBuf,
    },
    #[cfg(feature = "uplinks")]
    /// Print the status of the `proxy`, `serve`, `up`, `run` and `steer` on this host: uplinks, clients, connections,
    /// paths, datagrams
    Status {
        #[command(flatten)]
        query: StatusQuery,
        /// Print everything as JSON, as a list of programs
        #[arg(long)]
        json: bool,
    },
    #[cfg(feature = "screen")]
    /// Show uplinks, connections and datagram flows of the `proxy`, `serve`, `up`, `run` and `steer` on this host with
    /// their rates, until q is pressed
    Top {
        #[command(flatten)]
        query: StatusQuery,
    },
    /// Check a configuration file; needs no privileges and changes nothing
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
    /// Run an OSPF-MDR router for ad-hoc networks, with multipath routes in the kernel
    #[command(after_help = ROUTE_EXAMPLES)]
    Route {
        #[command(flatten)]
        options: Box<RouteOptions>,
    },
    #[cfg(feature = "perf")]
    /// Measure throughput per second and path, client and server, like iperf3
    Perf {
        #[command(flatten)]
        options: Box<PerfOptions>,
    },
    #[cfg(feature = "stream")]
    /// Carry live streams over several paths with a delivery deadline; late data is dropped
    Stream {
        #[command(subcommand)]
        command: StreamCommand,
    },
    /// List the policies with their parameters and sources, the metrics, and the scenarios
    List {
        /// Print as JSON
        #[arg(long)]
        json: bool,
    },
}

#[cfg(feature = "uplinks")]
/// End of the help of `up`.
const UP_NOTES: &str = "\
Needs CAP_NET_ADMIN, which root has. Runs until SIGTERM or SIGINT, and then removes what it set up. SIGHUP reads the file of
--config again, or without one ends the program. See docs/up.md.

Examples:
  anabranch up
  anabranch up --server vps.example:4433 --key tunnel.key
  anabranch up --server vps.example:4433 --key tunnel.key --udp --uplink wlan0 --uplink wwan0 --gateway lan0 --kill-switch
  anabranch up --down";

#[cfg(feature = "uplinks")]
/// End of the help of `steer`.
const STEER_NOTES: &str = "\
Needs CAP_NET_ADMIN. It runs until SIGTERM, SIGINT or SIGHUP, restores the kernel's setting, and leaves connections as they are.
See docs/steer.md.

Examples:
  anabranch steer --check
  anabranch steer --policy lm3
  anabranch steer --path-manager kernel --json";

/// End of the help of `route`.
const ROUTE_EXAMPLES: &str = "\
Needs root. It runs until SIGTERM, SIGINT or SIGHUP, and then removes its routes and settings. The next run removes what a killed
one left. See docs/route.md.

Examples:
  anabranch route --interface wlan0 --profile multipath
  anabranch route --interface wlan0 --point-to-point eth0=10 --passive lan0 --network 0.0.0.0/0
  anabranch route --show neighbors
  anabranch route --show routes --json";

#[cfg(test)]
mod tests {
    use super::*;

    fn command(line: &str) -> String {
        let words = of_a_program(line.split(' ').map(OsString::from).collect());
        words[1].to_string_lossy().into_owned()
    }

    #[test]
    fn a_program_is_told_from_a_scenario_by_what_stands_before_it() {
        for program in
            ["anabranch run -- curl", "anabranch run --server h:1 --key k -- x", "anabranch run --server=h:1"]
        {
            assert_eq!(command(program), "exec", "{program}");
        }
        for scenario in ["anabranch run two_paths", "anabranch run x.toml --seeds 3", "anabranch run"] {
            assert_eq!(command(scenario), "run", "{scenario}");
        }
        assert_eq!(command("anabranch emulate x.toml -- ls"), "emulate");
    }
}
