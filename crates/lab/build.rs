//! Passes the commit to the program.

use std::process::Command;

fn main() {
    let output = Command::new("git").args(["rev-parse", "--short=12", "HEAD"]).output();
    let commit = output.ok().filter(|output| output.status.success());
    let commit = commit.and_then(|output| String::from_utf8(output.stdout).ok()).map(|text| text.trim().to_owned());
    println!("cargo:rustc-env=ANABRANCH_COMMIT={}", commit.as_deref().unwrap_or("unknown"));
    // HEAD names a branch, whose file changes with each commit; the log of HEAD changes in both cases.
    let log = "../../.git/logs/HEAD";
    if std::path::Path::new(log).exists() {
        println!("cargo:rerun-if-changed={log}");
    }
    println!("cargo:rerun-if-changed=build.rs");
}
