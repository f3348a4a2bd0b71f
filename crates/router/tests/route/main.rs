//! The router on real interfaces in network namespaces: on the paper's mesh, with FRRouting, and its cleanup. Needs
//! root and a kernel with TAP devices; otherwise all tests are counted as ignored and say why.

mod beside;
mod bfd;
mod convergence;
mod field;
mod frr;
mod gateway;
mod host;
mod hostile;
#[allow(dead_code)] // the other tests use the rest
#[path = "../../../stack/tests/interop/kernel.rs"]
mod kernel;
mod mesh;
mod mistakes;
mod moving;
mod probe;
mod reconfiguration;
mod scene;
mod unequal;

use anabranch_system::{Need, missing};
use libtest_mimic::{Arguments, Trial};

fn main() {
    if host::is_child() {
        return host::child();
    }
    let missing = missing(&[Need::Mptcp, Need::Tun, Need::Programs(&["ip"]), Need::Namespaces]);
    if let Some(reason) = &missing {
        eprintln!("skipped: {reason}");
    }
    let trials = [
        mesh::trials(),
        mistakes::trials(),
        moving::trials(),
        beside::trials(),
        bfd::trials(),
        convergence::trials(),
        field::trials(),
        frr::trials(),
        gateway::trials(),
        host::trials(),
        hostile::trials(),
        reconfiguration::trials(),
        unequal::trials(),
    ];
    let trials = trials.into_iter().flatten();
    let trials: Vec<Trial> =
        trials.map(|trial| if missing.is_some() { trial.with_ignored_flag(true) } else { trial }).collect();
    let mut arguments = Arguments::from_args();
    // The tests spend most of their time waiting.
    arguments.test_threads.get_or_insert(8);
    libtest_mimic::run(&arguments, trials).exit();
}
