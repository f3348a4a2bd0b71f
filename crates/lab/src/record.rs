//! Results of one run and of all runs of an experiment.

use crate::metric::Series;
use crate::scenario::Scenario;
use crate::statistics::Estimate;
use anabranch_media::metrics::delivery::{Delivery, Fate};
use anabranch_settings::contender::Contender;
use anabranch_sim::mesh::snapshot::Snapshot;

/// A time series. Value `i` covers the sampling interval from `i` to `i + 1`; NaN if nothing was measured.
#[derive(Clone, PartialEq, Debug)]
pub struct Curve {
    pub series: Series,
    /// Index of the path in the scenario; none: the connection.
    pub path: Option<usize>,
    pub values: Vec<f64>,
}

/// Delivery of the frames of a video in one run.
#[derive(Clone, Debug)]
pub struct VideoRun {
    /// Frames of one pass of the clip.
    pub pass: usize,
    pub delivery: Delivery,
}

impl VideoRun {
    /// Whether each frame arrived by its deadline: per pass, in coding order.
    pub fn passes(&self) -> Vec<Vec<bool>> {
        let on_time: Vec<bool> = self.delivery.fates.iter().map(|fate| *fate == Fate::OnTime).collect();
        on_time.chunks(self.pass.max(1)).map(<[bool]>::to_vec).collect()
    }
}

/// Time from first transmission to acknowledgement of a segment.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct SegmentDelay {
    /// Index of the path in the scenario.
    pub path: usize,
    /// Time of the first transmission, seconds since the transfer began.
    pub sent: f64,
    /// Time until all of it was acknowledged, ms.
    pub delay: f64,
}

/// Results of one run.
#[derive(Clone, Debug, Default)]
pub struct Record {
    pub seed: u64,
    /// Hash over all events.
    pub trace_hash: u64,
    /// Metrics by name; those that could not be measured are absent.
    pub metrics: Vec<(String, f64)>,
    pub curves: Vec<Curve>,
    /// Delays of single segments, if a figure shows them.
    pub segment_delays: Vec<SegmentDelay>,
    /// Bytes of cross traffic delivered on each path in use, by index in the scenario.
    pub background: Vec<(usize, u64)>,
    /// Snapshots of the ad-hoc network, with next hops to the receiver on each path; empty for other networks.
    pub mesh: Vec<Snapshot>,
    pub video: Option<VideoRun>,
    /// SHA-256 of the received data in hexadecimal, if requested and complete.
    pub received_digest: Option<String>,
}

impl Record {
    pub fn metric(&self, name: &str) -> Option<f64> {
        self.metrics.iter().find(|(known, _)| known == name).map(|(_, value)| *value)
    }

    /// A series of the connection (no `path`) or of a path.
    pub fn curve(&self, series: Series, path: Option<usize>) -> Option<&Curve> {
        self.curves.iter().find(|curve| curve.series == series && curve.path == path)
    }
}

/// All runs of one contender, in order of seed.
#[derive(Clone, Debug)]
pub struct PolicyRuns {
    pub contender: Contender,
    /// Name of the path that `Route::Best` selected.
    pub best_path: Option<String>,
    /// One per seed.
    pub records: Vec<Record>,
}

impl PolicyRuns {
    /// Of how many runs an estimate is, if not of all: some have no value, as of a transfer that did not end in time.
    pub fn part(&self, estimate: &Estimate) -> String {
        let all = self.records.len();
        if estimate.count < all { format!(", {} of {all} runs", estimate.count) } else { String::new() }
    }

    /// The scheme: `lm3` of `lm3@linux`.
    pub fn scheme(&self) -> &str {
        &self.contender.scheme
    }

    /// The baseline: `linux` of `lm3@linux`.
    pub fn baseline(&self) -> Option<&str> {
        self.contender.baseline.as_deref()
    }

    /// Label in tables and legends.
    pub fn label(&self) -> String {
        match &self.best_path {
            Some(path) => format!("{} ({path})", self.contender.label),
            None => self.contender.label.clone(),
        }
    }

    /// Values of a metric, from the runs that have it.
    pub fn values(&self, metric: &str) -> Vec<f64> {
        self.records.iter().filter_map(|record| record.metric(metric)).collect()
    }

    /// Mean and confidence interval of a metric.
    pub fn estimate(&self, metric: &str) -> Option<Estimate> {
        Estimate::of(&self.values(metric))
    }

    /// Mean and confidence interval at each sample, over the runs that have a value there.
    pub fn mean_curve(&self, series: Series, path: Option<usize>) -> Vec<Option<Estimate>> {
        let curves: Vec<&Curve> = self.records.iter().filter_map(|record| record.curve(series, path)).collect();
        let length = curves.iter().map(|curve| curve.values.len()).max().unwrap_or(0);
        let at = |i: usize| {
            let values: Vec<f64> = curves.iter().filter_map(|curve| curve.values.get(i).copied()).collect();
            let values: Vec<f64> = values.into_iter().filter(|value| value.is_finite()).collect();
            Estimate::of(&values)
        };
        (0..length).map(at).collect()
    }
}

#[derive(Clone, Debug)]
pub struct SweepPoint {
    /// The parameter's value, as written.
    pub value: String,
    /// One per contender, in the scenario's order.
    pub policies: Vec<PolicyRuns>,
}

#[derive(Clone, Debug)]
pub struct SensitivityPoint {
    /// Index of the parameter in the scenario.
    pub parameter: usize,
    /// The parameter's value, as written.
    pub value: String,
    /// The two compared schemes, on each baseline.
    pub policies: Vec<PolicyRuns>,
}

/// A decoded frame as the viewer of one run saw it.
#[derive(Clone, PartialEq, Debug)]
pub struct Still {
    /// Label of the contender.
    pub label: String,
    /// PNG file.
    pub png: Vec<u8>,
    /// Luma PSNR against the source, dB.
    pub psnr: f64,
}

#[derive(Clone, PartialEq, Debug)]
pub struct Moment {
    /// Seconds since the start of the video.
    pub at: f64,
    /// Frame number in display order.
    pub frame: usize,
    /// One per contender.
    pub stills: Vec<Still>,
}

/// Decoded frames of a video.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Pictures {
    /// Why no frames were decoded, if so.
    pub missing: Option<String>,
    /// Instants at which contenders differ.
    pub moments: Vec<Moment>,
}

/// All results of an experiment.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The scenario as run.
    pub scenario: Scenario,
    /// Whether it was shortened.
    pub quick: bool,
    /// One per contender.
    pub policies: Vec<PolicyRuns>,
    /// The first seed; later runs use consecutive seeds.
    pub first_seed: u64,
    pub sweep: Vec<SweepPoint>,
    pub sensitivity: Vec<SensitivityPoint>,
    pub pictures: Option<Pictures>,
    /// Hash over the trace hashes of all runs, in order.
    pub trace_hash: u64,
    /// Wall-clock duration, seconds.
    pub seconds: f64,
}

impl Outcome {
    pub fn policy(&self, name: &str) -> Option<&PolicyRuns> {
        self.policies.iter().find(|runs| runs.contender.name == name)
    }

    /// The baselines of all contenders, in the scenario's order.
    pub fn baselines(&self) -> Vec<&str> {
        let mut found: Vec<&str> = Vec::new();
        for baseline in self.policies.iter().filter_map(PolicyRuns::baseline) {
            if !found.contains(&baseline) {
                found.push(baseline);
            }
        }
        found
    }

    /// Runs of a scheme on a baseline. A scheme without a baseline matches any.
    pub fn run_of(&self, scheme: &str, baseline: Option<&str>) -> Option<&PolicyRuns> {
        run_of(&self.policies, scheme, baseline)
    }

    /// Label of a scheme without its baseline; its name if it has no runs.
    pub fn label_of(&self, scheme: &str) -> String {
        let known = self.scenario.schemes.iter().find(|known| known.name == scheme).map(|known| known.label.clone());
        let runs = || self.policies.iter().find(|runs| runs.scheme() == scheme);
        known.or_else(|| runs().map(|runs| runs.contender.label.clone())).unwrap_or_else(|| scheme.to_owned())
    }

    /// Runs per contender.
    pub fn seeds(&self) -> usize {
        self.policies.iter().map(|runs| runs.records.len()).max().unwrap_or(0)
    }
}

/// Runs of a scheme on a baseline. A scheme without a baseline matches any.
pub fn run_of<'a>(policies: &'a [PolicyRuns], scheme: &str, baseline: Option<&str>) -> Option<&'a PolicyRuns> {
    let of_scheme = || policies.iter().filter(|runs| runs.scheme() == scheme);
    let exact = of_scheme().find(|runs| runs.baseline() == baseline);
    exact.or_else(|| of_scheme().find(|runs| runs.baseline().is_none()))
}

pub fn hexadecimal(digest: &[u8]) -> String {
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}
