//! The running kernel's MPTCP on emulated paths, in network namespaces of their own. Needs root and a kernel with MPTCP
//! and TUN: without, every test is counted as ignored and says why.

mod goodput;
mod hands;
mod lives;
mod samples;
mod scene;
mod steered;

use anabranch_system::{Need, missing};
use libtest_mimic::{Arguments, Trial};

fn main() {
    let missing = missing(&[Need::Mptcp, Need::Tun, Need::Programs(&["ip"]), Need::Namespaces]);
    if let Some(reason) = &missing {
        eprintln!("skipped: {reason}");
    }
    let trials = samples::trials().into_iter().chain(hands::trials()).chain(lives::trials()).chain(goodput::trials());
    let trials: Vec<Trial> = trials.map(|trial| trial.with_ignored_flag(missing.is_some())).collect();
    libtest_mimic::run(&Arguments::from_args(), trials).exit();
}
