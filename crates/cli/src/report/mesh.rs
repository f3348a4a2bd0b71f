//! Renders snapshots of an ad-hoc network: nodes with their roles, and their next hops to the receiver on each path.

use super::canvas::{ChartError, FONT, INK, TEXT, adopt, colour};
use anabranch_routing::neighborhood::Level;
use anabranch_sim::mesh::NodeId;
use anabranch_sim::mesh::snapshot::Snapshot;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

/// The source of packets: the first node.
pub const SENDER: NodeId = NodeId(0);

/// Width and height of a chart, and its margin, in pixels.
const SIZE: (u32, u32) = (400, 290);
const EDGE: f64 = 34.0;
/// Distance between the lines of two paths, and radius of a node, in pixels.
const APART: f64 = 5.0;
const RADIUS: i32 = 11;

/// Renders a snapshot, with the next hops that packets from `from` can use.
pub fn moment(snapshot: &Snapshot, from: NodeId) -> Result<String, ChartError> {
    let mut text = String::new();
    {
        let root = SVGBackend::with_string(&mut text, SIZE).into_drawing_area();
        let caption = format!("{:.0} s", snapshot.time.as_secs_f64());
        root.draw(&Text::new(caption, (8, 8), (FONT, TEXT).into_font().color(&INK)))?;
        let places = places(snapshot);
        let lanes = snapshot.nodes.first().map_or(0, |node| node.next_hops.len());
        for lane in 0..lanes {
            let aside = (lane as f64 - (lanes as f64 - 1.0) / 2.0) * APART;
            for (one, other) in snapshot.ways(from, lane) {
                let (Some(a), Some(b)) = (places.get(one.0 as usize), places.get(other.0 as usize)) else { continue };
                root.draw(&PathElement::new(beside(*a, *b, aside), colour(lane).stroke_width(3)))?;
            }
        }
        for (node, place) in snapshot.nodes.iter().zip(&places) {
            let place = (place.0 as i32, place.1 as i32);
            let strength = match node.level {
                Some(Level::Mdr) => 1.0,
                Some(Level::BackupMdr) => 0.5,
                Some(Level::Other) | None => 0.12,
            };
            root.draw(&Circle::new(place, RADIUS, INK.mix(strength).filled()))?;
            root.draw(&Circle::new(place, RADIUS, INK.stroke_width(1)))?;
            let (at, pos) = beside_node(place);
            let style = (FONT, TEXT - 1).into_font().color(&INK).pos(pos);
            root.draw(&Text::new(node.name.clone(), at, style))?;
        }
        root.present()?;
    }
    Ok(adopt(&text))
}

/// Position of a node's name: outwards, since lines lead inwards.
fn beside_node((x, y): (i32, i32)) -> ((i32, i32), Pos) {
    let (width, height) = (SIZE.0 as i32, SIZE.1 as i32);
    let edge = EDGE as i32 + RADIUS;
    if x < edge {
        ((x - RADIUS - 3, y), Pos::new(HPos::Right, VPos::Center))
    } else if x > width - edge {
        ((x + RADIUS + 3, y), Pos::new(HPos::Left, VPos::Center))
    } else if y > height * 2 / 3 {
        ((x, y + RADIUS + 3), Pos::new(HPos::Center, VPos::Top))
    } else {
        ((x, y - RADIUS - 3), Pos::new(HPos::Center, VPos::Bottom))
    }
}

/// Positions of nodes in the chart.
fn places(snapshot: &Snapshot) -> Vec<(f64, f64)> {
    let positions = || snapshot.nodes.iter().map(|node| node.position);
    let span = |of: fn(&anabranch_sim::radio::Position) -> f64| {
        let values = positions().map(|position| of(&position));
        let (low, high) = values.fold((f64::MAX, f64::MIN), |(low, high), value| (low.min(value), high.max(value)));
        (low, (high - low).max(1.0))
    };
    let ((left, width), (bottom, height)) = (span(|position| position.x), span(|position| position.y));
    let scale = |size: u32| f64::from(size) - 2.0 * EDGE;
    let place = |position: anabranch_sim::radio::Position| {
        let x = EDGE + (position.x - left) / width * scale(SIZE.0);
        // Names are above their nodes.
        let y = EDGE + 8.0 + (1.0 - (position.y - bottom) / height) * (scale(SIZE.1) - 8.0);
        (x, y)
    };
    positions().map(place).collect()
}

/// The line between two nodes, offset sideways; it ends at their circles.
fn beside(a: (f64, f64), b: (f64, f64), aside: f64) -> Vec<(i32, i32)> {
    let (dx, dy) = (b.0 - a.0, b.1 - a.1);
    let length = dx.hypot(dy).max(1.0);
    let (along, across) = ((dx / length, dy / length), (-dy / length * aside, dx / length * aside));
    let radius = f64::from(RADIUS).min(length / 2.0);
    let end = |place: (f64, f64), way: f64| {
        let (x, y) = (place.0 + along.0 * way + across.0, place.1 + along.1 * way + across.1);
        (x.round() as i32, y.round() as i32)
    };
    vec![end(a, radius), end(b, -radius)]
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_policy::time::Instant;
    use anabranch_sim::mesh::snapshot::NodeSnapshot;
    use anabranch_sim::radio::Position;

    fn node(name: &str, x: f64, level: Level, next_hops: &[u32]) -> NodeSnapshot {
        let next_hops = vec![next_hops.iter().map(|node| NodeId(*node)).collect()];
        NodeSnapshot { name: name.to_owned(), position: Position { x, y: 0.0 }, level: Some(level), next_hops }
    }

    fn chain() -> Snapshot {
        let nodes = vec![
            node("M1", 0.0, Level::Other, &[1]),
            node("M2", 100.0, Level::Mdr, &[2]),
            node("M3", 200.0, Level::Other, &[]),
            // No node sends to it.
            node("M4", 300.0, Level::Other, &[2]),
        ];
        Snapshot { time: Instant::ZERO, nodes }
    }

    #[test]
    fn each_node_has_its_name_and_each_hop_its_line() {
        let svg = moment(&chain(), NodeId(0)).unwrap();
        assert!(["M1", "M2", "M3", "M4", "0 s"].iter().all(|name| svg.contains(name)), "{svg}");
        assert_eq!(svg.matches("<polyline").count(), 2);
    }
}
