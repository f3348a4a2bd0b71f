//! The scenarios that are embedded, and what a page must know of a scenario before it runs.

use crate::lanes::{Heading, Lane, lanes_of, slowest};
use anabranch_lab::library::SCENARIOS;
use anabranch_lab::scenario::{About, Document, Scenario};
use anabranch_settings::diagnostic::Diagnostic;
use serde::Serialize;

/// Name of a scenario from a page in error messages.
const NAME: &str = "scenario.toml";

#[derive(Serialize)]
struct Policy {
    name: String,
    label: String,
}

#[derive(Serialize)]
struct Entry {
    name: &'static str,
    title: String,
    description: String,
    policies: Vec<Policy>,
}

#[derive(Serialize)]
struct Description {
    title: String,
    description: String,
    /// In seconds.
    duration: f64,
    policies: Vec<Policy>,
    paths: Vec<Lane>,
    /// Of an ad-hoc network.
    mesh: Option<MeshDescription>,
}

#[derive(Serialize)]
struct MeshDescription {
    /// Names of what connections have in place of paths; none: there are no connections.
    lanes: Vec<String>,
}

/// Lanes, or one for connections without lanes.
fn mesh_description(scenario: &Scenario) -> Option<MeshDescription> {
    let lanes = match (&scenario.mesh, &scenario.moving) {
        (Some(_), _) => scenario.paths.iter().map(|path| path.name.clone()).collect(),
        (None, Some(moving)) => moving.download.iter().map(|_| "download".to_owned()).collect(),
        (None, None) => return None,
    };
    Some(MeshDescription { lanes })
}

/// The embedded scenarios that can be watched, as JSON: names, titles, descriptions, policies.
pub fn scenarios() -> String {
    let entries = SCENARIOS.iter().filter_map(|known| {
        let scenario = read(known.text).ok()?;
        let (policies, About { title, description, .. }) = (policies(&scenario), scenario.about);
        Some(Entry { name: known.name, title, description, policies })
    });
    json(&entries.collect::<Vec<_>>())
}

/// The text of an embedded scenario.
///
/// # Errors
/// There is none with this name.
pub fn scenario_text(name: &str) -> Result<&'static str, String> {
    let known = SCENARIOS.iter().find(|known| known.name == name);
    known.map(|known| known.text).ok_or_else(|| format!("there is no scenario '{name}'"))
}

/// Title, description, duration, policies and paths of a scenario, as JSON. A path is its slowest link forward; an ad-hoc network
/// has lanes.
///
/// # Errors
/// What is wrong with it, with line and column.
pub fn describe(text: &str) -> Result<String, String> {
    let scenario = read(text)?;
    let all: Vec<usize> = (0..scenario.paths.len()).collect();
    let mut paths = lanes_of(&scenario, &all, 1);
    let is_slowest = |lane: &Lane| lane.path.and_then(|path| scenario.paths.get(path)).map(slowest) == Some(lane.link);
    paths.retain(|lane| lane.direction == Heading::Forward && is_slowest(lane));
    let (policies, duration) = (policies(&scenario), scenario.duration.as_secs_f64());
    let mesh = mesh_description(&scenario);
    let About { title, description, .. } = scenario.about;
    Ok(json(&Description { title, description, duration, policies, paths, mesh }))
}

/// Parses a scenario, if it can be watched.
pub fn read(text: &str) -> Result<Scenario, String> {
    let document = Document::embedded(NAME, text, &[]);
    let scenario = document.scenario().map_err(|error: Diagnostic| error.to_string())?;
    match scenario.cannot_be_watched() {
        Some(reason) => Err(reason),
        None => Ok(scenario),
    }
}

fn policies(scenario: &Scenario) -> Vec<Policy> {
    let policy = |contender: &anabranch_settings::contender::Contender| Policy {
        name: contender.name.clone(),
        label: contender.label.clone(),
    };
    scenario.policies.iter().map(policy).collect()
}

/// JSON of what can always be written so.
pub fn json(value: &impl Serialize) -> String {
    serde_json::to_string(value).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_embedded_scenario_with_paths_can_be_watched() {
        let known = scenarios();
        for name in ["lm3_motivation", "maps", "recpr_bulk", "two_paths", "beside", "bottleneck"] {
            assert!(known.contains(&format!("\"name\":\"{name}\"")), "{name}");
            let described = describe(scenario_text(name).unwrap()).unwrap();
            assert!(described.contains("\"paths\":[{"), "{described}");
        }
        assert!(scenario_text("nothing").is_err());
    }

    #[test]
    fn what_cannot_be_watched_is_told_in_a_sentence() {
        let link = "[[paths.links]]\nname = \"l\"\nrate = \"1 Mbit/s\"\ndelay = \"1 ms\"\nqueue = \"9 packets\"\n";
        let many = |count: usize| -> String {
            let paths: String = (0..count).map(|path| format!("[[paths]]\nname = \"p{path}\"\n{link}")).collect();
            format!(
                "name = \"many\"\nduration = \"1 s\"\nconnection.receive_buffer = \"1 MB\"\n{paths}[[policies]]\nname = \"anabranch\"\n"
            )
        };
        assert!(describe(&many(32)).is_ok());
        let error = describe(&many(33)).unwrap_err();
        assert_eq!(error, "33 paths are too many to be watched: at most 32");
        let error = describe(&many(100)).unwrap_err();
        assert!(error.contains("from 1 to 64"), "{error}");
        let error = describe("name = \"n\"\nduration = 5").unwrap_err();
        assert!(error.contains("scenario.toml:2:12"), "{error}");
        let many = scenario_text("mesh_quality").unwrap().replace("nodes = 40", "nodes = 201");
        assert_eq!(describe(&many).unwrap_err(), "a network of more than 200 nodes cannot be watched");
    }
}
