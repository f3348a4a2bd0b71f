//! Reads tables of a scenario: rejects unknown keys and wrong types, with source positions.

use crate::diagnostic::{Diagnostic, did_you_mean};
use crate::quantity::{self, Quantity};
use crate::tree::{Entry, Node, Origin, Source, Value};
use anabranch_policy::time::Duration;
use std::path::Path;

/// Whether it is a name that can be used for files and tables.
pub fn is_name(name: &str) -> bool {
    !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-')
}

#[derive(Clone, Copy)]
pub struct Reader<'a> {
    source: &'a Source,
    entries: &'a [Entry],
    origin: &'a Origin,
    /// Description of the table for messages: "a link".
    what: &'static str,
}

/// A value with its position.
#[derive(Clone, Copy)]
pub struct Item<'a> {
    source: &'a Source,
    pub node: &'a Node,
}

impl<'a> Reader<'a> {
    /// Opens a table whose keys must all be in `known`.
    pub fn new(source: &'a Source, node: &'a Node, what: &'static str, known: &[&str]) -> Result<Self, Diagnostic> {
        let reader = Self::open(source, node, what)?;
        for entry in reader.entries {
            if !known.contains(&entry.key.as_str()) {
                let hint = did_you_mean(&entry.key, known.iter().copied());
                let hint = if hint.is_empty() { format!("; known are {}", known.join(", ")) } else { hint };
                return Err(source.error(&entry.origin, format!("unknown key '{}' in {what}{hint}", entry.key)));
            }
        }
        Ok(reader)
    }

    /// Opens a table with any keys.
    pub fn open(source: &'a Source, node: &'a Node, what: &'static str) -> Result<Self, Diagnostic> {
        match &node.value {
            Value::Table(entries) => Ok(Self { source, entries, origin: &node.origin, what }),
            other => Err(source.error(&node.origin, format!("{what} must be a table, not {}", other.kind()))),
        }
    }

    pub fn items(&self) -> impl Iterator<Item = (&'a str, Item<'a>)> + use<'a> {
        let source = self.source;
        self.entries.iter().map(move |entry| (entry.key.as_str(), Item { source, node: &entry.node }))
    }

    /// The value of `key`, if present.
    pub fn get(&self, key: &str) -> Option<Item<'a>> {
        let entry = self.entries.iter().find(|entry| entry.key == key)?;
        Some(Item { source: self.source, node: &entry.node })
    }

    /// The value of `key`, which is required.
    pub fn required(&self, key: &str) -> Result<Item<'a>, Diagnostic> {
        self.get(key).ok_or_else(|| self.error(format!("{} has no '{key}', which it needs", self.what)))
    }

    /// An error message for the whole table.
    pub fn error(&self, message: impl Into<String>) -> Diagnostic {
        // The span of the whole file would underline its first line, whose line number helps nobody.
        self.source.error(self.origin, message)
    }

    /// An optional string.
    pub fn text(&self, key: &str) -> Result<Option<&'a str>, Diagnostic> {
        self.get(key).map(|item| item.text()).transpose()
    }

    /// A string, or `default`.
    pub fn text_or(&self, key: &str, default: &str) -> Result<String, Diagnostic> {
        Ok(self.text(key)?.unwrap_or(default).to_owned())
    }

    /// An optional quantity.
    pub fn quantity<Q: Quantity>(&self, key: &str) -> Result<Option<Q>, Diagnostic> {
        self.get(key).map(|item| item.quantity()).transpose()
    }

    /// true or false, or `default`.
    pub fn flag(&self, key: &str, default: bool) -> Result<bool, Diagnostic> {
        self.get(key).map_or(Ok(default), |item| item.flag())
    }

    /// Elements of a list; none if the key is absent.
    pub fn list(&self, key: &str) -> Result<Vec<Item<'a>>, Diagnostic> {
        self.get(key).map_or(Ok(Vec::new()), |item| item.list())
    }
}

impl<'a> Item<'a> {
    pub const fn new(source: &'a Source, node: &'a Node) -> Self {
        Self { source, node }
    }

    /// An error message for this value.
    pub fn error(&self, message: impl Into<String>) -> Diagnostic {
        self.source.error(&self.node.origin, message)
    }

    /// Directory of the file, to which names of files in it are relative.
    pub fn directory(&self) -> &'a Path {
        self.source.directory()
    }

    fn wrong(&self, expected: &str) -> Diagnostic {
        self.error(format!("{expected} is expected here, not {}", self.node.value.kind()))
    }

    pub fn text(&self) -> Result<&'a str, Diagnostic> {
        match &self.node.value {
            Value::Text(text) => Ok(text),
            _ => Err(self.wrong("a string")),
        }
    }

    pub fn flag(&self) -> Result<bool, Diagnostic> {
        match &self.node.value {
            Value::Flag(flag) => Ok(*flag),
            _ => Err(self.wrong("true or false")),
        }
    }

    pub fn number(&self) -> Result<f64, Diagnostic> {
        match &self.node.value {
            Value::Integer(number) => Ok(*number as f64),
            Value::Real(number) if number.is_finite() => Ok(*number),
            _ => Err(self.wrong("a number")),
        }
    }

    /// An integer in `range`.
    pub fn count(&self, range: std::ops::RangeInclusive<u64>) -> Result<u64, Diagnostic> {
        let Value::Integer(number) = &self.node.value else { return Err(self.wrong("a whole number")) };
        u64::try_from(*number).ok().filter(|count| range.contains(count)).ok_or_else(|| {
            self.error(format!("{number} is not possible here: it must lie from {} to {}", range.start(), range.end()))
        })
    }

    /// A quantity with its unit.
    pub fn quantity<Q: Quantity>(&self) -> Result<Q, Diagnostic> {
        match &self.node.value {
            Value::Text(text) => quantity::parse(text).map_err(|message| self.error(message)),
            // Only quantities with an optional unit accept this; the others report the missing unit.
            Value::Integer(number) => quantity::parse(&number.to_string()).map_err(|message| self.error(message)),
            Value::Real(number) => quantity::parse(&number.to_string()).map_err(|message| self.error(message)),
            _ => Err(self.wrong(&format!("{} such as {}", Q::WHAT, Q::EXAMPLE))),
        }
    }

    /// A closed range with its unit.
    pub fn range<Q: Quantity>(&self) -> Result<(Q, Q), Diagnostic> {
        quantity::parse_range(self.text()?).map_err(|message| self.error(message))
    }

    /// A time range, `"10..30 s"`, or without end, `"50 s.."`.
    pub fn range_of_time(&self) -> Result<(Duration, Option<Duration>), Diagnostic> {
        quantity::parse_range_of_time(self.text()?).map_err(|message| self.error(message))
    }

    /// The value paired with one of `words`.
    pub fn word<T: Copy>(&self, words: &[(&str, T)]) -> Result<T, Diagnostic> {
        let text = self.text()?;
        words.iter().find(|(word, _)| *word == text).map(|(_, meaning)| *meaning).ok_or_else(|| {
            let known = words.iter().map(|(word, _)| *word);
            let hint = did_you_mean(text, known.clone());
            self.error(format!("'{text}' is not one of {}{hint}", known.collect::<Vec<_>>().join(", ")))
        })
    }

    pub fn list(&self) -> Result<Vec<Item<'a>>, Diagnostic> {
        match &self.node.value {
            Value::List(items) => Ok(items.iter().map(|node| Item { source: self.source, node }).collect()),
            _ => Err(self.wrong("a list")),
        }
    }

    /// The elements of a list of strings.
    pub fn texts(&self) -> Result<Vec<String>, Diagnostic> {
        self.list()?.iter().map(|item| item.text().map(str::to_owned)).collect()
    }

    /// A table whose keys must all be in `known`.
    pub fn table(&self, what: &'static str, known: &[&str]) -> Result<Reader<'a>, Diagnostic> {
        Reader::new(self.source, self.node, what, known)
    }

    /// A table with any keys.
    pub fn open(&self, what: &'static str) -> Result<Reader<'a>, Diagnostic> {
        Reader::open(self.source, self.node, what)
    }

    pub fn is_table(&self) -> bool {
        matches!(self.node.value, Value::Table(_))
    }
}
