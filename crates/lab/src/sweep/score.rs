//! Scores of a policy over all points of a group.

use super::conduct::Conduct;
use super::point::Class;
use super::point_score::{Delay, PointScore};
use crate::statistics::{median, quantile};
use serde::Serialize;

/// A group of points that are summarized together.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Group {
    All,
    /// Both classes without loss.
    NoLoss,
    /// Both classes with loss.
    Lossy,
    One(Class),
}

impl Group {
    /// All groups, in the order of tables.
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

    /// Name in result files.
    pub const fn name(self) -> &'static str {
        match self {
            Self::All => "all",
            Self::NoLoss => "no_loss",
            Self::Lossy => "lossy",
            Self::One(class) => class.name(),
        }
    }

    /// Whether the group includes points of this class.
    pub fn has(self, class: Class) -> bool {
        match self {
            Self::All => true,
            Self::NoLoss => matches!(class, Class::LowBdp | Class::HighBdp),
            Self::Lossy => matches!(class, Class::LowBdpLossy | Class::HighBdpLossy),
            Self::One(one) => one == class,
        }
    }
}

/// Scores of a policy over the points of a group.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Score {
    /// Number of points.
    pub points: usize,
    /// Aggregation benefit: median.
    pub benefit_median: f64,
    /// Aggregation benefit: 10th percentile.
    pub benefit_worst_decile: f64,
    /// Aggregation benefit: minimum.
    pub benefit_worst: f64,
    /// Share of points below the best single path.
    pub below_single: f64,
    /// Share of points more than 2 % below it, which exceeds the overhead of MPTCP headers (28 bytes of 1,448).
    pub well_below_single: f64,
    /// Share of points more than 5 % below it.
    pub far_below_single: f64,
    /// Regret: median.
    pub regret_median: f64,
    /// Regret: 90th percentile.
    pub regret_worst_decile: f64,
    /// Delays of messages, if run.
    pub messages: Option<MessageScore>,
    /// Side effects, if measured.
    pub conduct: Option<Conduct>,
}

/// 99th percentiles of the delays of messages over the points of a group.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct MessageScore {
    /// Points with messages.
    pub points: usize,
    /// Median, ms.
    pub p99_median: f64,
    /// 90th percentile, ms.
    pub p99_worst_decile: f64,
    /// Ratio to TCP on its best path: median.
    pub ratio_median: f64,
    /// The same ratio: 90th percentile.
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
    /// Summary of `points`; none if there are none.
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
    fn a_group_of_ten_points_is_summed_up() {
        // Benefits -0.1, 0, 0.1, ..., 0.8 on two paths of 10 each: goodputs 9, 10, 11, ..., 18.
        let goodput = |place: usize| 9.0 + place as f64;
        let points: Vec<PointScore> =
            (0..10).map(|place| PointScore::new(0, Class::HighBdp, goodput(place), vec![10.0, 10.0], &[])).collect();
        let score = Score::of(&points.iter().collect::<Vec<_>>()).unwrap();
        assert_eq!((score.points, score.below_single, score.far_below_single), (10, 0.1, 0.1));
        assert!((score.benefit_median - 0.35).abs() < 1e-12);
        // The smallest value that at least a tenth do not exceed.
        assert!((score.benefit_worst_decile + 0.1).abs() < 1e-12 && score.benefit_worst == score.benefit_worst_decile);
        assert_eq!((score.regret_median, score.regret_worst_decile), (0.0, 0.0));
    }

    #[test]
    fn delays_are_summed_up_in_milliseconds_and_in_terms_of_tcp() {
        // 10, 20, 30 ms where TCP has 10, 10 and 60: ratios 1, 2, 0.5. The point without messages is not counted.
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
