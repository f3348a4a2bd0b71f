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
    let mut words: Vec<&str> = text.split(',').map(str::trim).collect();
    let name = words.first().copied().filter(|first| !first.contains('='));
    let chooses = |word: &&str| word.split_once('=').is_some_and(|(key, _)| key.trim() == "reliability");
    let named = name.map(contender::from_option).transpose().map_err(wrong)?;
    let by_name = name.zip(named).is_some_and(|(name, contender)| chooses_reliability(name, &contender));
    if !by_name && !words.iter().any(chooses) {
        // Before the changes, which may be of its settings.
        words.insert(usize::from(name.is_some()), RELIABILITY);
    }
    let mut said = words.join(",");
    let chosen = contender::from_option(&said).map_err(wrong)?;
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

/// Whether a name chooses the reliability policy: that of one, of a combination that has one, or of a whole one (`sme`
/// abandons nothing).
fn chooses_reliability(name: &str, contender: &Contender) -> bool {
    let whole = Combination::NAMED.iter().any(|(known, _)| *known == name);
    name == "full" || whole || contender.policies.reliability.name != "full"
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
        let settings = "anabranch,reliability=both_ends,reliability.level=subflow,reliability.latency=300";
        assert_eq!(complete("anabranch,reliability.level=subflow"), settings);
        assert_eq!((complete("full"), abandons("full")), ("full".to_owned(), false));
        let chosen = of("anabranch", Duration::from_millis(300)).expect("it can be understood");
        assert_eq!(chosen.policies.scheduler.name, "anabranch");
        assert!(abandons(&complete("anabranch")) && !abandons("anabranch,reliability=full"));
        assert!(of("anabrnch", Duration::ZERO).unwrap_err().to_string().contains("did you mean 'anabranch'"));
    }
}
