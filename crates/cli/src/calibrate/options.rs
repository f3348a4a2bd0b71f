//! Options of `calibrate`.

use clap::Args;
use std::path::PathBuf;

/// How to calibrate.
#[derive(Clone, Debug, Args)]
pub struct CalibrateOptions {
    /// Only cases whose names have this prefix, e.g. two or one_07 (repeatable)
    #[arg(long = "case", value_name = "NAME")]
    pub cases: Vec<String>,
    /// Runs of each case, with seeds 1 to N [default: 3]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100))]
    pub seeds: Option<u32>,
    /// Directory for results
    #[arg(long, value_name = "DIR", default_value = "results")]
    pub out: PathBuf,
    /// A few shorter cases with one seed, under a minute
    #[arg(long)]
    pub quick: bool,
    /// Print only JSON results on standard output
    #[arg(long)]
    pub json: bool,
}
