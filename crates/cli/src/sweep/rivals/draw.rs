//! Selects points of the design to run in real time: those without changes, evenly from each class and direction.

use anabranch_lab::sweep::design;
use anabranch_lab::sweep::point::{Class, Point, Span};
use std::collections::BTreeMap;

/// Duration for long RTTs and queues, as in the sweep; else half of that.
const SPAN: Span = Span { warm_up: 5.0, counted: 10.0 };
const SPAN_HIGH: Span = Span { warm_up: 10.0, counted: 20.0 };
/// Cells: four classes, two directions.
const CELLS: u32 = 8;

/// The first `count` points of the sequence, starting at `first`, with at most an equal share of each class and
/// direction.
pub fn points(seed: u32, first: u32, count: u32) -> Vec<Point> {
    let share = count.div_ceil(CELLS);
    let mut taken: BTreeMap<(Class, bool), u32> = BTreeMap::new();
    let mut points = Vec::new();
    for number in first..design::MOST {
        if points.len() == count as usize {
            break;
        }
        let mut point = design::point(seed, number);
        let cell = taken.entry((point.class, point.download)).or_default();
        if point.class == Class::Changing || *cell == share {
            continue;
        }
        *cell += 1;
        let high = matches!(point.class, Class::HighBdp | Class::HighBdpLossy);
        point.span = if high { SPAN_HIGH } else { SPAN };
        points.push(point);
    }
    points
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thirty_points_have_three_or_four_of_each_class_and_direction() {
        let points = points(1, 0, 30);
        assert_eq!(points.len(), 30);
        let mut cells: BTreeMap<(Class, bool), u32> = BTreeMap::new();
        for point in &points {
            *cells.entry((point.class, point.download)).or_default() += 1;
        }
        assert_eq!(cells.len(), 8);
        // The maximum of a cell is 4; the two missing points can be in one cell or in two.
        assert!(cells.values().all(|count| (2..=4).contains(count)), "{cells:?}");
        assert!(points.iter().all(|point| point.change.is_none()));
    }
}
