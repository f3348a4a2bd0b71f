//! The proxy and its server in a network namespace, with the kernel's sockets and with programs that people use. Needs root
//! and a kernel with MPTCP and TUN; a test that needs a program more says which. What is missing is counted as ignored.

#[allow(dead_code)] // the other tests use the rest
#[path = "../../../stack/tests/interop/kernel.rs"]
mod kernel;

mod crowd;
mod dead_uplinks;
mod direct;
mod manners;
mod program;
mod proof;
mod scene;
mod served;

use anabranch_system::{Need, missing};
use libtest_mimic::{Arguments, Trial};

fn main() {
    if crowd::play() {
        return;
    }
    let missing = missing(&[Need::Mptcp, Need::Tun, Need::Programs(&["ip"]), Need::Namespaces]);
    if let Some(reason) = &missing {
        eprintln!("skipped: {reason}");
    }
    let trials: Vec<Trial> = [
        direct::trials(),
        dead_uplinks::trials(),
        served::trials(),
        proof::trials(),
        manners::trials(),
        crowd::trials(),
    ]
    .into_iter()
    .flatten()
    .collect();
    let trials =
        trials.into_iter().map(|trial| if missing.is_some() { trial.with_ignored_flag(true) } else { trial }).collect();
    let mut arguments = Arguments::from_args();
    // They mostly wait.
    arguments.test_threads.get_or_insert(6);
    libtest_mimic::run(&arguments, trials).exit();
}
