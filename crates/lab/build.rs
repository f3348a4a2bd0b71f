//! Passes the commit to the program.

use std::process::Command;

/// What `git rev-parse` answers, if there is a repository.
fn git(words: &[&str]) -> Option<String> {
    let output = Command::new("git").arg("rev-parse").args(words).output().ok()?;
    let text = String::from_utf8(output.stdout).ok().filter(|_| output.status.success())?;
    Some(text.trim().to_owned())
}

fn main() {
    let commit = git(&["--short=12", "HEAD"]);
    println!("cargo:rustc-env=ANABRANCH_COMMIT={}", commit.as_deref().unwrap_or("unknown"));
    // HEAD names a branch, whose file changes with each commit; the log of HEAD changes in both cases. A further work tree
    // has one of its own.
    if let Some(log) = git(&["--git-path", "logs/HEAD"]).filter(|log| std::path::Path::new(log).exists()) {
        println!("cargo:rerun-if-changed={log}");
    }
    println!("cargo:rerun-if-changed=build.rs");
}
