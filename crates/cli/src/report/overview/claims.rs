//! Claims of a paper, with measurements and verdicts on each baseline.

use anabranch_lab::verdict::{Agreement, Cell, Verdict};
use maud::{Markup, html};

/// One row per claim; on narrow pages, a card.
pub fn claims(verdicts: &[Verdict]) -> Markup {
    if verdicts.is_empty() {
        return Markup::default();
    }
    let baselines = baselines(verdicts);
    html! {
        div.scroll {
            table.cards {
                thead {
                    tr {
                        th { "What the paper says" }
                        th { "Published" }
                        @for baseline in &baselines { th { (baseline.unwrap_or("Measured [95 % interval]")) } }
                        @if several(&baselines) { th { "In all" } }
                    }
                }
                tbody { @for verdict in verdicts { (row(verdict, &baselines)) } }
            }
        }
    }
}

fn several(baselines: &[Option<&str>]) -> bool {
    baselines.len() > 1
}

/// Baselines with verdicts, in order of first mention; a single unnamed one if there are none.
fn baselines(verdicts: &[Verdict]) -> Vec<Option<&str>> {
    let mut found = Vec::new();
    for baseline in verdicts.iter().flat_map(|verdict| &verdict.cells).filter_map(|cell| cell.baseline.as_deref()) {
        if !found.contains(&Some(baseline)) {
            found.push(Some(baseline));
        }
    }
    if found.is_empty() { vec![None] } else { found }
}

fn row(verdict: &Verdict, baselines: &[Option<&str>]) -> Markup {
    let small = |text: &str| html! { @if !text.is_empty() { br; small { (text) } } };
    let on = |baseline: &Option<&str>| verdict.cells.iter().find(|cell| cell.baseline.as_deref() == *baseline);
    // A scheme that runs without baseline.
    let alone = verdict.cells.first().filter(|cell| cell.baseline.is_none() && several(baselines));
    html! {
        tr {
            td.subject { (verdict.subject) small.figure { " " (verdict.figure) } (small(&verdict.note)) }
            td data-label="published" { (verdict.published) }
            @if let Some(alone) = alone {
                td data-label="measured" colspan=(baselines.len()) { (cell(alone)) }
            } @else {
                @for baseline in baselines {
                    td data-label=(baseline.unwrap_or("measured")) {
                        div {
                            @match on(baseline) { Some(found) => (cell(found)), None => "–" }
                            @if !several(baselines) { (small(&verdict.reading)) }
                        }
                    }
                }
            }
            @if several(baselines) {
                td data-label="in all" {
                    div {
                        b class=(class(verdict.best())) { (mark(verdict.best())) " " (verdict.overall()) }
                        (small(&verdict.reading))
                    }
                }
            }
        }
    }
}

/// Measured value, interval and verdict, stacked.
fn cell(cell: &Cell) -> Markup {
    let brackets = [" [", " ("].into_iter().filter_map(|start| cell.measured.find(start)).min();
    let (measured, interval) = cell.measured.split_at(brackets.unwrap_or(cell.measured.len()));
    html! {
        div.measured {
            @if cell.agreement != Agreement::NotMeasured { span { (measured) } }
            @if !interval.is_empty() { small { (interval.trim()) } }
            b class=(class(cell.agreement)) { (mark(cell.agreement)) " " (cell.agreement.word()) }
        }
    }
}

fn class(agreement: Agreement) -> String {
    agreement.word().replace(' ', "-")
}

const fn mark(agreement: Agreement) -> &'static str {
    match agreement {
        Agreement::Reproduced => "✓",
        Agreement::InPart => "◐",
        Agreement::Undecided => "?",
        Agreement::Not => "✗",
        Agreement::NotMeasured => "–",
    }
}
