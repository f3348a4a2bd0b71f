//! Our stack and the running kernel's MPTCP, in network namespaces of their own. Needs root and a kernel with MPTCP and
//! TUN: without, every test is counted as ignored and says why.

mod closing;
mod handshake;
mod hostile;
mod kernel;
#[allow(dead_code)] // the tests that need all of it follow
mod middlebox;
mod pair;
mod perf;
mod random_transfers;
#[allow(dead_code)]
mod scene;

use libtest_mimic::{Arguments, Trial};

fn main() {
    let missing = kernel::missing();
    if let Some(reason) = &missing {
        eprintln!("skipped: {reason}");
    }
    let trials =
        [handshake::trials(), closing::trials(), perf::trials(), random_transfers::trials(), hostile::trials()];
    let trials = trials.into_iter().flatten();
    let trials: Vec<Trial> = trials.map(|trial| trial.with_ignored_flag(missing.is_some())).collect();
    libtest_mimic::run(&Arguments::from_args(), trials).exit();
}
