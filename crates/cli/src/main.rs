//! The one binary: scenarios in, tables, reports and captures out.
//!
//! Exit codes: 0 success; 1 received data differs from what was sent, the lab deviates from real time by more than the
//! limit, a sweep was interrupted, or the documentation is outdated; 2 invalid arguments or files.
//!
//! Without the feature `lab` it has only the commands for hosts on a network, and without any feature those of a router in
//! an ad-hoc network.

// Parsers, settings and samples are partly used by commands that are then left out.
#![cfg_attr(
    not(all(feature = "lab", feature = "perf", feature = "screen", feature = "stream", feature = "uplinks")),
    allow(dead_code, unused_imports)
)]

mod arguments;
#[cfg(feature = "uplinks")]
mod attachment;
#[cfg(feature = "lab")]
mod calibrate;
mod command;
mod configuration;
#[cfg(feature = "uplinks")]
mod connection_log;
mod console;
#[cfg(feature = "uplinks")]
mod datagrams;
#[cfg(feature = "lab")]
mod emulation;
mod ending;
#[cfg(feature = "uplinks")]
mod live;
#[cfg(feature = "lab")]
mod pages;
#[cfg(feature = "perf")]
mod perf;
#[cfg(feature = "lab")]
mod play;
#[cfg(feature = "lab")]
mod progress;
#[cfg(feature = "lab")]
mod report;
mod route;
mod secrets;
#[cfg(feature = "uplinks")]
mod server_name;
mod service_manager;
#[cfg(feature = "uplinks")]
mod serving;
mod state_directory;
#[cfg(feature = "uplinks")]
mod status;
#[cfg(feature = "uplinks")]
mod steer;
#[cfg(feature = "stream")]
mod stream;
#[cfg(feature = "lab")]
mod sweep;
mod table;
#[cfg(feature = "uplinks")]
mod uplink_care;
#[cfg(feature = "uplinks")]
mod uplink_names;
#[cfg(feature = "uplinks")]
mod values;
#[cfg(feature = "uplinks")]
mod workers;

use anabranch_settings::diagnostic::Diagnostic;
use arguments::{Arguments, Command};
use std::process::ExitCode;

fn main() -> ExitCode {
    match Arguments::read().and_then(|arguments| run(arguments.command)) {
        Ok(code) => match console::lost() {
            None => code,
            Some(error) => {
                console::remark(&format!("error: cannot write to standard output: {error}"));
                ExitCode::from(2)
            }
        },
        Err(diagnostic) => {
            console::remark(&explained(&diagnostic.to_string()));
            ExitCode::from(2)
        }
    }
}

/// An error with what to do about one of the system that says nothing of it.
fn explained(error: &str) -> String {
    // errno(3): EMFILE.
    let open_files = error.contains("(os error 24)");
    let hint = if open_files { ": raise the limit of open files (ulimit -n, or LimitNOFILE= of its unit)" } else { "" };
    format!("{error}{hint}")
}

fn code(well: bool) -> ExitCode {
    if well { ExitCode::SUCCESS } else { ExitCode::from(1) }
}

fn run(command: Command) -> Result<ExitCode, Diagnostic> {
    match command {
        #[cfg(feature = "lab")]
        Command::Run { scenario, send, options, rows } => {
            command::run(&scenario, send.as_deref(), &options, &rows).map(code)
        }
        #[cfg(feature = "lab")]
        Command::Compare { scenario, options, rows } => command::compare(&scenario, &options, &rows).map(code),
        #[cfg(feature = "lab")]
        Command::Play { options } => play::play(&options).map(|()| ExitCode::SUCCESS),
        #[cfg(feature = "lab")]
        Command::Merge { places, out } => command::merge_rows(&places, &out).map(code),
        #[cfg(feature = "lab")]
        Command::Reproduce { experiments, options } => {
            command::reproduce(&experiments, &options).map(|ending| code(ending == command::Ending::Done))
        }
        #[cfg(feature = "lab")]
        Command::Calibrate { options } => calibrate::calibrate(&options).map(code),
        #[cfg(feature = "lab")]
        Command::Sweep { options } => sweep::sweep(&options).map(code),
        #[cfg(feature = "lab")]
        Command::Emulate(options) => command::emulate(&options).map(ExitCode::from),
        other => run_on_host(other),
    }
}

/// Commands that exist without the lab too.
fn run_on_host(command: Command) -> Result<ExitCode, Diagnostic> {
    let done = match command {
        #[cfg(feature = "uplinks")]
        Command::Proxy { options } => command::proxy(&options),
        #[cfg(feature = "uplinks")]
        Command::Serve { options } => command::serve(&options),
        #[cfg(feature = "uplinks")]
        Command::Up { options } => command::up(&options),
        #[cfg(feature = "uplinks")]
        Command::Exec { options } => return command::run_program(&options).map(ExitCode::from),
        #[cfg(feature = "uplinks")]
        Command::Inside { channel, program } => return Ok(ExitCode::from(command::run_inside(channel, &program))),
        #[cfg(feature = "uplinks")]
        Command::Status { query, json } => command::status(&query, json),
        #[cfg(feature = "screen")]
        Command::Top { query } => command::top(&query),
        Command::CheckConfig { file } => command::check_config(&file, &Arguments::program()),
        #[cfg(feature = "manual")]
        Command::Manual { directory } => command::manual(&directory, &Arguments::program()),
        #[cfg(feature = "uplinks")]
        Command::Key { file } => command::key(&file),
        #[cfg(feature = "uplinks")]
        Command::Steer { options } => steer::steer(&options),
        Command::Route { options } => route::route(&options),
        #[cfg(feature = "perf")]
        Command::Perf { options } => return perf::perf(&options).map(code),
        #[cfg(feature = "stream")]
        Command::Stream { command } => return stream::stream(&command).map(code),
        Command::List { json } => command::list(json),
        // Commands of the lab are handled before.
        #[cfg(feature = "lab")]
        _ => Ok(()),
    };
    done.map(|()| ExitCode::SUCCESS)
}
