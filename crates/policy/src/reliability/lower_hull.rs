//! The lower convex hull of points that are added in order, and its slope at the middle.

/// Limit of points; the oldest is removed for a new one.
const MOST: usize = 32;
/// Limit of the age of points, in nanoseconds, an hour.
const LONGEST: i64 = 3_600_000_000_000;

/// A difference of two clocks and its position in the stream, in nanoseconds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Point {
    pub at: i64,
    pub difference: i64,
}

/// The points of the hull, in order.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct LowerHull {
    points: [Point; MOST],
    count: usize,
}

impl LowerHull {
    pub const EMPTY: Self = Self { points: [Point { at: 0, difference: 0 }; MOST], count: 0 };

    pub fn points(&self) -> impl DoubleEndedIterator<Item = Point> + '_ {
        self.points.iter().take(self.count).copied()
    }

    /// Adds a point; one that is not behind the last is ignored.
    pub fn push(&mut self, point: Point) {
        if self.points().next_back().is_some_and(|last| last.at >= point.at) {
            return;
        }
        while let [.., before, last] = self.points.get(..self.count).unwrap_or_default()
            && is_above(*last, *before, point)
        {
            self.count -= 1;
        }
        let old = self.points().take_while(|known| point.at.saturating_sub(known.at) > LONGEST).count();
        let gone = old.max((self.count + 1).saturating_sub(MOST));
        self.points.copy_within(gone..self.count, 0);
        self.count -= gone;
        if let Some(place) = self.points.get_mut(self.count) {
            *place = point;
            self.count += 1;
        }
    }

    /// The slope, in parts per billion, of the edge over the middle of the range of the points; none if that is shorter
    /// than `least`.
    pub fn slope_at_the_middle(&self, least: i64) -> Option<i64> {
        let (first, last) = (self.points().next()?, self.points().next_back()?);
        let span = last.at.saturating_sub(first.at);
        let middle = first.at.saturating_add(span / 2);
        let (from, to) = self.points().zip(self.points().skip(1)).find(|(_, to)| to.at >= middle)?;
        let rise = i128::from(to.difference) - i128::from(from.difference);
        let slope = rise * 1_000_000_000 / (i128::from(to.at) - i128::from(from.at)).max(1);
        (span >= least).then(|| i64::try_from(slope).unwrap_or(if slope > 0 { i64::MAX } else { i64::MIN }))
    }
}

fn is_above(point: Point, left: Point, right: Point) -> bool {
    let [point, left, right] = [point, left, right].map(|p| (i128::from(p.at), i128::from(p.difference)));
    (point.1 - left.1) * (right.0 - left.0) >= (right.1 - left.1) * (point.0 - left.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hull(points: &[(i64, i64)]) -> LowerHull {
        let mut hull = LowerHull::EMPTY;
        points.iter().for_each(|(at, difference)| hull.push(Point { at: *at, difference: *difference }));
        hull
    }

    #[test]
    fn what_lies_above_is_left_out_and_the_edge_over_the_middle_says_the_slope() {
        let hull = hull(&[(0, 0), (10, 50), (20, 2), (30, 90), (40, 44)]);
        assert_eq!(hull.points().map(|point| point.at).collect::<Vec<_>>(), [0, 20, 40]);
        // From 0 to 20, by 2.
        assert_eq!(hull.slope_at_the_middle(40), Some(100_000_000));
        assert_eq!(hull.slope_at_the_middle(41), None);
    }

    #[test]
    fn no_more_is_remembered_than_there_is_room_for_and_than_an_hour() {
        let rising: Vec<(i64, i64)> = (0..100).map(|at| (at, at * at)).collect();
        let hull = hull(&rising);
        assert_eq!((hull.points().count(), hull.points().next().map(|point| point.at)), (MOST, Some(68)));
        let late = super::tests::hull(&[(0, 0), (1, -1), (LONGEST + 1, 5)]);
        assert_eq!(late.points().map(|point| point.at).collect::<Vec<_>>(), [1, LONGEST + 1]);
    }

    #[test]
    fn what_goes_back_is_left_out_and_the_ends_of_numbers_do_not_overflow() {
        let hull = hull(&[(0, i64::MAX / 2), (10, i64::MIN / 2), (5, 5)]);
        assert_eq!((hull.points().count(), hull.slope_at_the_middle(10)), (2, Some(i64::MIN)));
    }
}
