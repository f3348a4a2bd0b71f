//! Options of the commands that run scenarios in the lab.

use anabranch_lab::experiment::{Plan, Seeds};
use anabranch_lab::simulation::Extras;
use anabranch_settings::diagnostic::Diagnostic;
use clap::Args;
use std::path::PathBuf;

/// How to do it.
#[derive(Clone, Debug, Args)]
pub struct Options {
    /// A policy of the scenario, a baseline, `anabranch`, `plain_tcp`, a member of any family, any of them at a baseline
    /// (lm3@linux), or a combination such as linux,congestion=olia,path_manager.PARAMETER=VALUE,connection.min_rto=1s
    /// (repeatable)
    #[arg(long = "policy", value_name = "POLICY")]
    pub policies: Vec<String>,
    /// Run the policies under this baseline, built-in or a file, instead of the scenario's (repeatable)
    #[arg(long = "baseline", value_name = "BASELINE")]
    pub baselines: Vec<String>,
    /// Change a value of the scenario: a dotted path, list elements by number or name, e.g.
    /// --set paths.B.links.bottleneck.loss="2 %" (repeatable)
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub set: Vec<String>,
    /// Runs per policy: their number, or the first and the last seed, as in 11..20 [default: the scenario's number]
    #[arg(long, value_name = "N|A..B", allow_hyphen_values = true)]
    pub seeds: Option<Seeds>,
    /// The first seed, where --seeds says only how many [default: 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1_000_000_000))]
    pub first_seed: Option<u64>,
    /// Directory for results
    #[arg(long, value_name = "DIR", default_value = "results")]
    pub out: PathBuf,
    /// Also write a capture of the first seed of each policy (pcapng, for Wireshark)
    #[arg(long)]
    pub pcap: bool,
    /// Encode every segment to bytes and decode it on each hop; results do not change
    #[arg(long)]
    pub wire: bool,
    /// Fewer seeds, and fewer points in sweeps
    #[arg(long)]
    pub quick: bool,
    /// Print only a JSON summary on standard output
    #[arg(long)]
    pub json: bool,
}

/// The plan of an experiment with these options.
///
/// # Errors
/// Two options say what the first seed is.
pub fn plan(options: &Options) -> Result<Plan, Diagnostic> {
    let named = options.seeds.and_then(|seeds| seeds.first);
    if let (Some(first), Some(also)) = (named, options.first_seed) {
        let what = format!("--first-seed {also}: --seeds names the first seed too, {first}; say it once");
        return Err(Diagnostic::plain(what));
    }
    Ok(Plan {
        policies: options.policies.clone(),
        baselines: options.baselines.clone(),
        first_policy_only: false,
        seeds: options.seeds.map(|seeds| seeds.count),
        first_seed: named.or(options.first_seed),
        quick: options.quick,
        sweep: false,
        extras: Extras {
            wire: options.wire,
            pcap: options.pcap.then(|| options.out.clone()),
            curves: true,
            ..Extras::default()
        },
    })
}
