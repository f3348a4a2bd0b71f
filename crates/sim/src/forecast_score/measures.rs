//! The four measures of forecasts, and means over seeds with confidence intervals.
//!
//! - Brier score: mean of (forecast - outcome)^2, the outcome being 1 for up; lower is better, a constant 1/2 scores
//!   0.25.
//! - AUC: probability that a forecast before "up" is above one before "down"; ties count half (Mann and Whitney).
//! - Lead: a forecast below [`ALARM`] is an alarm. A loss counts if the link was up for five seconds before it and down
//!   for three after it. Its lead is the time of uninterrupted alarm before the loss, or, negative, the delay of the
//!   first alarm. It is limited to ten seconds; an alarm that is not raised before the link is up again counts as ten
//!   seconds late.
//! - False exclusions: the share of alarms among the forecasts before "up".

/// A measure, with its name and direction for tables.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Measure {
    Brier,
    /// Area under the receiver operating characteristic.
    Auc,
    /// Mean lead before a loss in seconds.
    Lead,
    /// Share of alarms before "up".
    FalseExclusions,
}

impl Measure {
    pub const ALL: [Self; 4] = [Self::Brier, Self::Auc, Self::Lead, Self::FalseExclusions];

    pub const fn name(self) -> &'static str {
        match self {
            Self::Brier => "Brier score",
            Self::Auc => "AUC",
            Self::Lead => "lead before a loss, s",
            Self::FalseExclusions => "false exclusions",
        }
    }
    pub(crate) const fn more_is_better(self) -> bool {
        matches!(self, Self::Auc | Self::Lead)
    }
}

/// How long a link must be up before a loss, and down after it, for the loss to count, in ticks.
const UP_BEFORE: usize = 5;
const DOWN_AFTER: usize = 3;
/// Limit of leads and delays, in ticks.
const MOST_LEAD: usize = 10;
/// A forecast below this is an alarm: the link should be avoided.
pub(crate) const ALARM: f64 = 0.3;

/// The forecasts of one contender for one link while it was known, one per second, and the outcomes.
#[derive(Clone, Debug, Default)]
pub struct Forecasts {
    /// Each forecast, and whether the link was up at its horizon.
    pub made: Vec<(f64, bool)>,
    /// Whether the link was up when the forecast was made.
    pub up: Vec<bool>,
}

/// Scores of a contender in one run.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Score {
    pub brier: f64,
    pub auc: f64,
    /// Mean lead in seconds.
    pub lead: f64,
    pub false_exclusions: f64,
    /// Number of forecasts.
    pub forecasts: usize,
    /// Number of forecasts before "up".
    pub ups: usize,
    /// Number of losses.
    pub losses: usize,
}

impl Score {
    /// Scores the forecasts of all links of a run.
    pub fn of(links: &[Forecasts]) -> Self {
        let all = || links.iter().flat_map(|link| &link.made).copied();
        let forecasts = all().count();
        let ups = all().filter(|(_, came)| *came).count();
        let square = |(forecast, came): (f64, bool)| {
            let error = forecast - f64::from(u8::from(came));
            error * error
        };
        let leads: Vec<f64> = links.iter().flat_map(leads).collect();
        Self {
            brier: all().map(square).sum::<f64>() / forecasts as f64,
            auc: auc(&mut all().collect::<Vec<_>>()),
            lead: leads.iter().sum::<f64>() / leads.len() as f64,
            false_exclusions: all().filter(|(forecast, came)| *came && *forecast < ALARM).count() as f64 / ups as f64,
            forecasts,
            ups,
            losses: leads.len(),
        }
    }
    pub const fn value(&self, measure: Measure) -> f64 {
        match measure {
            Measure::Brier => self.brier,
            Measure::Auc => self.auc,
            Measure::Lead => self.lead,
            Measure::FalseExclusions => self.false_exclusions,
        }
    }
}

/// The area under the curve: (rank sum of the ups - n (n + 1) / 2) / (n m); ties share their ranks.
fn auc(forecasts: &mut [(f64, bool)]) -> f64 {
    forecasts.sort_unstable_by(|(a, _), (b, _)| a.total_cmp(b));
    let ups = forecasts.iter().filter(|(_, came)| *came).count();
    let downs = forecasts.len() - ups;
    let mut rank_sum = 0.0;
    let mut start = 0;
    while start < forecasts.len() {
        let ties = forecasts[start..].partition_point(|(forecast, _)| *forecast <= forecasts[start].0);
        let mean_rank = start as f64 + (ties as f64 + 1.0) / 2.0;
        let ups = forecasts[start..start + ties].iter().filter(|(_, came)| *came).count();
        rank_sum += mean_rank * ups as f64;
        start += ties;
    }
    (rank_sum - (ups * (ups + 1)) as f64 / 2.0) / (ups * downs) as f64
}

/// The lead of each loss of a link in seconds.
fn leads(link: &Forecasts) -> impl Iterator<Item = f64> {
    let alarm = |tick: usize| link.made[tick].0 < ALARM;
    let lost = |tick: &usize| {
        let (before, after) = (&link.up[tick - UP_BEFORE..*tick], &link.up[*tick..tick + DOWN_AFTER]);
        before.iter().all(|up| *up) && after.iter().all(|up| !*up)
    };
    (UP_BEFORE..(link.up.len() + 1).saturating_sub(DOWN_AFTER)).filter(lost).map(move |tick| {
        if alarm(tick) {
            (1..=MOST_LEAD.min(tick)).take_while(|back| alarm(tick - back)).count() as f64
        } else {
            let until = (tick + MOST_LEAD).min(link.up.len());
            let late = (tick + 1..until).take_while(|later| !link.up[*later]).position(alarm);
            -late.map_or(MOST_LEAD as f64, |late| late as f64 + 1.0)
        }
    })
}

/// A mean over seeds with its confidence interval.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Interval {
    pub mean: f64,
    /// Half the width of the 95 % interval.
    pub half_width: f64,
}

/// Quantiles 0.975 of Student's t for 1, 2, ... degrees of freedom.
const STUDENT: [f64; 30] = [
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131, 2.120,
    2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
];

/// The mean of one value per seed with its 95 % interval by Student's t; infinitely wide for one seed.
pub fn interval(values: &[f64]) -> Interval {
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    if values.len() < 2 {
        return Interval { mean, half_width: f64::INFINITY };
    }
    let variance = values.iter().map(|value| (value - mean) * (value - mean)).sum::<f64>() / (count - 1.0);
    let quantile = STUDENT.get(values.len() - 2).copied().unwrap_or(1.96);
    Interval { mean, half_width: quantile * libm::sqrt(variance / count) }
}
