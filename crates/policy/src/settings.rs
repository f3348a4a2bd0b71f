//! Chosen settings of an algorithm, and the reader that passes them to it.

use crate::setting::{Parameter, Setting};
use std::collections::BTreeMap;

/// Settings of an algorithm by name, as in a scenario.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Settings {
    values: BTreeMap<String, String>,
}

/// Why an algorithm cannot be built.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SettingError {
    /// There is no such member.
    #[error("unknown policy '{name}': known are {known}")]
    UnknownMember {
        /// The name given.
        name: String,
        /// The names that exist.
        known: String,
    },
    /// There is no such setting.
    #[error("unknown setting '{name}': known are {known}")]
    UnknownParameter {
        /// The name given.
        name: String,
        /// The names that exist.
        known: String,
    },
    /// The value is not valid for the setting.
    #[error("setting '{name}' is '{value}', which is not {expected}")]
    BadValue {
        name: String,
        value: String,
        /// What is expected.
        expected: String,
    },
}

impl Settings {
    /// No settings: all have their defaults.
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
    /// The value as text, if set.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.values.get(name).map(String::as_str)
    }
    /// Passes the settings to `read`, which must accept every one of them.
    pub fn read<T>(&self, read: impl Fn(&mut Reader<'_>) -> Result<T, SettingError>) -> Result<T, SettingError> {
        let mut reader = Reader { settings: self, known: None, found: 0 };
        let made = read(&mut reader);
        if made.is_ok() && reader.found == self.values.len() {
            return made;
        }
        // There is an error: an unknown name is reported first.
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

/// Passes the settings to an algorithm one by one. Each call contains the description of a setting, so a reader without
/// settings can collect the descriptions.
#[derive(Debug)]
pub struct Reader<'a> {
    settings: &'a Settings,
    /// The descriptions read so far, if they are collected.
    known: Option<Vec<Parameter>>,
    /// Number of settings that were set.
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

    /// The settings that `read` accepts, in order.
    pub fn parameters<T>(read: impl Fn(&mut Reader<'_>) -> Result<T, SettingError>) -> Vec<Parameter> {
        let none = Settings::new();
        let mut reader = Reader { settings: &none, known: Some(Vec::new()), found: 0 };
        // Without settings there can be no error.
        drop(read(&mut reader));
        reader.known.unwrap_or_default()
    }
}
