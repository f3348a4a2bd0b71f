//! The text of a scenario, and its parsed form.

use super::files::Files;
use super::model::Scenario;
use super::{read, references};
use anabranch_settings::diagnostic::Diagnostic;
use anabranch_settings::reader::Reader;
use anabranch_settings::tree::{self, Source};
use std::path::{Path, PathBuf};

/// Text of a scenario, and the directory for files that it names.
#[derive(Clone, Debug, Default)]
pub struct Document {
    /// The text with options applied.
    pub source: Source,
    /// Directory of the file.
    pub directory: PathBuf,
}

impl Document {
    pub fn open(path: &Path, options: &[String]) -> Result<Self, Diagnostic> {
        let source = Source::open(path, options)?;
        Ok(Self { source, directory: path.parent().map(Path::to_path_buf).unwrap_or_default() })
    }

    /// A scenario that is embedded in the program.
    pub fn embedded(name: &str, text: &str, options: &[String]) -> Self {
        Self { source: Source::embedded(name, text, options), directory: PathBuf::new() }
    }

    /// A copy with another `key=value` applied.
    pub fn with(&self, option: String) -> Self {
        let mut document = self.clone();
        document.source.options.push(option);
        document
    }

    /// Parses and validates the scenario.
    pub fn scenario(&self) -> Result<Scenario, Diagnostic> {
        let root = tree::read(&self.source)?;
        let top = read::top(&self.source, &root)?;
        let scenario = read::scenario(&top, &Files::new(&self.directory))?;
        references::check(&top, &scenario)?;
        if let Some(sweep) = &scenario.results.sweep {
            let keys = std::slice::from_ref(&sweep.key);
            self.check_points(&top, "sweep", keys, sweep.values.iter().chain(&sweep.quick))?;
        }
        for parameter in scenario.results.sensitivity.iter().flat_map(|sensitivity| &sensitivity.parameters) {
            self.check_points(&top, "sensitivity", &parameter.keys, parameter.values.iter())?;
        }
        Ok(scenario)
    }

    /// A copy with `value` at each of the `keys`.
    pub fn at(&self, keys: &[String], value: &str) -> Self {
        keys.iter().fold(self.clone(), |document, key| document.with(format!("{key}={value}")))
    }

    /// A sweep is valid if all of its points are valid scenarios.
    fn check_points<'a>(
        &self,
        top: &Reader<'_>,
        table: &str,
        keys: &[String],
        values: impl Iterator<Item = &'a String>,
    ) -> Result<(), Diagnostic> {
        for value in values {
            let point = self.at(keys, value);
            let root = tree::read(&point.source)?;
            let checked = read::top(&point.source, &root)
                .and_then(|top| read::scenario(&top, &Files::new(&self.directory)).map(drop));
            checked.map_err(|error| {
                let place = format!("{} = {value}: {}", keys.join(", "), error.message());
                top.get(table).map(|item| item.error(place)).unwrap_or(error)
            })?;
        }
        Ok(())
    }
}
