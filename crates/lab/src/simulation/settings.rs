//! Converts a scenario's `[connection]` and a contender's policies to the engine's configuration.

use crate::scenario::Scenario;
use anabranch_mptcp::{ConnectionConfig, Framing, Policies};
use anabranch_policy::combination::Combination;
use anabranch_policy::reliability;
use anabranch_settings::connection::defaults;
use anabranch_settings::contender::Contender;

/// Settings of reliability policies that are the latency, or the lifetime derived from it, in ms.
const DEADLINES: [&str; 2] = ["latency", "lifetime"];

/// Configuration of both ends.
pub fn connection(scenario: &Scenario, contender: &Contender) -> ConnectionConfig {
    let mut config = defaults(policies(&for_video(scenario, &contender.policies)));
    config.multipath = contender.multipath;
    if scenario.video.is_some() {
        config.framing = Framing::Messages;
    }
    contender.connection_in(&scenario.connection).apply(&mut config);
    config
}

/// A combination without a deadline uses that of the scenario's video.
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

/// Factories of a combination's policies. They cannot fail, since the scenario is validated.
pub fn policies(combination: &Combination) -> Policies {
    Policies::of(combination).expect("the combination was checked")
}
