//! Prints the trace hashes of five runs as the command makes them, as JSON, for the tests of the page.

use anabranch_lab::experiment::path_sets;
use anabranch_lab::library;
use anabranch_lab::simulation::{Extras, as_it_meets, run};
use std::error::Error;
use std::path::Path;

/// Scenario, scheme and seed.
const RUNS: [(&str, &str, u64); 5] = [
    ("two_paths", "plain", 1),
    ("lm3_motivation", "case_2_lm3", 2),
    ("maps", "maps", 3),
    ("recpr_bulk", "recpr", 4),
    ("wifi-lte", "linux", 5),
];

fn main() -> Result<(), Box<dyn Error>> {
    let mut entries = Vec::new();
    for (name, policy, seed) in RUNS {
        let scenario = library::open(Path::new(name), &[]).and_then(|document| document.scenario());
        let scenario = scenario.map_err(|error| error.to_string())?;
        let contender = scenario.policies.iter().find(|one| one.scheme == policy);
        let contender = contender.ok_or_else(|| format!("{name} has no policy {policy}"))?;
        let paths = path_sets(&scenario, contender).into_iter().next().unwrap_or_default();
        let record = run(&as_it_meets(&scenario, contender), contender, &paths, seed, &Extras::default());
        let hash = format!("{:016x}", record.map_err(|error| error.to_string())?.trace_hash);
        let duration = scenario.duration.as_secs_f64();
        entries.push(serde_json::json!({
            "scenario": name, "policy": contender.name, "seed": seed, "duration": duration, "hash": hash,
        }));
    }
    #[expect(clippy::print_stdout, reason = "its purpose")]
    {
        println!("{}", serde_json::to_string_pretty(&entries)?);
    }
    Ok(())
}
