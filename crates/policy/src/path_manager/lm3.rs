//! LM3: a blocked receive buffer halves the number of active paths, as a loss halves a congestion window.
//!
//! Source: Cao, Collotta, Xu, Huang, Tao, Zhou, "Towards Adaptive Multipath Managing: A Lightweight Path Management
//! Mechanism to Aid Multihomed Mobile Computing Devices", Applied Sciences 10(1), 2020. This is the form as published.
//! A path is a subflow; the subflows are opened by [`super::full_mesh`], whose settings apply too.
//!
//! Once per round trip, for every path p (w congestion window in bytes, r smoothed RTT):
//!
//! ```text
//! w'(p) = (w(p) - w_min) / (w_max - w_min)                         (3)
//! r'(p) = (r_max - r(p)) / (r_max - r_min)                         (4)
//! R(p)  = sigma w'(p) + (1 - sigma) r'(p),  sigma = 1/2            (2)
//! ```
//!
//! and each fraction is 1 where max = min (not said in the paper). On a blocked receive buffer:
//!
//! ```text
//! blocks <- blocks + 1                                             (6)
//! blocks < 3: paths <- floor(paths / 2), at least 1                (5)
//! blocks = 3: paths <- 1, blocks <- 0                              (7), (8)
//! ```
//!
//! The best `paths` by R stay, the rest are suspended. A suspended path q returns, best first, when
//!
//! ```text
//! R(q) >= mean of R over the active paths                          (9)
//! ```
//!
//! looked at once per round trip, the mean taking in those that have just returned (lines 16 to 21 of Algorithm 1).
//!
//! Where the paper contradicts itself or is silent (the first value of each setting is the default):
//! - `rounding` down (equation 5) | up (line 9 of Algorithm 1; 1 of 1, 1 of 2, 2 of 3 paths).
//! - `counter_reset` at_three (equation 8) | never (Algorithm 1, where line 12 forgets it: after the third event no
//!   event removes anything until the quiet interval is over).
//! - `bounds` own_history (equations 3 and 4 "measured on p": each path against its own past) | alternatives (textbook
//!   SAW: over the established paths now, suspended ones included).
//! - `paths` is the number of active paths at the event. Algorithm 1 never raises path_num when paths return, and would
//!   so halve a number that is no longer true.
//! - "Consecutive" events: the counter falls back to 0 when none came for `quiet` (8) times the longest smoothed RTT of
//!   the active paths. An episode that lasts repeats its event after one RTT; a removal acts, and the hole is filled,
//!   within a few.
//! - A returning path must have been measured since it was removed, and a path with an unanswered timeout does not
//!   return; the probes and the rule are in [`super::suspension`]. A removal and the test for return never share an
//!   event, as they do in Algorithm 1: where all R are equal it would undo its own removal on the spot.
//! - `dead_paths` by_score (the paper to the letter) | last (our reading, the combination `lm3_living`). Under
//!   equations 2 to 4 a path that died while its RTT was low keeps that RTT, so it can outrank a living one and be the
//!   one that stays. With `last`, paths with an unanswered timeout rank behind all others and do not enter the mean,
//!   and if all active ones are such, the best living one returns. Either way the last established path is never
//!   suspended.
//! - Backup subflows are ignored unless suspended by us.
//!
//! What the published bounds amount to: on a path that is limited by its own queue the RTT rises linearly with the
//! window, so that w' + r' = 1 and R = 1/2 whatever the window is; a suspended path has an empty queue, r' near 1
//! and so R >= 1/2. Against such paths equation 9 brings every removed path back with its first measurement.

use super::PathManager;
use super::full_mesh::MeshSettings;
use super::suspending::{Memory, Occasion, Rule, Situation, Suspending};
use super::suspension::Suspensions;
use crate::ids::{SubflowId, SubflowMap};
use crate::table::{Choice, Number, Reader, SettingError, Settings};
use crate::time::Instant;
use crate::view::{SubflowState, SubflowView};

const CWND_WEIGHT: Number = Number {
    name: "cwnd_weight",
    unit: "",
    default: 0.5,
    range: 0.0..=1.0,
    summary: "Weight of the congestion window in a path's quality; the RTT has the rest",
};
const QUIET: Number = Number {
    name: "quiet",
    unit: "round trips",
    default: 8.0,
    range: 0.0..=1e6,
    summary: "How long without a blocked event until the counter falls back to 0; 0: never",
};
const ROUNDING: Choice<Rounding> = Choice {
    name: "rounding",
    default: Rounding::Down,
    words: &[("down", Rounding::Down), ("up", Rounding::Up)],
    summary: "How half of an odd number of paths is rounded",
};
const BOUNDS: Choice<ScoreBounds> = Choice {
    name: "bounds",
    default: ScoreBounds::OwnHistory,
    words: &[("own_history", ScoreBounds::OwnHistory), ("alternatives", ScoreBounds::Alternatives)],
    summary: "What a path's window and RTT are compared with: its own past, or the other paths",
};
const DEAD_PATHS: Choice<DeadPaths> = Choice {
    name: "dead_paths",
    default: DeadPaths::ByScore,
    words: &[("by_score", DeadPaths::ByScore), ("last", DeadPaths::Last)],
    summary: "How paths with an unanswered timeout are ranked",
};
const COUNTER_RESET: Choice<bool> = Choice {
    name: "counter_reset",
    default: true,
    words: &[("at_three", true), ("never", false)],
    summary: "Whether the third blocked event resets the counter",
};

/// Rounding of half an odd number of paths.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Rounding {
    /// Equation 5.
    Down,
    /// Line 9 of Algorithm 1.
    Up,
}

/// What a path's window and RTT are compared with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ScoreBounds {
    /// The least and largest values measured on the path itself.
    OwnHistory,
    /// The least and largest values of the established paths now.
    Alternatives,
}

/// How paths with an unanswered timeout are ranked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DeadPaths {
    /// Like the others: the paper to the letter.
    ByScore,
    /// Behind all others.
    Last,
}

/// Settings of LM3.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Lm3Settings {
    pub mesh: MeshSettings,
    /// Rounding of half an odd number of paths.
    pub rounding: Rounding,
    /// Whether the third event resets the counter (equation 8).
    pub reset_at_three: bool,
    /// What a path is compared with.
    pub bounds: ScoreBounds,
    /// Weight of the window, 0 to 1 (sigma of equation 2).
    pub cwnd_weight: f64,
    /// Round trips without an event after which the counter returns to 0; 0: never.
    pub quiet: f64,
    /// How paths with an unanswered timeout are ranked.
    pub dead_paths: DeadPaths,
}

impl Lm3Settings {
    fn read(reader: &mut Reader<'_>) -> Result<Self, SettingError> {
        Ok(Self {
            mesh: MeshSettings::read(reader)?,
            rounding: reader.read(&ROUNDING)?,
            reset_at_three: reader.read(&COUNTER_RESET)?,
            bounds: reader.read(&BOUNDS)?,
            cwnd_weight: reader.read(&CWND_WEIGHT)?,
            quiet: reader.read(&QUIET)?,
            dead_paths: reader.read(&DEAD_PATHS)?,
        })
    }
}

impl Default for Lm3Settings {
    fn default() -> Self {
        Settings::new().read(Self::read).expect("every default is a value")
    }
}

/// Minimum and maximum of a measured value.
#[derive(Clone, Copy, Debug)]
struct Bounds {
    min: f64,
    max: f64,
}

impl Bounds {
    const NONE: Self = Self { min: f64::INFINITY, max: f64::NEG_INFINITY };

    fn include(&mut self, value: f64) {
        self.min = self.min.min(value);
        self.max = self.max.max(value);
    }

    /// The position of `value` between the bounds, 1 at `best` and 0 at the other; 1 if they are equal.
    fn place(&self, value: f64, best: f64) -> f64 {
        let span = self.max - self.min;
        if span > 0.0 { 1.0 - (value - best).abs() / span } else { 1.0 }
    }
}

/// Bounds of window (bytes) and smoothed RTT (seconds).
#[derive(Clone, Copy, Debug)]
struct Measured {
    cwnd: Bounds,
    rtt: Bounds,
}

impl Measured {
    const NONE: Self = Self { cwnd: Bounds::NONE, rtt: Bounds::NONE };

    fn include(&mut self, view: &SubflowView) {
        self.cwnd.include(view.cwnd as f64);
        self.rtt.include(view.smoothed_rtt.as_secs_f64());
    }

    /// Equations 2 to 4.
    fn score(&self, view: &SubflowView, cwnd_weight: f64) -> f64 {
        let cwnd = self.cwnd.place(view.cwnd as f64, self.cwnd.max);
        let rtt = self.rtt.place(view.smoothed_rtt.as_secs_f64(), self.rtt.min);
        cwnd_weight * cwnd + (1.0 - cwnd_weight) * rtt
    }
}

#[derive(Clone, Copy, Debug)]
struct Path {
    history: Measured,
    score: f64,
}

/// State of a connection.
#[derive(Debug, Default)]
pub struct Paths {
    blocks: u32,
    last_blocked: Option<Instant>,
    paths: SubflowMap<Path>,
}

impl Memory for Paths {
    fn forget(&mut self, subflow: SubflowId) {
        self.paths.remove(subflow);
    }
}

impl Paths {
    /// Records the measurements and scores every path.
    fn score(&mut self, settings: &Lm3Settings, situation: &mut Situation<'_>) {
        let subflows = situation.subflows;
        let established = |id| subflows.iter().any(|s| s.id == id && s.state == SubflowState::Established);
        self.paths.retain(established);
        let mut all = Measured::NONE;
        let measured: Vec<&SubflowView> = situation.suspensions.paths(subflows).collect();
        for view in &measured {
            all.include(view);
        }
        for view in measured {
            let mut history = self.paths.get(view.id).map_or(Measured::NONE, |path| path.history);
            history.include(view);
            let bounds = match settings.bounds {
                ScoreBounds::OwnHistory => &history,
                ScoreBounds::Alternatives => &all,
            };
            let score = bounds.score(view, settings.cwnd_weight);
            self.paths.insert(view.id, Path { history, score });
            situation.suspensions.set_rank(view.id, score);
        }
    }

    fn score_of(&self, id: SubflowId) -> f64 {
        self.paths.get(id).map_or(0.0, |path| path.score)
    }

    /// The active or the suspended paths, the best first.
    fn ranked<'a>(&self, settings: &Lm3Settings, situation: &Situation<'a>, aside: bool) -> Vec<&'a SubflowView> {
        let suspensions: &Suspensions = situation.suspensions;
        let dead = |view: &SubflowView| settings.dead_paths == DeadPaths::Last && view.stale;
        let mut ranked: Vec<&SubflowView> =
            suspensions.paths(situation.subflows).filter(|view| suspensions.is_aside(view.id) == aside).collect();
        // The sort is stable: the lower id first on a tie.
        ranked.sort_by(|a, b| dead(a).cmp(&dead(b)).then(self.score_of(b.id).total_cmp(&self.score_of(a.id))));
        ranked
    }

    /// Equations 5 to 8.
    fn on_blocked(&mut self, settings: &Lm3Settings, situation: &mut Situation<'_>) {
        let active = self.ranked(settings, situation, false);
        let longest = active.iter().map(|view| view.smoothed_rtt).max().unwrap_or_default();
        let silence = self.last_blocked.map(|last| situation.connection.now.since(last));
        if settings.quiet > 0.0 && silence.is_some_and(|silence| silence > longest.mul_f64(settings.quiet)) {
            self.blocks = 0;
        }
        self.last_blocked = Some(situation.connection.now);
        self.blocks = self.blocks.saturating_add(1);
        let half = match settings.rounding {
            Rounding::Down => active.len() / 2,
            Rounding::Up => active.len().div_ceil(2),
        };
        let keep = match self.blocks {
            0..3 => half.max(1),
            3 => 1,
            _ => active.len(),
        };
        if self.blocks == 3 && settings.reset_at_three {
            self.blocks = 0;
        }
        for view in active.iter().skip(keep) {
            situation.suspend(view);
        }
    }

    /// Equation 9.
    fn on_round_trip(&mut self, settings: &Lm3Settings, situation: &mut Situation<'_>) {
        let mut active: Vec<f64> = self
            .ranked(settings, situation, false)
            .iter()
            .filter(|view| settings.dead_paths == DeadPaths::ByScore || !view.stale)
            .map(|view| self.score_of(view.id))
            .collect();
        for view in self.ranked(settings, situation, true) {
            let score = self.score_of(view.id);
            // Without a living active path the mean is undefined, and every suitable path passes. The sum of n equal
            // scores may exceed n times the score by a rounding error.
            let at_least_mean = score * active.len() as f64 >= active.iter().sum::<f64>() - 1e-9;
            if at_least_mean && situation.suspensions.is_fit(view) {
                situation.resume(view.id);
                active.push(score);
            }
        }
    }
}

/// The path manager `lm3`.
type Lm3 = Suspending<Lm3Settings>;

pub fn build(reader: &mut Reader<'_>) -> Result<Box<dyn PathManager>, SettingError> {
    Ok(Box::new(Lm3::new(Lm3Settings::read(reader)?)))
}

impl Rule for Lm3Settings {
    type Memory = Paths;

    fn acts_on(&self, occasion: Occasion) -> bool {
        occasion != Occasion::ReceiverBlocked
    }

    fn decide(&self, occasion: Occasion, paths: &mut Paths, situation: &mut Situation<'_>) {
        match occasion {
            Occasion::Measured => {
                paths.score(self, situation);
                paths.on_round_trip(self, situation);
            }
            Occasion::SenderBlocked => {
                paths.score(self, situation);
                paths.on_blocked(self, situation);
            }
            Occasion::ReceiverBlocked | Occasion::Timeout(_) => {}
        }
    }

    fn replaces_dead(&self) -> bool {
        self.dead_paths == DeadPaths::Last
    }

    fn mesh(&self) -> MeshSettings {
        self.mesh
    }
}

#[cfg(test)]
mod tests;
