//! Runs as data: all combinations of a grid, on one machine or in shards, and shards put together.

use super::options::Options;
use crate::console::{print, remark};
use crate::ending::watch;
use crate::progress::Bar;
use anabranch_lab::experiment::{Data, Plan};
use anabranch_lab::files::prepare;
use anabranch_lab::library::SCENARIOS;
use anabranch_lab::runner::{Runner, processors};
use anabranch_lab::runs::{Grid, Shard, Store, merge, write};
use anabranch_lab::scenario::Document;
use anabranch_settings::diagnostic::Diagnostic;
use clap::Args;
use std::path::{Path, PathBuf};

/// Which runs, as rows only.
#[derive(Clone, Debug, Default, Args)]
pub struct DataOptions {
    /// Run all combinations of these values of the scenario, e.g. --grid paths.B.links.bottleneck.loss="0 %","2 %"
    /// (repeatable); results are rows in runs.parquet, without report. The same command goes on from where it was ended
    #[arg(long, value_name = "KEY=VALUE,...", conflicts_with_all = ["pcap", "json"])]
    pub grid: Vec<String>,
    /// Only the I-th of N parts of the runs, for one of N machines, as rows in runs-I-of-N.parquet; see `merge`
    #[arg(long, value_name = "I/N", conflicts_with_all = ["pcap", "json"])]
    pub shard: Option<Shard>,
}

impl DataOptions {
    /// Whether rows are all that is wanted.
    pub fn is_given(&self) -> bool {
        !self.grid.is_empty() || self.shard.is_some()
    }
}

/// Executes them; false if it was ended before it was done.
pub fn data(document: &Document, plan: &Plan, options: &Options, asked: &DataOptions) -> Result<bool, Diagnostic> {
    let shard = asked.shard.unwrap_or(Shard::WHOLE);
    let data = Data { document, plan, grid: Grid::read(&asked.grid)?, shard };
    let all = data.check()?;
    prepare(&options.out)?;
    let store = Store::open(&options.out, shard)?;
    let (stop, bar) = (watch()?, Bar::new(0));
    let done = data.run(&store, &Runner { jobs: processors(), stop: &stop, progress: &bar });
    bar.finish();
    let table = options.out.join(format!("{}.parquet", shard.file()));
    let rows = write(store.path(), &table)?;
    let done = done?;
    let (place, of) = (store.path().display(), if shard == Shard::WHOLE { "" } else { " of this shard" });
    if !done.is_complete() {
        let there = done.known + done.executed;
        let runs = done.runs;
        remark(&format!(
            "ended before it was done: {there} of {runs} runs{of} are in {place}, and the same command goes on from there"
        ));
        return Ok(false);
    }
    let summary = format!("{} runs{of}, {} of them executed now; {all} runs in all", done.runs, done.executed);
    print(&format!("{summary}\nwritten: {} ({rows} rows), {place}\n", table.display()));
    Ok(true)
}

/// Writes `runs.parquet` of a directory from what was appended to `store`.
pub fn write_rows(options: &Options, store: &Store) -> Result<(), Diagnostic> {
    write(store.path(), &options.out.join("runs.parquet")).map(drop)
}

/// Tells what of a scenario only `reproduce` runs.
pub fn say_what_is_not_run(document: &Document) -> Result<(), Diagnostic> {
    what_is_not_run(document).map(|said| said.iter().for_each(|said| remark(said)))
}

/// The grid that has the values of the scenario's sweep; a paper's experiment is also run with it by `reproduce`.
fn what_is_not_run(document: &Document) -> Result<Option<String>, Diagnostic> {
    let scenario = document.scenario()?;
    Ok(scenario.results.sweep.as_ref().map(|sweep| {
        let (key, values) = (&sweep.key, sweep.values.join(","));
        let experiment = SCENARIOS.iter().find(|known| known.experiment && known.text == document.source.text);
        let also = experiment.map_or_else(String::new, |known| format!(", or `reproduce {}`", known.name));
        format!("the scenario's [sweep] is not run: that is --grid '{key}={values}'{also}")
    }))
}

/// Puts files of rows together in `out`; false if something is missing.
pub fn merge_rows(places: &[PathBuf], out: &Path) -> Result<bool, Diagnostic> {
    prepare(out)?;
    let lines = out.join("runs.jsonl");
    let mut files: Vec<PathBuf> = lines.exists().then(|| lines.clone()).into_iter().collect();
    for place in places {
        let found = files_in(place)?;
        if found.is_empty() {
            let place = place.display();
            return Err(Diagnostic::plain(format!(
                "{place} has no file runs.jsonl or runs-I-of-N.jsonl: nothing to merge"
            )));
        }
        if found.iter().all(|file| is_empty(file)) {
            return Err(Diagnostic::plain(format!("{} has no rows yet: nothing to merge", place.display())));
        }
        for file in found {
            if !files.contains(&file) {
                files.push(file);
            }
        }
    }
    if files.is_empty() {
        return Err(Diagnostic::plain("there is no file runs.jsonl or runs-I-of-N.jsonl: nothing to merge"));
    }
    let unfinished = out.join("runs.jsonl.part");
    let cannot = |error: std::io::Error| Diagnostic::file(&unfinished, "write", &error);
    if unfinished.exists() {
        std::fs::remove_file(&unfinished).map_err(cannot)?;
    }
    let merged = merge(&files, &unfinished)?;
    std::fs::rename(&unfinished, &lines).map_err(cannot)?;
    let table = out.join("runs.parquet");
    write(&lines, &table)?;
    merged.missing.iter().for_each(|missing| remark(missing));
    let (rows, repeated) = (merged.rows, merged.repeated);
    let twice = if repeated > 0 { format!(", {repeated} were in several files") } else { String::new() };
    print(&format!("{} files, {rows} rows{twice}\nwritten: {}, {}\n", files.len(), table.display(), lines.display()));
    Ok(merged.missing.is_empty())
}

/// Not even the line that tells of which part it is was written. What cannot be read is told when it is.
fn is_empty(file: &Path) -> bool {
    file.metadata().is_ok_and(|about| about.len() == 0)
}

/// A file, or the files of rows in a directory.
fn files_in(place: &Path) -> Result<Vec<PathBuf>, Diagnostic> {
    if !place.is_dir() {
        return Ok(vec![place.to_owned()]);
    }
    let cannot = |error: std::io::Error| Diagnostic::file(place, "read the directory", &error);
    let mut found = Vec::new();
    for entry in std::fs::read_dir(place).map_err(cannot)? {
        let path = entry.map_err(cannot)?.path();
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        if name.ends_with(".jsonl") && (name == "runs.jsonl" || name.starts_with("runs-")) {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reproduce_is_named_only_for_what_it_reproduces() {
        let said = |document: &Document| what_is_not_run(document).expect("a scenario").expect("it has a sweep");
        let known = SCENARIOS.iter().find(|known| known.name == "lm3_evaluation").expect("it comes with the program");
        let of_program = known.document(&[]);
        assert!(said(&of_program).ends_with(", or `reproduce lm3_evaluation`"), "{}", said(&of_program));
        let mut own = of_program.clone();
        own.source.text.push_str("# my copy\n");
        assert!(said(&own).contains("--grid '") && !said(&own).contains("reproduce"), "{}", said(&own));
    }
}
