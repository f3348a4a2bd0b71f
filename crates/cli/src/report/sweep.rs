//! The page on a sweep: how the aggregation benefit of each policy is distributed over the points, and the scores.

use super::chart;
use super::distribution::{Distribution, boxes, cumulated};
use super::html::{closing, escape, opening};
use crate::diagnostic::Diagnostic;
use crate::sweep::outcome::{EXPLAINED, HEAD, Outcome, PolicyOutcome};
use crate::sweep::point::Class;
use crate::sweep::score::Group;
use std::fmt::Write;

/// What is drawn of the benefit: -1 is nothing at all, and few points are above the sum of the paths.
const RANGE: (f64, f64) = (-1.0, 1.25);
/// What is drawn of the ratio of delays, as its logarithm to base 2.
const RATIOS: (f64, f64) = (-3.0, 5.0);
const SIZE: (u32, u32) = (430, 320);
const WIDTH: u32 = 880;

/// A page of its own.
pub fn sweep_page(outcome: &Outcome) -> Result<String, Diagnostic> {
    let mut html =
        opening("sweep", "Every policy on a space-filling set of networks, held against TCP on each single path.");
    section(&mut html, outcome).map_err(|error| Diagnostic::plain(format!("cannot draw the report: {error}")))?;
    html.push_str(closing());
    Ok(html)
}

fn section(html: &mut String, outcome: &Outcome) -> Result<(), chart::ChartError> {
    html.push_str("<section id=\"sweep\">\n<h2>Never slower than the best path?</h2>\n");
    let _ = writeln!(html, "<p class=\"facts\">{}.</p>", escape(&outcome.heading()));
    let tints = tints(outcome);
    figure(html, "Aggregation benefit: share of the points that do not exceed it", &tints, |html| {
        for (group, title) in panels() {
            let benefits = distributions(outcome, &tints, |policy| policy.benefits(group));
            html.push_str(&cumulated(&benefits, (title, "aggregation benefit"), RANGE, SIZE)?);
        }
        Ok(())
    })?;
    figure(html, "Aggregation benefit on all points: deciles, quarters and median", &[], |html| {
        let benefits = distributions(outcome, &tints, |policy| policy.benefits(Group::All));
        html.push_str(&boxes(&benefits, "aggregation benefit", RANGE, WIDTH)?);
        Ok(())
    })?;
    if outcome.policies.iter().any(|policy| !policy.delay_ratios().is_empty()) {
        let title =
            "Delay that 99 % of the messages do not exceed, in terms of TCP's on its best path (logarithm to base 2)";
        figure(html, title, &[], |html| {
            let logarithms = |policy: &PolicyOutcome| policy.delay_ratios().into_iter().map(f64::log2).collect();
            let ratios = distributions(outcome, &tints, logarithms);
            html.push_str(&boxes(&ratios, "1: twice as long, -1: half as long", RATIOS, WIDTH)?);
            Ok(())
        })?;
    }
    for group in Group::ALL {
        table(html, outcome, group);
    }
    let _ = writeln!(html, "<p class=\"reading\">{}</p>\n</section>", escape(EXPLAINED));
    Ok(())
}

fn panels() -> [(Group, &'static str); 6] {
    [
        (Group::All, "all points"),
        (Group::One(Class::LowBdp), "low BDP"),
        (Group::One(Class::LowBdpLossy), "low BDP, loss"),
        (Group::One(Class::HighBdp), "high BDP"),
        (Group::One(Class::HighBdpLossy), "high BDP, loss"),
        (Group::One(Class::Changing), "paths that change"),
    ]
}

/// Names with colours: the combinations that have a name of their own first, then those whose worst decile is best.
fn tints(outcome: &Outcome) -> Vec<(usize, String)> {
    let decile = |policy: &PolicyOutcome| {
        policy.scores.get(Group::All.name()).map_or(f64::NEG_INFINITY, |score| score.benefit_worst_decile)
    };
    let mut order: Vec<&PolicyOutcome> = outcome.policies.iter().collect();
    order.sort_by(|a, b| {
        let own = |policy: &PolicyOutcome| !["anabranch", "plain", "linux"].contains(&policy.name.as_str());
        own(a).cmp(&own(b)).then(decile(b).total_cmp(&decile(a)))
    });
    order.into_iter().take(chart::PALETTE.len()).map(|policy| policy.name.clone()).enumerate().collect()
}

fn distributions(
    outcome: &Outcome,
    tints: &[(usize, String)],
    values: impl Fn(&PolicyOutcome) -> Vec<f64>,
) -> Vec<Distribution> {
    let one = |policy: &PolicyOutcome| Distribution {
        name: policy.name.clone(),
        colour: tints.iter().find(|(_, name)| *name == policy.name).map(|(at, _)| *at),
        values: values(policy),
    };
    outcome.policies.iter().map(one).collect()
}

fn figure(
    html: &mut String,
    title: &str,
    tints: &[(usize, String)],
    draw: impl FnOnce(&mut String) -> Result<(), chart::ChartError>,
) -> Result<(), chart::ChartError> {
    let _ = writeln!(html, "<figure>\n<h3>{}</h3>", escape(title));
    if !tints.is_empty() {
        html.push_str("<ul class=\"legend\">");
        for (at, name) in tints {
            let colour = chart::css_colour(*at);
            let _ = write!(html, "<li><span style=\"background:{colour}\"></span>{}</li>", escape(name));
        }
        html.push_str("</ul>\n");
    }
    let _ = writeln!(html, "<div class=\"pictures{}\">", if tints.is_empty() { "" } else { " many" });
    draw(html)?;
    html.push_str("</div>\n");
    if !tints.is_empty() {
        html.push_str("<figcaption><p class=\"reading\">The other policies are the thin lines.</p></figcaption>\n");
    }
    html.push_str("</figure>\n");
    Ok(())
}

fn table(html: &mut String, outcome: &Outcome, group: Group) {
    let points =
        outcome.policies.iter().find_map(|policy| policy.scores.get(group.name())).map_or(0, |score| score.points);
    if points == 0 {
        return;
    }
    let name = group.name().replace('_', " ");
    let _ = write!(html, "<h3>{name}: {points} points</h3>\n<div class=\"scroll\"><table>\n<thead><tr>");
    for head in HEAD {
        let _ = write!(html, "<th class=\"number\">{}</th>", escape(head));
    }
    html.push_str("</tr></thead>\n<tbody>\n");
    for policy in &outcome.policies {
        html.push_str("<tr>");
        for cell in policy.cells(group) {
            let _ = write!(html, "<td class=\"number\">{}</td>", escape(&cell));
        }
        html.push_str("</tr>\n");
    }
    html.push_str("</tbody>\n</table></div>\n");
}
