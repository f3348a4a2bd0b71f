//! The one binary: scenarios in, tables, reports and captures out.
//!
//! Exit codes: 0 done; 1 a file did not arrive as it was sent, the lab is further from real time than is asked for, a sweep
//! was ended before it was done, or the documentation is not this program's; 2 something that the user gave is wrong.

mod arguments;
mod attachment;
mod baseline;
mod calibrate;
mod command;
mod console;
mod contender;
mod derived;
mod description;
mod diagnostic;
mod emulation;
mod ending;
mod experiment;
mod files;
mod lab;
mod library;
mod live;
mod measured;
mod metric;
mod pages;
mod perf;
mod progress;
mod quality;
mod record;
mod report;
mod route;
mod scenario;
mod serving;
mod spread;
mod statistics;
mod stream;
mod summary;
mod sweep;
mod table;
mod timeseries;
mod verdict;

use arguments::{Arguments, Command};
use std::process::ExitCode;

fn main() -> ExitCode {
    let outcome = match Arguments::read().command {
        Command::Run { scenario, send, options } => command::run(&scenario, send.as_deref(), &options),
        Command::Compare { scenario, options } => command::compare(&scenario, &options).map(|()| true),
        Command::Reproduce { experiment, options } => {
            command::reproduce(experiment.as_deref(), &options).map(|ending| ending == command::Ending::Done)
        }
        Command::Calibrate { options } => calibrate::calibrate(&options),
        Command::Sweep { options } => sweep::sweep(&options),
        Command::Emulate(options) => match command::emulate(&options) {
            Ok(code) => return ExitCode::from(code),
            Err(diagnostic) => Err(diagnostic),
        },
        Command::Proxy { options } => command::proxy(&options).map(|()| true),
        Command::Serve { options } => command::serve(&options).map(|()| true),
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
