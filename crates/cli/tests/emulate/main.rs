//! Programs on emulated paths: what they meet is what the scenario says, and nothing is left of it. Needs root, TUN and
//! network namespaces: without, every test is counted as ignored and says why.

mod agent;
mod ending;
mod links;
mod mesh;
mod programs;
mod stage;
mod streams;

use anabranch_system::Namespace;
use libtest_mimic::{Arguments, Trial};
use std::path::Path;
use std::process::Command;

/// What this machine lacks for these tests, if anything.
fn missing() -> Option<String> {
    if !Path::new("/dev/net/tun").exists() {
        return Some("the kernel has no TUN".to_owned());
    }
    if Command::new("ip").arg("-V").output().is_err() {
        return Some("there is no program `ip` (iproute2)".to_owned());
    }
    Namespace::new().err().map(|error| format!("no network namespaces, are we root? ({error})"))
}

fn main() {
    // The tests' own programs on the paths are this one, called by another name.
    let words: Vec<String> = std::env::args().collect();
    if let [_, agent, task @ ..] = words.as_slice()
        && agent == agent::NAME
    {
        return agent::run(task);
    }
    let missing = missing();
    if let Some(reason) = &missing {
        eprintln!("skipped: {reason}");
    }
    let no_mptcp = !Path::new("/proc/sys/net/mptcp/enabled").exists();
    if no_mptcp {
        eprintln!("skipped those with MPTCP: the kernel has none");
    }
    let mut trials: Vec<Trial> = links::trials()
        .into_iter()
        .chain(ending::trials())
        .chain(programs::trials())
        .chain(mesh::trials())
        .chain(streams::trials())
        .collect();
    trials = trials.into_iter().map(|trial| trial.with_ignored_flag(missing.is_some())).collect();
    let multipath = programs::multipath_trials().into_iter().chain(mesh::multipath_trials());
    trials.extend(multipath.map(|trial| trial.with_ignored_flag(missing.is_some() || no_mptcp)));
    let no_nft = Command::new("nft").arg("-v").output().is_err();
    if no_nft {
        eprintln!("skipped those with the stack on uplinks: there is no program `nft`");
    }
    let stack = programs::stack_trials().into_iter().chain(streams::linux_trials());
    trials.extend(stack.map(|trial| trial.with_ignored_flag(missing.is_some() || no_mptcp || no_nft)));
    let mut arguments = Arguments::from_args();
    // They mostly wait.
    arguments.test_threads.get_or_insert(8);
    libtest_mimic::run(&arguments, trials).exit();
}
