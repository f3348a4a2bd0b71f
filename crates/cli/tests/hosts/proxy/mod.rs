//! `proxy`, `serve` and `key`: errors, which are one sentence with exit code 2, and operation. The latter needs root,
//! TUN and network namespaces; otherwise those tests count as ignored, with the reason.

mod refused;
mod running;

use anabranch_system::{Need, missing};
use libtest_mimic::Trial;

pub fn trials() -> Vec<Trial> {
    let missing =
        missing(&[Need::Tun, Need::Mptcp, Need::Programs(&["ip", "curl", "python3", "mptcpize"]), Need::Namespaces]);
    if let Some(reason) = &missing {
        eprintln!("skipped proxy's that run: {reason}");
    }
    let mut trials = refused::trials();
    trials.extend(running::trials().into_iter().map(|trial| trial.with_ignored_flag(missing.is_some())));
    trials
}
