//! Our stack and the running kernel's MPTCP, in network namespaces of their own. Needs root and a kernel with MPTCP and
//! TUN: without, every test is counted as ignored and says why.

mod closing;
mod fallback;
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
mod traffic;

use libtest_mimic::{Arguments, Trial};

fn main() {
    let missing = kernel::missing();
    if let Some(reason) = &missing {
        eprintln!("skipped: {reason}");
    }
    let mut trials: Vec<Trial> = Vec::new();
    trials.extend(closing::trials());
    trials.extend(fallback::trials());
    trials.extend(handshake::trials());
    trials.extend(hostile::trials());
    trials.extend(perf::trials());
    trials.extend(random_transfers::trials());
    let trials = trials.into_iter().map(|trial| trial.with_ignored_flag(missing.is_some())).collect();
    libtest_mimic::run(&Arguments::from_args(), trials).exit();
}
