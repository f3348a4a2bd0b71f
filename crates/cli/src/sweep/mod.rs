//! `sweep`: every policy on the same space-filling set of networks, compared with TCP on each single path.

mod options;
pub mod rivals;

pub use options::SweepOptions;

use crate::console::{print, remark};
use crate::ending::watch;
use crate::progress::Bar;
use crate::table;
use anabranch_lab::files::{prepare, write};
use anabranch_lab::journal::program;
use anabranch_lab::runner::{Runner, processors};
use anabranch_lab::sweep::cast::{self, Ends, Entrant};
use anabranch_lab::sweep::journal::Journal;
use anabranch_lab::sweep::network::Load;
use anabranch_lab::sweep::outcome::{CONDUCT_EXPLAINED, CONDUCT_HEAD, EXPLAINED, HEAD, Outcome, PolicyOutcome};
use anabranch_lab::sweep::plan::Plan;
use anabranch_lab::sweep::point::{Class, Point};
use anabranch_lab::sweep::point_score::PointScore;
use anabranch_lab::sweep::runs::{self, Task};
use anabranch_lab::sweep::score::Group;
use anabranch_lab::sweep::{competition, design, measure, rows};
use anabranch_policy::combination::Choice;
use anabranch_settings::contender::LAB_DEFAULT;
use anabranch_settings::diagnostic::{Diagnostic, did_you_mean};

/// Points of a full sweep, and of a quick one.
const FULL: u32 = 1024;
const QUICK: u32 = 32;
/// The same for the second design.
const COMPETITION: u32 = 128;
const COMPETITION_QUICK: u32 = 16;

/// Runs a sweep; returns whether it was completed.
pub fn sweep(options: &SweepOptions) -> Result<bool, Diagnostic> {
    if !options.point.is_empty() {
        for number in &options.point {
            let point = if options.competition { competition::point } else { design::point };
            print(&point(options.seed, *number).text(Ends::Ours, Load::Bulk));
        }
        return Ok(true);
    }
    if options.rivals {
        return rivals::rivals(options);
    }
    let plan = plan_of(options)?;
    let points = points_of(options)?;
    prepare(&options.results.out)?;
    let path = options.results.out.join("sweep.jsonl");
    let journal = Journal::open(&path, options.results.any_program)?;
    let stop = watch()?;
    let jobs = options.jobs.map_or_else(processors, usize::from);
    let bar = Bar::new(0);
    let messages = !options.no_messages && !options.competition;
    let runner = Runner { jobs, stop: &stop, progress: &bar };
    let run = |tasks: &[Task<'_>], what: &str| runs::all(tasks, &journal, &runner, what);
    let Some(policies) = measure(&plan, &points, messages, run)? else {
        bar.finish();
        let path = path.display();
        remark(&format!(
            "ended before it was done; what was done is in {path}, and the same command goes on from there"
        ));
        return Ok(false);
    };
    bar.finish();
    let outcome = Outcome {
        seed: options.seed,
        first: options.from,
        classes: classes(options)
            .iter()
            .map(|class| (class.name(), points.iter().filter(|point| point.class == *class).count()))
            .collect(),
        program: program().to_owned(),
        commit: anabranch_lab::build::commit(),
        policies,
    };
    finish(options, &outcome, &points)?;
    Ok(true)
}

/// Classes of the design.
fn classes(options: &SweepOptions) -> &'static [Class] {
    if options.competition { &Class::COMPETITION } else { &Class::ALL }
}

fn plan_of(options: &SweepOptions) -> Result<Plan, Diagnostic> {
    let named: Vec<String> = match options.competition && options.policies.is_empty() {
        true => cast::OF_COMPETITION.map(str::to_owned).to_vec(),
        false => options.policies.clone(),
    };
    let cast = cast::choose(&named, options.quick)?;
    for name in &options.subsets {
        if !cast.iter().any(|entrant| entrant.name() == name) {
            let hint = did_you_mean(name, cast.iter().map(Entrant::name));
            return Err(Diagnostic::option(&format!("--subsets {name}"), format!("no such policy takes part{hint}")));
        }
    }
    let tcp = Entrant::reference();
    let references = match options.reference.as_deref() {
        None => vec![tcp.clone(); cast.len()],
        Some("own") => cast.iter().map(|entrant| Entrant::tcp(&entrant.contender.policies.congestion)).collect(),
        Some(name) => {
            let made = Entrant::tcp(&Choice::new(name));
            anabranch_settings::contender::check(&made.contender.policies)
                .map_err(|message| Diagnostic::option(&format!("--reference {name}"), message))?;
            vec![made; cast.len()]
        }
    };
    let mut subsets = options.subsets.clone();
    if subsets.is_empty() && !options.competition {
        // The default combination, if it takes part.
        let preferred = cast.iter().find(|entrant| entrant.name() == LAB_DEFAULT);
        subsets.extend(preferred.map(|entrant| entrant.name().to_owned()));
    }
    Ok(Plan { tcp, references, cast, subsets })
}

fn points_of(options: &SweepOptions) -> Result<Vec<Point>, Diagnostic> {
    let usual = match (options.competition, options.quick) {
        (false, false) => FULL,
        (false, true) => QUICK,
        (true, false) => COMPETITION,
        (true, true) => COMPETITION_QUICK,
    };
    let count = options.points.unwrap_or(usual);
    if options.from.saturating_add(count) > design::MOST {
        return Err(Diagnostic::option("--points", format!("the design has {} points per seed", design::MOST)));
    }
    let points = if options.competition { competition::points } else { design::points };
    Ok(points(options.seed, options.from, count))
}

fn finish(options: &SweepOptions, outcome: &Outcome, points: &[Point]) -> Result<(), Diagnostic> {
    let json = serde_json::to_string_pretty(outcome)
        .map_err(|error| Diagnostic::plain(format!("cannot write the scores: {error}")))?
        + "\n";
    let [scores, rows, page] = ["sweep.json", "sweep.parquet", "sweep.html"].map(|name| options.results.out.join(name));
    write(&scores, &json)?;
    rows::write(&rows, outcome, points)?;
    write(&page, &crate::report::sweep_page(outcome)?)?;
    if options.results.json {
        print(&json);
        return Ok(());
    }
    let mut text = format!("{}\n", tables(outcome));
    if let Some(worst) = options.worst {
        for policy in &outcome.policies {
            text.push_str(&worst_points(policy, points, worst));
        }
    }
    let written = [page, scores, rows].map(|path| path.display().to_string()).join(", ");
    print(&format!("{text}written: {written}\n"));
    Ok(())
}

/// The scores, one line per policy.
fn tables(outcome: &Outcome) -> String {
    let rows: Vec<Vec<String>> = outcome.policies.iter().map(|policy| policy.cells(Group::All)).collect();
    let mut text = format!("{}\n\n{}\n{EXPLAINED}\n", outcome.heading(), table::render(&HEAD, &rows));
    let conduct: Vec<Vec<String>> = outcome.policies.iter().filter_map(|policy| policy.conduct(Group::All)).collect();
    if !conduct.is_empty() {
        text.push_str(&format!("\n{}\n{CONDUCT_EXPLAINED}\n", table::render(&CONDUCT_HEAD, &conduct)));
    }
    text
}

/// The worst points of a policy, with their networks.
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
