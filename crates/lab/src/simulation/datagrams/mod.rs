//! Programs' datagrams in the lab, carried by the sessions of `up`, `run` and `serve` in virtual time.

#[cfg(not(target_family = "wasm"))]
mod carriers;
#[cfg(target_family = "wasm")]
#[path = "no_carriers.rs"]
mod carriers;
mod measure;
#[cfg(test)]
mod tests;

pub use measure::{curves, metrics};

use super::network::Lines;
use crate::scenario::Scenario;
use anabranch_settings::contender::{Contender, build_datagram};
use anabranch_settings::diagnostic::Diagnostic;
use anabranch_sim::World;
use anabranch_sim::datagrams::DatagramsConfig;

/// Adds a scenario's programs, if any, and the session of their datagrams with the contender's policy.
pub fn add(world: &mut World, scenario: &Scenario, contender: &Contender, lines: &Lines) -> Result<(), Diagnostic> {
    if scenario.datagrams.is_empty() {
        return Ok(());
    }
    let fail = |error: String| Diagnostic::plain(format!("{}: {error}", contender.name));
    let policy = build_datagram(&contender.datagram).map_err(fail)?;
    let config = DatagramsConfig {
        client: lines.interfaces.clone(),
        server: lines.server,
        flows: scenario.datagrams.clone(),
        sample: scenario.sample,
    };
    let [client, server] = carriers::ends(policy, contender.datagram.clone(), lines.interfaces.len()).map_err(fail)?;
    world.add_datagrams(config, client, server);
    Ok(())
}
