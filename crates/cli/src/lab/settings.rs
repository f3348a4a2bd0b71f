//! Turns a scenario's `[connection]` and a contender's policies into the engine's settings.

use crate::contender::Contender;
use crate::scenario::Scenario;
use crate::scenario::connection::defaults;
use anabranch_mptcp::{ConnectionConfig, Framing, Policies};
use anabranch_policy::combination::Combination;
use anabranch_policy::reliability;

/// The settings of reliability policies that are the latency of the play-out, or the lifetime that follows from it, in ms.
const DEADLINES: [&str; 2] = ["latency", "lifetime"];

/// Both ends' settings.
pub fn connection(scenario: &Scenario, contender: &Contender) -> ConnectionConfig {
    let mut config = defaults(policies(&for_video(scenario, &contender.policies)));
    config.multipath = contender.multipath;
    if scenario.video.is_some() {
        config.framing = Framing::Messages;
    }
    contender.connection_in(&scenario.connection).apply(&mut config);
    config
}

/// A combination that does not say its deadline has that of the scenario's video.
fn for_video(scenario: &Scenario, policies: &Combination) -> Combination {
    let mut made = policies.clone();
    let Some(video) = &scenario.video else { return made };
    let choice = &mut made.reliability;
    let member = reliability::TABLE.iter().find(|member| member.name == choice.name);
    for name in DEADLINES {
        let takes = member.is_some_and(|member| member.parameters().iter().any(|parameter| parameter.name == name));
        if takes && choice.settings.get(name).is_none() {
            choice.settings.set(name, video.deadline.latency.as_secs_f64() * 1e3);
        }
    }
    made
}

/// Factories of a combination's policies. The scenario has been checked, so that they cannot fail.
pub fn policies(combination: &Combination) -> Policies {
    Policies::of(combination).expect("the combination was checked")
}
