//! `sweep --rivals`: the default on networks in real time compared with the kernel's MPTCP, both with Linux as
//! receiver, on points of the design.

mod draw;
pub mod outcome;
mod trial;
mod who;

use super::options::SweepOptions;
use crate::calibrate::{emulated, side_by_side};
use crate::console::{print, remark};
use crate::ending::watch;
use anabranch_lab::files::{prepare, write};
use anabranch_lab::journal::program;
use anabranch_lab::sweep::cast;
use anabranch_lab::sweep::journal::{Journal, Line};
use anabranch_settings::contender::ON_NETWORKS;
use anabranch_settings::diagnostic::Diagnostic;
use outcome::Rivals;
use std::collections::BTreeMap;
use trial::{Goodput, Trial};
use who::Who;

/// Points of a full and of a quick run.
const FULL: u32 = 30;
const QUICK: u32 = 4;

/// Runs the comparison; returns whether it was completed.
pub fn rivals(options: &SweepOptions) -> Result<bool, Diagnostic> {
    if let Some(reason) = emulated::missing() {
        return Err(Diagnostic::plain(format!("there is no Linux to compete with: {reason}")));
    }
    let ours = match options.policies.as_slice() {
        [] => cast::one(ON_NETWORKS),
        [name] => cast::one(name),
        _ => Err("one policy at a time competes with the kernel".to_owned()),
    }
    .map_err(|message| Diagnostic::option("--policy", message))?;
    let count = options.points.unwrap_or(if options.quick { QUICK } else { FULL });
    let points = draw::points(options.seed, options.from, count);
    prepare(&options.results.out)?;
    let path = options.results.out.join("rivals.jsonl");
    let journal = Journal::open(&path, options.results.any_program)?;
    let stop = watch()?;
    let bbr = trial::has_bbr();
    let trials: Vec<Trial<'_>> = points.iter().flat_map(|point| trial::of_point(point, &ours, bbr)).collect();
    let mut lines: BTreeMap<String, Line> = BTreeMap::new();
    let mut open = Vec::new();
    for one in &trials {
        match journal.find(&one.key()).filter(|line| Goodput::of(line).is_some()) {
            Some(line) => drop(lines.insert(one.key(), line.clone())),
            None => open.push(one.clone()),
        }
    }
    remark(&format!("{} runs in real time, of which {} are there already", trials.len(), lines.len()));
    let tally = side_by_side::all(open, &stop, |one, done| {
        let line = one.line(program(), &done);
        journal.append(&line)?;
        lines.insert(line.key.clone(), line);
        Ok(())
    })?;
    if stop.load(std::sync::atomic::Ordering::Relaxed) {
        let path = path.display();
        remark(&format!("ended before it was done; {path} has what was done, and the same command goes on from there"));
        return Ok(false);
    }
    let goodput = |number: u32, who: Who| {
        let one = trials.iter().find(|one| one.point.number == number && one.who == who)?;
        Goodput::of(lines.get(&one.key())?)
    };
    finish(options, &Rivals::new(ours.name(), &points, goodput, tally))?;
    Ok(true)
}

fn finish(options: &SweepOptions, outcome: &Rivals) -> Result<(), Diagnostic> {
    let json = serde_json::to_string_pretty(outcome)
        .map_err(|error| Diagnostic::plain(format!("cannot write the results: {error}")))?
        + "\n";
    let [results, table, page] =
        ["rivals.json", "rivals.csv", "rivals.html"].map(|name| options.results.out.join(name));
    write(&results, &json)?;
    write(&table, &outcome.csv())?;
    write(&page, &crate::report::rivals_page(outcome)?)?;
    if options.results.json {
        print(&json);
    } else {
        let files = [&page, &table, &results].map(|path| path.display().to_string()).join(", ");
        print(&format!("{}written: {files}\n", outcome.table()));
    }
    Ok(())
}
