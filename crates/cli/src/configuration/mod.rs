//! The configuration file: a table for each command that runs for long, whose keys are the command's long options.
//!
//! The one description of the options is clap's. What the file says becomes words of the command line, before those that the user has
//! written; an option that is given there, or that contradicts one given there, is not taken from the file.

mod complete;
mod file;
mod option;
mod reading_again;
mod section;
#[cfg(test)]
mod tests;
mod uplinks;

pub use complete::complete;
pub use file::File;
pub use option::{ConfigurationOption, is_configurable};
pub use reading_again::ReadAgain;
pub use section::Section;
pub use uplinks::{TABLES as UPLINK_TABLES, read as read_uplinks};
