//! The file's words under those of the command line.

use super::file::File;
use super::option::{OPTION, exclude, is_configurable};
use super::section::Section;
use crate::diagnostic::Diagnostic;
use clap::parser::ValueSource;
use clap::{Arg, ArgMatches, Command};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// The words of a command line with those of the file that it names.
///
/// # Errors
/// What is wrong with the file. What is wrong with the command line itself is left to whoever reads it.
pub fn complete(command: &Command, words: Vec<OsString>) -> Result<Vec<OsString>, Diagnostic> {
    complete_by(command, words, File::open)
}

/// As [`complete`], with files that come from elsewhere.
pub(super) fn complete_by(
    command: &Command,
    words: Vec<OsString>,
    open: impl Fn(&Path) -> Result<File, Diagnostic>,
) -> Result<Vec<OsString>, Diagnostic> {
    // Requirements may be met by the file: faults are found when all is known.
    let Ok(matches) = command.clone().ignore_errors(true).try_get_matches_from(&words) else { return Ok(words) };
    let Some((name, given)) = matches.subcommand() else { return Ok(words) };
    let Some(subcommand) = command.find_subcommand(name).filter(|subcommand| is_configurable(subcommand)) else {
        return Ok(words);
    };
    let Some(path) = given.get_one::<PathBuf>(OPTION) else { return Ok(words) };
    let file = open(path)?;
    let Some(section) = Section::of(&file, subcommand)? else {
        return Err(Diagnostic::plain(format!("{} has no table [{name}]", path.display())));
    };
    section.check_contradictions(&file, subcommand)?;
    let (program, rest) = words.split_at(words.len().min(2));
    let of_file = section.words_where(|argument| !is_given(subcommand, given, argument));
    Ok(program.iter().cloned().chain(of_file).chain(rest.iter().cloned()).collect())
}

/// Whether the command line has this option, or one that excludes it.
fn is_given(command: &Command, given: &ArgMatches, argument: &Arg) -> bool {
    let has = |argument: &Arg| given.value_source(argument.get_id().as_str()) == Some(ValueSource::CommandLine);
    has(argument) || command.get_arguments().any(|other| has(other) && exclude(command, argument, other))
}
