//! `anabranch check-config`: validates a configuration file without privileges or side effects.

#[cfg(feature = "uplinks")]
use super::proxy::ProxyOptions;
#[cfg(feature = "uplinks")]
use super::serve::ServeOptions;
#[cfg(feature = "uplinks")]
use super::up::UpOptions;
use crate::configuration::{File, Section, UPLINK_TABLES, is_configurable, read_uplinks};
use crate::console::print;
use crate::route::RouteOptions;
#[cfg(feature = "uplinks")]
use crate::steer::SteerOptions;
use anabranch_settings::diagnostic::{Diagnostic, did_you_mean};
use clap::{ArgMatches, Command, FromArgMatches};
use std::path::Path;

/// Prints "ok" and the commands that the file configures.
///
/// # Errors
/// The first error.
pub fn check_config(path: &Path, program: &Command) -> Result<(), Diagnostic> {
    let file = File::open(path)?;
    let checked = check_file(&file, program)?;
    if checked.is_empty() {
        return Err(Diagnostic::plain(format!("{} has no table of any command", path.display())));
    }
    print(&format!("ok: {}\n", checked.join(", ")));
    Ok(())
}

/// Names of the tables, if all are valid.
fn check_file(file: &File, program: &Command) -> Result<Vec<String>, Diagnostic> {
    let mut checked = Vec::new();
    read_uplinks(file)?;
    for table in file.tables.iter().filter(|table| table.key != UPLINK_TABLES) {
        let known = || program.get_subcommands().filter(|subcommand| is_configurable(subcommand));
        let Some(subcommand) = known().find(|subcommand| subcommand.get_name() == table.key) else {
            let names: Vec<&str> = known().map(Command::get_name).collect();
            let hint = did_you_mean(&table.key, names.iter().copied());
            let message = format!("there is no table [{}]; known are {}{hint}", table.key, names.join(", "));
            return Err(file.error(&table.origin, message));
        };
        if let Some(section) = Section::of(file, subcommand)? {
            let matches = section.check_completeness(file, subcommand)?;
            let checked = check_meaning(subcommand.get_name(), &matches);
            checked.map_err(|wrong| file.error(&table.origin, format!("[{}] {}", table.key, wrong.whole())))?;
        }
        checked.push(table.key.clone());
    }
    Ok(checked)
}

/// Errors that the command would report before it changes the host.
fn check_meaning(name: &str, matches: &ArgMatches) -> Result<(), Diagnostic> {
    let wrong = |error: clap::Error| Diagnostic::plain(error.to_string());
    match name {
        "route" => RouteOptions::from_arg_matches(matches).map_err(wrong)?.check(),
        #[cfg(feature = "uplinks")]
        "proxy" => ProxyOptions::from_arg_matches(matches).map_err(wrong)?.check(),
        #[cfg(feature = "uplinks")]
        "serve" => ServeOptions::from_arg_matches(matches).map_err(wrong)?.check(),
        #[cfg(feature = "uplinks")]
        "steer" => SteerOptions::from_arg_matches(matches).map_err(wrong)?.check(),
        #[cfg(feature = "uplinks")]
        "up" => UpOptions::from_arg_matches(matches).map_err(wrong)?.check(),
        _ => Ok(()),
    }
}
