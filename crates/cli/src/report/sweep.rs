//! The page of a sweep: distribution of each policy's aggregation benefit over the points, and scores.

use super::canvas::{ChartError, PALETTE};
use super::distribution::{Distribution, boxes, cumulated};
use super::html::{self, legend, numbers};
use super::picture::{Picture, THIRD};
use super::rows::Frame;
use anabranch_lab::sweep::outcome::{CONDUCT_EXPLAINED, CONDUCT_HEAD, EXPLAINED, HEAD, Outcome, PolicyOutcome};
use anabranch_lab::sweep::point::Class;
use anabranch_lab::sweep::score::Group;
use anabranch_settings::diagnostic::Diagnostic;
use maud::{Markup, html};

/// Displayed range of the benefit: -1 is no goodput, and few points exceed the sum of the paths.
const RANGE: (f64, f64) = (-1.0, 1.25);
/// Displayed range of the ratio of delays, as its logarithm to base 2.
const RATIOS: (f64, f64) = (-3.0, 5.0);
/// Displayed range of the shares of competitors.
const SHARES: (f64, f64) = (0.0, 2.0);
const SIZE: (u32, u32) = (THIRD, 300);

pub fn sweep_page(outcome: &Outcome) -> Result<String, Diagnostic> {
    let what = "Every policy on a space-filling set of networks, compared with TCP on each single path.";
    let body = section(outcome).map_err(|error| Diagnostic::plain(format!("cannot draw the report: {error}")))?;
    Ok(html::page("sweep", what, &body))
}

fn section(outcome: &Outcome) -> Result<Markup, ChartError> {
    let tints = tints(outcome);
    let mut shares = Vec::new();
    let used = |group: &Group| outcome.policies.iter().any(|policy| policy.scores.contains_key(group.name()));
    for (group, title) in panels().into_iter().filter(|(group, _)| used(group)) {
        let benefits = distributions(outcome, &tints, |policy| policy.benefits(group));
        shares.push(Picture { wide: cumulated(&benefits, (title, "aggregation benefit"), RANGE, SIZE)?, narrow: None });
    }
    let names = outcome.policies.iter().map(|policy| policy.name.chars().count());
    let longest = names.max().unwrap_or(0);
    let frame = |range, axis| Frame { axis, range, longest };
    let benefits = distributions(outcome, &tints, |policy| policy.benefits(Group::All));
    let benefits = Picture::drawn(1, |width| boxes(&benefits, "", &frame(RANGE, "aggregation benefit"), width))?;
    let mut delays = None;
    if outcome.policies.iter().any(|policy| !policy.delay_ratios().is_empty()) {
        let logarithms = |policy: &PolicyOutcome| policy.delay_ratios().into_iter().map(f64::log2).collect();
        let ratios = distributions(outcome, &tints, logarithms);
        let axis = "1: twice as long, -1: half as long";
        delays = Some(Picture::drawn(1, |width| boxes(&ratios, "", &frame(RATIOS, axis), width))?);
    }
    let mut others = None;
    if outcome.policies.iter().any(|policy| !policy.shares_of_others().is_empty()) {
        let shares = distributions(outcome, &tints, PolicyOutcome::shares_of_others);
        let axis = "1: the fair share";
        others = Some(Picture::drawn(1, |width| boxes(&shares, "", &frame(SHARES, axis), width))?);
    }
    Ok(html! {
        section #sweep {
            h2 { "Never slower than the best path?" }
            p.facts { (outcome.heading()) "." }
            (figure("Aggregation benefit: share of the points that do not exceed it", &tints, &shares, 3))
            (figure("Aggregation benefit on all points: deciles, quarters and median", &[], &[benefits], 1))
            @if let Some(delays) = delays {
                (figure(
                    "Delay that 99 % of the messages do not exceed, in terms of TCP's on its best path (logarithm to base 2)",
                    &[],
                    &[delays],
                    1,
                ))
            }
            @if let Some(others) = others {
                (figure("What TCP of others keeps of its fair share: deciles, quarters and median", &[], &[others], 1))
            }
            @for group in Group::ALL { (table(outcome, group)) }
            p.reading { (EXPLAINED) }
            p.reading { (CONDUCT_EXPLAINED) }
        }
    })
}

fn panels() -> [(Group, &'static str); 15] {
    [
        (Group::All, "all points"),
        (Group::One(Class::LowBdp), "low BDP"),
        (Group::One(Class::LowBdpLossy), "low BDP, loss"),
        (Group::One(Class::HighBdp), "high BDP"),
        (Group::One(Class::HighBdpLossy), "high BDP, loss"),
        (Group::One(Class::Changing), "paths that change"),
        (Group::One(Class::Crowd), "crowds"),
        (Group::One(Class::BesideCubic), "beside CUBIC"),
        (Group::One(Class::BesideNewReno), "beside NewReno"),
        (Group::One(Class::BesideBbr), "beside BBR"),
        (Group::One(Class::SharedBottleneck), "one bottleneck"),
        (Group::One(Class::CoDel), "CoDel"),
        (Group::One(Class::Pauses), "pauses"),
        (Group::One(Class::Walk), "walks"),
        (Group::One(Class::Satellite), "satellites"),
    ]
}

/// Coloured policies: named combinations first, then those with the best worst decile.
fn tints(outcome: &Outcome) -> Vec<(usize, String)> {
    let decile = |policy: &PolicyOutcome| {
        policy.scores.get(Group::All.name()).map_or(f64::NEG_INFINITY, |score| score.benefit_worst_decile)
    };
    let mut order: Vec<&PolicyOutcome> = outcome.policies.iter().collect();
    order.sort_by(|a, b| {
        let own = |policy: &PolicyOutcome| !["anabranch", "plain", "linux"].contains(&policy.name.as_str());
        own(a).cmp(&own(b)).then(decile(b).total_cmp(&decile(a)))
    });
    order.into_iter().take(PALETTE.len()).map(|policy| policy.name.clone()).enumerate().collect()
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

fn figure(title: &str, tints: &[(usize, String)], pictures: &[Picture], columns: usize) -> Markup {
    html! {
        figure {
            h3 { (title) }
            (legend(tints.iter().map(|(at, name)| (name.as_str(), *at))))
            (html::pictures(title, pictures, columns))
            @if !tints.is_empty() {
                figcaption { p.reading { "The other policies are the thin lines." } }
            }
        }
    }
}

fn table(outcome: &Outcome, group: Group) -> Markup {
    let points =
        outcome.policies.iter().find_map(|policy| policy.scores.get(group.name())).map_or(0, |score| score.points);
    if points == 0 {
        return Markup::default();
    }
    let name = group.name().replace('_', " ");
    let rows: Vec<Vec<String>> = outcome.policies.iter().map(|policy| policy.cells(group).to_vec()).collect();
    let conduct: Vec<Vec<String>> = outcome.policies.iter().filter_map(|policy| policy.conduct(group)).collect();
    html! {
        h3 { (name) ": " (points) " points" }
        (numbers(&HEAD, &rows))
        @if !conduct.is_empty() { (numbers(&CONDUCT_HEAD, &conduct)) }
    }
}
