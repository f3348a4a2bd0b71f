//! What ARCHITECTURE.md says of files, as a test: no circles of files, and nothing larger than a reader can hold.
//!
//! `ANABRANCH_HOUSE=mptcp,wire cargo test -p anabranch-structure` looks at these crates only.

mod calls;
mod graph;
mod imports;
mod public;
mod sizes;
mod source;

use source::Source;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

const MOST_LINES_OF_A_FILE: usize = 600;
const MOST_LINES_OF_A_FUNCTION: usize = 80;
const MOST_BRANCHES: usize = 20;
const MOST_FIELDS: usize = 25;
const MOST_BOOLS: usize = 5;

/// Every crate of the workspace but this one, or those that were asked for.
fn crates() -> Vec<(String, PathBuf)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("crates/ is above");
    let asked = std::env::var("ANABRANCH_HOUSE").ok();
    let mut found: Vec<(String, PathBuf)> = std::fs::read_dir(folder)
        .expect("crates/ can be listed")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.join("Cargo.toml").exists())
        .map(|path| (path.file_name().expect("a name").to_string_lossy().into_owned(), path))
        .filter(|(name, _)| name != "structure")
        .filter(|(name, _)| asked.as_ref().is_none_or(|asked| asked.split(',').any(|one| one == name)))
        .collect();
    found.sort();
    found
}

fn fail_if_any(complaints: Vec<String>) {
    assert!(complaints.is_empty(), "{} complaints:\n{}", complaints.len(), complaints.join("\n"));
}

fn circles_of(name: &str, graph: &graph::Graph) -> Vec<String> {
    graph
        .circles()
        .iter()
        .map(|circle| format!("{name}: {} files in a circle\n{}", circle.len(), graph.explain(circle)))
        .collect()
}

#[test]
fn files_import_each_other_in_one_direction() {
    fail_if_any(
        crates().iter().flat_map(|(name, folder)| circles_of(name, &imports::imports(&Source::read(folder)))).collect(),
    );
}

#[test]
fn methods_call_each_other_in_one_direction_between_files() {
    let protocols = crates().into_iter().filter(|(name, _)| ["mptcp", "routing"].contains(&name.as_str()));
    fail_if_any(
        protocols.flat_map(|(name, folder)| circles_of(&name, &calls::calls(&Source::read(&folder)))).collect(),
    );
}

#[test]
fn files_and_functions_are_short() {
    let mut complaints = Vec::new();
    for (name, folder) in crates() {
        let source = Source::read(&folder);
        for (file, lines) in source.lines.iter().filter(|(_, lines)| **lines > MOST_LINES_OF_A_FILE) {
            complaints.push(format!("{name} {file}: {lines} lines"));
        }
        for function in sizes::functions(&source) {
            if function.lines > MOST_LINES_OF_A_FUNCTION {
                complaints.push(format!("{name} {}: {} lines", function.name, function.lines));
            }
            if function.complexity > MOST_BRANCHES {
                complaints.push(format!("{name} {}: cyclomatic complexity {}", function.name, function.complexity));
            }
        }
    }
    fail_if_any(complaints);
}

#[test]
fn structs_are_small() {
    let mut complaints = Vec::new();
    for (name, folder) in
        crates().iter().filter(|(name, _)| !["cli", "sim", "media", "campaign"].contains(&name.as_str()))
    {
        for fields in sizes::structs(&Source::read(folder)) {
            if fields.all > MOST_FIELDS || fields.bools > MOST_BOOLS {
                complaints
                    .push(format!("{name} {}: {} fields, {} of them bool", fields.name, fields.all, fields.bools));
            }
        }
    }
    fail_if_any(complaints);
}

/// Libraries that commands and other programs are built on: whatever they export must be used.
const PRODUCTS: [&str; 10] =
    ["mptcp", "stack", "host", "attach", "datagram", "proxy", "perf", "router", "emulate", "system"];
/// For programs with futures of their own, which nobody here writes.
const OFFERED: [&str; 3] = ["poll_read_record", "poll_write_message", "poll_path_change"];

#[test]
fn what_a_product_exports_is_used_outside() {
    let all = crates();
    let parts = ["src", "tests", "benches", "examples"];
    let mut words: Vec<(&str, &str, BTreeSet<String>)> = all
        .iter()
        .flat_map(|(name, folder)| {
            parts.iter().map(move |part| (name.as_str(), *part, public::words(&folder.join(part))))
        })
        .collect();
    let fuzz = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz");
    words.push(("fuzz", "fuzz_targets", public::words(&fuzz.join("fuzz_targets"))));
    let mut complaints = Vec::new();
    for (name, folder) in all.iter().filter(|(name, _)| PRODUCTS.contains(&name.as_str())) {
        let source = Source::read(folder);
        let exported = public::exported(&source);
        let signatures = public::named_in_signatures(&source);
        let is_used = |word: &str| {
            let outside = words.iter().filter(|(of, part, _)| of != name || *part != "src");
            outside.into_iter().any(|(_, _, words)| words.contains(word))
        };
        eprintln!("{name}: {} public items and methods", exported.len());
        let unused = exported.iter().filter(|it| {
            let named = it.of.is_none() && signatures.contains(&it.name);
            !named && !OFFERED.contains(&it.name.as_str()) && !is_used(&it.name)
        });
        complaints.extend(unused.map(|it| {
            let of = it.of.as_ref().map(|of| format!("{of}::")).unwrap_or_default();
            format!("{name} {}::{of}{}: make it private", it.module, it.name)
        }));
    }
    fail_if_any(complaints);
}
