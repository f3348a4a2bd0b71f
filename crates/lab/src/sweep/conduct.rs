//! Side effects of a policy over all points of a group: stalls and delays relative to TCP on its best path, queue loss,
//! fairness among its connections, and the throughput left to competing TCP.

use super::point_score::PointScore;
use crate::statistics::{median, quantile};
use serde::Serialize;

/// Goodput is worse if it is below the best path's by more than the overhead of MPTCP headers.
const LESS_GOODPUT: f64 = -0.02;
/// A stall is longer if the difference exceeds this, seconds.
const LONGER_STALL: f64 = 0.5;
/// A delay is longer if its ratio to TCP's exceeds this.
const LONGER_DELAY: f64 = 1.25;
/// Share of its fair share above which a competing TCP is unharmed.
const UNHARMED: f64 = 0.8;

/// Side effects of a policy over the points of a group.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Conduct {
    /// Points with measured stalls and delays.
    pub points: usize,
    /// Share of points with goodput, stall or delay worse than TCP's on its best path.
    pub worse: f64,
    /// Share of points with the longest stall more than 0.5 s longer than TCP's.
    pub longer_stall: f64,
    /// Longest stall of all points, s.
    pub longest_stall: f64,
    /// Share of points with a 95th percentile of delay above 1.25 times TCP's.
    pub longer_delay: f64,
    /// Ratio of that delay to TCP's: median.
    pub delay_median: f64,
    /// The same ratio: 90th percentile.
    pub delay_worst_decile: f64,
    /// Packets dropped at queues, per cent: median.
    pub loss_median: f64,
    /// Ratio of that loss to TCP's, summed over all points.
    pub loss_ratio: Option<f64>,
    /// On points with several connections of the policy.
    pub crowd: Option<Crowd>,
    /// On points with competing TCP.
    pub others: Option<Others>,
}

/// Fairness among connections of the same policy.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Crowd {
    /// Points with several connections.
    pub points: usize,
    /// Jain's index: median.
    pub jain_median: f64,
    /// Jain's index: 10th percentile.
    pub jain_worst_decile: f64,
    /// Minimum over all points of the ratio of a connection's goodput to the mean.
    pub least_share: f64,
}

/// Competing TCP's share of its fair share.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Others {
    /// Points with competing TCP.
    pub points: usize,
    /// Mean.
    pub share_mean: f64,
    /// 10th percentile.
    pub share_worst_decile: f64,
    /// Share of points below 0.8.
    pub harmed: f64,
    /// Mean of the policy's share of its own fair share.
    pub own_mean: f64,
}

/// A measure of the policy, and the same of TCP on its best path.
#[derive(Clone, Copy)]
struct Pair {
    own: f64,
    tcp: f64,
}

impl Pair {
    fn of(point: &PointScore, name: &str) -> Option<Self> {
        Some(Self { own: *point.measured.get(name)?, tcp: *point.best_single.get(name)? })
    }
}

/// A point with measured stalls and delays.
struct Seen {
    less_goodput: bool,
    stall: Pair,
    delay: Pair,
}

impl Seen {
    fn of(point: &PointScore) -> Option<Self> {
        let (stall, delay) = (Pair::of(point, "longest_stall")?, Pair::of(point, "delay_p95")?);
        Some(Self { less_goodput: point.benefit < LESS_GOODPUT, stall, delay })
    }
    fn longer_stall(&self) -> bool {
        self.stall.own > self.stall.tcp + LONGER_STALL
    }
    fn longer_delay(&self) -> bool {
        self.delay.own > self.delay.tcp * LONGER_DELAY
    }
    fn worse(&self) -> bool {
        self.less_goodput || self.longer_stall() || self.longer_delay()
    }
}

fn share(values: &[bool]) -> f64 {
    values.iter().filter(|value| **value).count() as f64 / values.len().max(1) as f64
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

impl Conduct {
    /// Summary of `points`; none if none was measured.
    pub fn of(points: &[&PointScore]) -> Option<Self> {
        let seen: Vec<Seen> = points.iter().filter_map(|point| Seen::of(point)).collect();
        if seen.is_empty() {
            return None;
        }
        let of = |what: fn(&Seen) -> bool| share(&seen.iter().map(what).collect::<Vec<_>>());
        let with_delay = seen.iter().filter(|seen| seen.delay.tcp > 0.0);
        let ratios: Vec<f64> = with_delay.map(|seen| seen.delay.own / seen.delay.tcp).collect();
        let losses: Vec<Pair> = points.iter().filter_map(|point| Pair::of(point, "loss_caused")).collect();
        let own_losses: Vec<f64> = losses.iter().map(|loss| loss.own).collect();
        let tcp: f64 = losses.iter().map(|loss| loss.tcp).sum();
        Some(Self {
            points: seen.len(),
            worse: of(Seen::worse),
            longer_stall: of(Seen::longer_stall),
            longest_stall: seen.iter().map(|seen| seen.stall.own).fold(0.0, f64::max),
            longer_delay: of(Seen::longer_delay),
            delay_median: if ratios.is_empty() { 1.0 } else { median(&ratios) },
            delay_worst_decile: if ratios.is_empty() { 1.0 } else { quantile(&ratios, 0.9) },
            loss_median: if losses.is_empty() { 0.0 } else { median(&own_losses) },
            loss_ratio: (tcp > 0.0).then(|| own_losses.iter().sum::<f64>() / tcp),
            crowd: Crowd::of(points),
            others: Others::of(points),
        })
    }
}

fn values(points: &[&PointScore], name: &str) -> Vec<f64> {
    points.iter().filter_map(|point| point.measured.get(name).copied()).collect()
}

impl Crowd {
    fn of(points: &[&PointScore]) -> Option<Self> {
        let indices = values(points, "jain");
        (!indices.is_empty()).then(|| Self {
            points: indices.len(),
            jain_median: median(&indices),
            jain_worst_decile: quantile(&indices, 0.1),
            least_share: values(points, "least_share").into_iter().fold(f64::INFINITY, f64::min),
        })
    }
}

impl Others {
    fn of(points: &[&PointScore]) -> Option<Self> {
        let shares = values(points, "others_share");
        (!shares.is_empty()).then(|| Self {
            points: shares.len(),
            share_mean: mean(&shares),
            share_worst_decile: quantile(&shares, 0.1),
            harmed: share(&shares.iter().map(|share| *share < UNHARMED).collect::<Vec<_>>()),
            own_mean: mean(&values(points, "own_share")),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::point::Class;
    use super::*;
    use std::collections::BTreeMap;

    fn point(goodput: f64, own: &[(&str, f64)], tcp: &[(&str, f64)]) -> PointScore {
        let map = |values: &[(&str, f64)]| -> BTreeMap<String, f64> {
            values.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect()
        };
        let mut score = PointScore::new(1, Class::BesideCubic, goodput, vec![10.0, 5.0], &[]);
        (score.measured, score.best_single) = (map(own), map(tcp));
        score
    }

    #[test]
    fn never_worse_than_the_best_path_is_goodput_and_stall_and_delay() {
        let tcp = [("longest_stall", 0.2), ("delay_p95", 100.0), ("loss_caused", 1.0)];
        let own = |stall: f64, delay: f64| [("longest_stall", stall), ("delay_p95", delay), ("loss_caused", 3.0)];
        let points = [
            point(12.0, &own(0.7, 125.0), &tcp),
            point(12.0, &own(0.71, 100.0), &tcp),
            point(12.0, &own(0.1, 126.0), &tcp),
            point(9.7, &own(0.1, 50.0), &tcp),
        ];
        let conduct = Conduct::of(&points.iter().collect::<Vec<_>>()).expect("it was measured");
        assert_eq!((conduct.worse, conduct.longer_stall, conduct.longer_delay), (0.75, 0.25, 0.25));
        assert_eq!((conduct.longest_stall, conduct.loss_median, conduct.loss_ratio), (0.71, 3.0, Some(3.0)));
        assert!((conduct.delay_median - 1.125).abs() < 1e-12);
        assert!(conduct.crowd.is_none() && conduct.others.is_none());
        assert!(Conduct::of(&[&point(1.0, &[], &[])]).is_none());
    }

    #[test]
    fn others_are_harmed_below_four_fifths_of_their_share() {
        let one = |others: f64, jain: f64| {
            let both = [("longest_stall", 0.0), ("delay_p95", 1.0)];
            let own =
                [("others_share", others), ("own_share", 2.0 - others), ("jain", jain), ("least_share", jain / 2.0)];
            point(12.0, &[&both[..], &own[..]].concat(), &both)
        };
        let points = [one(0.79, 0.9), one(1.01, 0.5)];
        let conduct = Conduct::of(&points.iter().collect::<Vec<_>>()).expect("it was measured");
        let others = conduct.others.expect("there are others");
        assert_eq!((others.points, others.harmed), (2, 0.5));
        assert!((others.share_mean - 0.9).abs() < 1e-12 && (others.own_mean - 1.1).abs() < 1e-12);
        assert_eq!(conduct.crowd.map(|crowd| crowd.least_share), Some(0.25));
    }
}
