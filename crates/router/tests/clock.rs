//! A host whose time of day jumps keeps its neighbours: nothing but the first sequence number of authenticated packets is taken
//! from that clock. Setting it needs the whole host, so that this reads the sources.

use std::path::{Path, PathBuf};

/// All Rust files below a folder.
fn sources(folder: &Path, all: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).expect("it is there") {
        let path = entry.expect("it is there").path();
        if path.is_dir() {
            sources(&path, all);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            all.push(path);
        }
    }
}

#[test]
fn timers_and_ages_do_not_depend_on_the_time_of_day() {
    let own = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut files = Vec::new();
    for folder in ["src", "../routing/src", "../system/src"] {
        sources(&own.join(folder), &mut files);
    }
    let mut found = Vec::new();
    for file in &files {
        let text = std::fs::read_to_string(file).expect("it is text");
        let lines = text.lines().filter(|line| ["SystemTime::", "REALTIME"].iter().any(|word| line.contains(word)));
        found.extend(lines.map(|line| line.trim().to_owned()));
    }
    assert_eq!(found, ["let since_epoch = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);"]);
    // The clock of the routers, and the timer that wakes them.
    let text = |file: &str| std::fs::read_to_string(own.join("../system/src").join(file)).expect("it is there");
    assert!(text("clock.rs").contains("std::time::Instant") && text("timer.rs").contains("CLOCK_MONOTONIC"));
}
