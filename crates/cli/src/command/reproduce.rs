//! `reproduce`: runs the papers' experiments and compares measured with published results.
//!
//! Each finished experiment is saved at once in the results directory, so that an interrupted run can resume.

mod keep;
mod text;

use super::data::write_rows;
use super::options::{Options, plan};
use super::results;
use crate::console::{print, remark};
use crate::pages::{PageRecord, Pages};
use crate::progress::{self, Bar};
use anabranch_lab::experiment::{Experiment, Plan};
use anabranch_lab::files::prepare;
use anabranch_lab::library;
use anabranch_lab::measured::Measured;
use anabranch_lab::progress::Progress;
use anabranch_lab::record::Outcome;
use anabranch_lab::runs::{Shard, Store};
use anabranch_lab::scenario::Document;
use anabranch_settings::diagnostic::Diagnostic;
use clap::Args;
use keep::{Keeper, Kept};
use std::path::{Path, PathBuf};

/// Options of `reproduce` beside those of all lab commands.
#[derive(Clone, Debug, Args)]
pub struct ReproduceOptions {
    #[command(flatten)]
    pub options: Options,
    /// Run every experiment again, even if results for these options exist
    #[arg(long)]
    pub fresh: bool,
    /// Rewrite the tables in the documentation of the checkout in DIR from this run [default of DIR: .]
    #[arg(long, value_name = "DIR", num_args = 0..=1, default_missing_value = ".", conflicts_with_all = ["quick", "policies", "set"])]
    pub write_docs: Option<PathBuf>,
    /// With --quick: exit with code 1 if the results in the documentation of DIR came from a program that behaves
    /// differently [default of DIR: .]
    #[arg(long, value_name = "DIR", num_args = 0..=1, default_missing_value = ".", requires = "quick", conflicts_with_all = ["policies", "set", "seeds", "first_seed"])]
    pub check_docs: Option<PathBuf>,
}

/// Outcome of a valid `reproduce` command.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ending {
    /// Everything agrees.
    Done,
    /// The documentation is outdated.
    StaleDocs,
}

/// Runs the experiments and prints the comparison.
pub fn reproduce(names: &[String], asked: &ReproduceOptions) -> Result<Ending, Diagnostic> {
    let options = &asked.options;
    let chosen = library::experiments(names)?;
    let documents: Vec<Document> = chosen.iter().map(|known| known.document(&options.set)).collect();
    let mut plan = plan(options)?;
    plan.sweep = true;
    // All scenarios are read before the first run, to report an invalid --set at once.
    let kept = run_all(&documents, &plan, asked)?;
    results::write_pages(options, &kept.iter().map(Kept::page).collect::<Vec<_>>())?;
    let measured: Vec<&Measured> = kept.iter().map(|one| &one.measured).collect();
    if options.json {
        print(&results::summary_text(&measured)?);
    } else {
        let tables: Vec<&str> = kept.iter().map(|one| one.text.as_str()).collect();
        print(&format!("{}\n{}", tables.join("\n"), text::all_claims(&measured)));
        print(&format!("written: {}\n", results::names(options, &measured)));
    }
    if let Some(root) = &asked.write_docs {
        write_docs(root, &documents, &plan, &kept)?;
    }
    asked.check_docs.as_deref().map_or(Ok(Ending::Done), |root| check_docs(root, &measured))
}

/// Runs experiments without saved results.
fn run_all(documents: &[Document], plan: &Plan, asked: &ReproduceOptions) -> Result<Vec<Kept>, Diagnostic> {
    let options = &asked.options;
    let experiments: Vec<Experiment<'_>> =
        documents.iter().map(|document| Experiment::prepare(document, plan)).collect::<Result<_, _>>()?;
    prepare(&options.out)?;
    let store = Store::open(&options.out, Shard::WHOLE)?;
    let keeper = Keeper::new(options);
    let found: Vec<Option<Kept>> =
        documents.iter().map(|document| if asked.fresh { None } else { keeper.find(document) }).collect();
    let missing = experiments.iter().zip(&found).filter(|(_, found)| found.is_none());
    let progress = Bar::new(missing.map(|(experiment, _)| experiment.effort()).sum());
    let mut kept = Vec::new();
    for ((experiment, document), found) in experiments.into_iter().zip(documents).zip(found) {
        if let Some(found) = found {
            progress.remark(&format!("{}: kept from an earlier run (--fresh runs it again)", found.measured.name));
            kept.push(found);
            continue;
        }
        let outcome = progress.run(experiment, Some(&store))?;
        progress.remark(&format!("{}: {:.1} s", outcome.scenario.name, outcome.seconds));
        tell_missing_pictures(&outcome, &progress);
        kept.push(keeper.keep(document, &outcome)?);
    }
    progress.finish();
    write_rows(options, &store)?;
    Ok(kept)
}

fn tell_missing_pictures(outcome: &Outcome, progress: &Bar) {
    if let Some(reason) = outcome.pictures.as_ref().and_then(|pictures| pictures.missing.as_ref()) {
        let name = &outcome.scenario.name;
        progress.remark(&format!("{name}: PSNR, SSIM, VQM, MOS and stills were not computed: {reason}"));
    }
}

/// Saves the measurements, with the trace hash of the quick runs, and writes the tables.
fn write_docs(root: &Path, documents: &[Document], plan: &Plan, kept: &[Kept]) -> Result<(), Diagnostic> {
    let quick = Plan { quick: true, ..plan.clone() };
    let mut records = Vec::new();
    for (document, kept) in documents.iter().zip(kept) {
        let outcome = progress::run(document, &quick, None)?;
        let quick_trace_hash = format!("{:016x}", outcome.trace_hash);
        records.push(PageRecord { measured: kept.measured.clone(), quick_trace_hash });
    }
    let pages = Pages::of(root);
    pages.keep(&records)?;
    let written = pages.write()?;
    let names: Vec<String> = written.iter().map(|path| path.display().to_string()).collect();
    let names = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
    remark(&format!("tables written anew: {names}"));
    Ok(())
}

/// Whether the documentation matches this program: equal trace hashes of the quick runs, and tables equal to the saved
/// results.
fn check_docs(root: &Path, measured: &[&Measured]) -> Result<Ending, Diagnostic> {
    let pages = Pages::of(root);
    let records = pages.records()?;
    let mut ending = Ending::Done;
    for one in measured {
        let record = records.iter().find(|record| record.measured.name == one.name);
        let complaint = match record {
            Some(record) if record.quick_trace_hash == one.trace_hash => continue,
            Some(record) => format!(
                "its quick runs have trace hash {}, and those of the pages (commit {}) had {}",
                one.trace_hash, record.measured.commit, record.quick_trace_hash
            ),
            None => "nothing of it is kept in docs/results".to_owned(),
        };
        remark(&format!("{}: {complaint}: run `anabranch reproduce --write-docs`", one.name));
        ending = Ending::StaleDocs;
    }
    for (path, _) in pages.stale()? {
        remark(&format!("{}: its tables are not what docs/results says", path.display()));
        ending = Ending::StaleDocs;
    }
    Ok(ending)
}
