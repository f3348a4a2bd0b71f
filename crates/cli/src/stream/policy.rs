//! Policies of a stream: those of `--policy`, with reliability policy `both_ends` by default.

use anabranch_policy::combination::Combination;
use anabranch_policy::reliability;
use anabranch_policy::table;
use anabranch_settings::contender::{self, Contender};
use anabranch_settings::diagnostic::Diagnostic;
use std::time::Duration;

/// Default of `--policy`.
pub const DEFAULT: &str = "anabranch";
/// Default reliability policy.
const RELIABILITY: &str = "reliability=both_ends";
/// Settings of its members that are the latency in milliseconds; a lifetime is the latency on the sender's clock.
const LATENCY: [&str; 2] = ["latency", "lifetime"];

/// Policies of a stream with this latency.
pub fn of(text: &str, latency: Duration) -> Result<Contender, Diagnostic> {
    contender::from_option(&complete(text, latency)?)
        .map_err(|message| Diagnostic::option(&format!("--policy {text}"), message))
}

/// The same in the syntax of `--policy`.
pub fn complete(text: &str, latency: Duration) -> Result<String, Diagnostic> {
    let wrong = |message| Diagnostic::option(&format!("--policy {text}"), message);
    let mut said = text.trim().to_owned();
    let mut chosen = contender::from_option(&said).map_err(wrong)?;
    if !said.contains("reliability") && !is_whole(&said) && chosen.policies.reliability.name == "full" {
        said = format!("{said},{RELIABILITY}");
        chosen = contender::from_option(&said).map_err(wrong)?;
    }
    let reliability = &chosen.policies.reliability;
    let takes = |name: &str| {
        table::find(reliability::TABLE, &reliability.name)
            .is_some_and(|member| member.parameters().iter().any(|parameter| parameter.name == name))
    };
    for name in LATENCY.into_iter().filter(|name| takes(name) && reliability.settings.get(name).is_none()) {
        said = format!("{said},reliability.{name}={}", latency.as_secs_f64() * 1e3);
    }
    Ok(said)
}

/// Whether it begins with a named combination that includes a reliability policy: `sme` abandons nothing.
fn is_whole(text: &str) -> bool {
    let first = text.split(',').next().unwrap_or_default().trim();
    Combination::NAMED.iter().any(|(name, _)| *name == first)
}

/// Whether data may be abandoned.
pub fn abandons(text: &str) -> bool {
    contender::from_option(text).is_ok_and(|chosen| chosen.policies.reliability.name != "full")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_said_of_reliability_is_both_ends_with_the_latency() {
        let complete = |text| complete(text, Duration::from_millis(300)).expect("it can be understood");
        assert_eq!(complete("anabranch"), "anabranch,reliability=both_ends,reliability.latency=300");
        assert_eq!(complete("spe"), "spe,reliability.latency=300");
        assert_eq!(complete("plain,reliability=full"), "plain,reliability=full");
        assert_eq!(complete("mo_pr"), "mo_pr,reliability.lifetime=300");
        assert_eq!((complete("sme"), abandons("sme")), ("sme".to_owned(), false));
        let said = "congestion=olia,reliability=spe,reliability.latency=50";
        assert_eq!(complete(said), said);
        let chosen = of("anabranch", Duration::from_millis(300)).expect("it can be understood");
        assert_eq!(chosen.policies.scheduler.name, "anabranch");
        assert!(abandons(&complete("anabranch")) && !abandons("anabranch,reliability=full"));
        assert!(of("anabrnch", Duration::ZERO).unwrap_err().to_string().contains("did you mean 'anabranch'"));
    }
}
