//! Section of an experiment: contenders, published and measured results, figures and means.

use super::canvas::ChartError;
use super::group::{self, Group};
use super::html::{self, legend};
use super::overview::{claims, matrix};
use super::sensitivity::sensitivity;
use super::{figure, mesh, stills};
use anabranch_lab::library;
use anabranch_lab::means::metric_names;
use anabranch_lab::measured::Measured;
use anabranch_lab::metric::Series;
use anabranch_lab::record::{Outcome, PolicyRuns};
use anabranch_lab::scenario::Scenario;
use anabranch_lab::scenario::model::{Figure, FigureKind, Transfer};
use anabranch_lab::statistics::readable;
use anabranch_lab::verdict::{self, Verdict};
use anabranch_routing::lanes::{LaneInterfaces, PathMode};
use maud::{Markup, html};

/// The section.
pub fn section(outcome: &Outcome) -> Result<Markup, ChartError> {
    let scenario = &outcome.scenario;
    let figures =
        if scenario.results.figures.is_empty() { default_figures(scenario) } else { scenario.results.figures.clone() };
    let figures = figures.iter().map(|figure| one_figure(outcome, figure)).collect::<Result<Vec<Markup>, _>>()?;
    let meshes = meshes(outcome)?;
    let measured = Measured::of(outcome);
    let matrix = matrix(&measured)?;
    let sensitivity = measured.sensitivity.as_ref().map(sensitivity).transpose()?;
    let moving = scenario.moving.is_some();
    Ok(html! {
        section id=(scenario.name) {
            h2 { (scenario.about.title) }
            @if !scenario.about.paper.is_empty() { p.paper { (scenario.about.paper) } }
            @if !scenario.about.description.is_empty() { p { (scenario.about.description.trim()) } }
            p.facts {
                "Scenario " code { (scenario.name) } ": " (scenario.duration.as_secs_f64()) " s simulated, seeds "
                (outcome.first_seed) " to " (outcome.first_seed + outcome.seeds() as u64 - 1)
                @if !moving && scenario.transfer != Transfer::None { ", receive buffer " (buffer_text(outcome)) } ". Trace hash "
                code { (format!("{:016x}", outcome.trace_hash)) } "."
            }
            (watch(outcome))
            (combinations(outcome))
            (matrix)
            @if !measured.verdicts.is_empty() { h3 { "Measured and published" } (claims(&measured.verdicts)) }
            (differences_table(outcome))
            @for mesh in meshes { (mesh) }
            (stills::strips(outcome))
            @for figure in figures { (figure) }
            @if let Some(sensitivity) = sensitivity { (sensitivity) }
            (means(outcome))
        }
    })
}

/// How to watch the first run, if the scenario is in the program and can be watched.
fn watch(outcome: &Outcome) -> Markup {
    html! {
        @if let Some(command) = library::watch_command(&outcome.scenario.name) {
            p.facts { "In a browser: " code { (command) " --seed " (outcome.first_seed) } }
        }
    }
}

fn buffer_text(outcome: &Outcome) -> String {
    use anabranch_lab::scenario::model::ReceiveBuffer;
    let size = |bytes: u64| format!("{} kB", readable(bytes as f64 / 1000.0));
    match outcome.scenario.connection.receive_buffer() {
        None => "as the engine has it".to_owned(),
        Some(ReceiveBuffer::Fixed(bytes)) => size(bytes.0),
        Some(ReceiveBuffer::Auto { initial, max }) => format!("tuned from {} up to {}", size(initial.0), size(max.0)),
    }
}

/// Lists with more contenders are collapsed.
const MOST_COMBINATIONS: usize = 6;

fn combinations(outcome: &Outcome) -> Markup {
    let list = html! {
        dl.policies {
            @for runs in &outcome.policies {
                dt { (runs.label()) }
                dd { (outcome.scenario.describe(&runs.contender)) }
            }
        }
    };
    let schemes = group::schemes(outcome).into_iter().map(|scheme| outcome.label_of(scheme));
    html! {
        @if outcome.policies.len() > MOST_COMBINATIONS || !outcome.baselines().is_empty() {
            details {
                summary {
                    (schemes.collect::<Vec<_>>().join(", "))
                    @if !outcome.baselines().is_empty() { ", each on " (outcome.baselines().join(", ")) }
                }
                (list)
            }
        } @else { (list) }
    }
}

/// Snapshots of the ad-hoc network during the first run of a contender with all next hops, and of one with a single
/// next hop; for mobile nodes, of the first contender.
fn meshes(outcome: &Outcome) -> Result<Vec<Markup>, ChartError> {
    if let (Some(moving), Some(runs)) = (&outcome.scenario.moving, outcome.policies.first()) {
        // More names would be illegible.
        return if moving.nodes <= 40 { Ok(vec![moving_mesh(runs)?]) } else { Ok(Vec::new()) };
    }
    let with_pictures = |runs: &&PolicyRuns| {
        let lanes = runs.records.first().and_then(|record| record.mesh.first()).and_then(|mesh| mesh.nodes.first());
        lanes.is_some_and(|node| node.next_hops.len() > 1) && !runs.contender.mesh.predicted
    };
    let real = |runs: &&PolicyRuns| runs.contender.mesh.lanes.interfaces == LaneInterfaces::Real;
    let mut drawn = Vec::new();
    for paths in [PathMode::Full, PathMode::Part] {
        let mut candidates = outcome.policies.iter().filter(with_pictures).filter(real);
        let Some(runs) = candidates.find(|runs| runs.contender.mesh.lanes.paths == paths) else { continue };
        let lanes: Vec<&str> = outcome.scenario.paths.iter().map(|path| path.name.as_str()).collect();
        let reading =
            "The ways that packets from M1 to M8 can take on each interface, at a few moments of the first run.";
        drawn.push(pictures_of(runs, &lanes, reading)?);
    }
    Ok(drawn)
}

fn moving_mesh(runs: &PolicyRuns) -> Result<Markup, ChartError> {
    let last = runs.records.first().and_then(|record| record.mesh.first()).and_then(|mesh| mesh.nodes.last());
    let Some(last) = last else { return Ok(Markup::default()) };
    let reading = format!(
        "Where the nodes are, and the ways that packets from node 0 to node {} can take, at a few moments of the first run.",
        last.name
    );
    pictures_of(runs, &["next hops"], &reading)
}

fn pictures_of(runs: &PolicyRuns, lanes: &[&str], reading: &str) -> Result<Markup, ChartError> {
    let Some(record) = runs.records.first().filter(|record| !record.mesh.is_empty()) else {
        return Ok(Markup::default());
    };
    let moments = record.mesh.iter().map(|moment| mesh::moment(moment, mesh::SENDER));
    let moments = moments.collect::<Result<Vec<String>, _>>()?;
    Ok(html! {
        figure {
            h3 { "The network during " (runs.label()) }
            (legend(lanes.iter().enumerate().map(|(at, name)| (*name, at))))
            div.pictures.many { @for svg in &moments { (html::picture(svg)) } }
            figcaption {
                p.reading {
                    (reading) " Filled: MDR; grey: Backup MDR; light: MDR Other, or no router."
                }
            }
        }
    })
}

/// Figures of a scenario that defines none.
fn default_figures(scenario: &Scenario) -> Vec<Figure> {
    let figure = |title: &str, series: Series| Figure {
        name: series.name().to_owned(),
        title: title.to_owned(),
        kind: FigureKind::Time { series: vec![series], window: None, average: None },
        policies: Vec::new(),
        published: String::new(),
    };
    let connection = [
        figure("Throughput over time", Series::Throughput),
        figure("Congestion windows", Series::Cwnd),
        figure("End-to-end delay", Series::Delay),
        figure("Receive buffer used", Series::ReceiveBuffer),
    ];
    let datagrams = [
        figure("Delay of datagrams", Series::DatagramDelay),
        figure("Datagrams lost", Series::DatagramLoss),
        figure("Sent on each path for datagrams", Series::DatagramPathThroughput),
    ];
    let (with_connection, with_datagrams) = (scenario.transfer != Transfer::None, !scenario.datagrams.is_empty());
    let connection = connection.into_iter().filter(|_| with_connection);
    connection.chain(datagrams.into_iter().filter(|_| with_datagrams)).collect()
}

fn one_figure(outcome: &Outcome, figure: &Figure) -> Result<Markup, ChartError> {
    let drawn = figure::draw(outcome, figure)?;
    let buffer = match &figure.kind {
        _ if outcome.scenario.moving.is_some() => String::new(),
        FigureKind::Sweep { .. } if swept_buffer(outcome) => ", receive buffer swept".to_owned(),
        _ => format!(", receive buffer {}", buffer_text(outcome)),
    };
    let settings = format!("{} Scenario {}{buffer}; policies as listed above.", drawn.reading, outcome.scenario.name);
    let sentence = agreement(outcome, figure).or_else(|| {
        let none = "The paper states neither a number nor an order to compare this with.";
        (!figure.published.is_empty()).then(|| none.to_owned())
    });
    if drawn.pictures.is_empty() {
        return Ok(html! { p.facts { b { (figure.title) "." } " " (drawn.reading) } });
    }
    Ok(html! {
        figure {
            h3 { (figure.title) }
            (html::marks(drawn.legend.iter().map(|(label, at)| (label.as_str(), *at))))
            (html::pictures(&figure.title, &drawn.pictures, drawn.columns))
            figcaption {
                p.reading { (settings) }
                div {
                    @if !figure.published.is_empty() { p { b { "Published." } " " (figure.published.trim()) } }
                    @if let Some(sentence) = sentence { p { b { "Agreement." } " " (sentence) } }
                }
            }
        }
    })
}

fn swept_buffer(outcome: &Outcome) -> bool {
    outcome.scenario.results.sweep.as_ref().is_some_and(|sweep| sweep.key == "connection.receive_buffer")
}

/// One sentence on all claims of a figure.
fn agreement(outcome: &Outcome, figure: &Figure) -> Option<String> {
    let claims = outcome.scenario.results.claims.iter().filter(|claim| claim.figure == figure.name);
    let verdicts: Vec<Verdict> = claims.map(|claim| verdict::judge(outcome, claim)).collect();
    let cells = || verdicts.iter().flat_map(|verdict| &verdict.cells);
    match cells().count() {
        0 => None,
        1..=MOST_SENTENCES => Some(in_one_sentence(&cells().map(|cell| cell.sentence.clone()).collect::<Vec<_>>())),
        _ => Some(counted(&verdicts)),
    }
}

/// With more claims than this, the text has their numbers and only the table lists them.
const MOST_SENTENCES: usize = 4;

/// Number of claims by verdict.
fn counted(verdicts: &[Verdict]) -> String {
    let words: Vec<String> =
        verdict::count(verdicts).iter().map(|(agreement, count)| format!("{}: {count}", agreement.word())).collect();
    format!("Of {} statements, {}; one by one in the table above.", verdicts.len(), words.join(", "))
}

fn in_one_sentence(parts: &[String]) -> String {
    let text = parts.join("; ");
    let mut letters = text.chars();
    let first = letters.next().map(|first| first.to_uppercase().to_string()).unwrap_or_default();
    format!("{first}{}.", letters.as_str())
}

/// Differences of the main policy from each other one.
fn differences_table(outcome: &Outcome) -> Markup {
    let differences = verdict::differences(outcome);
    let Some(wanted) = outcome.scenario.results.differences.as_ref().filter(|_| !differences.is_empty()) else {
        return Markup::default();
    };
    let label = |policy: &str| outcome.policy(policy).map_or_else(String::new, PolicyRuns::label);
    html! {
        h3 { (label(&wanted.policy)) " minus the others, paired by seed" }
        div.scroll {
            table {
                thead {
                    tr { th { "Metric" } th { "Minus" } th.number { "Difference [95 % interval]" } }
                }
                tbody {
                    @for (metric, other, estimate) in &differences {
                        @if let Some((name, unit)) = outcome.scenario.metric(metric) {
                            tr {
                                td { (name) }
                                td { (label(other)) }
                                td.number { (verdict::signed(estimate, unit)) }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// All means: one table, or one per baseline.
fn means(outcome: &Outcome) -> Markup {
    let chosen: Vec<(usize, &PolicyRuns)> = outcome.policies.iter().enumerate().collect();
    html! {
        h3 { "Means with 95 % confidence intervals" }
        @for group in group::by_baseline(&chosen) {
            details {
                summary { @if group.title.is_empty() { "All metrics" } @else { "All metrics: " (group.title) } }
                (means_table(outcome, &group))
            }
        }
    }
}

fn means_table(outcome: &Outcome, group: &Group<'_>) -> Markup {
    let runs: Vec<&PolicyRuns> = group.runs.iter().map(|(_, runs)| *runs).collect();
    let measured = |metric: &str| runs.iter().any(|runs| runs.estimate(metric).is_some());
    let named = |(metric, unit): (String, &'static str)| {
        let (label, _) = outcome.scenario.metric(&metric).filter(|_| measured(&metric))?;
        Some((label, if unit == "1" { "" } else { unit }, metric))
    };
    html! {
        div.scroll {
            table.means {
                thead {
                    tr {
                        th { "Metric" }
                        th { "Unit" }
                        @for runs in &runs { th.number { (group::label(outcome, runs)) } }
                    }
                }
                tbody {
                    @for (label, unit, metric) in metric_names(outcome).into_iter().filter_map(named) {
                        tr {
                            td { (label) }
                            td { (unit) }
                            @for runs in &runs { td.number { (mean(runs, &metric)) } }
                        }
                    }
                }
            }
        }
    }
}

fn mean(runs: &PolicyRuns, metric: &str) -> Markup {
    match runs.estimate(metric) {
        Some(estimate) if estimate.half_width.is_finite() => {
            html! { (readable(estimate.mean)) " " small { "± " (readable(estimate.half_width)) } }
        }
        Some(estimate) => html! { (readable(estimate.mean)) },
        None => html! { "–" },
    }
}
