//! The command's programs on hosts: `emulate`, `proxy`, `run`, `up`, and programs of others through them, each in namespaces of its own.
//! All are one program so that those that wait leave their time to the others. What the machine lacks is said, and the tests that need
//! it are counted as ignored.

mod emulate;
mod programs;
mod proxy;
mod run;
mod soak;
mod up;

use libtest_mimic::{Arguments, Trial};

/// How many tests go on at a time: they mostly wait.
const AT_A_TIME: usize = 8;

fn main() {
    if emulate::was_agent() {
        return;
    }
    let shared = programs::Shared::default();
    // What lasts longest begins first.
    let groups: [Vec<Trial>; 6] =
        [soak::trials(), up::trials(), programs::trials(&shared), run::trials(), emulate::trials(), proxy::trials()];
    let mut arguments = Arguments::from_args();
    arguments.test_threads.get_or_insert(AT_A_TIME);
    let conclusion = libtest_mimic::run(&arguments, groups.into_iter().flatten().collect());
    shared.end();
    conclusion.exit();
}
