//! Values computed for each subflow, cached from one decision to the next while its view is unchanged.

use super::forecast::Forecast;
use super::plan::Plan;
use crate::ids::SubflowId;
use crate::scheduler::candidates::{class, fits};
use crate::view::SubflowView;

/// The class of a subflow that no data may be assigned to.
const UNUSABLE: u8 = u8::MAX;

/// The data to be placed, as far as forecasts depend on it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Load {
    pub length: u32,
    /// The application is not ahead of the send buffer.
    pub live: bool,
}

/// A subflow at the last decision.
#[derive(Clone, Copy, Debug)]
struct Path {
    /// [`crate::view::Counters::changes`], or the largest number where there is none.
    changes: u64,
    forecast: Forecast,
    /// Number of classes of subflows that are preferred to it; [`UNUSABLE`].
    class: u8,
    /// The data fits into its window.
    fits: bool,
    /// It may be chosen.
    eligible: bool,
    /// It may be chosen, and is in the plan if there is one.
    considered: bool,
}

impl Path {
    fn of(view: &SubflowView, load: Load) -> Self {
        Self {
            changes: if view.counters.changes == 0 { u64::MAX } else { view.counters.changes },
            forecast: Forecast::of(view, load.length, load.live),
            class: if view.usable() { class(view) } else { UNUSABLE },
            fits: fits(view, load.length),
            eligible: false,
            considered: false,
        }
    }
}

/// All subflows of the connection in order of id, and those that may be chosen: of the usable ones, without an excluded
/// one, those of the best class.
#[derive(Debug, Default)]
pub struct Outlook {
    paths: Vec<Path>,
    load: Load,
    excluded: Option<SubflowId>,
    /// Number of subflows that may be chosen.
    eligible: usize,
    /// Number of these into whose windows the data fits.
    fitting: usize,
    /// A hash of their numbers (FNV-1a). Different sets have the same one with probability 2^-64.
    among: u64,
}

impl Outlook {
    /// Updates the subflows whose views have changed. Returns whether the data fits into the window of one that may be
    /// chosen.
    pub fn look(
        &mut self,
        subflows: &[SubflowView],
        load: Load,
        excluded: Option<SubflowId>,
        plan: Option<&Plan>,
    ) -> bool {
        let mut anew = self.excluded != excluded;
        if self.load != load || self.paths.len() != subflows.len() {
            (self.load, anew) = (load, true);
            self.paths.clear();
            self.paths.extend(subflows.iter().map(|view| Path::of(view, load)));
        } else {
            for (path, view) in
                self.paths.iter_mut().zip(subflows).filter(|(path, view)| path.changes != view.counters.changes)
            {
                let now = Path::of(view, load);
                anew |= now.class != path.class || now.forecast.id != path.forecast.id;
                if path.eligible {
                    self.fitting = self.fitting - usize::from(path.fits) + usize::from(now.fits);
                }
                *path = Path { eligible: path.eligible, considered: path.considered, ..now };
            }
        }
        if anew {
            self.excluded = excluded;
            self.sum_up();
            self.follow(plan);
        }
        self.fitting > 0
    }

    #[inline(never)]
    fn sum_up(&mut self) {
        let excluded = self.excluded;
        let others = self.paths.iter().filter(|path| Some(path.forecast.id) != excluded);
        let best = others.map(|path| path.class).filter(|class| *class != UNUSABLE).min();
        (self.eligible, self.fitting, self.among) = (0, 0, 0xcbf2_9ce4_8422_2325);
        for path in &mut self.paths {
            path.eligible = Some(path.class) == best && Some(path.forecast.id) != excluded;
            if path.eligible {
                self.eligible += 1;
                self.fitting += usize::from(path.fits);
                self.among = (self.among ^ u64::from(path.forecast.id.0)).wrapping_mul(0x0100_0000_01b3);
            }
        }
    }

    /// Restricts the choice to a plan; none: all are considered.
    #[inline(never)]
    pub fn follow(&mut self, plan: Option<&Plan>) {
        for path in &mut self.paths {
            path.considered = path.eligible && plan.is_none_or(|plan| plan.members.contains(&path.forecast.id));
        }
    }

    /// The subflow that may be chosen, if there is only one.
    pub fn only(&self) -> Option<&Forecast> {
        if self.eligible == 1 { self.eligible().next() } else { None }
    }

    /// A hash of the numbers of those that may be chosen.
    pub fn among(&self) -> u64 {
        self.among
    }

    /// Those that may be chosen, in order of id.
    #[inline]
    pub fn eligible(&self) -> impl Iterator<Item = &Forecast> + Clone {
        self.paths.iter().filter(|path| path.eligible).map(|path| &path.forecast)
    }

    /// Those of them that are in the plan, if there is one.
    #[inline]
    pub fn considered(&self) -> impl Iterator<Item = &Forecast> + Clone {
        self.paths.iter().filter(|path| path.considered).map(|path| &path.forecast)
    }
}

#[cfg(test)]
mod tests;
