//! `anabranch manual`: man pages and shell completions, generated from the command line's definition.

use anabranch_settings::diagnostic::Diagnostic;
use clap::Command;
use clap_complete::Shell;
use std::path::Path;

/// Writes `man/*.1` and `completions/` into a directory.
///
/// # Errors
/// A file cannot be written.
pub fn manual(directory: &Path, program: &Command) -> Result<(), Diagnostic> {
    let (pages, completions) = (directory.join("man"), directory.join("completions"));
    for directory in [&pages, &completions] {
        std::fs::create_dir_all(directory).map_err(|error| Diagnostic::file(directory, "make", &error))?;
    }
    let mut program = program.clone().disable_help_subcommand(true);
    clap_mangen::generate_to(program.clone(), &pages)
        .map_err(|error| Diagnostic::file(&pages, "write into", &error))?;
    for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
        clap_complete::generate_to(shell, &mut program, "anabranch", &completions)
            .map_err(|error| Diagnostic::file(&completions, "write into", &error))?;
    }
    Ok(())
}
