//! Parses a walk, out of the coverage of an access point and back, into its effects on a link: coverage over time, and
//! outages.
//!
//! A user walks away during some ranges of time, at constant speed, and back in between, up to the starting point. So a
//! distance is measured in seconds of walking. Link quality decreases linearly up to the edge of the coverage; beyond
//! the edge the link is down, or keeps its quality at the edge.

use super::model::CoveragePoint;
use anabranch_policy::time::Duration;
use anabranch_settings::diagnostic::Diagnostic;
use anabranch_settings::quantity::Share;
use anabranch_settings::reader::Item;

/// Ranges of time; the last may have no end.
type Ranges = Vec<(Duration, Option<Duration>)>;

/// Effects of a walk on its link.
#[derive(Clone, PartialEq, Debug)]
pub struct Walk {
    /// Link quality over time.
    pub coverage: Vec<CoveragePoint>,
    /// Outages.
    pub down: Ranges,
}

/// Parses a walk.
pub fn walk(item: &Item<'_>) -> Result<Walk, Diagnostic> {
    let table = item.table("a walk", &["away", "edge", "rate", "loss", "beyond"])?;
    let away_item = table.required("away")?;
    let away = away_item.list()?.iter().map(Item::range_of_time).collect::<Result<Ranges, _>>()?;
    let ordered = |pair: &[(Duration, Option<Duration>)]| pair[0].1.is_some_and(|end| end <= pair[1].0);
    if away.is_empty() || !away.windows(2).all(ordered) {
        return Err(away_item.error("ranges of walking away must be in order of time and must not overlap"));
    }
    let edge_item = table.required("edge")?;
    let edge: Duration = edge_item.quantity()?;
    if edge == Duration::ZERO {
        return Err(edge_item.error("the edge of the coverage cannot lie where the walk begins"));
    }
    let (rate, loss) = (table.quantity("rate")?.unwrap_or(Share(1.0)), table.quantity("loss")?.unwrap_or(Share(0.0)));
    if let Some(item) = table.get("rate").filter(|_| rate.0 <= 0.0) {
        return Err(
            item.error("the rate at the edge is above 0 %: beyond = \"gone\" says that nothing is left behind it")
        );
    }
    let gone = table.get("beyond").map_or(Ok(true), |item| item.word(&[("gone", true), ("edge", false)]))?;

    let mut made = Walk { coverage: Vec::new(), down: Vec::new() };
    let mut left = None;
    for (at, distance) in turns(&away, edge) {
        if distance <= edge {
            let share = distance.as_secs_f64() / edge.as_secs_f64();
            // At the ends of the line these are exactly 1 and the value at the edge.
            let rate = Share((1.0 - share) + share * rate.0);
            made.coverage.push(CoveragePoint { at, rate, loss: Share(share * loss.0) });
            if let Some(begin) = left.take() {
                made.down.push((begin, Some(at)));
            }
        } else if left.is_none() {
            // The previous point is at the edge.
            left = made.coverage.last().map(|point| point.at);
        }
    }
    made.down.extend(left.map(|begin| (begin, None)));
    if !gone {
        made.down.clear();
    }
    Ok(made)
}

/// Distance over time as points to interpolate linearly: turns, starts and returns, and crossings of the edge.
fn turns(away: &[(Duration, Option<Duration>)], edge: Duration) -> Vec<(Duration, Duration)> {
    let mut turns: Vec<(Duration, Duration)> = Vec::new();
    let mut add = |at: Duration, distance: Duration| {
        if let Some((before, was)) = turns.last().copied() {
            if was < edge && edge < distance {
                turns.push((before + (edge - was), edge));
            } else if distance < edge && edge < was {
                turns.push((before + (was - edge), edge));
            }
        }
        turns.push((at, distance));
    };
    let (mut turned, mut distance) = (Duration::ZERO, Duration::ZERO);
    for (from, to) in away {
        if distance > Duration::ZERO && distance <= *from - turned {
            add(turned + distance, Duration::ZERO);
            distance = Duration::ZERO;
        } else if distance > Duration::ZERO {
            distance -= *from - turned;
        }
        add(*from, distance);
        let to = match to {
            Some(to) => *to,
            // Without end: far enough to be beyond the edge.
            None => *from + edge * 2,
        };
        distance += to - *from;
        turned = to;
        add(to, distance);
    }
    if away.last().is_some_and(|(_, to)| to.is_some()) {
        add(turned + distance, Duration::ZERO);
    }
    turns
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::Document;
    use crate::scenario::model::Link;

    /// A link with this walk.
    fn link(walk: &str) -> Result<Link, String> {
        let text = "name = \"s\"\nduration = \"120 s\"\nconnection.receive_buffer = \"1 MB\"\n[[paths]]\nlinks = [{ rate = \"11 Mbit/s\" }]";
        let document = Document::embedded("s.toml", text, &[format!("paths.0.links.0.walk={walk}")]);
        document.scenario().map(|scenario| scenario.paths[0].links[0].clone()).map_err(|error| error.to_string())
    }

    fn second(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    /// Points in seconds, shares in per mille.
    fn points(link: &Link) -> Vec<(f64, u32, u32)> {
        let mille = |share: Share| (share.0 * 1000.0).round() as u32;
        link.coverage.iter().map(|point| (point.at.as_secs_f64(), mille(point.rate), mille(point.loss))).collect()
    }

    #[test]
    fn whoever_walks_out_is_gone_until_they_are_back_at_the_edge() {
        // 15 s to the edge, 5 s beyond it, 5 s back to it, 15 s back to the start; then out forever.
        let walked = link(r#"{ away = ["10..30 s", "70 s.."], edge = "15 s", rate = "10 %", loss = "20 %" }"#).unwrap();
        let whole = |at| (at, 1000, 0);
        let edge = |at| (at, 100, 200);
        let expected = [whole(10.0), edge(25.0), edge(35.0), whole(50.0), whole(70.0), edge(85.0)];
        assert_eq!(points(&walked), expected);
        assert_eq!(walked.down, [(second(25), Some(second(35))), (second(85), None)]);
    }

    #[test]
    fn whoever_turns_before_the_edge_is_never_gone() {
        // 20 of 40 s to the edge: half way.
        let walked = link(r#"{ away = ["10..30 s"], edge = "40 s", rate = "10 %", loss = "20 %" }"#).unwrap();
        assert_eq!(points(&walked), [(10.0, 1000, 0), (30.0, 550, 100), (50.0, 1000, 0)]);
        assert_eq!(walked.down, []);
    }

    #[test]
    fn a_walk_may_go_on_before_its_beginning_is_reached_again() {
        // Out for 20 s, back for 5 s, out for 5 s and back: beyond the edge from 20 to 60 s except at 40 s.
        let walked = link(r#"{ away = ["10..30 s", "40..50 s"], edge = "10 s", beyond = "gone" }"#).unwrap();
        assert_eq!(points(&walked).iter().map(|point| point.0).collect::<Vec<_>>(), [10.0, 20.0, 40.0, 60.0, 70.0]);
        assert_eq!(walked.down, [(second(20), Some(second(40))), (second(40), Some(second(60)))]);
    }

    #[test]
    fn beyond_the_edge_what_is_left_there_may_stay() {
        let walked = link(r#"{ away = ["10 s.."], edge = "5 s", rate = "10 %", loss = "20 %", beyond = "edge" }"#);
        let walked = walked.unwrap();
        assert_eq!(points(&walked), [(10.0, 1000, 0), (15.0, 100, 200)]);
        assert_eq!(walked.down, []);
    }

    #[test]
    fn walks_that_cannot_be_are_refused_with_the_reason() {
        let cases = [
            (r#"{ away = [], edge = "5 s" }"#, "in order of time"),
            (r#"{ away = ["10 s..", "20..30 s"], edge = "5 s" }"#, "must not overlap"),
            (r#"{ away = ["10..30 s", "20..40 s"], edge = "5 s" }"#, "must not overlap"),
            (r#"{ away = ["10..30 s"], edge = "0 s" }"#, "cannot lie where the walk begins"),
            (r#"{ away = ["10..30 s"] }"#, "a walk has no 'edge', which it needs"),
            (r#"{ away = ["10..30 s"], edge = "5 s", rate = "0 %" }"#, "above 0 %"),
            (r#"{ away = ["10..30 s"], edge = "5 s", beyond = "lost" }"#, "'lost' is not one of gone, edge"),
        ];
        for (walk, expected) in cases {
            let error = link(walk).expect_err(walk);
            assert!(error.contains(expected), "{walk}: {error}");
        }
        let text = "name = \"s\"\nduration = \"120 s\"\nconnection.receive_buffer = \"1 MB\"\n[[paths]]\nlinks = [{ rate = \"11 Mbit/s\", down = [\"5..6 s\"], walk = { away = [\"10 s..\"], edge = \"5 s\" } }]";
        let error = Document::embedded("s.toml", text, &[]).scenario().unwrap_err().to_string();
        assert!(error.contains("leave this out, or the walk"), "{error}");
    }
}
