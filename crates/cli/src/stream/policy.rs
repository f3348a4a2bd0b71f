//! Which policies a stream has: those that `--policy` names, and of reliability, unless it is named, the receiver's of recPR.

use crate::contender::{self, Contender};
use crate::diagnostic::Diagnostic;
use anabranch_policy::reliability;
use anabranch_policy::table;
use std::time::Duration;

/// What `--policy` is if it is not given.
pub const DEFAULT: &str = "anabranch";
/// What reliability is if nothing is said of it: the receiver's engine of recPR.
const SPE: &str = "reliability=spe";
/// How its members are told the latency, milliseconds.
const LATENCY: &str = "latency";

/// The policies of a stream with this latency.
pub fn of(text: &str, latency: Duration) -> Result<Contender, Diagnostic> {
    contender::from_option(&complete(text, latency)?, &[])
        .map_err(|message| Diagnostic::option(&format!("--policy {text}"), message))
}

/// The same as `--policy` has it.
pub fn complete(text: &str, latency: Duration) -> Result<String, Diagnostic> {
    let wrong = |message| Diagnostic::option(&format!("--policy {text}"), message);
    let mut said = text.trim().to_owned();
    let mut chosen = contender::from_option(&said, &[]).map_err(wrong)?;
    if !said.contains("reliability") && chosen.policies.reliability.name == "full" {
        said = format!("{said},{SPE}");
        chosen = contender::from_option(&said, &[]).map_err(wrong)?;
    }
    let reliability = &chosen.policies.reliability;
    let takes = table::find(reliability::TABLE, &reliability.name)
        .is_some_and(|member| member.parameters.iter().any(|parameter| parameter.name == LATENCY));
    if takes && reliability.settings.get(LATENCY).is_none() {
        said = format!("{said},reliability.{LATENCY}={}", latency.as_secs_f64() * 1e3);
    }
    Ok(said)
}

/// Whether something may be given up.
pub fn gives_up(text: &str) -> bool {
    contender::from_option(text, &[]).is_ok_and(|chosen| chosen.policies.reliability.name != "full")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_said_of_reliability_is_the_receivers_of_recpr_with_the_latency() {
        let complete = |text| complete(text, Duration::from_millis(300)).expect("it can be understood");
        assert_eq!(complete("anabranch"), "anabranch,reliability=spe,reliability.latency=300");
        assert_eq!(complete("spe"), "spe,reliability.latency=300");
        assert_eq!(complete("plain,reliability=full"), "plain,reliability=full");
        let said = "congestion=olia,reliability=spe,reliability.latency=50";
        assert_eq!(complete(said), said);
        let chosen = of("anabranch", Duration::from_millis(300)).expect("it can be understood");
        assert_eq!(chosen.policies.scheduler.name, "anabranch");
        assert!(gives_up(&complete("anabranch")) && !gives_up("anabranch,reliability=full"));
        assert!(of("anabrnch", Duration::ZERO).unwrap_err().to_string().contains("did you mean 'anabranch'"));
    }
}
