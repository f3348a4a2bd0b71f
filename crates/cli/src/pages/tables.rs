//! Generates the tables in Markdown.

use anabranch_lab::library::watch_command;
use anabranch_lab::means::{Experiment, Row};
use anabranch_lab::measured::{
    MatrixRow, Measured, SensitivityRow, SensitivityTable, change_text, column, published_text,
};
use anabranch_lab::statistics::{Estimate, readable};
use anabranch_lab::verdict::{Agreement, Verdict, count};

/// A Markdown table; cells are escaped.
fn table(head: &[String], rows: &[Vec<String>]) -> String {
    let line = |cells: &[String]| {
        let cells: Vec<String> = cells.iter().map(|cell| cell.replace('|', "\\|").replace('\n', " ")).collect();
        format!("| {} |\n", cells.join(" | "))
    };
    let rule = format!("|{}\n", "---|".repeat(head.len()));
    line(head) + &rule + &rows.iter().map(|row| line(row)).collect::<String>()
}

fn words(list: &[&str]) -> Vec<String> {
    list.iter().map(|word| (*word).to_owned()).collect()
}

/// `2.80 ± 0.10`.
fn mean(mean: f64, half_width: f64) -> String {
    if half_width.is_finite() { format!("{} ± {}", readable(mean), readable(half_width)) } else { readable(mean) }
}

fn unit_in_brackets(unit: &str) -> String {
    if unit.is_empty() || unit == "1" { String::new() } else { format!(", {unit}") }
}

/// Conditions of the measurement in one sentence.
pub fn facts(measured: &Measured) -> String {
    let Measured { first_seed, seeds, simulated, commit, trace_hash, seconds, name, .. } = measured;
    let last = first_seed + *seeds as u64 - 1;
    let watched = watch_command(name).map_or_else(String::new, |command| format!(" In a browser: `{command}`."));
    format!(
        "`anabranch reproduce {name}`: seeds {first_seed} to {last}, {simulated} s simulated per run, means with 95 % \
         intervals; commit `{commit}`, trace hash `{trace_hash}`, {seconds} s on two cores.{watched}"
    )
}

/// The baselines that are columns of a matrix.
fn columns(measured: &Measured) -> Vec<String> {
    let cells = measured.matrix.first().map_or(&[][..], |row| row.cells.as_slice());
    cells.iter().map(|cell| column(cell.baseline.as_deref())).collect()
}

/// Schemes by baselines: the mean of each metric, then changes from it.
pub fn matrix(measured: &Measured) -> String {
    let baselines = columns(measured);
    let mut last = None;
    let rows = measured.matrix.iter().map(|row| {
        let cell = |cell: &anabranch_lab::measured::MatrixCell| match (cell.change, cell.mean) {
            (Some(change), Some(_)) => change_text(&change, row.unit_of_change()),
            (None, Some(estimate)) => mean(estimate.mean, estimate.half_width),
            _ => "–".to_owned(),
        };
        let published = row.published.map_or_else(String::new, |change| published_text(change, row.unit_of_change()));
        let metric = format!("{}{}", row.metric, unit_in_brackets(&row.unit));
        let mut cells =
            vec![if last.as_ref() == Some(&metric) { String::new() } else { metric.clone() }, row.label.clone()];
        last = Some(metric);
        cells.extend(row.cells.iter().map(cell));
        cells.push(published);
        cells
    });
    let head = [words(&["metric", "scheme"]), baselines, words(&["published"])].concat();
    let table = table(&head, &rows.collect::<Vec<_>>());
    let over = measured.matrix.first().map_or("", |row| row.over.as_str());
    format!("Rows of {over}: means. Other rows: changes against {over}.\n\n{table}")
}

/// Whether it is a main metric: throughput or video quality.
fn headline(row: &MatrixRow) -> bool {
    row.metric == "mean throughput" || row.metric.starts_with("Y-PSNR")
}

/// Published changes of throughput beside those measured on each baseline, for all experiments.
pub fn headlines(all: &[&Measured]) -> String {
    let mut baselines: Vec<String> = Vec::new();
    let mut rows = Vec::new();
    for measured in all {
        let published = measured.matrix.iter().filter(|row| row.published.is_some() && headline(row));
        for row in published {
            if baselines.is_empty() {
                baselines = columns(measured);
            }
            let mut cells = vec![measured.paper.clone(), format!("{}, {} against {}", row.metric, row.label, row.over)];
            let unit = row.unit_of_change();
            let text = |change: Estimate| change_text(&change, unit);
            cells.extend(row.cells.iter().map(|cell| cell.change.map_or("–".to_owned(), text)));
            cells.push(row.published.map_or_else(String::new, |change| published_text(change, unit)));
            rows.push(cells);
        }
    }
    table(&[words(&["paper", "change of"]), baselines, words(&["published"])].concat(), &rows)
}

/// Baselines with verdicts, in order of first mention.
fn judged_on<'a>(verdicts: impl Iterator<Item = &'a Verdict>) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for baseline in verdicts.flat_map(|verdict| &verdict.cells).filter_map(|cell| cell.baseline.clone()) {
        if !found.contains(&baseline) {
            found.push(baseline);
        }
    }
    found
}

/// Number of the paper's claims by verdict, on each baseline and on the best of them.
pub fn claims(measured: &Measured) -> String {
    let baselines = judged_on(measured.verdicts.iter());
    let on = |baseline: Option<&String>, wanted: Agreement| {
        let found =
            |cell: &&anabranch_lab::verdict::Cell| cell.baseline.as_ref() == baseline && cell.agreement == wanted;
        measured.verdicts.iter().flat_map(|verdict| &verdict.cells).filter(found).count().to_string()
    };
    let best = |wanted: Agreement| measured.verdicts.iter().filter(|verdict| verdict.best() == wanted).count();
    let row = |wanted: Agreement| {
        let mut cells = vec![wanted.word().to_owned()];
        cells.extend(baselines.iter().map(|baseline| on(Some(baseline), wanted)));
        cells.push(best(wanted).to_string());
        cells
    };
    let judged = [Agreement::Reproduced, Agreement::InPart, Agreement::Undecided, Agreement::Not];
    let rows: Vec<Vec<String>> = judged.into_iter().map(row).collect();
    let best = words(&[if baselines.is_empty() { "statements" } else { "best of these" }]);
    let table = table(&[words(&["verdict"]), baselines, best].concat(), &rows);
    let file = super::data::CLAIMS;
    let all = measured.verdicts.len();
    format!("{all} statements; `docs/results/{file}` has each with its published and measured values.\n\n{table}")
}

/// Number of each paper's claims by verdict.
pub fn verdicts(all: &[&Measured]) -> String {
    let mut papers: Vec<&str> = Vec::new();
    for name in all.iter().filter(|one| !one.verdicts.is_empty()).map(|one| one.paper_name()) {
        if !papers.contains(&name) {
            papers.push(name);
        }
    }
    let row = |paper: &&str| {
        let of_paper = || all.iter().filter(|one| one.paper_name() == *paper).flat_map(|one| &one.verdicts);
        let counted = count(of_paper());
        let number = |wanted: Agreement| {
            counted.iter().find(|(known, _)| *known == wanted).map_or(0, |(_, count)| *count).to_string()
        };
        let everywhere = of_paper().filter(|verdict| verdict.overall() == Agreement::Reproduced.word()).count();
        vec![
            (*paper).to_owned(),
            of_paper().count().to_string(),
            number(Agreement::Reproduced),
            everywhere.to_string(),
            number(Agreement::InPart),
            number(Agreement::Undecided),
            number(Agreement::Not),
            number(Agreement::NotMeasured),
        ]
    };
    let head = words(&[
        "paper",
        "statements",
        "reproduced on some baseline",
        "of these on every one",
        "in part",
        "undecided",
        "not reproduced",
        "not measured",
    ]);
    table(&head, &papers.iter().map(row).collect::<Vec<_>>())
}

/// Whether a change has the published sign.
fn sign_holds(change: Option<&Estimate>, published: Option<f64>) -> &'static str {
    let (Some(change), Some(published)) = (change, published) else { return "" };
    match (change.holds(0.0) || !change.half_width.is_finite(), change.mean * published > 0.0) {
        (true, _) => " ?",
        (false, true) => " ✓",
        (false, false) => " ✗",
    }
}

/// Varied parameters with the number of values: "Buffer (2), RTO (1)". The CSV has the values.
fn varied(rows: &[SensitivityRow]) -> String {
    let mut parameters: Vec<(&str, usize)> = Vec::new();
    for row in rows.iter().filter(|row| !row.ours) {
        match parameters.iter_mut().find(|(name, _)| *name == row.parameter) {
            Some((_, values)) => *values += 1,
            None => parameters.push((&row.parameter, 1)),
        }
    }
    let text = |(name, values): &(&str, usize)| format!("{name} ({values})");
    parameters.iter().map(text).collect::<Vec<_>>().join(", ")
}

/// The varied parameters, one at a time, and where the published sign holds.
pub fn sensitivity(measured: &Measured) -> String {
    let Some(SensitivityTable { subject, unit, published, seeds, rows }) = &measured.sensitivity else {
        return "The sensitivity was not run.".to_owned();
    };
    let named = |(baseline, _): &(Option<String>, Option<Estimate>)| column(baseline.as_deref());
    let baselines: Vec<String> = rows.first().map_or(&[][..], |row| row.cells.as_slice()).iter().map(named).collect();
    let (varied, file) = (varied(rows), super::data::SENSITIVITY);
    let published_text = published.map(|change| published_text(change, unit.as_deref()));
    let known = published_text.map_or_else(String::new, |text| format!(" (published {text})"));
    let holds: Vec<String> = baselines
        .iter()
        .enumerate()
        .filter_map(|(at, baseline)| published.map(|_| range(rows, at, baseline, *published)))
        .collect();
    format!(
        "Change of the {subject}{known}, {seeds} seeds, one parameter at a time (values tried): {varied}. \
         `docs/results/{file}` has each change.\n\n{}",
        holds.join("\n")
    )
}

/// Maximum number of values with the opposite sign that are listed; more are counted.
const MOST_NAMED: usize = 6;

/// Number of values with the published sign on a baseline, and those with the opposite one.
fn range(rows: &[SensitivityRow], at: usize, baseline: &str, published: Option<f64>) -> String {
    let change = |row: &SensitivityRow| row.cells.get(at).and_then(|(_, change)| *change);
    let with = |mark: &str| -> Vec<&SensitivityRow> {
        rows.iter().filter(|row| !row.ours && sign_holds(change(row).as_ref(), published) == mark).collect()
    };
    let (holds, open, against) = (with(" ✓"), with(" ?"), with(" ✗"));
    let all = holds.len() + open.len() + against.len();
    let named: Vec<String> = against.iter().map(|row| format!("{} = {}", row.parameter, row.value)).collect();
    let but = match named.len() {
        0 => String::new(),
        1..=MOST_NAMED => format!(" The opposite one: {}.", named.join("; ")),
        count => format!(" The opposite one at {count}."),
    };
    format!(
        "- On `{baseline}` the published sign holds at {} of {all} values, undecided at {}.{but}",
        holds.len(),
        open.len()
    )
}

/// Participants of a table: the named contenders or schemes, or all.
fn chosen<'a>(measured: &'a Measured, names: &[String]) -> Vec<(&'a str, String)> {
    let wanted = |name: &str, scheme: &str| names.is_empty() || names.iter().any(|one| one == name || one == scheme);
    let several = measured.policies.iter().any(|policy| policy.baseline.is_some());
    let label = |policy: &anabranch_lab::measured::Participant| match &policy.baseline {
        Some(baseline) if several => format!("{} on {baseline}", policy.label),
        _ => policy.label.clone(),
    };
    let policies = measured.policies.iter().filter(|policy| wanted(&policy.name, &policy.scheme));
    policies.map(|policy| (policy.name.as_str(), label(policy))).collect()
}

fn cell(row: Option<&Row>) -> String {
    row.map_or_else(|| "–".to_owned(), |row| mean(row.mean, (row.ci95[1] - row.ci95[0]) / 2.0))
}

fn row_of<'a>(experiment: &'a Experiment, policy: &str, metric: &str) -> Option<&'a Row> {
    experiment.rows.iter().find(|row| row.policy == policy && row.metric == metric)
}

/// Label and unit of a metric for a table's header.
fn heading(measured: &Measured, metric: &str) -> String {
    let own = || measured.labels.iter().find(|(name, _)| name == metric).map(|(_, label)| label.clone());
    let label = anabranch_lab::metric::find(metric).map(|known| known.label.to_owned()).or_else(own);
    let label = label.unwrap_or_else(|| metric.to_owned());
    let rows = measured.experiments.iter().flat_map(|experiment| &experiment.rows);
    let unit = rows.filter(|row| row.metric == metric).map(|row| row.unit.as_str()).next().unwrap_or("");
    label + &unit_in_brackets(unit)
}

/// Means of some metrics of some policies.
pub fn means(measured: &Measured, metrics: &[String], names: &[String]) -> String {
    let Some(experiment) = measured.experiments.first() else { return String::new() };
    let row = |(name, label): &(&str, String)| {
        let mut cells = vec![label.clone()];
        cells.extend(metrics.iter().map(|metric| cell(row_of(experiment, name, metric))));
        cells
    };
    let head = [vec![String::new()], metrics.iter().map(|metric| heading(measured, metric)).collect()].concat();
    table(&head, &chosen(measured, names).iter().map(row).collect::<Vec<_>>())
}

/// A metric at the points of the sweep.
pub fn sweep(measured: &Measured, metrics: &[String], names: &[String]) -> String {
    let Some(metric) = metrics.first() else { return String::new() };
    let points = measured.experiments.get(1..).unwrap_or_default();
    let value = |experiment: &Experiment| {
        experiment.name.split_once('=').map_or(experiment.name.clone(), |(_, value)| value.replace('"', ""))
    };
    let here = chosen(measured, names);
    let swept = here.iter().filter(|(name, _)| points.iter().any(|point| row_of(point, name, metric).is_some()));
    let row = |(name, label): &(&str, String)| {
        let mut cells = vec![label.clone()];
        cells.extend(points.iter().map(|point| cell(row_of(point, name, metric))));
        cells
    };
    let head = [vec![heading(measured, metric)], points.iter().map(value).collect()].concat();
    table(&head, &swept.map(row).collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn estimate(mean: f64, half_width: f64) -> Estimate {
        Estimate { mean, half_width, count: 10 }
    }

    fn row(parameter: &str, value: &str, ours: bool, change: Estimate) -> SensitivityRow {
        let cells = vec![(Some("linux".to_owned()), Some(change))];
        SensitivityRow { parameter: parameter.to_owned(), value: value.to_owned(), ours, cells }
    }

    #[test]
    fn a_cell_cannot_end_its_row() {
        assert_eq!(table(&words(&["a", "b"]), &[words(&["x|y", "1\n2"])]), "| a | b |\n|---|---|\n| x\\|y | 1 2 |\n");
    }

    #[test]
    fn the_range_of_a_sign_says_where_it_holds_and_where_the_opposite_does() {
        let rows = [
            row("Buffer", "64 kB", true, estimate(0.3, 0.1)),
            row("Buffer", "32 kB", false, estimate(0.5, 0.1)),
            row("Buffer", "1 MB", false, estimate(0.0, 0.1)),
            row("RTO", "200 ms", false, estimate(-0.2, 0.1)),
        ];
        let text = range(&rows, 0, "linux", Some(0.28));
        assert!(text.contains("holds at 1 of 3 values, undecided at 1"), "{text}");
        assert!(text.contains("The opposite one: RTO = 200 ms."), "{text}");
        assert_eq!(varied(&rows), "Buffer (2), RTO (1)");
    }
}
