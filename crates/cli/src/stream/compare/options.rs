//! Options of `anabranch stream compare`.

use crate::stream::options::latency;
use anabranch_policy::rate::Rate;
use anabranch_policy::time::Duration;
use anabranch_settings::quantity;
use clap::Args;
use std::path::PathBuf;

/// Frames of a full and of a quick run.
const FRAMES: [u32; 2] = [600, 150];
/// Seeds of a full and of a quick run.
const SEEDS: [u32; 2] = [20, 2];
/// Default latencies, milliseconds.
const LATENCIES: [u64; 3] = [120, 300, 500];

/// How to compare.
#[derive(Clone, Debug, Args)]
pub struct CompareOptions {
    /// The paths: a scenario's file, or the name of one that comes with the program (see `list`)
    #[arg(default_value = "stream_two_paths")]
    pub scenario: PathBuf,
    /// Who takes part, e.g. mptcp, srt_A, rist, ours, recpr (repeatable), or `schemes` for all combinations of papers, such as
    /// recpr, sme, pr_mptcp and mo_pr [default: all whose programs are there, without schemes]
    #[arg(long, value_name = "NAME")]
    pub who: Vec<String>,
    /// Policies of our engine; reliability defaults to both_ends
    #[arg(long, value_name = "POLICY", default_value = crate::stream::policy::DEFAULT)]
    pub policy: String,
    /// Time from sending a frame to showing it, beyond the paths' least delay (repeatable) [default: 120 ms, 300 ms
    /// and 500 ms]
    #[arg(long, value_name = "TIME", value_parser = latency)]
    latency: Vec<Duration>,
    /// Mean rate of the stream
    #[arg(long, value_name = "RATE", value_parser = quantity::parse::<Rate>, default_value = "500 kbit/s")]
    pub rate: Rate,
    /// Frames of the stream, 30 a second [default: 600, with --quick 150]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    frames: Option<u32>,
    /// Runs of each, with seeds 1 to N [default: 20, with --quick 2]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    seeds: Option<u32>,
    /// Change a value of the scenario: a dotted path, e.g. --set paths.A.links.link.down='["5..10 s"]' (repeatable)
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub set: Vec<String>,
    /// Directory for results
    #[arg(long, value_name = "DIR", default_value = "results")]
    pub out: PathBuf,
    /// Few and short runs: under a minute
    #[arg(long)]
    pub quick: bool,
    /// Print only JSON results on standard output
    #[arg(long)]
    pub json: bool,
}

impl CompareOptions {
    pub fn latencies(&self) -> Vec<std::time::Duration> {
        let asked = self.latency.iter().map(|latency| std::time::Duration::from_nanos(latency.as_nanos()));
        let asked: Vec<_> = asked.collect();
        if asked.is_empty() { LATENCIES.map(std::time::Duration::from_millis).to_vec() } else { asked }
    }

    pub fn frames(&self) -> u32 {
        self.frames.unwrap_or(FRAMES[usize::from(self.quick)])
    }

    /// Runs per contender and latency.
    pub fn seeds(&self) -> u32 {
        self.seeds.unwrap_or(SEEDS[usize::from(self.quick)])
    }
}
