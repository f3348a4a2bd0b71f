//! `run -- PROGRAM`: errors, which are one sentence with exit code 2, and running programs. The latter needs root (for
//! namespaces of host and world), TUN and network namespaces; otherwise those tests count as ignored, with the reason.

mod datagrams;
mod ending;
mod refused;
mod roles;
mod scene;
mod status;
mod straight;
mod tcp;

use anabranch_system::{Need, missing};
use libtest_mimic::Trial;

pub fn trials() -> Vec<Trial> {
    let missing = missing(&[Need::Tun, Need::Programs(&["ip", "tc", "curl", "python3", "setpriv"]), Need::Namespaces]);
    if let Some(reason) = &missing {
        eprintln!("skipped run's that run: {reason}");
    }
    let mut trials = refused::trials();
    let running = tcp::trials()
        .into_iter()
        .chain(datagrams::trials())
        .chain(ending::trials())
        .chain(straight::trials())
        .chain(roles::trials())
        .chain(status::trials());
    trials.extend(running.map(|trial| trial.with_ignored_flag(missing.is_some())));
    trials
}
