//! Programs on emulated paths, which match the scenario and leave nothing behind. Needs root, TUN and network
//! namespaces; otherwise every test counts as ignored, with the reason.

mod agent;
mod ending;
mod links;
mod mesh;
mod programs;
mod stage;
mod streams;

use anabranch_system::{Need, missing};
use libtest_mimic::Trial;

/// Runs the task and returns true if this process was started as an agent.
pub fn was_agent() -> bool {
    let words: Vec<String> = std::env::args().collect();
    match words.as_slice() {
        [_, agent, task @ ..] if agent == agent::NAME => agent::run(task),
        _ => return false,
    }
    true
}

pub fn trials() -> Vec<Trial> {
    let lacking = missing(&[Need::Tun, Need::Programs(&["ip"]), Need::Namespaces]);
    if let Some(reason) = &lacking {
        eprintln!("skipped emulate: {reason}");
    }
    let no_mptcp = missing(&[Need::Mptcp]);
    if let Some(reason) = &no_mptcp {
        eprintln!("skipped emulate's with MPTCP: {reason}");
    }
    let mut trials: Vec<Trial> = links::trials()
        .into_iter()
        .chain(ending::trials())
        .chain(programs::trials())
        .chain(mesh::trials())
        .chain(streams::trials())
        .collect();
    trials = trials.into_iter().map(|trial| trial.with_ignored_flag(lacking.is_some())).collect();
    let multipath = programs::multipath_trials().into_iter().chain(mesh::multipath_trials());
    trials.extend(multipath.map(|trial| trial.with_ignored_flag(lacking.is_some() || no_mptcp.is_some())));
    let no_nft = missing(&[Need::Programs(&["nft"])]);
    if let Some(reason) = &no_nft {
        eprintln!("skipped emulate's with the stack on uplinks: {reason}");
    }
    let stack = programs::stack_trials().into_iter().chain(streams::linux_trials());
    let masquerade = programs::masquerade_trials().into_iter().chain(mesh::masquerade_trials());
    trials.extend(masquerade.map(|trial| trial.with_ignored_flag(lacking.is_some() || no_nft.is_some())));
    let no_stack = lacking.or(no_mptcp).or(no_nft).is_some();
    trials.extend(stack.map(|trial| trial.with_ignored_flag(no_stack)));
    trials
}
