//! Scores of a policy on one point: aggregation benefit and regret.
//!
//! With G the goodput of the policy on all paths, G_i that of plain TCP alone on path i:
//!
//! ```text
//! Ben = (G - max G_i) / (sum G_i - max G_i)   if G >= max G_i, else   (G - max G_i) / max G_i
//! ```
//!
//! (Kaspar, "Multipath Aggregation of Heterogeneous Networks", 2012; Paasch et al., CoNEXT 2013). 1 is the sum of the
//! paths, 0 the best path, -1 nothing. Let B be the best known goodput of the point: the largest of the G_i, of G and
//! of the goodputs of the same policy on subsets of the paths, if they were run:
//!
//! ```text
//! regret = (B - G) / B
//! ```

use super::point::Class;
use serde::Serialize;
use std::collections::BTreeMap;

pub fn benefit(goodput: f64, singles: &[f64]) -> f64 {
    let best = singles.iter().copied().fold(0.0, f64::max);
    let others = singles.iter().sum::<f64>() - best;
    if goodput < best {
        (goodput - best) / best
    } else if others > 0.0 {
        (goodput - best) / others
    } else {
        // The other paths carry nothing, or no path does: the benefit is 1.
        1.0
    }
}

/// The relative loss to the best of the alternatives, which may be below `goodput`.
pub fn regret(goodput: f64, alternatives: &[f64]) -> f64 {
    let best = alternatives.iter().copied().fold(goodput, f64::max);
    if best > 0.0 { (best - goodput) / best } else { 0.0 }
}

/// 99th percentile of the delay of messages at half load, ms.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Delay {
    pub p99: f64,
    /// Of TCP on its best single path, with the same messages.
    pub tcp: f64,
}

/// Scores of a policy on a point.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct PointScore {
    /// Index of the point in the design.
    pub point: u32,
    pub class: Class,
    /// Mbit/s.
    pub goodput: f64,
    /// Goodput of TCP on each path alone, Mbit/s.
    pub singles: Vec<f64>,
    /// Largest goodput on a proper subset of the paths, if run, Mbit/s.
    pub best_subset: Option<f64>,
    /// Aggregation benefit, see above.
    pub benefit: f64,
    /// Regret, see above.
    pub regret: f64,
    /// Delay of messages, if run.
    pub delay: Option<Delay>,
    /// Further metrics of the policy on all paths.
    pub measured: BTreeMap<String, f64>,
    /// Metrics of TCP on the single path with the highest goodput.
    pub best_single: BTreeMap<String, f64>,
}

impl PointScore {
    /// Computes the scores from goodputs in Mbit/s.
    pub fn new(point: u32, class: Class, goodput: f64, singles: Vec<f64>, subsets: &[f64]) -> Self {
        let best_subset = (!subsets.is_empty()).then(|| subsets.iter().copied().fold(0.0, f64::max));
        let alternatives: Vec<f64> = singles.iter().chain(&best_subset).copied().collect();
        let (benefit, regret) = (benefit(goodput, &singles), regret(goodput, &alternatives));
        let (measured, best_single) = (BTreeMap::new(), BTreeMap::new());
        Self { point, class, goodput, singles, best_subset, benefit, regret, delay: None, measured, best_single }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_benefit_is_one_at_the_sum_zero_at_the_best_path_and_below_zero_what_is_missing_to_it() {
        // 8 and 2 Mbit/s: 10 is the sum, 9 adds half of the second path, 8 adds nothing, 6 loses a quarter of the
        // first.
        let close = |goodput: f64, expected: f64| assert!((benefit(goodput, &[2.0, 8.0]) - expected).abs() < 1e-12);
        close(10.0, 1.0);
        close(9.0, 0.5);
        close(8.0, 0.0);
        close(6.0, -0.25);
        close(0.0, -1.0);
        // Three paths, 5 + 3 + 2: 7 adds two of the five that the others could add.
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
        // 8 of 10; smaller alternatives do not matter.
        assert!((regret(8.0, &[7.0, 10.0, 2.0]) - 0.2).abs() < 1e-12);
        assert_eq!(regret(8.0, &[7.0]), 0.0);
        assert_eq!(regret(0.0, &[0.0]), 0.0);
    }

    #[test]
    fn a_point_counts_its_best_subset_as_an_alternative() {
        // TCP has 4 and 5, the policy 6 on all three paths and 8 on two of them: the regret is a quarter.
        let point = PointScore::new(1, Class::LowBdp, 6.0, vec![4.0, 5.0], &[3.0, 8.0]);
        assert_eq!((point.best_subset, point.regret, point.benefit), (Some(8.0), 0.25, 0.25));
        let without = PointScore::new(1, Class::LowBdp, 6.0, vec![4.0, 5.0], &[]);
        assert_eq!((without.best_subset, without.regret), (None, 0.0));
    }
}
