//! The settings that somebody chose for an algorithm, and the reader that gives them to it.

use crate::setting::{Parameter, Setting};
use std::collections::BTreeMap;

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
    /// What `read` makes of them; each must be one that it reads.
    pub fn read<T>(&self, read: impl Fn(&mut Reader<'_>) -> Result<T, SettingError>) -> Result<T, SettingError> {
        let mut reader = Reader { settings: self, known: None, found: 0 };
        let made = read(&mut reader);
        if made.is_ok() && reader.found == self.values.len() {
            return made;
        }
        // Something is wrong; that a name is unknown is said first.
        let parameters = Reader::parameters(read);
        match self.values.keys().find(|name| !parameters.iter().any(|known| known.name == name.as_str())) {
            None => made,
            Some(name) => Err(SettingError::UnknownParameter {
                name: name.clone(),
                known: match parameters.as_slice() {
                    [] => "none".to_owned(),
                    some => some.iter().map(|known| known.name).collect::<Vec<_>>().join(", "),
                },
            }),
        }
    }
}

/// Returns an algorithm its settings, one by one; each call says all there is to know of a setting. So a reader with no
/// settings learns which there are.
#[derive(Debug)]
pub struct Reader<'a> {
    settings: &'a Settings,
    /// What was read so far, if that is to be known.
    known: Option<Vec<Parameter>>,
    /// How many settings were found.
    found: usize,
}

impl Reader<'_> {
    /// The value of a setting, or its default.
    pub fn read<S: Setting>(&mut self, setting: &S) -> Result<S::Value, SettingError> {
        if let Some(known) = &mut self.known {
            known.push(setting.parameter());
        }
        if self.settings.values.is_empty() {
            return Ok(setting.default());
        }
        let name = setting.name();
        let Some(text) = self.settings.get(name) else { return Ok(setting.default()) };
        self.found += 1;
        let bad = |expected| SettingError::BadValue { name: name.to_owned(), value: text.to_owned(), expected };
        setting.parse(text).map_err(bad)
    }

    /// The settings that `read` reads, in order.
    pub fn parameters<T>(read: impl Fn(&mut Reader<'_>) -> Result<T, SettingError>) -> Vec<Parameter> {
        let none = Settings::new();
        let mut reader = Reader { settings: &none, known: Some(Vec::new()), found: 0 };
        // With no settings nothing can be wrong.
        drop(read(&mut reader));
        reader.known.unwrap_or_default()
    }
}
