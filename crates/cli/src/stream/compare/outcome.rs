//! Results of all runs.

use super::judge::{Delays, GRACE};
use super::schedule::Frame;
use super::trial::{Done, Trial};
use crate::calibrate::side_by_side::Tally;
use crate::scenario::Scenario;
use crate::statistics::{Estimate, quantile};
use crate::table;
use serde::Serialize;
use std::time::Duration;

/// A run.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Entry {
    /// Who.
    pub name: String,
    /// The luck of the links.
    pub seed: u64,
    /// What the ends were told; none if they need not know.
    pub latency_ms: Option<f64>,
    /// Share of packets that left the links more than a millisecond late.
    pub late_share: f64,
    /// When frames came.
    pub delays_ms: Delays,
}

impl Entry {
    /// Of a run that was done.
    pub fn of(trial: &Trial<'_>, done: &Done) -> Self {
        Self {
            name: trial.name.clone(),
            seed: trial.seed,
            latency_ms: trial.latency.map(|latency| latency.as_secs_f64() * 1e3),
            late_share: done.report.lateness.late_share(),
            delays_ms: done.delays.clone(),
        }
    }
}

/// Somebody at a latency.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Row {
    /// Who.
    pub name: String,
    /// In words.
    pub label: String,
    /// The latency.
    pub latency_ms: f64,
    /// Runs.
    pub runs: usize,
    /// Frames that were on time: the mean over runs.
    pub on_time: f64,
    /// Half of the 95 % interval; none of a single run.
    pub plus_minus: Option<f64>,
    /// The least and the most of a run.
    pub range: [usize; 2],
    /// Frames that came, late or not: the mean.
    pub came: f64,
    /// Of the delays of what came: median and 99 %, milliseconds.
    pub delay_ms: [f64; 2],
}

/// Everything.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Outcome {
    /// The network.
    pub scenario: String,
    /// Frames of the stream.
    pub frames: usize,
    /// Its mean rate, bits per second.
    pub bits_per_second: f64,
    /// What is granted beyond the latency, milliseconds.
    pub grace_ms: f64,
    /// Commit that the program was built from.
    pub commit: String,
    /// The running kernel.
    pub release: String,
    /// Runs that were repeated because the machine was too busy.
    pub repeated: usize,
    /// Runs that could not be measured.
    pub given_up: usize,
    /// Who and at which latency.
    pub rows: Vec<Row>,
}

impl Outcome {
    /// Of contenders, each with its name, its label and the least delay of its paths in milliseconds.
    pub fn new<'a>(
        contenders: impl Iterator<Item = (&'a str, &'a str, f64)>,
        entries: &[Entry],
        latencies: &[Duration],
        frames: &[Frame],
        scenario: &Scenario,
        tally: Tally,
    ) -> Self {
        let mut rows = Vec::new();
        for (name, label, least) in contenders {
            for latency in latencies.iter().map(|latency| latency.as_secs_f64() * 1e3) {
                let fits = |entry: &&Entry| entry.name == name && entry.latency_ms.is_none_or(|own| own == latency);
                let delays: Vec<&Delays> = entries.iter().filter(fits).map(|entry| &entry.delays_ms).collect();
                rows.extend(row((name, label), least, latency, &delays));
            }
        }
        let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
        let bytes: f64 = frames.iter().map(|frame| f64::from(frame.length)).sum();
        let seconds = frames.len() as f64 / f64::from(super::schedule::FRAMES_A_SECOND);
        Self {
            scenario: scenario.name.clone(),
            frames: frames.len(),
            bits_per_second: bytes * 8.0 / seconds,
            grace_ms: GRACE.as_secs_f64() * 1e3,
            commit: crate::build::commit(),
            release: release.trim().to_owned(),
            repeated: tally.repeated,
            given_up: tally.given_up,
            rows,
        }
    }

    /// For people.
    pub fn table(&self) -> String {
        let head = ["", "latency", "runs", "on time", "+-", "least", "most", "came", "delay", "99 %"];
        let row = |row: &Row| {
            vec![
                row.label.clone(),
                format!("{:.0} ms", row.latency_ms),
                row.runs.to_string(),
                format!("{:.1}", row.on_time),
                row.plus_minus.map_or("-".to_owned(), |width| format!("{width:.1}")),
                row.range[0].to_string(),
                row.range[1].to_string(),
                format!("{:.1}", row.came),
                format!("{:.0} ms", row.delay_ms[0]),
                format!("{:.0} ms", row.delay_ms[1]),
            ]
        };
        let rows: Vec<Vec<String>> = self.rows.iter().map(row).collect();
        let repeated = match (self.repeated, self.given_up) {
            (0, 0) => String::new(),
            (repeated, given_up) => {
                format!("; {repeated} runs repeated and {given_up} abandoned, as the machine was busy")
            }
        };
        format!(
            "{}: frames on time of {}, {:.0} kbit/s{repeated}\n{}",
            self.scenario,
            self.frames,
            self.bits_per_second / 1e3,
            table::render(&head, &rows)
        )
    }
}

fn row((name, label): (&str, &str), least: f64, latency: f64, delays: &[&Delays]) -> Option<Row> {
    let on_time: Vec<usize> = delays.iter().map(|delays| delays.on_time(least, latency)).collect();
    let estimate = Estimate::of(&on_time.iter().map(|frames| *frames as f64).collect::<Vec<f64>>())?;
    let came: Vec<f64> = delays.iter().map(|delays| delays.came() as f64).collect();
    let all: Vec<f64> = delays.iter().flat_map(|delays| delays.0.iter().flatten().copied()).collect();
    Some(Row {
        name: name.to_owned(),
        label: label.to_owned(),
        latency_ms: latency,
        runs: on_time.len(),
        on_time: estimate.mean,
        plus_minus: Some(estimate.half_width).filter(|width| width.is_finite()),
        range: [on_time.iter().min(), on_time.iter().max()].map(|frames| frames.copied().unwrap_or(0)),
        came: Estimate::of(&came)?.mean,
        delay_ms: [0.5, 0.99].map(|share| if all.is_empty() { 0.0 } else { quantile(&all, share) }),
    })
}
