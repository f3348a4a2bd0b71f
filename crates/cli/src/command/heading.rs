//! Heading above the tables of an outcome.

use anabranch_lab::record::Outcome;

/// Conditions of an outcome, in one line.
pub fn heading(outcome: &Outcome) -> String {
    let scenario = &outcome.scenario;
    let short = if outcome.quick { ", quick: fewer seeds and points" } else { "" };
    let seeds = match (outcome.seeds(), outcome.first_seed) {
        (1, first) => format!("seed {first}"),
        (count, first) => format!("seeds {first} to {}", first + count as u64 - 1),
    };
    format!(
        "{}: {}\n{} s simulated, {seeds}{short}; took {:.1} s; trace hash {:016x}\n",
        scenario.name,
        scenario.about.title,
        scenario.duration.as_secs_f64(),
        outcome.seconds,
        outcome.trace_hash
    )
}
