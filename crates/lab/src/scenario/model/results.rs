//! The results part of a scenario: metrics, figures, sweeps and claims.

use anabranch_policy::time::Duration;
use anabranch_settings::quantity::{Change, Share};

/// The parameter that is swept, and its values.
#[derive(Clone, PartialEq, Debug)]
pub struct Sweep {
    /// Dotted path, as for `--set`.
    pub key: String,
    /// Label of the axis.
    pub label: String,
    /// Values, as written.
    pub values: Vec<String>,
    /// Values of a quick run.
    pub quick: Vec<String>,
    pub seeds: u32,
    /// The metric on the other axis.
    pub metric: String,
    /// Names of the policies; empty: all.
    pub policies: Vec<String>,
}

impl Sweep {
    /// Unit of the values.
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

/// Schemes to compare with a reference, metric by metric, on each baseline.
#[derive(Clone, PartialEq, Debug)]
pub struct Matrix {
    /// The reference scheme.
    pub over: String,
    /// The other schemes; empty: all that run on a baseline.
    pub schemes: Vec<String>,
    pub metrics: Vec<String>,
    /// Metrics whose differences are in their unit, not a share.
    pub absolute: Vec<String>,
}

/// Effect on a comparison of parameters that the paper does not state, one at a time.
#[derive(Clone, PartialEq, Debug)]
pub struct Sensitivity {
    pub metric: String,
    pub policy: String,
    /// The reference scheme.
    pub over: String,
    /// Whether the difference is in the metric's unit, not a share.
    pub absolute: bool,
    /// Runs per point and policy.
    pub seeds: u32,
    pub parameters: Vec<Parameter>,
}

/// A parameter and its values; all others keep the scenario's.
#[derive(Clone, PartialEq, Debug)]
pub struct Parameter {
    /// Label in tables.
    pub label: String,
    /// Dotted paths, as for `--set`; each is set to the value.
    pub keys: Vec<String>,
    /// Values, as written.
    pub values: Vec<String>,
    /// The scenario's own value.
    pub ours: String,
}

/// How a series over a time window becomes a number.
#[derive(Clone, PartialEq, Debug)]
pub enum WindowKind {
    Mean,
    /// Time at which it falls below a level: the split with the fewest values on the wrong side.
    FallsBelow(f64),
    /// Likewise, rising above a level.
    RisesAbove(f64),
    /// Duration of the measurement: from the window's start until the subflow closes.
    Lasts,
    /// Share of sampling intervals in which it exceeds that of another scheme with the same seed.
    ShareAbove(String),
}

/// A metric over a time window; built-in metrics cover the whole run.
#[derive(Clone, PartialEq, Debug)]
pub struct WindowMetric {
    pub name: String,
    /// Label in tables.
    pub label: String,
    pub kind: WindowKind,
    pub series: crate::metric::Series,
    /// Start and end; no end: the end of the run.
    pub window: (Duration, Option<Duration>),
    /// Name of the path; none: the connection.
    pub path: Option<String>,
}

impl WindowMetric {
    pub const fn unit(&self) -> &'static str {
        match self.kind {
            WindowKind::Mean => self.series.unit(),
            WindowKind::FallsBelow(_) | WindowKind::RisesAbove(_) | WindowKind::Lasts => "s",
            WindowKind::ShareAbove(_) => "%",
        }
    }
}

/// How several runs become one number.
#[derive(Clone, PartialEq, Debug)]
pub enum DerivedKind {
    /// Mean over the points of the sweep.
    Mean,
    /// Change of that mean from the run at the scenario's own value, per cent.
    Change,
    /// Share of the change from the first to the last point of the sweep that is reached at this value, per cent.
    MadeAt(String),
    /// The same at the first point where another metric exceeds a level.
    MadeWhere {
        metric: String,
        /// In the unit of `metric`.
        above: f64,
    },
    /// First value of the sweep at which the metric exceeds a level.
    RisesAbove(f64),
    /// Absolute deviation of a run from the median of its policy's runs.
    Deviation,
    /// That deviation in per cent of the median.
    RelativeDeviation,
}

/// A metric computed from another metric of several runs of the same policy.
#[derive(Clone, PartialEq, Debug)]
pub struct Derived {
    pub name: String,
    /// Label in tables.
    pub label: String,
    /// The source metric.
    pub of: String,
    pub kind: DerivedKind,
    /// Values of the sweep's points to use; empty: all.
    pub points: Vec<String>,
    pub unit: &'static str,
}

#[derive(Clone, PartialEq, Debug)]
pub enum FigureKind {
    /// Series over time.
    Time {
        /// One curve per policy; for path series, one per path and policy.
        series: Vec<crate::metric::Series>,
        /// Start and end; none: the whole run.
        window: Option<(Duration, Option<Duration>)>,
        /// Window of the moving average; zero: raw samples; none: chosen by the report.
        average: Option<Duration>,
    },
    /// A metric per policy.
    Bars {
        /// Name of the metric.
        metric: String,
    },
    /// Relative change of a metric between two policies, for each claim that compares them.
    Ratios {
        /// Name of the metric.
        metric: String,
    },
    /// Distribution of a metric over the runs of each policy.
    Boxes {
        /// Name of the metric.
        metric: String,
    },
    /// Several metrics on one axis, one curve per policy: for example the nodes that captured packets.
    Profile {
        /// Metrics with their axis labels.
        metrics: Vec<(String, String)>,
    },
    /// Delay of each segment of the first run, one chart per policy.
    SegmentDelays {
        /// Start and end; none: the whole run.
        window: Option<(Duration, Option<Duration>)>,
    },
    Sweep {
        /// None: the sweep's own metric.
        metric: Option<String>,
    },
}

#[derive(Clone, PartialEq, Debug)]
pub struct Figure {
    /// Name by which claims refer to it.
    pub name: String,
    pub title: String,
    pub kind: FigureKind,
    /// Names of the policies; empty: all.
    pub policies: Vec<String>,
    /// Description of the paper's figure in our own words.
    pub published: String,
}

/// A policy to compare with all others, paired by seed.
#[derive(Clone, PartialEq, Debug)]
pub struct Differences {
    pub policy: String,
    pub metrics: Vec<String>,
}

/// A published statement about a metric of a policy.
#[derive(Clone, PartialEq, Debug)]
pub enum Statement {
    /// Value in the metric's unit.
    Value(f64),
    /// Relative change from another policy.
    Change {
        /// The reference policy.
        over: String,
        change: Change,
    },
    /// Difference from another policy, in the metric's unit.
    Difference {
        /// The reference policy.
        over: String,
        /// Negative: less.
        more: f64,
    },
    /// Lower than another policy.
    Below(Order),
    /// Higher than another policy.
    Above(Order),
}

/// An order of two policies that the paper states in words only.
#[derive(Clone, PartialEq, Debug)]
pub struct Order {
    pub other: String,
    /// Minimum difference that the paper's words ("a great amount") imply, as a share of the other's value.
    pub least: Option<Share>,
}

impl Statement {
    /// The reference policy, if any.
    pub fn other(&self) -> Option<&str> {
        match self {
            Self::Change { over, .. } | Self::Difference { over, .. } => Some(over),
            Self::Below(order) | Self::Above(order) => Some(&order.other),
            Self::Value(_) => None,
        }
    }
}

/// A published statement that is compared with runs.
#[derive(Clone, PartialEq, Debug)]
pub struct Claim {
    /// Name of the figure.
    pub figure: String,
    pub metric: String,
    pub policy: String,
    pub statement: Statement,
    /// Allowed deviation from the published value, as a share of it.
    pub tolerance: Share,
    /// Source of the number if the paper does not print it.
    pub note: String,
    /// Explanation of a deviation.
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
