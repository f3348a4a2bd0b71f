//! The option that names the file, and properties of options.

use clap::{Arg, Command};
use std::path::PathBuf;

/// The option that names the file; commands with it can be configured by a file.
pub(super) const OPTION: &str = "config";

/// The file that options are read from.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct ConfigurationOption {
    /// Read options from this command's table in FILE; the command line takes precedence (see docs/service.md)
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
}

/// Whether a command's options are allowed in a file.
pub fn is_configurable(command: &Command) -> bool {
    command.get_arguments().any(|argument| argument.get_id() == OPTION)
}

/// Whether two options conflict; clap stores this with either of them.
pub(super) fn exclude(command: &Command, a: &Arg, b: &Arg) -> bool {
    let says = |a: &Arg, b: &Arg| command.get_arg_conflicts_with(a).iter().any(|other| other.get_id() == b.get_id());
    says(a, b) || says(b, a)
}
