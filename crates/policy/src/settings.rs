//! Chosen settings of an algorithm, and the reader that passes them to it.

use crate::setting::{Parameter, Setting};
use std::collections::BTreeMap;

/// Settings of an algorithm by name, as in a scenario.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Settings {
    values: BTreeMap<String, Value>,
}

/// The value of a setting.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Value {
    text: String,
    /// What stands for a long text wherever settings are shown.
    shown: Option<String>,
}

impl Value {
    fn shown(&self) -> &str {
        self.shown.as_ref().unwrap_or(&self.text)
    }
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
        self.values.insert(name.to_owned(), Value { text: value.to_string(), shown: None });
    }
    /// Replaces each value `@FILE` by the text that `read` gives for `FILE`; it is shown as `@FILE` still.
    ///
    /// # Errors
    /// The first one of `read`.
    pub fn read_files<E>(&mut self, read: impl Fn(&str) -> Result<String, E>) -> Result<(), E> {
        for value in self.values.values_mut().filter(|value| value.shown.is_none()) {
            let Some(file) = value.text.strip_prefix('@') else { continue };
            let text = read(file)?;
            value.shown = Some(core::mem::replace(&mut value.text, text));
        }
        Ok(())
    }
    /// All settings in order of name, with their values as they are shown.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.values.iter().map(|(name, value)| (name.as_str(), value.shown()))
    }
    /// The value as text, if set.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.values.get(name).map(|value| value.text.as_str())
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
        let Some(value) = self.settings.values.get(name) else { return Ok(setting.default()) };
        self.found += 1;
        let bad =
            |expected| SettingError::BadValue { name: name.to_owned(), value: value.shown().to_owned(), expected };
        setting.parse(&value.text).map_err(bad)
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
