//! What ARCHITECTURE.md says of files, as a test: no circles of files, nothing larger than a reader can hold, and the field's words.
//!
//! `ANABRANCH_HOUSE=mptcp,wire cargo test -p anabranch-structure` looks at these crates only.

mod calls;
mod graph;
mod imports;
mod public;
mod sizes;
mod source;
mod words;

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

/// Crates whose methods call each other in one direction between files.
const PROTOCOLS: [&str; 2] = ["mptcp", "routing"];
/// Libraries that commands and other programs are built on: whatever they export must be used.
const PRODUCTS: [&str; 13] = [
    "mptcp", "policy", "routing", "capture", "stack", "host", "attach", "datagram", "proxy", "perf", "router",
    "emulate", "system",
];
/// For programs with futures of their own, which no crate here has.
const OFFERED: [&str; 3] = ["poll_read_record", "poll_write_message", "poll_path_change"];

/// Crates whose identifiers are the field's terms too.
const TERMS: [&str; 3] = ["mptcp", "policy", "routing"];

/// One test, since most of its time is for parsing the sources.
#[test]
fn files_functions_and_structs_are_short_calls_and_imports_go_in_one_direction_exports_are_used_and_words_are_clear() {
    let all = crates();
    let words = words(&all);
    let mut complaints = Vec::new();
    for (name, folder) in &all {
        let source = Source::read(folder);
        complaints.extend(circles_of(name, &imports::imports(&source)));
        if PROTOCOLS.contains(&name.as_str()) {
            complaints.extend(circles_of(name, &calls::calls(&source)));
        }
        complaints.extend(too_long(name, &source));
        complaints.extend(too_wide(name, &source));
        complaints.extend(words::unclear(name, folder, &source, TERMS.contains(&name.as_str())));
        if PRODUCTS.contains(&name.as_str()) {
            complaints.extend(unused_exports(name, &source, &words));
        }
    }
    fail_if_any(complaints);
}

fn too_long(name: &str, source: &Source) -> Vec<String> {
    let mut complaints = Vec::new();
    for (file, lines) in source.lines.iter().filter(|(_, lines)| **lines > MOST_LINES_OF_A_FILE) {
        complaints.push(format!("{name} {file}: {lines} lines"));
    }
    for function in sizes::functions(source) {
        if function.lines > MOST_LINES_OF_A_FUNCTION {
            complaints.push(format!("{name} {}: {} lines", function.name, function.lines));
        }
        if function.complexity > MOST_BRANCHES {
            complaints.push(format!("{name} {}: cyclomatic complexity {}", function.name, function.complexity));
        }
    }
    complaints
}

fn too_wide(name: &str, source: &Source) -> Vec<String> {
    let structs = sizes::structs(source).into_iter();
    let wide = structs.filter(|fields| fields.all > MOST_FIELDS || fields.bools > MOST_BOOLS);
    wide.map(|it| format!("{name} {}: {} fields, {} of them bool", it.name, it.all, it.bools)).collect()
}

/// The words of each part of each crate, by crate and part.
type Words = Vec<(String, &'static str, BTreeSet<String>)>;

fn words(crates: &[(String, PathBuf)]) -> Words {
    let mut words = Vec::new();
    for (name, folder) in crates {
        let parts = ["src", "tests", "benches", "examples"];
        words.extend(parts.map(|part| (name.clone(), part, public::words(&folder.join(part)))));
    }
    let fuzz = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz");
    words.push(("fuzz".to_owned(), "fuzz_targets", public::words(&fuzz.join("fuzz_targets"))));
    words
}

fn unused_exports(name: &str, source: &Source, words: &Words) -> Vec<String> {
    let exported = public::exported(source);
    let signatures = public::named_in_signatures(source);
    let is_used = |word: &str| {
        let outside = words.iter().filter(|(of, part, _)| of != name || *part != "src");
        outside.into_iter().any(|(_, _, words)| words.contains(word))
    };
    eprintln!("{name}: {} public items and methods", exported.len());
    let unused = exported.iter().filter(|it| {
        let named = it.of.is_none() && signatures.contains(&it.name);
        !named && !OFFERED.contains(&it.name.as_str()) && !is_used(&it.name)
    });
    unused
        .map(|it| {
            let of = it.of.as_ref().map(|of| format!("{of}::")).unwrap_or_default();
            format!("{name} {}::{of}{}: make it private", it.module, it.name)
        })
        .collect()
}
