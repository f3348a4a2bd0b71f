//! Golden tables: text files that a run must reproduce exactly.

use std::path::Path;

/// Compares a table with the file of this name; with `ANABRANCH_BLESS` set it rewrites the file.
pub fn check(name: &str, table: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name);
    if std::env::var_os("ANABRANCH_BLESS").is_some() {
        std::fs::write(&path, table).unwrap();
    }
    let expected = std::fs::read_to_string(&path).unwrap_or_default();
    let differs = table.lines().zip(expected.lines()).find(|(is, was)| is != was);
    assert!(
        table == expected,
        "{name} differs{}; if that is wanted, ANABRANCH_BLESS=1 writes it anew",
        differs.map_or_else(String::new, |(is, was)| format!(":\n  is  {is}\n  was {was}\n"))
    );
}
