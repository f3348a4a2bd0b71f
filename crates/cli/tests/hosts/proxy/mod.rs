//! `proxy`, `serve` and `key`: errors, which are one sentence with exit code 2, and operation. The latter needs root,
//! TUN and network namespaces; otherwise those tests count as ignored, with the reason.

mod refused;
mod running;

use anabranch_system::{Need, missing};
use libtest_mimic::Trial;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn anabranch(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_anabranch"));
    command.args(arguments);
    command
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A new temporary directory of a test.
fn directory(name: &str) -> PathBuf {
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("proxy-{name}"));
    // It does not exist on the first run.
    let _ = std::fs::remove_dir_all(&directory);
    std::fs::create_dir_all(&directory).expect("the test's directory can be made");
    directory
}

/// Standard error of a rejected command, which must be one line.
fn complaint(output: &Output) -> String {
    let errors = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{errors}{}", text(&output.stdout));
    assert!(output.stdout.is_empty(), "{}", text(&output.stdout));
    assert_eq!(errors.lines().count(), 1, "{errors}");
    errors
}

pub fn trials() -> Vec<Trial> {
    let missing =
        missing(&[Need::Tun, Need::Mptcp, Need::Programs(&["ip", "curl", "python3", "mptcpize"]), Need::Namespaces]);
    if let Some(reason) = &missing {
        eprintln!("skipped proxy's that run: {reason}");
    }
    let mut trials = refused::trials();
    trials.extend(running::trials().into_iter().map(|trial| trial.with_ignored_flag(missing.is_some())));
    trials
}
