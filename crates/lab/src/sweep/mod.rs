//! Sweeps: every policy on the same space-filling set of networks, compared with TCP on each single path.

mod assess;
mod carried;
pub mod cast;
mod change;
pub mod competition;
mod conduct;
pub mod design;
pub mod journal;
pub mod network;
pub mod outcome;
pub mod plan;
pub mod point;
pub mod point_score;
pub mod rows;
pub mod runs;
pub mod score;

use anabranch_settings::diagnostic::Diagnostic;
use assess::Runs;
use cast::Entrant;
use outcome::PolicyOutcome;
use plan::Plan;
use point::Point;
use runs::{Batch, Task};

/// Executes the runs of `plan` on `points` with `run`, which is given their name, and scores them; none if it was
/// interrupted. Without `messages`, no policy sends messages at half load.
///
/// # Errors
/// Those of `run`.
pub fn measure(
    plan: &Plan,
    points: &[Point],
    messages: bool,
    run: impl Fn(&[Task<'_>], &str) -> Result<Batch, Diagnostic>,
) -> Result<Option<Vec<PolicyOutcome>>, Diagnostic> {
    let bulk = plan.bulk(points);
    let Some(bulk_lines) = run(&bulk, "bulk")?.complete() else { return Ok(None) };
    let mut runs = Runs::new(&bulk, &bulk_lines);
    let goodputs = runs.all_singles(points, &plan.tcp);
    let messages = if messages { plan.messages(points, &goodputs) } else { Vec::new() };
    let Some(message_lines) = run(&messages, "messages")?.complete() else { return Ok(None) };
    runs = runs.with_messages(&messages, &message_lines);
    let outcome = |(place, entrant): (usize, &Entrant)| {
        PolicyOutcome::new(entrant.name(), entrant.contender.describe(), runs.scores(plan, place, points))
    };
    Ok(Some(plan.cast.iter().enumerate().map(outcome).collect()))
}
