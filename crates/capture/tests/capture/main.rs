//! A capture between a namespace of programs and a namespace for the world, with kernel sockets at both ends. Needs
//! root and a kernel with TUN; otherwise the tests are counted as ignored.

mod datagrams;
mod scene;
mod tcp;

use anabranch_system::{Need, missing};
use libtest_mimic::{Arguments, Trial};

fn main() {
    let missing = missing(&[Need::Tun, Need::Programs(&["ip"]), Need::Namespaces]);
    if let Some(reason) = &missing {
        eprintln!("skipped: {reason}");
    }
    let trials = datagrams::trials().into_iter().chain(tcp::trials());
    let trials: Vec<Trial> = trials.map(|trial| trial.with_ignored_flag(missing.is_some())).collect();
    libtest_mimic::run(&Arguments::from_args(), trials).exit();
}
