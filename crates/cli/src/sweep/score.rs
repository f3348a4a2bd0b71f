//! What the runs of a policy are worth: the aggregation benefit and the regret on each point, and what they come to on all
//! points of a group.
//!
//! With G the goodput of the policy on all paths, G_i that of plain TCP alone on path i:
//!
//! ```text
//! Ben = (G - max G_i) / (sum G_i - max G_i)   if G >= max G_i, else   (G - max G_i) / max G_i
//! ```
//!
//! (Kaspar, "Multipath Aggregation of Heterogeneous Networks", 2012; Paasch et al., CoNEXT 2013). 1 is the sum of the paths, 0
//! the best of them, -1 nothing at all. With B the best that is known of the point, that is the largest of the G_i, of G and of
//! the goodputs of the same policy on subsets of the paths, where these were run:
//!
//! ```text
//! regret = (B - G) / B
//! ```

use super::conduct::Conduct;
use super::point::Class;
use crate::statistics::{median, quantile};
use serde::Serialize;
use std::collections::BTreeMap;

/// The aggregation benefit.
pub fn benefit(goodput: f64, singles: &[f64]) -> f64 {
    let best = singles.iter().copied().fold(0.0, f64::max);
    let others = singles.iter().sum::<f64>() - best;
    if goodput < best {
        (goodput - best) / best
    } else if others > 0.0 {
        (goodput - best) / others
    } else {
        // There is nothing to be had from the others, or nothing at all: all of it is there.
        1.0
    }
}

/// The share that is missing to the best of the alternatives, which may be below `goodput`.
pub fn regret(goodput: f64, alternatives: &[f64]) -> f64 {
    let best = alternatives.iter().copied().fold(goodput, f64::max);
    if best > 0.0 { (best - goodput) / best } else { 0.0 }
}

/// The delay of messages at half load that 99 % of them do not exceed, ms.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Delay {
    /// Of the policy.
    pub p99: f64,
    /// Of TCP alone on the path on which it is fastest, with the same messages.
    pub tcp: f64,
}

/// A policy on a point.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct PointScore {
    /// Place of the point in the design.
    pub point: u32,
    /// Its class.
    pub class: Class,
    /// Mbit/s.
    pub goodput: f64,
    /// Of TCP alone on each path, Mbit/s.
    pub singles: Vec<f64>,
    /// The largest goodput on a proper subset of the paths, if they were run, Mbit/s.
    pub best_subset: Option<f64>,
    /// See above.
    pub benefit: f64,
    /// See above.
    pub regret: f64,
    /// Of messages, if they were run.
    pub delay: Option<Delay>,
    /// What else was measured of the policy on all paths.
    pub measured: BTreeMap<String, f64>,
    /// What was measured of TCP alone on the path on which it has most goodput.
    pub best_single: BTreeMap<String, f64>,
}

impl PointScore {
    /// Worked out from goodputs in Mbit/s.
    pub fn new(point: u32, class: Class, goodput: f64, singles: Vec<f64>, subsets: &[f64]) -> Self {
        let best_subset = (!subsets.is_empty()).then(|| subsets.iter().copied().fold(0.0, f64::max));
        let alternatives: Vec<f64> = singles.iter().chain(&best_subset).copied().collect();
        let (benefit, regret) = (benefit(goodput, &singles), regret(goodput, &alternatives));
        let (measured, best_single) = (BTreeMap::new(), BTreeMap::new());
        Self { point, class, goodput, singles, best_subset, benefit, regret, delay: None, measured, best_single }
    }
}

/// Points that are summed up together.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Group {
    /// All of them.
    All,
    /// Both classes without loss.
    NoLoss,
    /// Both with.
    Lossy,
    /// One class.
    One(Class),
}

impl Group {
    /// All of them, in the order of tables.
    pub const ALL: [Self; 17] = [
        Self::All,
        Self::NoLoss,
        Self::Lossy,
        Self::One(Class::Changing),
        Self::One(Class::LowBdp),
        Self::One(Class::LowBdpLossy),
        Self::One(Class::HighBdp),
        Self::One(Class::HighBdpLossy),
        Self::One(Class::Crowd),
        Self::One(Class::BesideCubic),
        Self::One(Class::BesideNewReno),
        Self::One(Class::BesideBbr),
        Self::One(Class::SharedBottleneck),
        Self::One(Class::CoDel),
        Self::One(Class::Pauses),
        Self::One(Class::Walk),
        Self::One(Class::Satellite),
    ];

    /// As in results.
    pub const fn name(self) -> &'static str {
        match self {
            Self::All => "all",
            Self::NoLoss => "no_loss",
            Self::Lossy => "lossy",
            Self::One(class) => class.name(),
        }
    }

    /// Whether points of the class belong to it.
    pub fn has(self, class: Class) -> bool {
        match self {
            Self::All => true,
            Self::NoLoss => matches!(class, Class::LowBdp | Class::HighBdp),
            Self::Lossy => matches!(class, Class::LowBdpLossy | Class::HighBdpLossy),
            Self::One(one) => one == class,
        }
    }
}

/// A policy on all points of a group.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Score {
    /// Points.
    pub points: usize,
    /// Of the aggregation benefit: the median.
    pub benefit_median: f64,
    /// A tenth of the points are at it or below.
    pub benefit_worst_decile: f64,
    /// The least.
    pub benefit_worst: f64,
    /// Share of points below the best single path.
    pub below_single: f64,
    /// Share of points more than 2 % below it, which is more than the headers of MPTCP take (28 bytes of 1,448).
    pub well_below_single: f64,
    /// Share of points more than 5 % below it.
    pub far_below_single: f64,
    /// Median of the regret.
    pub regret_median: f64,
    /// A tenth of the points are at it or above.
    pub regret_worst_decile: f64,
    /// Of messages, if they were run.
    pub messages: Option<MessageScore>,
    /// Stalls and delays, and what others suffer, if they were measured.
    pub conduct: Option<Conduct>,
}

/// The 99th percentiles of the delays of messages on all points of a group.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct MessageScore {
    /// Points that have them.
    pub points: usize,
    /// Their median, ms.
    pub p99_median: f64,
    /// A tenth of the points are at it or above, ms.
    pub p99_worst_decile: f64,
    /// Median of what each is in terms of TCP's alone on its best path.
    pub ratio_median: f64,
    /// A tenth of the points are at it or above.
    pub ratio_worst_decile: f64,
}

impl MessageScore {
    fn of(points: &[&PointScore]) -> Option<Self> {
        let delays: Vec<Delay> = points.iter().filter_map(|point| point.delay).collect();
        let values: Vec<f64> = delays.iter().map(|delay| delay.p99).collect();
        let ratios: Vec<f64> = delays.iter().map(|delay| delay.p99 / delay.tcp).collect();
        (!delays.is_empty()).then(|| Self {
            points: delays.len(),
            p99_median: median(&values),
            p99_worst_decile: quantile(&values, 0.9),
            ratio_median: median(&ratios),
            ratio_worst_decile: quantile(&ratios, 0.9),
        })
    }
}

impl Score {
    /// Of these points; none if there are none.
    pub fn of(points: &[&PointScore]) -> Option<Self> {
        if points.is_empty() {
            return None;
        }
        let benefits: Vec<f64> = points.iter().map(|point| point.benefit).collect();
        let regrets: Vec<f64> = points.iter().map(|point| point.regret).collect();
        let share =
            |limit: f64| benefits.iter().filter(|benefit| **benefit < limit).count() as f64 / points.len() as f64;
        Some(Self {
            points: points.len(),
            benefit_median: median(&benefits),
            benefit_worst_decile: quantile(&benefits, 0.1),
            benefit_worst: benefits.iter().copied().fold(f64::INFINITY, f64::min),
            below_single: share(0.0),
            well_below_single: share(-0.02),
            far_below_single: share(-0.05),
            regret_median: median(&regrets),
            regret_worst_decile: quantile(&regrets, 0.9),
            messages: MessageScore::of(points),
            conduct: Conduct::of(points),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_benefit_is_one_at_the_sum_zero_at_the_best_path_and_below_zero_what_is_missing_to_it() {
        // 8 and 2 Mbit/s: at 10 all, at 9 half of the second path, at 8 nothing, at 6 a quarter of the first is missing.
        let close = |goodput: f64, expected: f64| assert!((benefit(goodput, &[2.0, 8.0]) - expected).abs() < 1e-12);
        close(10.0, 1.0);
        close(9.0, 0.5);
        close(8.0, 0.0);
        close(6.0, -0.25);
        close(0.0, -1.0);
        // Three paths, 5 + 3 + 2: at 7 two of the five that the others could add.
        assert!((benefit(7.0, &[3.0, 5.0, 2.0]) - 0.4).abs() < 1e-12);
    }

    #[test]
    fn where_the_other_paths_carry_nothing_the_best_path_is_all_there_is() {
        assert_eq!(benefit(5.0, &[5.0, 0.0]), 1.0);
        assert_eq!(benefit(4.0, &[5.0, 0.0]), -0.2);
        assert_eq!(benefit(0.0, &[0.0, 0.0]), 1.0);
    }

    #[test]
    fn the_regret_is_the_share_that_is_missing_to_the_best_known() {
        // 8 of 10 are there; nothing is missing to what is less.
        assert!((regret(8.0, &[7.0, 10.0, 2.0]) - 0.2).abs() < 1e-12);
        assert_eq!(regret(8.0, &[7.0]), 0.0);
        assert_eq!(regret(0.0, &[0.0]), 0.0);
    }

    #[test]
    fn a_point_counts_its_best_subset_as_an_alternative() {
        // TCP has 4 and 5, the policy 6 on all three of its paths and 8 on two of them: a quarter is missing.
        let point = PointScore::new(1, Class::LowBdp, 6.0, vec![4.0, 5.0], &[3.0, 8.0]);
        assert_eq!((point.best_subset, point.regret, point.benefit), (Some(8.0), 0.25, 0.25));
        let without = PointScore::new(1, Class::LowBdp, 6.0, vec![4.0, 5.0], &[]);
        assert_eq!((without.best_subset, without.regret), (None, 0.0));
    }

    #[test]
    fn a_group_of_ten_points_is_summed_up() {
        // Benefits -0.1, 0, 0.1, ..., 0.8 of two paths of 10 and 10: goodputs 9, 10, 11, ..., 18.
        let goodput = |place: usize| 9.0 + place as f64;
        let points: Vec<PointScore> =
            (0..10).map(|place| PointScore::new(0, Class::HighBdp, goodput(place), vec![10.0, 10.0], &[])).collect();
        let score = Score::of(&points.iter().collect::<Vec<_>>()).unwrap();
        assert_eq!((score.points, score.below_single, score.far_below_single), (10, 0.1, 0.1));
        assert!((score.benefit_median - 0.35).abs() < 1e-12);
        // The least value that a tenth does not exceed.
        assert!((score.benefit_worst_decile + 0.1).abs() < 1e-12 && score.benefit_worst == score.benefit_worst_decile);
        assert_eq!((score.regret_median, score.regret_worst_decile), (0.0, 0.0));
    }

    #[test]
    fn delays_are_summed_up_in_milliseconds_and_in_terms_of_tcp() {
        // 10, 20, 30 ms where TCP has 10, 10 and 60: ratios 1, 2, 0.5. The point without messages does not count.
        let point = |delay| PointScore { delay, ..PointScore::new(0, Class::LowBdp, 1.0, vec![1.0, 1.0], &[]) };
        let delays = [Some((10.0, 10.0)), Some((20.0, 10.0)), None, Some((30.0, 60.0))];
        let points: Vec<PointScore> =
            delays.iter().map(|delay| point(delay.map(|(p99, tcp)| Delay { p99, tcp }))).collect();
        let score = Score::of(&points.iter().collect::<Vec<_>>()).and_then(|score| score.messages).unwrap();
        assert_eq!((score.points, score.p99_median, score.p99_worst_decile), (3, 20.0, 30.0));
        assert_eq!((score.ratio_median, score.ratio_worst_decile), (1.0, 2.0));
    }

    #[test]
    fn groups_have_the_classes_that_their_names_say() {
        let of = |group: Group| Class::ALL.map(|class| group.has(class));
        assert_eq!(of(Group::NoLoss), [true, false, true, false, false]);
        assert_eq!(of(Group::Lossy), [false, true, false, true, false]);
        assert_eq!(of(Group::One(Class::Changing)), [false, false, false, false, true]);
        assert_eq!(of(Group::All), [true; 5]);
    }
}
