//! The literal peer shares only the wire formats with the engine.

use std::path::Path;

#[test]
fn the_literal_peer_names_neither_the_engine_nor_its_policies() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/literal");
    let mut seen = 0;
    for entry in std::fs::read_dir(folder).expect("the folder is there") {
        let path = entry.expect("the folder can be read").path();
        let text = std::fs::read_to_string(&path).expect("the source can be read");
        seen += 1;
        for word in ["anabranch_mptcp", "anabranch_policy", "anabranch_sim", "crate::history", "super::super"] {
            assert!(!text.contains(word), "{}: {word}", path.display());
        }
        assert!(text.lines().count() < 400, "{} is long", path.display());
    }
    assert!(seen >= 8, "only {seen} files were read");
}
