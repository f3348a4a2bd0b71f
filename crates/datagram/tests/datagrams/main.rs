//! Clients and servers with real sockets: on loopback, and between namespaces with two uplinks. The latter need root;
//! without it they are counted as ignored and say why.

mod loopback;
mod scene;
mod uplinks;

use anabranch_system::{Need, missing};
use libtest_mimic::{Arguments, Trial};

fn main() {
    let missing = missing(&[Need::Programs(&["ip"]), Need::Namespaces]);
    if let Some(reason) = &missing {
        eprintln!("skipped between namespaces: {reason}");
    }
    let ignored = missing.is_some();
    let between = uplinks::trials().into_iter().map(|trial: Trial| trial.with_ignored_flag(ignored));
    let trials = loopback::trials().into_iter().chain(between).collect();
    let mut arguments = Arguments::from_args();
    // The tests spend most of their time waiting.
    arguments.test_threads.get_or_insert(6);
    libtest_mimic::run(&arguments, trials).exit();
}
