//! Merges arguments of the configuration file with those of the command line.

use super::file::File;
use super::option::{OPTION, exclude, is_configurable};
use super::section::Section;
use anabranch_settings::diagnostic::Diagnostic;
use clap::parser::ValueSource;
use clap::{Arg, ArgMatches, Command};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// The command line with the arguments of the file that it names.
///
/// # Errors
/// The file is invalid. Errors of the command line are reported when it is parsed.
pub fn complete(command: &Command, words: Vec<OsString>) -> Result<Vec<OsString>, Diagnostic> {
    complete_by(command, words, File::open)
}

/// Like [`complete`], with another way to open files.
pub(super) fn complete_by(
    command: &Command,
    words: Vec<OsString>,
    open: impl Fn(&Path) -> Result<File, Diagnostic>,
) -> Result<Vec<OsString>, Diagnostic> {
    // The file may add required options: errors are detected after merging.
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

/// Whether the command line has this option or one that conflicts with it.
fn is_given(command: &Command, given: &ArgMatches, argument: &Arg) -> bool {
    let has = |argument: &Arg| given.value_source(argument.get_id().as_str()) == Some(ValueSource::CommandLine);
    has(argument) || command.get_arguments().any(|other| has(other) && exclude(command, argument, other))
}
