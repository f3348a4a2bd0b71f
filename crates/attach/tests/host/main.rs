//! The stack attached to a host (a network namespace): the setup works, and nothing is left of it. Needs root and a
//! kernel with MPTCP and TUN; otherwise all tests are counted as ignored and say why.

mod default_route;
mod follow;
#[allow(dead_code)] // the other tests use the rest
#[path = "../../../stack/tests/interop/kernel.rs"]
mod kernel;
mod left_behind;
mod local;
mod scene;
mod uplinks;
mod workers;

use anabranch_system::{Need, missing};
use libtest_mimic::{Arguments, Trial};

fn main() {
    if left_behind::is_child() {
        return left_behind::child();
    }
    if default_route::is_child() {
        return default_route::child();
    }
    let missing = missing(&[Need::Mptcp, Need::Tun, Need::Programs(&["ip", "nft"]), Need::Namespaces]);
    if let Some(reason) = &missing {
        eprintln!("skipped: {reason}");
    }
    let trials: Vec<Trial> = [
        local::trials(),
        uplinks::trials(),
        follow::trials(),
        left_behind::trials(),
        workers::trials(),
        default_route::trials(),
    ]
    .into_iter()
    .flatten()
    .collect();
    let trials = trials.into_iter().map(|trial| trial.with_ignored_flag(missing.is_some())).collect();
    let mut arguments = Arguments::from_args();
    // The tests spend most of their time waiting.
    arguments.test_threads.get_or_insert(6);
    libtest_mimic::run(&arguments, trials).exit();
}
