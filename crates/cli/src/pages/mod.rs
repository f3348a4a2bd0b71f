//! Generated tables of the documentation: `reproduce --write-docs` writes them; `reproduce --check-docs` and a test
//! check that they are up to date.
//!
//! A table is between two comments; the first describes it:
//!
//! ```text
//! <!-- measured: lm3_evaluation matrix -->
//! ...
//! <!-- end of measured -->
//! ```
//!
//! The experiment's name is followed by one of `facts`, `matrix`, `claims`, `sensitivity`, `means METRIC,...
//! [POLICY,...]`, `sweep METRIC [POLICY,...]`; for all experiments, `all headlines` and `all verdicts`. The data is in
//! `docs/results/`, one file per experiment. All claims and sensitivities are there as CSV too.

mod blocks;
#[cfg(test)]
mod copied;
mod data;
mod record;
mod tables;

pub use record::PageRecord;

use anabranch_lab::files::{prepare, write};
use anabranch_lab::measured::Measured;
use anabranch_settings::diagnostic::Diagnostic;
use blocks::{Block, fill};
use std::path::{Path, PathBuf};

/// The documentation of a checkout.
#[derive(Clone, Debug)]
pub struct Pages {
    root: PathBuf,
}

impl Pages {
    /// For the checkout with this root.
    pub fn of(root: &Path) -> Self {
        Self { root: root.to_owned() }
    }

    fn results(&self) -> PathBuf {
        self.root.join("docs/results")
    }

    /// Pages that may have tables, in order: the README, and those of `docs/` and its directories.
    fn files(&self) -> Result<Vec<PathBuf>, Diagnostic> {
        let mut files = vec![self.root.join("README.md")];
        let mut directories = vec![self.root.join("docs")];
        while let Some(directory) = directories.pop() {
            let entries =
                std::fs::read_dir(&directory).map_err(|error| Diagnostic::file(&directory, "read", &error))?;
            for path in entries.filter_map(|entry| Some(entry.ok()?.path())) {
                if path.is_dir() {
                    directories.push(path);
                } else if path.extension().is_some_and(|extension| extension == "md") {
                    files.push(path);
                }
            }
        }
        files.sort();
        Ok(files)
    }

    /// Records of all experiments, in the order of `reproduce`.
    pub fn records(&self) -> Result<Vec<PageRecord>, Diagnostic> {
        let mut records = Vec::new();
        for known in anabranch_lab::library::experiments::<&str>(&[])? {
            let path = self.results().join(format!("{}.json", known.name));
            if !path.exists() {
                continue;
            }
            let text = std::fs::read_to_string(&path).map_err(|error| Diagnostic::file(&path, "read", &error))?;
            let record = serde_json::from_str(&text).map_err(|error| {
                Diagnostic::plain(format!("{} is not what reproduce writes: {error}", path.display()))
            })?;
            records.push(record);
        }
        Ok(records)
    }

    /// Saves the records of some experiments.
    pub fn keep(&self, records: &[PageRecord]) -> Result<(), Diagnostic> {
        prepare(&self.results())?;
        let blocks = self.blocks()?;
        for record in records {
            let mut record = record.clone();
            forget_unused(&mut record.measured, &blocks);
            let text = serde_json::to_string_pretty(&record)
                .map_err(|error| Diagnostic::plain(format!("cannot write the results: {error}")))?;
            write(&self.results().join(format!("{}.json", record.measured.name)), &(text + "\n"))?;
        }
        Ok(())
    }

    fn blocks(&self) -> Result<Vec<Block>, Diagnostic> {
        let mut blocks = Vec::new();
        for path in self.files()? {
            let text = std::fs::read_to_string(&path).map_err(|error| Diagnostic::file(&path, "read", &error))?;
            blocks.extend(blocks::blocks(&text).map_err(|message| in_page(&path, &message))?);
        }
        Ok(blocks)
    }

    /// Pages with outdated tables, and their new text.
    pub fn stale(&self) -> Result<Vec<(PathBuf, String)>, Diagnostic> {
        let records = self.records()?;
        let mut stale = Vec::new();
        for path in self.files()? {
            let text = std::fs::read_to_string(&path).map_err(|error| Diagnostic::file(&path, "read", &error))?;
            let filled = fill(&text, &records).map_err(|message| in_page(&path, &message))?;
            if filled != text {
                stale.push((path, filled));
            }
        }
        stale.extend(self.stale_picture(&records)?);
        stale.extend(self.stale_data(&records));
        Ok(stale)
    }

    /// The chart of the README, if outdated.
    fn stale_picture(&self, records: &[PageRecord]) -> Result<Option<(PathBuf, String)>, Diagnostic> {
        let all: Vec<&Measured> = records.iter().map(|record| &record.measured).collect();
        let drawn = crate::report::headlines(&all);
        let drawn = drawn.map_err(|error| Diagnostic::plain(format!("cannot draw the picture: {error}")))?;
        let path = self.root.join("docs/pictures/headlines.svg");
        let there = std::fs::read_to_string(&path).unwrap_or_default();
        Ok(drawn.filter(|drawn| *drawn != there).map(|drawn| (path, drawn)))
    }

    /// Outdated CSV files.
    fn stale_data(&self, records: &[PageRecord]) -> Vec<(PathBuf, String)> {
        let all: Vec<&Measured> = records.iter().map(|record| &record.measured).collect();
        let tables = [(data::CLAIMS, data::claims(&all)), (data::SENSITIVITY, data::sensitivity(&all))];
        let texts = tables.into_iter().map(|(name, text)| (self.results().join(name), text));
        texts.filter(|(path, text)| std::fs::read_to_string(path).unwrap_or_default() != *text).collect()
    }

    /// Writes the tables of all pages.
    pub fn write(&self) -> Result<Vec<PathBuf>, Diagnostic> {
        let stale = self.stale()?;
        prepare(&self.root.join("docs/pictures"))?;
        stale.iter().try_for_each(|(path, text)| write(path, text))?;
        Ok(stale.into_iter().map(|(path, _)| path).collect())
    }
}

fn in_page(path: &Path, message: &str) -> Diagnostic {
    Diagnostic::plain(format!("{}: {message}", path.display()))
}

/// Removes numbers that no table shows: all of them would be megabytes.
fn forget_unused(measured: &mut Measured, blocks: &[Block]) {
    let of_experiment = |block: &&Block| block.experiment == measured.name;
    let means: Vec<String> = blocks.iter().filter(of_experiment).flat_map(Block::means).collect();
    let sweeps: Vec<String> = blocks.iter().filter(of_experiment).flat_map(Block::swept).collect();
    for (at, experiment) in measured.experiments.iter_mut().enumerate() {
        let shown = if at == 0 { &means } else { &sweeps };
        experiment.rows.retain(|row| shown.contains(&row.metric));
    }
    measured.experiments.retain(|experiment| !experiment.rows.is_empty() || experiment.name == measured.name);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tables_of_this_checkout_are_what_its_records_say() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        if std::env::var_os("ANABRANCH_BLESS").is_some() {
            Pages::of(&root).write().unwrap();
        }
        let stale = Pages::of(&root).stale().unwrap();
        let names: Vec<String> = stale.iter().map(|(path, _)| path.display().to_string()).collect();
        assert!(
            names.is_empty(),
            "these differ from docs/results: {}; ANABRANCH_BLESS=1 writes them from there",
            names.join(", ")
        );
    }
}
