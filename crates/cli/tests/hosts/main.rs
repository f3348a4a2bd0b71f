//! Tests on hosts in network namespaces: `emulate`, `proxy`, `run`, `steer`, `up`, and third-party programs through
//! them. All are in one executable, so that they run in parallel. Tests with missing requirements count as ignored,
//! with the reason.

mod deaths;
mod emulate;
mod program;
mod programs;
mod proxy;
mod run;
mod soak;
mod steer;
mod two_uplinks;
mod up;

use libtest_mimic::{Arguments, Trial};

/// Number of parallel tests: they mostly wait.
const AT_A_TIME: usize = 8;

fn main() {
    if emulate::was_agent() {
        return;
    }
    let shared = programs::Shared::default();
    // The longest first.
    let groups: [Vec<Trial>; 8] = [
        soak::trials(),
        deaths::trials(),
        up::trials(),
        programs::trials(&shared),
        run::trials(),
        steer::trials(),
        emulate::trials(),
        proxy::trials(),
    ];
    let mut arguments = Arguments::from_args();
    arguments.test_threads.get_or_insert(AT_A_TIME);
    let conclusion = libtest_mimic::run(&arguments, groups.into_iter().flatten().collect());
    shared.end();
    conclusion.exit();
}
