//! Results of all runs.

use super::judge::{Delays, GRACE};
use super::schedule::Frame;
use super::trial::{Done, Trial};
use crate::calibrate::side_by_side::Tally;
use crate::table;
use anabranch_lab::scenario::Scenario;
use anabranch_lab::statistics::{Estimate, quantile};
use serde::Serialize;
use std::time::Duration;

/// Results of a run.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Entry {
    /// Name of the contender.
    pub name: String,
    /// Seed of the links' random streams.
    pub seed: u64,
    /// Latency set at the ends; none if they do not use it.
    pub latency_ms: Option<f64>,
    /// Share of packets that left the links more than 1 ms late.
    pub late_share: f64,
    /// Delays of frames.
    pub delays_ms: Delays,
}

impl Entry {
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

/// A contender at one latency.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Row {
    pub name: String,
    /// Description.
    pub label: String,
    pub latency_ms: f64,
    /// Number of runs.
    pub runs: usize,
    /// Frames on time: mean over runs.
    pub on_time: f64,
    /// Half width of the 95 % interval; none for a single run.
    pub plus_minus: Option<f64>,
    /// Minimum and maximum over runs.
    pub range: [usize; 2],
    /// Frames received, late or not: mean.
    pub came: f64,
    /// Delays of received frames: median and 99th percentile, milliseconds.
    pub delay_ms: [f64; 2],
}

/// All results.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Outcome {
    /// Name of the scenario.
    pub scenario: String,
    /// Frames of the stream.
    pub frames: usize,
    /// Mean rate of the stream, bits per second.
    pub bits_per_second: f64,
    /// Allowance beyond the latency, milliseconds.
    pub grace_ms: f64,
    /// Commit of the program.
    pub commit: String,
    /// Version of the running kernel.
    pub release: String,
    /// Runs repeated because the machine was too busy.
    pub repeated: usize,
    /// Runs that failed in all attempts.
    pub given_up: usize,
    /// By contender and latency.
    pub rows: Vec<Row>,
}

impl Outcome {
    /// From contenders with name, label and minimum path delay in milliseconds.
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
            commit: anabranch_lab::build::commit(),
            release: release.trim().to_owned(),
            repeated: tally.repeated,
            given_up: tally.given_up,
            rows,
        }
    }

    /// Human-readable table.
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
