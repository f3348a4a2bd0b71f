//! The configuration file: one table per long-running command, with its long options as keys.
//!
//! Options are defined by clap only. Settings of the file become arguments before those of the user; an option that is
//! on the command line, or conflicts with one there, is not taken from the file.

mod complete;
mod file;
mod option;
mod reading_again;
mod section;
// With the commands of the example.
#[cfg(all(test, feature = "uplinks"))]
mod tests;
mod uplinks;

pub use complete::complete;
pub use file::File;
pub use option::{ConfigurationOption, is_configurable};
pub use reading_again::ReadAgain;
pub use section::Section;
pub use uplinks::{TABLES as UPLINK_TABLES, read as read_uplinks};
