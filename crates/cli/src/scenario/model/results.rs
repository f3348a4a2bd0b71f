//! The results part of a scenario: metrics, figures, sweeps and claims.

use crate::scenario::quantity::{Change, Share};
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

impl Sweep {
    /// The unit of the numbers that its values begin with.
    pub fn unit(&self) -> &'static str {
        let letters = |value: &String| value.trim_matches(|letter: char| !letter.is_ascii_alphabetic()).to_owned();
        match self.values.first().map(letters).unwrap_or_default().as_str() {
            "B" | "kB" => "kB",
            "ms" => "ms",
            "s" => "s",
            _ => "1",
        }
    }
}

/// Which schemes are compared with which, in what, on each baseline.
#[derive(Clone, PartialEq, Debug)]
pub struct Matrix {
    /// The scheme that the others are compared with.
    pub over: String,
    /// The others; all of the scenario's that run on a baseline if empty.
    pub schemes: Vec<String>,
    /// The metrics.
    pub metrics: Vec<String>,
    /// Those of them whose differences count in their unit, not as a share.
    pub absolute: Vec<String>,
}

/// How a comparison depends on what a paper does not say: one parameter at a time.
#[derive(Clone, PartialEq, Debug)]
pub struct Sensitivity {
    /// What is compared.
    pub metric: String,
    /// The scheme.
    pub policy: String,
    /// The scheme that it is compared with.
    pub over: String,
    /// Whether the difference counts in the metric's unit, not as a share.
    pub absolute: bool,
    /// Runs per point and policy.
    pub seeds: u32,
    /// What is varied.
    pub parameters: Vec<Parameter>,
}

/// A parameter and the values that it gets, all others as the scenario has them.
#[derive(Clone, PartialEq, Debug)]
pub struct Parameter {
    /// What tables say.
    pub label: String,
    /// Dotted paths, as for `--set`; all get the value.
    pub keys: Vec<String>,
    /// Its values, as written.
    pub values: Vec<String>,
    /// What the scenario has.
    pub ours: String,
}

/// What is computed from a series over a range of time.
#[derive(Clone, PartialEq, Debug)]
pub enum WindowKind {
    /// Its mean.
    Mean,
    /// The time at which it falls below a level: before it the values are not below, from it on they are, with the fewest
    /// exceptions.
    FallsBelow(f64),
    /// The time at which it rises above a level.
    RisesAbove(f64),
    /// For how long there is something to measure: of a window, until the subflow is gone.
    Lasts,
    /// In which share of the sampling intervals it is above that of another scheme with the same seed.
    ShareAbove(String),
}

/// A number from a range of time, beside the built-in ones over the whole run.
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
            WindowKind::FallsBelow(_) | WindowKind::RisesAbove(_) | WindowKind::Lasts => "s",
            WindowKind::ShareAbove(_) => "%",
        }
    }
}

/// What is made of several runs.
#[derive(Clone, PartialEq, Debug)]
pub enum DerivedKind {
    /// The mean over the points of the sweep.
    Mean,
    /// By how many per cent that differs from the run at the scenario's own value.
    Change,
    /// How much of the way from the first point of the sweep to the last is made at the point with this value, per cent.
    MadeAt(String),
    /// The same at the first point where another metric is above a level.
    MadeWhere {
        /// The other metric.
        metric: String,
        /// The level, in its unit.
        above: f64,
    },
    /// The first value of the sweep at which the metric is above a level.
    RisesAbove(f64),
    /// How far a run is from the median of its policy's runs.
    Deviation,
    /// The same in per cent of the median.
    RelativeDeviation,
}

/// A metric that is made of another one of several runs with the same policy.
#[derive(Clone, PartialEq, Debug)]
pub struct Derived {
    /// Its name.
    pub name: String,
    /// What is shown for it.
    pub label: String,
    /// The metric that it is made of.
    pub of: String,
    /// What is made of it.
    pub kind: DerivedKind,
    /// At which points of the sweep, by their values; all if empty.
    pub points: Vec<String>,
    /// Unit of its values.
    pub unit: &'static str,
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
        /// Window of the moving average, zero for the samples themselves; the report chooses if none.
        average: Option<Duration>,
    },
    /// A metric per policy.
    Bars {
        /// Which.
        metric: String,
    },
    /// By how much a metric changes from one policy to another, for each claim that compares two.
    Ratios {
        /// Which.
        metric: String,
    },
    /// How a metric is distributed over the runs of each policy.
    Boxes {
        /// Which.
        metric: String,
    },
    /// Several metrics side by side, a curve per policy: what each node captured.
    Profile {
        /// Which metrics, with what the axis says of each.
        metrics: Vec<(String, String)>,
    },
    /// The delay of each segment of the first run, a picture per policy.
    SegmentDelays {
        /// From when to when; all of it if none.
        window: Option<(Duration, Option<Duration>)>,
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

/// Which policy is compared with all others, paired by seed.
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
    Below(Order),
    /// It is higher than that of another policy.
    Above(Order),
}

/// An order of two policies, which a paper states in words.
#[derive(Clone, PartialEq, Debug)]
pub struct Order {
    /// The other policy.
    pub other: String,
    /// The least difference that the paper's words ("a great amount") stand for, as a share of the other's.
    pub least: Option<Share>,
}

impl Statement {
    /// The policy that the claim's own is compared with, if any.
    pub fn other(&self) -> Option<&str> {
        match self {
            Self::Change { over, .. } | Self::Difference { over, .. } => Some(over),
            Self::Below(order) | Self::Above(order) => Some(&order.other),
            Self::Value(_) => None,
        }
    }
}

/// A statement of a paper that a run can be compared with.
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
    /// How far the measured number may be from the published one, as a share of it.
    pub tolerance: Share,
    /// Where the number comes from if the paper does not print it itself.
    pub note: String,
    /// What is to be thought of a difference.
    pub reading: String,
}

#[cfg(test)]
mod tests {
    use super::Sweep;

    #[test]
    fn the_unit_of_a_sweep_is_that_of_its_values() {
        let unit = |value: &str| {
            let (key, label, metric) = (String::new(), String::new(), String::new());
            let values = vec![value.to_owned()];
            Sweep { key, label, values, quick: Vec::new(), seeds: 1, metric, policies: Vec::new() }.unit()
        };
        assert_eq!((unit("4608 B"), unit("100 ms"), unit("5")), ("kB", "ms", "1"));
    }
}
