//! `steer`, the program, on a host of its own: what it tells, and what becomes of connections and settings when it is
//! killed, refused or overrun. Needs root and MPTCP; otherwise those tests count as ignored, with the reason.

mod changes;
mod lives;
mod roles;
mod scene;
mod status;
mod trouble;

use anabranch_system::{Need, missing};
use libtest_mimic::Trial;
use std::path::Path;

pub fn trials() -> Vec<Trial> {
    let no_mptcp = || (!Path::new("/proc/sys/net/mptcp").exists()).then(|| "the kernel has no MPTCP".to_owned());
    let missing = missing(&[Need::Programs(&["ip", "python3", "setpriv"]), Need::Namespaces]).or_else(no_mptcp);
    if let Some(reason) = &missing {
        eprintln!("skipped steer's: {reason}");
    }
    let all = status::trials().into_iter().chain(lives::trials()).chain(roles::trials()).chain(trouble::trials());
    let all = all.chain(changes::trials());
    all.map(|trial| trial.with_ignored_flag(missing.is_some())).collect()
}
