//! The one binary: scenarios in, tables, reports and captures out.
//!
//! Exit codes: 0 done; 1 a file did not arrive as it was sent, the lab is further from real time than is asked for, a sweep
//! was ended before it was done, or the documentation is not this program's; 2 something in the arguments or files is wrong.
//!
//! Without the feature `lab` it has only the commands that a host on a network needs.

// What reads policies and settings is there for scenarios too.
#![cfg_attr(not(feature = "lab"), allow(dead_code, unused_imports))]

mod arguments;
mod attachment;
mod baseline;
#[cfg(feature = "lab")]
mod build;
#[cfg(feature = "lab")]
mod calibrate;
mod command;
mod console;
mod contender;
mod datagrams;
#[cfg(feature = "lab")]
mod derived;
mod description;
mod diagnostic;
#[cfg(feature = "lab")]
mod emulation;
mod ending;
#[cfg(feature = "lab")]
mod experiment;
#[cfg(feature = "lab")]
mod files;
#[cfg(feature = "lab")]
mod lab;
#[cfg(feature = "lab")]
mod library;
mod live;
#[cfg(feature = "lab")]
mod means;
#[cfg(feature = "lab")]
mod measured;
#[cfg(feature = "lab")]
mod metric;
#[cfg(feature = "lab")]
mod pages;
mod perf;
#[cfg(feature = "lab")]
mod progress;
#[cfg(feature = "lab")]
mod quality;
#[cfg(feature = "lab")]
mod record;
#[cfg(feature = "lab")]
mod report;
mod route;
mod scenario;
mod serving;
#[cfg(feature = "lab")]
mod spread;
#[cfg(feature = "lab")]
mod statistics;
mod stream;
#[cfg(feature = "lab")]
mod summary;
#[cfg(feature = "lab")]
mod sweep;
mod table;
#[cfg(feature = "lab")]
mod timeseries;
mod uplink_names;
#[cfg(feature = "lab")]
mod verdict;
mod workers;

use arguments::{Arguments, Command};
use std::process::ExitCode;

fn main() -> ExitCode {
    let outcome = match Arguments::read().command {
        #[cfg(feature = "lab")]
        Command::Run { scenario, send, options } => command::run(&scenario, send.as_deref(), &options),
        #[cfg(feature = "lab")]
        Command::Compare { scenario, options } => command::compare(&scenario, &options).map(|()| true),
        #[cfg(feature = "lab")]
        Command::Reproduce { experiment, options } => {
            command::reproduce(experiment.as_deref(), &options).map(|ending| ending == command::Ending::Done)
        }
        #[cfg(feature = "lab")]
        Command::Calibrate { options } => calibrate::calibrate(&options),
        #[cfg(feature = "lab")]
        Command::Sweep { options } => sweep::sweep(&options),
        #[cfg(feature = "lab")]
        Command::Emulate(options) => match command::emulate(&options) {
            Ok(code) => return ExitCode::from(code),
            Err(diagnostic) => Err(diagnostic),
        },
        Command::Exec { options } => match command::run_program(&options) {
            Ok(code) => return ExitCode::from(code),
            Err(diagnostic) => Err(diagnostic),
        },
        Command::Inside { channel, program } => return ExitCode::from(command::run_inside(channel, &program)),
        Command::Proxy { options } => command::proxy(&options).map(|()| true),
        Command::Serve { options } => command::serve(&options).map(|()| true),
        Command::Up { options } => command::up(&options).map(|()| true),
        Command::Key { file } => command::key(&file).map(|()| true),
        Command::Route { options } => route::route(&options).map(|()| true),
        Command::Perf { options } => perf::perf(&options),
        Command::Stream { command } => stream::stream(&command),
        Command::List { json } => command::list(json).map(|()| true),
    };
    match outcome {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(diagnostic) => {
            console::remark(&diagnostic.to_string());
            ExitCode::from(2)
        }
    }
}
