//! Validates a combination of policies.

use super::datagram::DATAGRAM;
use crate::diagnostic::did_you_mean;
use anabranch_policy::combination::{Combination, CombinationError, Family};
use anabranch_policy::table::SettingError;

/// Whether every member exists and accepts its settings; the message has a suggestion.
pub fn check(policies: &Combination) -> Result<(), String> {
    policies.check().map_err(|error| explain(policies, &error))
}

/// Text of a combination's error.
pub(super) fn explain(policies: &Combination, error: &CombinationError) -> String {
    match error {
        CombinationError::UnknownCombination(_) | CombinationError::NotAnAssignment(_) => error.to_string(),
        CombinationError::UnknownFamily(name) => {
            let known = Family::ALL.iter().map(|family| family.name()).chain([
                DATAGRAM,
                "connection",
                "paths",
                "multipath",
                "name",
            ]);
            format!(
                "'{name}' is not one of {}{}",
                known.clone().collect::<Vec<_>>().join(", "),
                did_you_mean(name, known)
            )
        }
        CombinationError::Setting { family, error } => match error {
            SettingError::UnknownMember { name, known } => {
                format!("'{name}' is not a {family} policy: known are {known}{}", did_you_mean(name, family.members()))
            }
            SettingError::UnknownParameter { name, known } => {
                let hint = did_you_mean(name, known.split(", "));
                let member = &policies.choice(*family).name;
                format!("{family} policy '{member}' has no setting '{name}': known are {known}{hint}")
            }
            SettingError::BadValue { .. } => format!("{family} policy '{}': {error}", policies.choice(*family).name),
        },
    }
}
