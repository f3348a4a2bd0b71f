//! Finds a baseline: an embedded one, or a file.

use super::model::Baseline;
use crate::baseline;
use crate::diagnostic::{Diagnostic, did_you_mean};
use crate::tree::Source;
use std::path::Path;

/// Embedded baselines: name and text.
pub const BASELINES: &[(&str, &str)] = &[
    ("papers_simulator", include_str!("../../baselines/papers_simulator.toml")),
    ("linux", include_str!("../../baselines/linux.toml")),
    ("plain", include_str!("../../baselines/plain.toml")),
];

/// The embedded baseline with this name.
pub fn embedded(name: &str) -> Option<Baseline> {
    let (name, text) = BASELINES.iter().find(|(known, _)| *known == name)?;
    let source = Source::embedded(&format!("scenarios/baselines/{name}.toml"), text, &[]);
    Some(baseline::read(&source).expect("the test reads all that come with the program"))
}

/// All embedded baselines.
pub fn all() -> Vec<Baseline> {
    BASELINES.iter().filter_map(|(name, _)| embedded(name)).collect()
}

/// The embedded baseline with this name, or that of this file, relative to `directory`.
pub fn find(name: &str, directory: &Path) -> Result<Baseline, Diagnostic> {
    if let Some(known) = embedded(name) {
        return Ok(known);
    }
    if Path::new(name).extension().is_some_and(|extension| extension == "toml") {
        return baseline::read(&Source::open(&directory.join(name), &[])?);
    }
    let names = BASELINES.iter().map(|(name, _)| *name);
    let known = names.clone().collect::<Vec<_>>().join(", ");
    let hint = did_you_mean(name, names);
    Err(Diagnostic::plain(format!("there is no baseline '{name}': known are {known}, or give a .toml file{hint}")))
}
