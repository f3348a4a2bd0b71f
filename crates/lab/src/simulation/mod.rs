//! Builds the network and hosts of a scenario, runs it, and measures it.

mod ad_hoc;
mod application;
mod beside;
pub mod capacity;
mod capture;
mod competition;
mod datagrams;
mod extras;
mod generators;
mod measure;
mod mesh;
mod mesh_metrics;
mod moving;
pub mod network;
mod own;
mod settings;
mod simulated;
mod steering;
pub mod traffic;
pub mod video;
mod window;

pub use ad_hoc::{AdHoc, Ground};
pub use capture::file_name as capture_name;
pub use extras::{Extras, SentFile};
pub use own::OwnPolicies;
pub use simulated::Simulation;

use crate::record::Record;
use crate::scenario::Scenario;
use anabranch_mptcp::ConnectionConfig;
use anabranch_settings::contender::Contender;
use anabranch_settings::diagnostic::Diagnostic;
use anabranch_settings::quantity::Share;
use std::borrow::Cow;

/// Connection settings of both ends for `contender`.
pub fn connection(scenario: &Scenario, contender: &Contender) -> ConnectionConfig {
    settings::connection(scenario, contender)
}

/// Runs `contender` over the given path indices of the scenario.
pub fn run(
    scenario: &Scenario,
    contender: &Contender,
    paths: &[usize],
    seed: u64,
    extras: &Extras,
) -> Result<Record, Diagnostic> {
    if let Some(mesh) = &scenario.mesh {
        return mesh::run(scenario, mesh, contender, paths, seed, extras);
    }
    if let Some(moving) = &scenario.moving {
        return moving::run(scenario, moving, contender, seed, extras);
    }
    let scenario = &*as_it_meets(scenario, contender);
    let mut simulation = Simulation::new(scenario, contender, paths, seed, extras)?;
    simulation.advance(scenario, scenario.duration);
    simulation.finish(scenario, contender, extras)
}

/// The scenario as it is for this contender.
pub fn as_it_meets<'a>(scenario: &'a Scenario, contender: &Contender) -> Cow<'a, Scenario> {
    if contender.oracle { Cow::Owned(without_losses(scenario)) } else { Cow::Borrowed(scenario) }
}

/// The scenario of an oracle: links have no loss, since lost packets would not be sent.
fn without_losses(scenario: &Scenario) -> Scenario {
    let mut kept = scenario.clone();
    let links = kept.paths.iter_mut().flat_map(|path| &mut path.links).chain(&mut kept.shared);
    for link in links {
        (link.loss, link.burst_loss) = (None, None);
        link.coverage.iter_mut().for_each(|point| point.loss = Share(0.0));
    }
    kept
}
