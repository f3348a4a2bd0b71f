//! Programs of others through `up` and `run -- PROGRAM`, over two uplinks behind NATs: what they fetch is what the target has, and where there is
//! nothing they say what they always say. Needs root, TUN, `ip`, `nft` and `python3`; a program that is missing has its tests counted as ignored, and
//! is named.

mod datagrams;
#[allow(dead_code, reason = "there is more in it, for the tests of `up`")]
#[path = "../up/scene.rs"]
mod scene;
mod streams;
mod town;

use anabranch_system::{Need, missing};
use libtest_mimic::{Arguments, Trial};
use std::sync::{Arc, Mutex, PoisonError};
use town::{Town, Way};

/// A test: its name, the programs that it needs, and what it does with the town.
type Test = (&'static str, &'static [&'static str], fn(&Town, Way));

fn main() {
    let lacking =
        missing(&[Need::Tun, Need::Programs(&["ip", "nft", "python3", "unshare", "timeout"]), Need::Namespaces]);
    if let Some(reason) = &lacking {
        eprintln!("skipped: {reason}");
    }
    // It is built when the first test needs it, and is gone before the end.
    let town: Arc<Mutex<Option<Arc<Town>>>> = Arc::default();
    let mut trials = Vec::new();
    for (name, programs, test) in [streams::TESTS, datagrams::TESTS].concat() {
        let lacks = programs.iter().find_map(|program| missing(&[Need::Programs(&[program])]));
        if let (Some(reason), None) = (&lacks, &lacking) {
            eprintln!("skipped {name}: {reason}");
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
            trials.push(trial.with_ignored_flag(lacking.is_some() || lacks.is_some()));
        }
    }
    let mut arguments = Arguments::from_args();
    // They mostly wait.
    arguments.test_threads.get_or_insert(6);
    let conclusion = libtest_mimic::run(&arguments, trials);
    drop(town.lock().unwrap_or_else(PoisonError::into_inner).take());
    conclusion.exit();
}
