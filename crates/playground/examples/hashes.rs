//! Prints the trace hashes of some runs as the command makes them, as JSON, for the tests of the page.

use anabranch_lab::experiment::path_sets;
use anabranch_lab::library;
use anabranch_lab::simulation::{Extras, as_it_meets, run};
use std::error::Error;
use std::path::Path;

/// Scenario, scheme and seed, and a duration other than the scenario's.
const RUNS: [(&str, &str, u64, Option<&str>); 10] = [
    ("two_paths", "plain", 1, None),
    ("lm3_motivation", "case_2_lm3", 2, None),
    ("maps", "maps", 3, None),
    ("recpr_bulk", "recpr", 4, None),
    ("wifi-lte", "linux", 5, None),
    ("manet_homogeneous", "MMPxM", 6, Some("30 s")),
    ("manet_moving", "min_cost", 7, Some("180 s")),
    ("manet_forecast", "viterbi", 8, Some("120 s")),
    ("manet_cuts", "viterbi", 9, Some("300 s")),
    ("mesh_download", "etx", 10, Some("150 s")),
];

fn main() -> Result<(), Box<dyn Error>> {
    let mut entries = Vec::new();
    for (name, policy, seed, duration) in RUNS {
        let set: Vec<String> = duration.iter().map(|duration| format!("duration=\"{duration}\"")).collect();
        let scenario = library::open(Path::new(name), &set).and_then(|document| document.scenario());
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
