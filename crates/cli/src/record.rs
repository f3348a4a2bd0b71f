//! What one run leaves behind, and what the runs of one experiment leave together.

use crate::contender::Contender;
use crate::metric::Series;
use crate::scenario::Scenario;
use crate::statistics::Estimate;
use anabranch_media::metrics::delivery::{Delivery, Fate};
use anabranch_sim::mesh::snapshot::Snapshot;

/// A series over time. Value `i` belongs to the time from `i` to `i + 1` sampling intervals; not a number where there
/// was nothing to measure.
#[derive(Clone, PartialEq, Debug)]
pub struct Curve {
    /// What was measured.
    pub series: Series,
    /// On which path, by its place in the scenario; of the connection if none.
    pub path: Option<usize>,
    /// The values.
    pub values: Vec<f64>,
}

/// What became of the frames of a video in one run.
#[derive(Clone, Debug)]
pub struct VideoRun {
    /// Frames of one pass of the clip.
    pub pass: usize,
    /// What was in time.
    pub delivery: Delivery,
}

impl VideoRun {
    /// Which frames were there when they were due, one pass after the other, each in coding order.
    pub fn passes(&self) -> Vec<Vec<bool>> {
        let on_time: Vec<bool> = self.delivery.fates.iter().map(|fate| *fate == Fate::OnTime).collect();
        on_time.chunks(self.pass.max(1)).map(<[bool]>::to_vec).collect()
    }
}

/// How long a segment waited for its acknowledgement.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct SegmentDelay {
    /// The path, by its place in the scenario.
    pub path: usize,
    /// When it was sent first, seconds since the transfer began.
    pub sent: f64,
    /// How long it took until all of it was acknowledged, ms.
    pub delay: f64,
}

/// What one run leaves behind.
#[derive(Clone, Debug, Default)]
pub struct Record {
    /// The run's seed.
    pub seed: u64,
    /// Hash over everything that happened in it.
    pub trace_hash: u64,
    /// Metrics by name; those that could not be measured are not there.
    pub metrics: Vec<(String, f64)>,
    /// The series.
    pub curves: Vec<Curve>,
    /// Delays of single segments, if a figure of the scenario shows them.
    pub segment_delays: Vec<SegmentDelay>,
    /// Bytes of cross traffic that arrived on each of the paths in use, by their places in the scenario.
    pub background: Vec<(usize, u64)>,
    /// The ad-hoc network at a few moments, with the next hops to the receiver on each path; empty for other networks.
    pub mesh: Vec<Snapshot>,
    /// What became of the frames of a video.
    pub video: Option<VideoRun>,
    /// SHA-256 of what the receiver read, in hexadecimal, if it was asked for and all of it arrived.
    pub received_digest: Option<String>,
}

impl Record {
    /// A metric by its name.
    pub fn metric(&self, name: &str) -> Option<f64> {
        self.metrics.iter().find(|(known, _)| known == name).map(|(_, value)| *value)
    }

    /// A series of the connection or of a path.
    pub fn curve(&self, series: Series, path: Option<usize>) -> Option<&Curve> {
        self.curves.iter().find(|curve| curve.series == series && curve.path == path)
    }
}

/// The runs of one combination, in order of seed.
#[derive(Clone, Debug)]
pub struct PolicyRuns {
    /// The combination.
    pub contender: Contender,
    /// The path that "best" turned out to be, by name.
    pub best_path: Option<String>,
    /// One per seed.
    pub records: Vec<Record>,
}

impl PolicyRuns {
    /// What is compared, whatever it runs on: `lm3` of `lm3@linux`.
    pub fn scheme(&self) -> &str {
        &self.contender.scheme
    }

    /// What it runs on: `linux` of `lm3@linux`.
    pub fn baseline(&self) -> Option<&str> {
        self.contender.baseline.as_deref()
    }

    /// What tables and legends call it.
    pub fn label(&self) -> String {
        match &self.best_path {
            Some(path) => format!("{} ({path})", self.contender.label),
            None => self.contender.label.clone(),
        }
    }

    /// A metric of each run that has it.
    pub fn values(&self, metric: &str) -> Vec<f64> {
        self.records.iter().filter_map(|record| record.metric(metric)).collect()
    }

    /// Mean and interval of a metric.
    pub fn estimate(&self, metric: &str) -> Option<Estimate> {
        Estimate::of(&self.values(metric))
    }

    /// Mean and interval of a series at each sample, over the runs that have a value there.
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

/// One point of a sweep.
#[derive(Clone, Debug)]
pub struct SweepPoint {
    /// The parameter's value, as written.
    pub value: String,
    /// One per combination, in the scenario's order.
    pub policies: Vec<PolicyRuns>,
}

/// One value of one parameter of a sensitivity.
#[derive(Clone, Debug)]
pub struct SensitivityPoint {
    /// The parameter's place in the scenario.
    pub parameter: usize,
    /// Its value, as written.
    pub value: String,
    /// The two schemes that are compared, on each baseline.
    pub policies: Vec<PolicyRuns>,
}

/// A picture as the viewer of one combination's run saw it.
#[derive(Clone, PartialEq, Debug)]
pub struct Still {
    /// Whose.
    pub label: String,
    /// The picture as PNG.
    pub png: Vec<u8>,
    /// PSNR of its Y against the source, dB.
    pub psnr: f64,
}

/// An instant of a video.
#[derive(Clone, PartialEq, Debug)]
pub struct Moment {
    /// Seconds from its beginning.
    pub at: f64,
    /// The frame in display order.
    pub frame: usize,
    /// One for each combination.
    pub stills: Vec<Still>,
}

/// What the runs of a video looked like.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Pictures {
    /// Why pictures were not computed, if they were not.
    pub missing: Option<String>,
    /// Instants at which the combinations differ.
    pub moments: Vec<Moment>,
}

/// Everything that an experiment measured.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The scenario as run.
    pub scenario: Scenario,
    /// Whether it was shortened.
    pub quick: bool,
    /// One per combination.
    pub policies: Vec<PolicyRuns>,
    /// The first seed; those of the other runs follow.
    pub first_seed: u64,
    /// The sweep, if any.
    pub sweep: Vec<SweepPoint>,
    /// The sensitivity, if any.
    pub sensitivity: Vec<SensitivityPoint>,
    /// What the runs of a video looked like.
    pub pictures: Option<Pictures>,
    /// Hash over the trace hashes of all runs, in order.
    pub trace_hash: u64,
    /// Real time it took, seconds.
    pub seconds: f64,
}

impl Outcome {
    /// The runs of a combination, by its name.
    pub fn policy(&self, name: &str) -> Option<&PolicyRuns> {
        self.policies.iter().find(|runs| runs.contender.name == name)
    }

    /// The baselines on which anything ran, in the scenario's order.
    pub fn baselines(&self) -> Vec<&str> {
        let mut found: Vec<&str> = Vec::new();
        for baseline in self.policies.iter().filter_map(PolicyRuns::baseline) {
            if !found.contains(&baseline) {
                found.push(baseline);
            }
        }
        found
    }

    /// The runs of a scheme on a baseline; of one that runs on none, wherever it is asked for.
    pub fn run_of(&self, scheme: &str, baseline: Option<&str>) -> Option<&PolicyRuns> {
        run_of(&self.policies, scheme, baseline)
    }

    /// What a scheme is called, without its baseline; its name if nobody runs it.
    pub fn label_of(&self, scheme: &str) -> String {
        let known = self.scenario.schemes.iter().find(|known| known.name == scheme).map(|known| known.label.clone());
        let runs = || self.policies.iter().find(|runs| runs.scheme() == scheme);
        known.or_else(|| runs().map(|runs| runs.contender.label.clone())).unwrap_or_else(|| scheme.to_owned())
    }

    /// Runs per combination.
    pub fn seeds(&self) -> usize {
        self.policies.iter().map(|runs| runs.records.len()).max().unwrap_or(0)
    }
}

/// The runs of a scheme on a baseline; of one that runs on none, wherever it is asked for.
pub fn run_of<'a>(policies: &'a [PolicyRuns], scheme: &str, baseline: Option<&str>) -> Option<&'a PolicyRuns> {
    let of_scheme = || policies.iter().filter(|runs| runs.scheme() == scheme);
    let exact = of_scheme().find(|runs| runs.baseline() == baseline);
    exact.or_else(|| of_scheme().find(|runs| runs.baseline().is_none()))
}

/// A digest as text.
pub fn hexadecimal(digest: &[u8]) -> String {
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}
