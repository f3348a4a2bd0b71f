//! `docs/rfc9293.md` names tests; they must be there.

use std::path::Path;

#[test]
fn every_test_named_in_the_tables_exists() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let page = std::fs::read_to_string(root.join("../../docs/rfc9293.md")).unwrap();
    let mut named = 0;
    for (at, _) in page.match_indices("::") {
        let before = page[..at].rsplit('`').next().unwrap();
        let after = page[at + 2..].split('`').next().unwrap();
        let file = root.join(format!("tests/tcp/{before}.rs"));
        if !before.bytes().all(|byte| byte.is_ascii_lowercase()) || before.is_empty() || !file.exists() {
            continue; // a path in the code
        }
        let source = std::fs::read_to_string(file).unwrap();
        assert!(source.contains(&format!("fn {after}()")), "no test {before}::{after}");
        named += 1;
    }
    assert!(named > 100, "{named}");
}

#[test]
fn every_test_here_is_named_on_the_page() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let page = std::fs::read_to_string(root.join("../../docs/rfc9293.md")).unwrap();
    let mut missing = Vec::new();
    for module in [
        "acknowledging",
        "closing",
        "congestion",
        "ecn",
        "limits",
        "loss",
        "opening",
        "options",
        "resets",
        "status",
        "windows",
    ] {
        let source = std::fs::read_to_string(root.join(format!("tests/tcp/{module}.rs"))).unwrap();
        for test in source.split("#[test]\nfn ").skip(1) {
            let name = format!("{module}::{}", test.split('(').next().unwrap());
            if !page.contains(&format!("`{name}`")) {
                missing.push(name);
            }
        }
    }
    assert!(missing.is_empty(), "{missing:#?}");
}
