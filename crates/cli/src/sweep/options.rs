//! Options of `sweep`.

use clap::Args;
use std::path::PathBuf;

/// How to sweep.
#[derive(Clone, Debug, Args)]
pub struct SweepOptions {
    /// Who takes part: a name from the table, or whatever --policy of `compare` takes (repeatable) [default: all]
    #[arg(long = "policy", value_name = "POLICY")]
    pub policies: Vec<String>,
    /// Points of the design; a power of two fills it evenly [default: 1024, with --quick 32]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=65_536))]
    pub points: Option<u32>,
    /// The first point; those before it are left out
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub from: u32,
    /// Seed of the design: 1 is the one that the default combination is developed on, any other has unseen points
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u32,
    /// The second design: connections that compete, paths that pause, walks and satellites; without messages
    #[arg(long, conflicts_with_all = ["rivals"])]
    pub competition: bool,
    /// Also try this policy on every subset of the paths, to know the best one in hindsight (repeatable)
    /// [default: anabranch]
    #[arg(long, value_name = "POLICY")]
    pub subsets: Vec<String>,
    /// Compare with TCP with this congestion control, or `own` for each policy's own [default: cubic]
    #[arg(long, value_name = "NAME")]
    pub reference: Option<String>,
    /// Leave out the messages at half load
    #[arg(long)]
    pub no_messages: bool,
    /// Show the worst points of each policy
    #[arg(long, value_name = "N")]
    pub worst: Option<usize>,
    /// Print the network of a point as a scenario for `run`, and nothing else (repeatable)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(..65_536))]
    pub point: Vec<u32>,
    /// Run in real time against the kernel's MPTCP, Linux receiving, on 30 points with constant links; needs root. --policy
    /// names the policies on our side [default: anabranch]
    #[arg(long, conflicts_with_all = ["subsets", "reference", "no_messages", "worst", "point", "jobs"])]
    pub rivals: bool,
    /// Runs at the same time [default: the number of cores]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub jobs: Option<u16>,
    #[command(flatten)]
    pub results: ResultOptions,
    /// Few points, and schedulers with LIA only: under a minute
    #[arg(long)]
    pub quick: bool,
}

/// Where the results go.
#[derive(Clone, Debug, Args)]
pub struct ResultOptions {
    /// Accept results that another build of the program left in the directory
    #[arg(long)]
    pub any_program: bool,
    /// Directory for results; runs whose results are there are not repeated
    #[arg(long, value_name = "DIR", default_value = "results")]
    pub out: PathBuf,
    /// Print the scores as JSON on standard output, and nothing else there
    #[arg(long)]
    pub json: bool,
}
