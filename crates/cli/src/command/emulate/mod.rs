//! `emulate`: runs a program on a scenario's paths, or in its ad-hoc network, in real time.

mod mesh;
mod options;
mod paths;

pub use options::{EXAMPLES, EmulateOptions};

use anabranch_lab::library;
use anabranch_settings::diagnostic::Diagnostic;

/// Runs it; returns the exit code.
pub fn emulate(options: &EmulateOptions) -> Result<u8, Diagnostic> {
    let scenario = library::open(&options.scenario, &options.set)?.scenario()?;
    if let Some(mesh) = &scenario.mesh {
        return mesh::emulate(options, &scenario, mesh);
    }
    if scenario.moving.is_some() {
        let name = &scenario.name;
        return Err(Diagnostic::plain(format!("{name} has nodes that move, which `emulate` does not have")));
    }
    paths::emulate(options, &scenario)
}
