//! `docs/rfc9293.md` names every test; that the tests it names exist is checked with the other pages, in
//! `tests/multipath/table.rs`.

use std::path::Path;

#[test]
fn every_test_here_is_named_on_the_page() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let page = std::fs::read_to_string(root.join("../../docs/rfc9293.md")).unwrap();
    let mut missing = Vec::new();
    for entry in std::fs::read_dir(root.join("tests/tcp")).unwrap() {
        let file = entry.unwrap().path();
        let module = file.file_stem().unwrap().to_str().unwrap();
        if ["main", "table", "transcript"].contains(&module) {
            continue;
        }
        let source = std::fs::read_to_string(&file).unwrap();
        for test in source.split("#[test]\nfn ").skip(1) {
            let name = format!("{module}::{}", test.split('(').next().unwrap());
            if !page.contains(&format!("`{name}`")) {
                missing.push(name);
            }
        }
    }
    assert!(missing.is_empty(), "{missing:#?}");
}
