//! Our stack and the running kernel's MPTCP, in network namespaces of their own. Needs root and a kernel with MPTCP and
//! TUN: without, every test is counted as ignored and says why.

mod abandoning;
mod aborting;
mod addresses;
mod bulk;
mod checksums;
mod closing;
mod ecn;
mod fallback;
mod field;
mod handshake;
mod hostile;
mod joining;
mod kernel;
mod library;
#[allow(dead_code)] // what is remembered of a packet is there to be printed
mod middlebox;
mod mischief;
mod one_way_delay;
mod pair;
mod path_mtu;
mod perf;
mod priority;
mod random_transfers;
mod scene;
mod traffic;
mod unreachable;
mod wire_profile;

use anabranch_system::{Need, missing};
use libtest_mimic::{Arguments, Trial};

fn main() {
    let missing = missing(&[Need::Mptcp, Need::Tun, Need::Programs(&["ip"]), Need::Namespaces]);
    if let Some(reason) = &missing {
        eprintln!("skipped: {reason}");
    }
    let mut trials: Vec<Trial> = Vec::new();
    trials.extend(addresses::trials());
    trials.extend(abandoning::trials());
    trials.extend(aborting::trials());
    trials.extend(bulk::trials());
    trials.extend(checksums::trials());
    trials.extend(closing::trials());
    trials.extend(ecn::trials());
    trials.extend(fallback::trials());
    trials.extend(handshake::trials());
    trials.extend(hostile::trials());
    trials.extend(joining::trials());
    trials.extend(library::trials());
    trials.extend(path_mtu::trials());
    trials.extend(perf::trials());
    trials.extend(one_way_delay::trials());
    trials.extend(priority::trials());
    trials.extend(random_transfers::trials());
    trials.extend(unreachable::trials());
    trials.extend(wire_profile::trials());
    trials.push(wire_profile::the_page(&trials));
    let trials = trials.into_iter().map(|trial| trial.with_ignored_flag(missing.is_some())).collect();
    let mut arguments = Arguments::from_args();
    // They mostly wait.
    arguments.test_threads.get_or_insert(12);
    libtest_mimic::run(&arguments, trials).exit();
}
