//! `report.html`: each figure of a paper as measured, what the paper says beside it, and whether the two agree. One file
//! that loads nothing from anywhere.

mod calibration;
mod chart;
mod distribution;
mod figure;
mod html;
mod mesh;
mod rivals;
mod scatter;
mod stills;
mod sweep;

pub use calibration::calibration_page;
pub use rivals::rivals_page;
pub use sweep::sweep_page;

use crate::diagnostic::Diagnostic;
use crate::metric::Series;
use crate::record::{Outcome, PolicyRuns};
use crate::scenario::model::{Figure, FigureKind};
use crate::statistics::readable;
use crate::summary::metric_names;
use crate::verdict::{self, Verdict};
use anabranch_routing::lanes::{LaneInterfaces, PathMode};
use html::{closing, escape, opening};
use std::fmt::Write;

/// The whole page.
pub fn page(outcomes: &[Outcome]) -> Result<String, Diagnostic> {
    let names: Vec<&str> = outcomes.iter().map(|outcome| outcome.scenario.name.as_str()).collect();
    let quick = outcomes.iter().any(|outcome| outcome.quick);
    let run = if quick { "quick run: fewer seeds and points" } else { "full run" };
    let what = format!("Multipath TCP in virtual time: measured beside published, {run}.");
    let mut html = opening(&names.join(", "), &what);
    if outcomes.len() > 1 {
        html.push_str("<nav><ul>\n");
        for outcome in outcomes {
            let (name, title) = (escape(&outcome.scenario.name), escape(&outcome.scenario.title));
            let _ = writeln!(html, "<li><a href=\"#{name}\">{title}</a></li>");
        }
        html.push_str("</ul></nav>\n");
    }
    for outcome in outcomes {
        experiment(&mut html, outcome)
            .map_err(|error| Diagnostic::plain(format!("cannot draw the report: {error}")))?;
    }
    html.push_str(closing());
    Ok(html)
}

fn experiment(html: &mut String, outcome: &Outcome) -> Result<(), chart::ChartError> {
    let scenario = &outcome.scenario;
    let _ = writeln!(html, "<section id=\"{}\">\n<h2>{}</h2>", escape(&scenario.name), escape(&scenario.title));
    if !scenario.paper.is_empty() {
        let _ = writeln!(html, "<p class=\"paper\">{}</p>", escape(&scenario.paper));
    }
    if !scenario.description.is_empty() {
        let _ = writeln!(html, "<p>{}</p>", escape(scenario.description.trim()));
    }
    let seeds = outcome.seeds();
    let _ = writeln!(
        html,
        "<p class=\"facts\">Scenario <code>{}</code>: {} s simulated, seeds 1 to {seeds}{}. \
         Trace hash <code>{:016x}</code>.</p>",
        escape(&scenario.name),
        scenario.duration.as_secs_f64(),
        if scenario.moving.is_some() { String::new() } else { format!(", receive buffer {}", buffer_text(outcome)) },
        outcome.trace_hash
    );
    combinations(html, outcome);
    claims_table(html, outcome);
    differences_table(html, outcome);
    meshes(html, outcome)?;
    html.push_str(&stills::strips(outcome));
    let figures = if scenario.figures.is_empty() { default_figures() } else { scenario.figures.clone() };
    for figure in &figures {
        one_figure(html, outcome, figure)?;
    }
    means_table(html, outcome);
    html.push_str("</section>\n");
    Ok(())
}

fn buffer_text(outcome: &Outcome) -> String {
    use crate::scenario::model::ReceiveBuffer;
    let size = |bytes: u64| format!("{} kB", readable(bytes as f64 / 1000.0));
    match outcome.scenario.connection.receive_buffer {
        ReceiveBuffer::Fixed(bytes) => size(bytes.0),
        ReceiveBuffer::Auto { initial, max } => format!("tuned from {} up to {}", size(initial.0), size(max.0)),
    }
}

fn combinations(html: &mut String, outcome: &Outcome) {
    html.push_str("<dl class=\"policies\">\n");
    for runs in &outcome.policies {
        let (label, made_of) = (escape(&runs.label()), escape(&runs.contender.describe_in(&outcome.scenario)));
        let _ = writeln!(html, "<dt>{label}</dt><dd>{made_of}</dd>");
    }
    html.push_str("</dl>\n");
}

/// The ad-hoc network during the first run of a contender that sends on all next hops, and of one that sends on one; of
/// moving nodes during that of the first contender.
fn meshes(html: &mut String, outcome: &Outcome) -> Result<(), chart::ChartError> {
    if let (Some(moving), Some(runs)) = (&outcome.scenario.moving, outcome.policies.first()) {
        // More names than that cannot be read.
        return if moving.nodes <= 40 { moving_mesh(html, runs) } else { Ok(()) };
    }
    let with_pictures = |runs: &&PolicyRuns| {
        let lanes = runs.records.first().and_then(|record| record.mesh.first()).and_then(|mesh| mesh.nodes.first());
        lanes.is_some_and(|node| node.next_hops.len() > 1) && !runs.contender.mesh.predicted
    };
    let real = |runs: &&PolicyRuns| runs.contender.mesh.lanes.interfaces == LaneInterfaces::Real;
    for paths in [PathMode::Full, PathMode::Part] {
        let mut candidates = outcome.policies.iter().filter(with_pictures).filter(real);
        let Some(runs) = candidates.find(|runs| runs.contender.mesh.lanes.paths == paths) else { continue };
        let legend: Vec<&str> = outcome.scenario.paths.iter().map(|path| path.name.as_str()).collect();
        let reading =
            "The ways that packets from M1 to M8 can take on each interface, at a few moments of the first run.";
        pictures_of(html, runs, &legend, reading)?;
    }
    Ok(())
}

fn moving_mesh(html: &mut String, runs: &PolicyRuns) -> Result<(), chart::ChartError> {
    let last = runs.records.first().and_then(|record| record.mesh.first()).and_then(|mesh| mesh.nodes.last());
    let Some(last) = last else { return Ok(()) };
    let reading = format!(
        "Where the nodes are, and the ways that packets from node 0 to node {} can take, at a few moments of the first run.",
        last.name
    );
    pictures_of(html, runs, &["next hops"], &reading)
}

fn pictures_of(html: &mut String, runs: &PolicyRuns, legend: &[&str], reading: &str) -> Result<(), chart::ChartError> {
    let Some(record) = runs.records.first().filter(|record| !record.mesh.is_empty()) else { return Ok(()) };
    let _ = writeln!(html, "<figure>\n<h3>The network during {}</h3>\n<ul class=\"legend\">", escape(&runs.label()));
    for (at, name) in legend.iter().enumerate() {
        let colour = chart::css_colour(at);
        let _ = write!(html, "<li><span style=\"background:{colour}\"></span>{}</li>", escape(name));
    }
    html.push_str("</ul>\n<div class=\"pictures many\">");
    for moment in &record.mesh {
        html.push_str(&mesh::moment(moment, mesh::SENDER)?);
    }
    let _ = writeln!(
        html,
        "</div>\n<figcaption><p class=\"reading\">{} Filled: MDR; grey: Backup MDR; light: MDR Other, or no router.</p>\
         </figcaption>\n</figure>",
        escape(reading)
    );
    Ok(())
}

/// What a scenario without figures of its own gets.
fn default_figures() -> Vec<Figure> {
    let figure = |title: &str, series: Series| Figure {
        name: series.name().to_owned(),
        title: title.to_owned(),
        kind: FigureKind::Time { series: vec![series], window: None },
        policies: Vec::new(),
        published: String::new(),
    };
    vec![
        figure("Throughput over time", Series::Throughput),
        figure("Congestion windows", Series::Cwnd),
        figure("End-to-end delay", Series::Delay),
        figure("Receive buffer used", Series::ReceiveBuffer),
    ]
}

fn one_figure(html: &mut String, outcome: &Outcome, figure: &Figure) -> Result<(), chart::ChartError> {
    let drawn = figure::draw(outcome, figure)?;
    let _ = writeln!(html, "<figure>\n<h3>{}</h3>", escape(&figure.title));
    if !drawn.legend.is_empty() {
        html.push_str("<ul class=\"legend\">");
        for (label, colour) in &drawn.legend {
            let _ = write!(html, "<li><span style=\"background:{colour}\"></span>{}</li>", escape(label));
        }
        html.push_str("</ul>\n");
    }
    let many = if drawn.pictures.len() > 1 { " many" } else { "" };
    let _ = writeln!(html, "<div class=\"pictures{many}\">");
    for picture in &drawn.pictures {
        html.push_str(picture);
    }
    html.push_str("</div>\n<figcaption>\n");
    let buffer = match &figure.kind {
        _ if outcome.scenario.moving.is_some() => String::new(),
        FigureKind::Sweep { .. } if swept_buffer(outcome) => ", receive buffer swept".to_owned(),
        _ => format!(", receive buffer {}", buffer_text(outcome)),
    };
    let settings = format!("{} Scenario {}{buffer}; policies as listed above.", drawn.reading, outcome.scenario.name);
    let _ = writeln!(html, "<p class=\"reading\">{}</p>", escape(&settings));
    if !figure.published.is_empty() {
        let _ = writeln!(html, "<p><b>Published.</b> {}</p>", escape(figure.published.trim()));
    }
    let sentence = agreement(outcome, figure).or_else(|| {
        let none = "The paper gives neither a number nor an order to hold this against.";
        (!figure.published.is_empty()).then(|| none.to_owned())
    });
    if let Some(sentence) = sentence {
        let _ = writeln!(html, "<p><b>Agreement.</b> {}</p>", escape(&sentence));
    }
    html.push_str("</figcaption>\n</figure>\n");
    Ok(())
}

fn swept_buffer(outcome: &Outcome) -> bool {
    outcome.scenario.sweep.as_ref().is_some_and(|sweep| sweep.key == "connection.receive_buffer")
}

/// One sentence on all claims that belong to a figure.
fn agreement(outcome: &Outcome, figure: &Figure) -> Option<String> {
    let claims = outcome.scenario.claims.iter().filter(|claim| claim.figure == figure.name);
    let verdicts: Vec<Verdict> = claims.map(|claim| verdict::judge(outcome, claim)).collect();
    match verdicts.len() {
        0 => None,
        1..=MOST_SENTENCES => {
            Some(in_one_sentence(&verdicts.into_iter().map(|verdict| verdict.sentence).collect::<Vec<_>>()))
        }
        _ => Some(counted(&verdicts)),
    }
}

/// More statements than these are counted, and told one by one in the table alone.
const MOST_SENTENCES: usize = 4;

/// How many statements have which verdict.
fn counted(verdicts: &[Verdict]) -> String {
    let mut words: Vec<(&str, usize)> = Vec::new();
    for verdict in verdicts {
        let word = verdict.agreement.word();
        match words.iter_mut().find(|(known, _)| *known == word) {
            Some((_, count)) => *count += 1,
            None => words.push((word, 1)),
        }
    }
    let words: Vec<String> = words.iter().map(|(word, count)| format!("{word}: {count}")).collect();
    format!("Of {} statements, {}; one by one in the table above.", verdicts.len(), words.join(", "))
}

fn in_one_sentence(parts: &[String]) -> String {
    let text = parts.join("; ");
    let mut letters = text.chars();
    let first = letters.next().map(|first| first.to_uppercase().to_string()).unwrap_or_default();
    format!("{first}{}.", letters.as_str())
}

fn claims_table(html: &mut String, outcome: &Outcome) {
    if outcome.scenario.claims.is_empty() {
        return;
    }
    html.push_str(
        "<h3>Measured and published</h3>\n<div class=\"scroll\"><table>\n<thead><tr><th>What the paper says</th>\
         <th class=\"number\">Published</th><th class=\"number\">Measured [95 % interval]</th><th>Verdict</th></tr></thead>\n<tbody>\n",
    );
    for claim in &outcome.scenario.claims {
        let Verdict { agreement, subject, published, measured, .. } = verdict::judge(outcome, claim);
        let small = |text: &str| {
            if text.is_empty() { String::new() } else { format!("<br><small>{}</small>", escape(text)) }
        };
        let (note, reading) = (small(&claim.note), small(&claim.reading));
        let _ = writeln!(
            html,
            "<tr><td>{}{note}</td><td class=\"number\">{}</td><td class=\"number\">{}</td><td class=\"{}\">{}{reading}</td></tr>",
            escape(&subject),
            escape(&published),
            escape(&measured),
            agreement.word().replace(' ', "-"),
            agreement.word()
        );
    }
    html.push_str("</tbody>\n</table></div>\n");
}

/// How the scenario's foremost policy differs from each other one.
fn differences_table(html: &mut String, outcome: &Outcome) {
    let differences = verdict::differences(outcome);
    let Some(wanted) = outcome.scenario.differences.as_ref().filter(|_| !differences.is_empty()) else { return };
    let label = |policy: &str| escape(&outcome.policy(policy).map_or_else(String::new, PolicyRuns::label));
    let _ = writeln!(
        html,
        "<h3>{} minus the others, paired by seed</h3>\n<div class=\"scroll\"><table>\n<thead><tr><th>Metric</th><th>Minus</th>\
         <th class=\"number\">Difference [95 % interval]</th></tr></thead>\n<tbody>",
        label(&wanted.policy)
    );
    for (metric, other, estimate) in differences {
        let Some((name, unit)) = outcome.scenario.metric(&metric) else { continue };
        let (name, other, value) = (escape(&name), label(&other), escape(&verdict::signed(&estimate, unit)));
        let _ = writeln!(html, "<tr><td>{name}</td><td>{other}</td><td class=\"number\">{value}</td></tr>");
    }
    html.push_str("</tbody>\n</table></div>\n");
}

fn means_table(html: &mut String, outcome: &Outcome) {
    html.push_str("<h3>Means with 95 % confidence intervals</h3>\n<div class=\"scroll\"><table class=\"means\">\n<thead><tr><th>Metric</th><th>Unit</th>");
    for runs in &outcome.policies {
        let _ = write!(html, "<th class=\"number\">{}</th>", escape(&runs.label()));
    }
    html.push_str("</tr></thead>\n<tbody>\n");
    for (metric, unit) in metric_names(outcome) {
        let Some((label, _)) = outcome.scenario.metric(&metric) else { continue };
        if outcome.policies.iter().all(|runs| runs.estimate(&metric).is_none()) {
            continue;
        }
        let _ = write!(html, "<tr><td>{}</td><td>{}</td>", escape(&label), if unit == "1" { "" } else { unit });
        for runs in &outcome.policies {
            let cell = match runs.estimate(&metric) {
                Some(estimate) if estimate.half_width.is_finite() => {
                    format!("{} <small>± {}</small>", readable(estimate.mean), readable(estimate.half_width))
                }
                Some(estimate) => readable(estimate.mean),
                None => "–".to_owned(),
            };
            let _ = write!(html, "<td class=\"number\">{cell}</td>");
        }
        html.push_str("</tr>\n");
    }
    html.push_str("</tbody>\n</table></div>\n");
}
