//! `sweep`: every policy on the same space-filling set of networks, held against TCP on each single path.

mod cast;
mod change;
mod design;
mod journal;
mod network;
mod outcome;
mod runs;
mod score;

use crate::arguments::SweepOptions;
use crate::command::{print, remark};
use crate::diagnostic::Diagnostic;
use cast::{Ends, Entrant};
use design::Point;
use journal::{Journal, Line};
use network::Load;
use outcome::{Outcome, PolicyOutcome};
use runs::{Batch, Task};
use score::PointScore;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Points of a quick sweep.
const QUICK: u32 = 32;

/// Sweeps; gives whether it came to its end.
pub fn sweep(options: &SweepOptions) -> Result<bool, Diagnostic> {
    if !options.point.is_empty() {
        for number in &options.point {
            print(&design::point(options.seed, *number).text(Ends::Ours, Load::Bulk));
        }
        return Ok(true);
    }
    let cast = cast::choose(&options.policies)?;
    let with_subsets = with_subsets(options, &cast)?;
    let count = options.points.unwrap_or(if options.quick { QUICK } else { 1024 });
    if options.from.saturating_add(count) > design::MOST {
        return Err(Diagnostic::option("--points", format!("the design has {} points per seed", design::MOST)));
    }
    let points = design::points(options.seed, options.from, count);
    std::fs::create_dir_all(&options.out)
        .map_err(|error| Diagnostic::file(&options.out, "make the directory", &error))?;
    let path = options.out.join("sweep.jsonl");
    let journal = Journal::open(&path, options.any_program)?;
    let stop = watch()?;
    let jobs = options.jobs.map_or_else(|| std::thread::available_parallelism().map_or(1, usize::from), usize::from);

    let reference = Entrant::reference();
    let tasks = tasks(&points, &reference, &cast, &with_subsets);
    let Batch { lines, done } = runs::all(&tasks, &journal, jobs, &stop, "bulk")?;
    if lines.iter().any(Option::is_none) {
        let missing = lines.iter().filter(|line| line.is_none()).count();
        remark(&format!(
            "ended with {missing} of {} runs to do; the rest is in {}: the same command goes on from there",
            lines.len(),
            path.display()
        ));
        return Ok(false);
    }
    remark(&format!("{} runs, of which {done} were done now", lines.len()));
    let lines: Vec<Line> = lines.into_iter().flatten().collect();
    let outcome = Outcome {
        seed: options.seed,
        first: options.from,
        classes: design::Class::ALL
            .map(|class| (class.name(), points.iter().filter(|point| point.class == class).count()))
            .into_iter()
            .collect(),
        program: journal.program().to_owned(),
        commit: crate::summary::commit(),
        policies: cast.iter().map(|entrant| score(entrant, &points, &tasks, &lines)).collect(),
    };
    finish(options, &outcome, &points)?;
    Ok(true)
}

/// The policies of which all subsets of the paths are tried.
fn with_subsets(options: &SweepOptions, cast: &[Entrant]) -> Result<Vec<String>, Diagnostic> {
    for name in &options.subsets {
        if !cast.iter().any(|entrant| entrant.name() == name) {
            let known: Vec<&str> = cast.iter().map(Entrant::name).collect();
            let hint = crate::diagnostic::did_you_mean(name, known);
            return Err(Diagnostic::option(&format!("--subsets {name}"), format!("no such policy takes part{hint}")));
        }
    }
    Ok(options.subsets.clone())
}

/// All runs: TCP on each path, each policy on all paths, and some on subsets.
fn tasks<'a>(
    points: &'a [Point],
    reference: &'a Entrant,
    cast: &'a [Entrant],
    with_subsets: &[String],
) -> Vec<Task<'a>> {
    let mut tasks = Vec::new();
    for point in points {
        let all: Vec<usize> = (0..point.paths.len()).collect();
        let mut add = |entrant: &'a Entrant, paths: Vec<usize>| {
            tasks.push(Task { point, entrant, paths, load: Load::Bulk });
        };
        for path in &all {
            add(reference, vec![*path]);
        }
        for entrant in cast {
            add(entrant, all.clone());
            if with_subsets.iter().any(|name| name == entrant.name()) {
                for subset in proper_subsets(point.paths.len()) {
                    add(entrant, subset);
                }
            }
        }
    }
    tasks
}

/// All sets of places below `count` but the empty one and the whole.
fn proper_subsets(count: usize) -> Vec<Vec<usize>> {
    let whole = (1usize << count) - 1;
    (1..whole).map(|set| (0..count).filter(|place| set >> place & 1 == 1).collect()).collect()
}

fn score(entrant: &Entrant, points: &[Point], tasks: &[Task<'_>], lines: &[Line]) -> PolicyOutcome {
    let mut scores = Vec::new();
    let mut runs = tasks.iter().zip(lines).peekable();
    for point in points {
        let (mut goodput, mut singles, mut subsets) = (0.0, Vec::new(), Vec::new());
        while let Some((task, line)) = runs.next_if(|(task, _)| task.point.number == point.number) {
            let found = line.measured.get("throughput").copied().unwrap_or(0.0);
            if !task.entrant.contender.multipath {
                singles.push(found);
            } else if task.entrant.name() == entrant.name() {
                if task.paths.len() == point.paths.len() { goodput = found } else { subsets.push(found) }
            }
        }
        scores.push(PointScore::new(point.number, point.class, goodput, singles, &subsets));
    }
    PolicyOutcome::new(entrant.name(), entrant.contender.describe(), scores)
}

/// Set when somebody asks the program to end; the runs under way are finished first.
fn watch() -> Result<Arc<AtomicBool>, Diagnostic> {
    let cannot = |error: std::io::Error| Diagnostic::plain(format!("cannot listen to signals: {error}; try again"));
    anabranch_net::attach::listen_for_the_end().map_err(cannot)?;
    let stop = Arc::new(AtomicBool::new(false));
    let asked = Arc::clone(&stop);
    let runtime = tokio::runtime::Builder::new_current_thread().build().map_err(cannot)?;
    let wait = move || {
        if runtime.block_on(anabranch_net::attach::asked_to_end()).is_ok() {
            asked.store(true, Ordering::Relaxed);
        }
    };
    std::thread::Builder::new().name("the end".to_owned()).spawn(wait).map_err(cannot)?;
    Ok(stop)
}

fn finish(options: &SweepOptions, outcome: &Outcome, points: &[Point]) -> Result<(), Diagnostic> {
    let json = serde_json::to_string_pretty(outcome)
        .map_err(|error| Diagnostic::plain(format!("cannot write the scores: {error}")))?
        + "\n";
    let path: PathBuf = options.out.join("sweep.json");
    std::fs::write(&path, &json).map_err(|error| Diagnostic::file(&path, "write", &error))?;
    if options.json {
        print(&json);
        return Ok(());
    }
    let mut text = format!("{}\n", outcome.table());
    if let Some(worst) = options.worst {
        for policy in &outcome.policies {
            text.push_str(&worst_points(policy, points, worst));
        }
    }
    print(&format!("{text}written: {}\n", path.display()));
    Ok(())
}

/// The points on which a policy does worst, with their networks.
fn worst_points(policy: &PolicyOutcome, points: &[Point], count: usize) -> String {
    let mut order: Vec<&PointScore> = policy.points.iter().collect();
    order.sort_by(|a, b| a.benefit.total_cmp(&b.benefit));
    let mut text = format!("{}, worst points:\n", policy.name);
    for score in order.into_iter().take(count) {
        let Some(point) = points.iter().find(|point| point.number == score.point) else { continue };
        let singles: Vec<String> = score.singles.iter().map(|goodput| format!("{goodput:.2}")).collect();
        text.push_str(&format!(
            "  point {:4} Ben {:+.3} goodput {:.2} TCP {}: {}\n",
            point.number,
            score.benefit,
            score.goodput,
            singles.join(" "),
            point.describe()
        ));
    }
    text + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_proper_subsets_of_three_paths_are_six() {
        assert_eq!(proper_subsets(2), [vec![0], vec![1]]);
        assert_eq!(proper_subsets(3), [vec![0], vec![1], vec![0, 1], vec![2], vec![0, 2], vec![1, 2]]);
    }
}
