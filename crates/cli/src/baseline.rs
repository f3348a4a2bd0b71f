//! Baselines: what a stack of multipath TCP does where nobody says otherwise, each value with its reason and source.
//!
//! A scheme is as good as what it is held against. Most of what decides that is not in the papers: when data goes on another
//! subflow, how long a retransmission timeout is at least, which subflow comes first. A baseline names all of it. What it
//! says takes the place of the engine's defaults; a scenario wins over it, and a policy over both.

use crate::contender::Choices;
use crate::diagnostic::{Diagnostic, did_you_mean};
use crate::scenario::connection::ConnectionSettings;
use crate::scenario::{Source, baseline};
use std::path::Path;

/// Why a baseline has some of its values.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Reason {
    /// Of which values: the names of families, or `connection.` and a setting.
    pub of: Vec<String>,
    /// Why.
    pub text: String,
    /// Where that stands.
    pub source: String,
}

/// A named set of defaults.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Baseline {
    /// Its name: letters, digits, `_` and `-`.
    pub name: String,
    /// What tables and legends call it.
    pub label: String,
    /// What it is, in one sentence.
    pub summary: String,
    /// What it chooses of the families.
    pub choices: Choices,
    /// What it says of the connection.
    pub connection: ConnectionSettings,
    /// Why.
    pub reasons: Vec<Reason>,
    /// What it would take and is not modelled, a sentence each.
    pub not_modelled: Vec<String>,
}

/// Those that come with the program: name and text.
pub const BASELINES: &[(&str, &str)] = &[
    ("papers_simulator", include_str!("../../../scenarios/baselines/papers_simulator.toml")),
    ("linux", include_str!("../../../scenarios/baselines/linux.toml")),
    ("plain", include_str!("../../../scenarios/baselines/plain.toml")),
];

/// The one of this name that comes with the program.
pub fn embedded(name: &str) -> Option<Baseline> {
    let (name, text) = BASELINES.iter().find(|(known, _)| *known == name)?;
    let file = format!("scenarios/baselines/{name}.toml");
    let source = Source { file, text: (*text).to_owned(), options: Vec::new() };
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

#[cfg(all(test, feature = "lab"))]
mod tests;
