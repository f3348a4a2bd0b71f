//! Reloads the configuration file at runtime.

use super::complete::complete;
use super::file::File;
use super::option::ConfigurationOption;
use super::section::{Section, message_of};
use anabranch_settings::diagnostic::Diagnostic;
use clap::{Args, Command, FromArgMatches};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::path::Path;

/// Arguments of a command's table by key.
type Said = BTreeMap<String, Vec<OsString>>;

/// A command's table as it was at the start.
pub struct ReadAgain {
    command: &'static str,
    option: ConfigurationOption,
    first: Said,
}

impl ReadAgain {
    /// For a command with these options; none without a file.
    ///
    /// # Errors
    /// The file is invalid by now.
    pub fn new<T: Args>(command: &'static str, option: &ConfigurationOption) -> Result<Option<Self>, Diagnostic> {
        if option.config.is_none() {
            return Ok(None);
        }
        let mut new = Self { command, option: option.clone(), first: Said::new() };
        if option.config.as_deref().is_some_and(|path| check_regular(path).is_ok()) {
            new.first = new.said(&new.program::<T>())?;
        }
        Ok(Some(new))
    }

    /// The present options of command line and file, and the keys that changed since the start.
    ///
    /// # Errors
    /// The file is invalid.
    pub fn options<T: Args + FromArgMatches>(&self) -> Result<(T, Vec<String>), Diagnostic> {
        self.option.config.as_deref().map_or(Ok(()), check_regular)?;
        let program = self.program::<T>();
        let words = complete(&program, std::env::args_os().collect())?;
        let wrong = |error: clap::Error| Diagnostic::plain(message_of(&error, self.command));
        let matches = program.clone().try_get_matches_from(words).map_err(wrong)?;
        let (_, matches) = matches.subcommand().ok_or_else(|| Diagnostic::plain("there is no command any more"))?;
        let options = T::from_arg_matches(matches).map_err(wrong)?;
        let said = self.said(&program)?;
        let keys = self.first.keys().chain(said.keys().filter(|key| !self.first.contains_key(*key)));
        let changed = keys.filter(|key| self.first.get(*key) != said.get(*key)).cloned().collect();
        Ok((options, changed))
    }

    fn program<T: Args>(&self) -> Command {
        Command::new("anabranch").subcommand(T::augment_args(Command::new(self.command)))
    }

    fn said(&self, program: &Command) -> Result<Said, Diagnostic> {
        let (Some(path), Some(command)) = (&self.option.config, program.find_subcommand(self.command)) else {
            return Ok(Said::new());
        };
        let section = Section::of(&File::open(path)?, command)?;
        Ok(section.map(|section| section.by_key()).unwrap_or_default())
    }
}

/// # Errors
/// The file is a pipe or a device: what it had was read at the start, and reading would wait for more.
fn check_regular(path: &Path) -> Result<(), Diagnostic> {
    match std::fs::metadata(path) {
        Ok(found) if !found.is_file() => {
            Err(Diagnostic::file(path, "read again", &io::Error::other("it is no regular file")))
        }
        // Reading tells what is wrong.
        _ => Ok(()),
    }
}
