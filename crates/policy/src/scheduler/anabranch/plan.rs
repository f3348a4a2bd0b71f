//! The set of paths that makes the best use of a window.

use super::forecast::Forecast;
use crate::ids::SubflowId;
use crate::time::Instant;

/// Share of a window that is used if several paths fill it: they do not block it at the same moments.
const MIXED: f64 = 0.85;
/// Sets of paths whose rates differ by less than this factor are equally good.
const AS_GOOD: f64 = 1.003;

/// The subflows to be used for a while.
#[derive(Clone, Debug)]
pub struct Plan {
    /// When to compute the next plan.
    pub until: Instant,
    /// A hash of the subflows among which it chose.
    pub among: u64,
    /// The chosen subflows.
    pub members: Vec<SubflowId>,
    /// Their total rate in bytes per second.
    pub carried: f64,
    /// Their longest stay in seconds.
    pub longest: f64,
}

/// A set of paths, and its rate.
#[derive(Clone, Copy, Debug)]
pub struct Worth {
    pub carried: f64,
    pub longest: f64,
    pub count: usize,
}

impl Worth {
    pub const NOTHING: Self = Self { carried: 0.0, longest: 0.0, count: 0 };

    /// Of a set of paths, with a window in bytes.
    pub fn of(window: f64, set: &[Forecast]) -> Self {
        let rate: f64 = set.iter().map(|path| path.rate).sum();
        let longest = set.iter().map(|path| path.stay).fold(0.0, f64::max);
        let usable = if set.len() > 1 { window * MIXED } else { window };
        let carried = f64::min(rate, usable / f64::max(longest, 1e-9));
        let lasts = window / carried.max(1.0);
        let standstill: f64 = set.iter().map(|path| path.standstill(lasts)).sum();
        Self { carried: carried / (1.0 + standstill), longest, count: set.len() }
    }

    /// Whether its rate is larger than that of another, or nearly as large with shorter stays, or the same with fewer
    /// paths.
    fn is_better_than(&self, other: &Self) -> bool {
        let as_good = self.carried * AS_GOOD > other.carried;
        self.carried > other.carried * AS_GOOD
            || (as_good && self.longest < other.longest)
            || (as_good && self.longest <= other.longest && self.carried >= other.carried && self.count < other.count)
    }
}

impl Plan {
    pub const NONE: Self = Self { until: Instant::ZERO, among: 0, members: Vec::new(), carried: 0.0, longest: 0.0 };

    /// The set of paths with the largest rate for a window in bytes: of equally good sets, within [`AS_GOOD`], the one
    /// with the shortest stay. Except for standstill, the best set contains all paths whose stay is no longer than its
    /// longest one. So one set per path is evaluated, and the same without paths that cost more by standstill than they
    /// carry; then each path is removed or added if that increases the rate. Sorts the paths by stay.
    pub fn best(window: f64, paths: &mut [Forecast]) -> Self {
        paths.sort_by(|a, b| a.stay.total_cmp(&b.stay).then(a.id.cmp(&b.id)));
        let mut best = (Worth::NOTHING, Vec::new());
        let consider = |best: &mut (Worth, Vec<Forecast>), set: &[Forecast]| {
            let worth = Worth::of(window, set);
            if worth.is_better_than(&best.0) {
                *best = (worth, set.to_vec());
            }
        };
        for last in 0..paths.len() {
            consider(&mut best, &paths[last..=last]);
            let all = &paths[..=last];
            consider(&mut best, all);
            if all.iter().any(|path| path.losses > 0.0) {
                consider(&mut best, &Self::worthwhile(window, all));
            }
        }
        let (mut worth, mut set) = best;
        for path in paths.iter().rev().chain(paths.iter()) {
            let mut other = set.clone();
            match set.iter().position(|member| member.id == path.id) {
                Some(at) => drop(other.remove(at)),
                None => other.push(*path),
            }
            let changed = Worth::of(window, &other);
            if changed.is_better_than(&worth) {
                (worth, set) = (changed, other);
            }
        }
        let members = set.iter().map(|path| path.id).collect();
        Self { carried: worth.carried, longest: worth.longest, members, ..Self::NONE }
    }

    /// The paths of a set whose share of the total rate exceeds their share of the time in which the window waits for
    /// repairs.
    fn worthwhile(window: f64, set: &[Forecast]) -> Vec<Forecast> {
        let rate: f64 = set.iter().map(|path| path.rate).sum();
        let lasts = window / Worth::of(window, set).carried.max(1.0);
        set.iter().filter(|path| path.rate / rate >= path.standstill(lasts)).copied().collect()
    }
}
