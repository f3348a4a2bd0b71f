//! Programs of others through `up` and `run -- PROGRAM`, over two uplinks behind NATs: what they fetch is what the target has, and where there is
//! nothing they say what they always say. Needs root, TUN, `ip`, `nft` and `python3`; a program that is missing has its tests counted as ignored, and
//! is named.

mod datagrams;
#[allow(dead_code, reason = "there is more in it, for the tests of `up`")]
#[path = "../up/scene.rs"]
mod scene;
mod streams;
mod town;

use anabranch_system::Namespace;
use libtest_mimic::{Arguments, Trial};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use town::{Town, Way};

/// A test: its name, the programs that it needs, and what it does with the town.
type Test = (&'static str, &'static [&'static str], fn(&Town, Way));

fn is_there(program: &str) -> bool {
    let word = if program == "ip" { "-V" } else { "--version" };
    // That it can be started is enough: not all know the word.
    let quiet =
        Command::new(program).arg(word).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status();
    quiet.is_ok() || Path::new(program).exists()
}

/// What this machine lacks for all tests, if anything.
fn missing() -> Option<String> {
    if !Path::new("/dev/net/tun").exists() {
        return Some("the kernel has no TUN".to_owned());
    }
    let needed = ["ip", "nft", "python3", "unshare", "timeout"];
    if let Some(program) = needed.into_iter().find(|program| !is_there(program)) {
        return Some(format!("there is no program `{program}`"));
    }
    Namespace::new().err().map(|error| format!("no network namespaces, are we root? ({error})"))
}

fn main() {
    let missing = missing();
    if let Some(reason) = &missing {
        eprintln!("skipped: {reason}");
    }
    // It is built when the first test needs it, and is gone before the end.
    let town: Arc<Mutex<Option<Arc<Town>>>> = Arc::default();
    let mut trials = Vec::new();
    for (name, programs, test) in [streams::TESTS, datagrams::TESTS].concat() {
        let lacks = programs.iter().find(|program| !is_there(program));
        if let (Some(program), None) = (lacks, &missing) {
            eprintln!("skipped {name}: there is no program `{program}`");
        }
        for way in [Way::Up, Way::Run] {
            let town = Arc::clone(&town);
            let trial = Trial::test(format!("{way:?}::{name}"), move || {
                let town = Arc::clone(
                    town.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert_with(|| Arc::new(Town::new())),
                );
                test(&town, way);
                Ok(())
            });
            trials.push(trial.with_ignored_flag(missing.is_some() || lacks.is_some()));
        }
    }
    let mut arguments = Arguments::from_args();
    // They mostly wait.
    arguments.test_threads.get_or_insert(6);
    let conclusion = libtest_mimic::run(&arguments, trials);
    drop(town.lock().unwrap_or_else(PoisonError::into_inner).take());
    conclusion.exit();
}
