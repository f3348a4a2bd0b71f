//! The requirement table in `docs/ospf-mdr.md` names tests that exist.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// All Rust files below a folder.
fn sources(folder: &Path, all: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, all);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            all.push(path);
        }
    }
}

#[test]
fn every_test_and_file_named_in_the_table_exists() {
    let own = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut files = Vec::new();
    for folder in ["src", "tests", "../wire/src/ospf", "../wire/tests"] {
        let folder = own.join(folder);
        if folder.exists() {
            sources(&folder, &mut files);
        }
    }
    files.push(own.join("../wire/src/ospf.rs"));
    let mut tests = BTreeSet::new();
    for file in &files {
        let text = std::fs::read_to_string(file).unwrap();
        let lines: Vec<&str> = text.lines().map(str::trim).collect();
        for (number, line) in lines.iter().enumerate() {
            let is_test = lines[number.saturating_sub(3)..number].contains(&"#[test]");
            if let Some(name) = line.strip_prefix("fn ").and_then(|rest| rest.split('(').next()).filter(|_| is_test) {
                tests.insert(name.to_owned());
            }
        }
    }
    let document = std::fs::read_to_string(own.join("../../docs/ospf-mdr.md")).unwrap();
    let mut rows = 0;
    for line in document.lines().filter(|line| line.starts_with("| ") && !line.starts_with("| Requirement")) {
        rows += 1;
        let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
        let [_, obeyed, shown, _] = cells[..] else { panic!("not four cells: {line}") };
        let ticked = |cell: &str| cell.split('`').skip(1).step_by(2).map(str::to_owned).collect::<Vec<_>>();
        for file in ticked(obeyed) {
            let there = [own.join("src").join(&file), own.join("../wire/src").join(&file)];
            assert!(there.iter().any(|path| path.exists()), "no file {file}: {line}");
        }
        for test in ticked(shown) {
            assert!(tests.contains(&test), "no test {test}: {line}");
        }
    }
    assert!(rows > 60, "{rows} rows");
}
