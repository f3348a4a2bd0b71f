//! What a scenario says of its results: what is measured, drawn, swept over and claimed.

use crate::scenario::quantity::Change;
use anabranch_policy::time::Duration;

/// Which parameter of the scenario is swept, and over what.
#[derive(Clone, PartialEq, Debug)]
pub struct Sweep {
    /// Dotted path, as for `--set`.
    pub key: String,
    /// What the axis says.
    pub label: String,
    /// Its values, as written.
    pub values: Vec<String>,
    /// Those of a quick run.
    pub quick: Vec<String>,
    /// Seeds per point.
    pub seeds: u32,
    /// What is measured.
    pub metric: String,
    /// Which policies take part, by name; all if empty.
    pub policies: Vec<String>,
}

/// What is made of a series over a stretch of time.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum WindowKind {
    /// Its mean.
    Mean,
    /// The time at which it falls below a level: before it the values are not below, from it on they are, with the fewest
    /// exceptions.
    FallsBelow(f64),
    /// The time at which it rises above a level.
    RisesAbove(f64),
}

/// A number from a stretch of time, beside the built-in ones over the whole run.
#[derive(Clone, PartialEq, Debug)]
pub struct WindowMetric {
    /// Its name.
    pub name: String,
    /// What is shown for it.
    pub label: String,
    /// What is made of the series.
    pub kind: WindowKind,
    /// The series it is made of.
    pub series: crate::metric::Series,
    /// From when to when.
    pub window: (Duration, Option<Duration>),
    /// Of which path, by name; of the connection if none.
    pub path: Option<String>,
}

impl WindowMetric {
    /// Unit of its values.
    pub const fn unit(&self) -> &'static str {
        match self.kind {
            WindowKind::Mean => self.series.unit(),
            WindowKind::FallsBelow(_) | WindowKind::RisesAbove(_) => "s",
        }
    }
}

/// What a figure shows.
#[derive(Clone, PartialEq, Debug)]
pub enum FigureKind {
    /// Series over time.
    Time {
        /// What: one curve per policy, or per path and policy for path series.
        series: Vec<crate::metric::Series>,
        /// From when to when; all of it if none.
        window: Option<(Duration, Option<Duration>)>,
    },
    /// A metric per policy.
    Bars {
        /// Which.
        metric: String,
    },
    /// How a metric is distributed over the runs of each policy.
    Boxes {
        /// Which.
        metric: String,
    },
    /// The sweep.
    Sweep {
        /// Of which metric, if not of the sweep's own.
        metric: Option<String>,
    },
}

/// A figure of the report.
#[derive(Clone, PartialEq, Debug)]
pub struct Figure {
    /// Its name, for claims to refer to.
    pub name: String,
    /// Its heading.
    pub title: String,
    /// What it shows.
    pub kind: FigureKind,
    /// Which policies; all if empty.
    pub policies: Vec<String>,
    /// What the paper's figure shows, in our words.
    pub published: String,
}

/// Which policy is held against all others, paired by seed.
#[derive(Clone, PartialEq, Debug)]
pub struct Differences {
    /// The policy.
    pub policy: String,
    /// In which metrics.
    pub metrics: Vec<String>,
}

/// What a paper says about a metric of a policy.
#[derive(Clone, PartialEq, Debug)]
pub enum Statement {
    /// It is this, in the metric's unit.
    Value(f64),
    /// It differs by so much from that of another policy.
    Change {
        /// The other policy.
        over: String,
        /// By how much.
        change: Change,
    },
    /// It is so much more than that of another policy, in the metric's unit.
    Difference {
        /// The other policy.
        over: String,
        /// How much more; below 0: less.
        more: f64,
    },
    /// It is lower than that of another policy.
    Below(String),
    /// It is higher than that of another policy.
    Above(String),
}

/// A statement of a paper that a run can be held against.
#[derive(Clone, PartialEq, Debug)]
pub struct Claim {
    /// The figure it belongs to.
    pub figure: String,
    /// The metric.
    pub metric: String,
    /// The policy.
    pub policy: String,
    /// What is said.
    pub statement: Statement,
    /// Where the number comes from if the paper does not print it itself.
    pub note: String,
    /// What is to be thought of a difference.
    pub reading: String,
}
