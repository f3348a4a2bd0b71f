//! The contents of a baseline.

use crate::connection::ConnectionSettings;
use crate::contender::Choices;

/// The reason for some values of a baseline.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Reason {
    /// The values: names of families, or `connection.` and a setting.
    pub of: Vec<String>,
    pub text: String,
    /// Reference.
    pub source: String,
}

/// A named set of defaults.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Baseline {
    /// Letters, digits, `_` and `-`.
    pub name: String,
    /// Label in tables and legends.
    pub label: String,
    /// Description in one sentence.
    pub summary: String,
    /// Policies of the families it specifies.
    pub choices: Choices,
    /// Its connection settings.
    pub connection: ConnectionSettings,
    pub reasons: Vec<Reason>,
    /// Features that are not modelled, one sentence each.
    pub not_modelled: Vec<String>,
}

impl Baseline {
    /// Its values in order: the name of a family, or `connection.` and a setting, and the value.
    pub fn values(&self) -> Vec<(String, String)> {
        let choices = self.choices.iter().map(|(family, choice)| (family.name().to_owned(), choice.to_string()));
        let settings = self.connection.iter().map(|(name, value)| (format!("connection.{name}"), value));
        choices.chain(settings).collect()
    }
}
