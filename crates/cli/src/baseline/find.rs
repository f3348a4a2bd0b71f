//! Finds a baseline: one that comes with the program, or a file.

use super::model::Baseline;
use crate::diagnostic::{Diagnostic, did_you_mean};
use crate::scenario::{Source, baseline};
use std::path::Path;

/// Those that come with the program: name and text.
pub const BASELINES: &[(&str, &str)] = &[
    ("papers_simulator", include_str!("../../scenarios/baselines/papers_simulator.toml")),
    ("linux", include_str!("../../scenarios/baselines/linux.toml")),
    ("plain", include_str!("../../scenarios/baselines/plain.toml")),
];

/// The one of this name that comes with the program.
pub fn embedded(name: &str) -> Option<Baseline> {
    let (name, text) = BASELINES.iter().find(|(known, _)| *known == name)?;
    let source = Source::embedded(&format!("scenarios/baselines/{name}.toml"), text, &[]);
    Some(baseline::read(&source).expect("the test reads all that come with the program"))
}

/// All that come with the program.
pub fn all() -> Vec<Baseline> {
    BASELINES.iter().filter_map(|(name, _)| embedded(name)).collect()
}

/// The one of this name, or in this file, which lies in `directory`.
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
