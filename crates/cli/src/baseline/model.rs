//! The contents of a baseline.

use crate::contender::Choices;
use crate::scenario::connection::ConnectionSettings;

/// Why a baseline has some of its values.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Reason {
    /// Of which values: the names of families, or `connection.` and a setting.
    pub of: Vec<String>,
    /// Why.
    pub text: String,
    /// Where that stands.
    pub source: String,
}

/// A named set of defaults.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Baseline {
    /// Its name: letters, digits, `_` and `-`.
    pub name: String,
    /// What tables and legends call it.
    pub label: String,
    /// What it is, in one sentence.
    pub summary: String,
    /// What it chooses of the families.
    pub choices: Choices,
    /// What it says of the connection.
    pub connection: ConnectionSettings,
    /// Why.
    pub reasons: Vec<Reason>,
    /// What it would take and is not modelled, a sentence each.
    pub not_modelled: Vec<String>,
}

impl Baseline {
    /// What it says, in order: the name of a family, or `connection.` and a setting, and the value.
    pub fn values(&self) -> Vec<(String, String)> {
        let choices = self.choices.iter().map(|(family, choice)| (family.name().to_owned(), choice.to_string()));
        let settings = self.connection.iter().map(|(name, value)| (format!("connection.{name}"), value));
        choices.chain(settings).collect()
    }
}
