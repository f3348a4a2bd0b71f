//! What the five families' tables are made of: a member's name, source, parameters and constructor.
//!
//! Help texts, documentation, the scenario parser and the test matrix are generated from the tables, so
//! adding an algorithm is one file and one line.

use std::collections::BTreeMap;

/// A setting of an algorithm that a scenario may change.
#[derive(Clone, Copy, Debug)]
pub struct Parameter {
    /// Its name, as in a scenario file.
    pub name: &'static str,
    /// Its value when nothing is said.
    pub default: &'static str,
    /// Unit, or the words allowed, separated by " | ".
    pub values: &'static str,
    /// What it does, in one sentence.
    pub summary: &'static str,
}

/// An algorithm of a family `P`.
pub struct Member<P: ?Sized + 'static> {
    /// Its name, as in a scenario file and on the command line.
    pub name: &'static str,
    /// What it does, in one sentence.
    pub summary: &'static str,
    /// Where its rule is written down.
    pub source: &'static str,
    /// Its settings.
    pub parameters: &'static [Parameter],
    /// Makes one.
    pub build: fn(&Settings) -> Result<Box<P>, SettingError>,
}

impl<P: ?Sized> core::fmt::Debug for Member<P> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Member").field("name", &self.name).finish_non_exhaustive()
    }
}

/// Finds a member by name.
pub fn find<P: ?Sized>(table: &'static [Member<P>], name: &str) -> Option<&'static Member<P>> {
    table.iter().find(|member| member.name == name)
}

/// Makes the member called `name`; every setting must be one of its parameters.
pub fn build<P: ?Sized>(table: &'static [Member<P>], name: &str, settings: &Settings) -> Result<Box<P>, SettingError> {
    let member = find(table, name).ok_or_else(|| SettingError::UnknownMember {
        name: name.to_owned(),
        known: table.iter().map(|m| m.name).collect::<Vec<_>>().join(", "),
    })?;
    settings.check(member.parameters)?;
    (member.build)(settings)
}

/// Settings of one algorithm, as a scenario gives them: parameter name to value.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Settings {
    values: BTreeMap<String, String>,
}

/// Why an algorithm cannot be made from what a scenario says.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SettingError {
    /// No such member.
    #[error("unknown policy '{name}': known are {known}")]
    UnknownMember {
        /// What was asked for.
        name: String,
        /// What there is.
        known: String,
    },
    /// No such parameter.
    #[error("unknown setting '{name}': known are {known}")]
    UnknownParameter {
        /// What was asked for.
        name: String,
        /// What there is.
        known: String,
    },
    /// A value that the parameter cannot take.
    #[error("setting '{name}' is '{value}', which is not {expected}")]
    BadValue {
        /// The parameter.
        name: String,
        /// What was given.
        value: String,
        /// What it must be.
        expected: String,
    },
}

impl Settings {
    /// No settings: every parameter at its default.
    pub fn new() -> Self {
        Self::default()
    }
    /// The same settings with `name` set to `value`.
    #[must_use]
    pub fn with(mut self, name: &str, value: impl ToString) -> Self {
        self.set(name, value);
        self
    }
    /// Sets `name` to `value`.
    pub fn set(&mut self, name: &str, value: impl ToString) {
        self.values.insert(name.to_owned(), value.to_string());
    }
    /// All settings in order of name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.values.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }
    /// The value as it stands, if set.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.values.get(name).map(String::as_str)
    }
    /// A number in `range`, or `default` if not set.
    pub fn number(&self, name: &str, default: f64, range: core::ops::RangeInclusive<f64>) -> Result<f64, SettingError> {
        let Some(text) = self.get(name) else { return Ok(default) };
        let bad = || SettingError::BadValue {
            name: name.to_owned(),
            value: text.to_owned(),
            expected: format!("a number from {} to {}", range.start(), range.end()),
        };
        let value: f64 = text.parse().map_err(|_| bad())?;
        if range.contains(&value) { Ok(value) } else { Err(bad()) }
    }
    /// One of `words`, by its index, or `default` if not set.
    pub fn word(&self, name: &str, words: &[&str], default: usize) -> Result<usize, SettingError> {
        let Some(text) = self.get(name) else { return Ok(default) };
        words.iter().position(|word| *word == text).ok_or_else(|| SettingError::BadValue {
            name: name.to_owned(),
            value: text.to_owned(),
            expected: format!("one of {}", words.join(", ")),
        })
    }
    fn check(&self, parameters: &[Parameter]) -> Result<(), SettingError> {
        match self.values.keys().find(|name| !parameters.iter().any(|p| p.name == name.as_str())) {
            None => Ok(()),
            Some(name) => Err(SettingError::UnknownParameter {
                name: name.clone(),
                known: match parameters {
                    [] => "none".to_owned(),
                    some => some.iter().map(|p| p.name).collect::<Vec<_>>().join(", "),
                },
            }),
        }
    }
}

#[cfg(test)]
mod tests;
