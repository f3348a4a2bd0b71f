//! `run -- PROGRAM` as the user meets it: what is refused, with one sentence and exit code 2, and programs that run. The latter needs root
//! (for the namespaces that stand for the host and the world), TUN and network namespaces: without, those tests are counted as
//! ignored and say why.

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
