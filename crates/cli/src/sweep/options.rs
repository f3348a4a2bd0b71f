//! Options of `sweep`.

use clap::Args;
use std::path::PathBuf;

/// How to sweep.
#[derive(Clone, Debug, Args)]
pub struct SweepOptions {
    /// Policies to compare: names from the table, or as --policy of `compare` (repeatable) [default: all]
    #[arg(long = "policy", value_name = "POLICY")]
    pub policies: Vec<String>,
    /// Number of points; a power of two covers the design evenly [default: 1024, with --quick 32]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=65_536))]
    pub points: Option<u32>,
    /// First point
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub from: u32,
    /// Seed of the design: 1 was used to develop the default combination, others are unseen
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u32,
    /// Use the second design: competing connections, paths with outages, walks and satellites; without messages
    #[arg(long, conflicts_with_all = ["rivals"])]
    pub competition: bool,
    /// Also run this policy on every subset of the paths, to find the best in hindsight (repeatable)
    /// [default: anabranch]
    #[arg(long, value_name = "POLICY")]
    pub subsets: Vec<String>,
    /// Compare with TCP with this congestion control, or `own` for each policy's own [default: cubic]
    #[arg(long, value_name = "NAME")]
    pub reference: Option<String>,
    /// Omit the messages at half load
    #[arg(long)]
    pub no_messages: bool,
    /// Show the worst points of each policy
    #[arg(long, value_name = "N")]
    pub worst: Option<usize>,
    /// Only print the network of a point as a scenario for `run` (repeatable)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(..65_536))]
    pub point: Vec<u32>,
    /// Compare with the kernel's MPTCP in real time, Linux receiving, on 30 points with constant links; needs root.
    /// --policy names our policies [default: anabranch,congestion=bounded_cubic]
    #[arg(long, conflicts_with_all = ["subsets", "reference", "no_messages", "worst", "point", "jobs"])]
    pub rivals: bool,
    /// Parallel runs [default: the number of cores]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub jobs: Option<u16>,
    #[command(flatten)]
    pub results: ResultOptions,
    /// Few points and only schedulers with LIA, under a minute
    #[arg(long)]
    pub quick: bool,
}

/// Where the results go.
#[derive(Clone, Debug, Args)]
pub struct ResultOptions {
    /// Accept existing results of another build
    #[arg(long)]
    pub any_program: bool,
    /// Directory for results; existing results are not computed again
    #[arg(long, value_name = "DIR", default_value = "results")]
    pub out: PathBuf,
    /// Print only JSON scores on standard output
    #[arg(long)]
    pub json: bool,
}
