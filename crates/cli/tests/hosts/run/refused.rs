//! Errors that are reported before anything runs.

use crate::program::{anabranch, complaint, text};
use libtest_mimic::Trial;
use std::process::Command;

pub fn trials() -> Vec<Trial> {
    let trial = |name: &str, work: fn()| {
        Trial::test(format!("run::refused::{name}"), move || {
            work();
            Ok(())
        })
    };
    vec![
        trial("a_program_without_a_key_is_told_what_is_needed", without_key),
        trial("run_of_a_scenario_is_what_it_was", scenario),
        trial("the_inner_command_is_nobodys_to_call", inner),
        trial("a_host_that_allows_no_user_namespaces_is_told_of", forbidden),
    ]
}

fn without_key() {
    let output = anabranch(&["run", "--server", "127.0.0.1:4433", "--", "true"]).output().expect("the program runs");
    assert!(complaint(&output).starts_with("error: --key: "));
}

fn scenario() {
    let output = anabranch(&["run", "no_such_scenario"]).output().expect("the program runs");
    let said = complaint(&output);
    assert!(said.contains("no_such_scenario") && !said.contains("--server"), "{said}");
}

fn inner() {
    let output = anabranch(&["inside", "77", "--", "true"]).output().expect("the program runs");
    assert!(complaint(&output).contains("part of `anabranch run -- PROGRAM`"));
}

fn forbidden() {
    // A user namespace that does not permit further ones.
    let forbid = "echo 0 > /proc/sys/user/max_user_namespaces && exec \"$@\"";
    let mut command = Command::new("unshare");
    command.args(["--user", "--map-root-user", "sh", "-c", forbid, "sh"]);
    let Some(key) = crate::run::scene::key("forbidden") else { panic!("a key") };
    command.args([env!("CARGO_BIN_EXE_anabranch"), "run", "--server", "127.0.0.1:4433", "--key", &key, "--", "true"]);
    let output = command.output().expect("unshare runs");
    if text(&output.stderr).starts_with("unshare: ") {
        // Then this host does not permit them either.
        eprintln!("skipped: {}", text(&output.stderr));
        return;
    }
    let said = complaint(&output);
    assert!(said.contains("sysctl -w user.max_user_namespaces="), "{said}");
}
