//! A capture between a namespace of programs and a namespace that is the world, with the kernel's sockets at both ends. Needs root and
//! a kernel with TUN; what is missing is counted as ignored.

mod datagrams;
mod scene;
mod tcp;

use anabranch_system::Namespace;
use libtest_mimic::{Arguments, Trial};
use std::path::Path;

/// What this machine lacks for these tests, if anything.
fn missing() -> Option<String> {
    if !Path::new("/dev/net/tun").exists() {
        return Some("the kernel has no TUN".to_owned());
    }
    if std::process::Command::new("ip").arg("-V").output().is_err() {
        return Some("there is no program `ip` (iproute2)".to_owned());
    }
    Namespace::new().err().map(|error| format!("no network namespaces, are we root? ({error})"))
}

fn main() {
    let missing = missing();
    if let Some(reason) = &missing {
        eprintln!("skipped: {reason}");
    }
    let trials = datagrams::trials().into_iter().chain(tcp::trials());
    let trials: Vec<Trial> = trials.map(|trial| trial.with_ignored_flag(missing.is_some())).collect();
    libtest_mimic::run(&Arguments::from_args(), trials).exit();
}
