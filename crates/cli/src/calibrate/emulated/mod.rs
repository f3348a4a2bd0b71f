//! Runs a case in real time: the lab's links between descriptors, with Anabranch or Linux at both ends.

mod kernel;
pub mod linux_end;
pub mod ours;
mod trial;

pub use linux_end::missing;
pub use trial::{Done, PORT, Trial, client_addresses, failed, server_address, start_some_links};

use super::cases::Stack;
use anabranch_system::raise_priority;

/// Executes a run and blocks until its end. Must be called on its own thread, whose priority is raised to that of the
/// links, so that their lateness reflects that of the ends too.
pub fn run(trial: &Trial<'_>) -> Result<Done, String> {
    raise_priority();
    let scenario = trial.case.scenario(trial.stack, trial.span).map_err(|error| error.to_string())?;
    match trial.stack {
        Stack::Ours => ours::run(trial, &scenario),
        Stack::Kernel => kernel::run(trial, &scenario),
    }
}
