//! Priorities of connections by target, for policies that use them.

use super::allow::{Rule, RuleError};
use super::target::Target;
use core::str::FromStr;

/// The default priority of an application: the highest.
const HIGHEST: u8 = 1;
/// The lowest.
const LOWEST: u8 = 6;

/// A priority for the targets that match a pattern.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PriorityRule {
    pattern: Rule,
    priority: u8,
}

/// Why something is no [`PriorityRule`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum PriorityRuleError {
    /// No `=` with a number behind it, or not one of the priorities.
    #[error("the pattern needs a priority from 1 (highest) to 6, as in *.example.org=3")]
    Priority,
    /// What precedes it is no pattern.
    #[error(
        "the pattern is HOST or HOST:PORT, where HOST is a name, *.NAME, an address, a network such as 10.0.0.0/8, or *, \
         and an IPv6 address before a port stands in brackets"
    )]
    Pattern,
}

impl From<RuleError> for PriorityRuleError {
    fn from(_: RuleError) -> Self {
        Self::Pattern
    }
}

impl FromStr for PriorityRule {
    type Err = PriorityRuleError;

    /// Reads `PATTERN=N`.
    fn from_str(text: &str) -> Result<Self, PriorityRuleError> {
        let (pattern, priority) = text.rsplit_once('=').ok_or(PriorityRuleError::Priority)?;
        let priority = priority.parse().ok().filter(|priority| (HIGHEST..=LOWEST).contains(priority));
        let priority = priority.ok_or(PriorityRuleError::Priority)?;
        Ok(Self { pattern: Rule::with_or_without_port(pattern)?, priority })
    }
}

/// What priority each target has: that of the first rule whose pattern matches, else 1, the highest.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Priorities {
    rules: Vec<PriorityRule>,
}

impl Priorities {
    /// Rules in the order in which they are tried.
    pub fn new(rules: Vec<PriorityRule>) -> Self {
        Self { rules }
    }

    /// The priority of connections to `target`, 1 (highest) to 6. The target is taken as it was named: a name matches no
    /// pattern with addresses, whatever it resolves to.
    pub fn of(&self, target: &Target) -> u8 {
        self.rules.iter().find(|rule| rule.pattern.names(target)).map_or(HIGHEST, |rule| rule.priority)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(rules: &[&str], target: &str) -> u8 {
        let rules = rules.iter().map(|rule| rule.parse().expect("a rule")).collect();
        Priorities::new(rules).of(&target.parse().expect("a target"))
    }

    #[test]
    fn the_first_pattern_that_fits_sets_the_priority_and_without_one_it_is_the_highest() {
        let rules = ["backup.example.org:873=6", "*.example.org=4", "10.0.0.0/8=3", "[2001:db8::1]:22=2", "*:25=5"];
        assert_eq!(of(&rules, "backup.example.org:873"), 6);
        assert_eq!(of(&rules, "backup.example.org:443"), 4);
        assert_eq!(of(&rules, "Deep.Under.example.org.:1"), 4);
        // The domain itself is not under it.
        assert_eq!(of(&rules, "example.org:443"), 1);
        assert_eq!(of(&rules, "10.9.8.7:80"), 3);
        assert_eq!(of(&rules, "11.0.0.1:80"), 1);
        assert_eq!(of(&rules, "[2001:db8::1]:22"), 2);
        assert_eq!(of(&rules, "[2001:db8::1]:25"), 5);
        assert_eq!(of(&["*=6"], "anything.example:1"), 6);
        assert_eq!(of(&[], "anything.example:1"), 1);
    }

    #[test]
    fn a_name_fits_no_pattern_with_addresses_and_an_unbracketed_ipv6_address_is_one_without_a_port() {
        assert_eq!(of(&["127.0.0.0/8=5"], "localhost:80"), 1);
        assert_eq!(of(&["::1:443=5"], "[::1:443]:80"), 5);
        assert_eq!(of(&["::1:443=5"], "[::1]:443"), 1);
        assert_eq!(of(&["2001:db8::/32=5"], "[2001:db8:ffff::7]:9"), 5);
    }

    #[test]
    fn what_is_wrong_with_a_rule_is_said_in_one_sentence() {
        for wrong in ["", "example.org", "example.org=", "example.org=0", "example.org=7", "example.org=high"] {
            assert_eq!(wrong.parse::<PriorityRule>(), Err(PriorityRuleError::Priority), "{wrong}");
        }
        for wrong in ["=3", "example.org:0=3", "exa mple=3", "10.0.0.0/33=3", "*.=3", "example.org:x=3"] {
            assert_eq!(wrong.parse::<PriorityRule>(), Err(PriorityRuleError::Pattern), "{wrong}");
        }
    }
}
