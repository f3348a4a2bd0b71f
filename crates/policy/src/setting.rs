//! Settings of algorithms: name, unit, range, default and meaning of each are stated once, where it is read.
//!
//! ```
//! use anabranch_policy::table::{Choice, Number, Reader, SettingError, Settings};
//!
//! fn read(reader: &mut Reader<'_>) -> Result<(f64, bool), SettingError> {
//!     let beta = reader.read(&Number { name: "beta", unit: "share", default: 0.7, range: 0.1..=0.95, summary: "Kept" })?;
//!     let words = &[("down", false), ("up", true)];
//!     let up = reader.read(&Choice { name: "rounding", default: false, words, summary: "Of halves" })?;
//!     Ok((beta, up))
//! }
//!
//! assert_eq!(Settings::new().with("rounding", "up").read(read), Ok((0.7, true)));
//! assert_eq!(Reader::parameters(read)[0].values, "share, 0.1 to 0.95");
//! ```

use crate::time::Duration;
use core::ops::RangeInclusive;

/// A setting, as help and documentation show it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Parameter {
    /// The name in a scenario file.
    pub name: &'static str,
    /// The default value as text.
    pub default: String,
    /// Unit and range, or the allowed words, separated by " | ".
    pub values: String,
    /// The meaning in one sentence.
    pub summary: &'static str,
}

/// A kind of setting: how its text is parsed and shown.
pub trait Setting {
    type Value;
    fn name(&self) -> &'static str;
    /// Its description.
    fn parameter(&self) -> Parameter;
    fn default(&self) -> Self::Value;
    /// Parses a text; the error says what is expected.
    fn parse(&self, text: &str) -> Result<Self::Value, String>;
}

/// A number in a range.
#[derive(Clone, Debug)]
pub struct Number {
    pub name: &'static str,
    /// The unit; empty if there is none.
    pub unit: &'static str,
    pub default: f64,
    pub range: RangeInclusive<f64>,
    /// The meaning in one sentence.
    pub summary: &'static str,
}

impl Setting for Number {
    type Value = f64;
    fn name(&self) -> &'static str {
        self.name
    }
    fn parameter(&self) -> Parameter {
        let range = format!("{} to {}", self.range.start(), self.range.end());
        let values = if self.unit.is_empty() { range } else { format!("{}, {range}", self.unit) };
        Parameter { name: self.name, default: self.default.to_string(), values, summary: self.summary }
    }
    fn default(&self) -> f64 {
        self.default
    }
    fn parse(&self, text: &str) -> Result<f64, String> {
        let number = text.parse().ok().filter(|number| self.range.contains(number));
        number.ok_or_else(|| format!("a number from {} to {}", self.range.start(), self.range.end()))
    }
}

/// A time, given as a number of milliseconds.
#[derive(Clone, Debug)]
pub struct Milliseconds(pub Number);

impl Setting for Milliseconds {
    type Value = Duration;
    fn name(&self) -> &'static str {
        self.0.name
    }
    fn parameter(&self) -> Parameter {
        self.0.parameter()
    }
    fn default(&self) -> Duration {
        Duration::from_secs_f64(self.0.default / 1_000.0)
    }
    fn parse(&self, text: &str) -> Result<Duration, String> {
        self.0.parse(text).map(|millis| Duration::from_secs_f64(millis / 1_000.0))
    }
}

/// A time, given as a number of seconds.
#[derive(Clone, Debug)]
pub struct Seconds(pub Number);

impl Setting for Seconds {
    type Value = Duration;
    fn name(&self) -> &'static str {
        self.0.name
    }
    fn parameter(&self) -> Parameter {
        self.0.parameter()
    }
    fn default(&self) -> Duration {
        Duration::from_secs_f64(self.0.default)
    }
    fn parse(&self, text: &str) -> Result<Duration, String> {
        self.0.parse(text).map(Duration::from_secs_f64)
    }
}

/// One of several words, each with its value.
#[derive(Clone, Copy, Debug)]
pub struct Choice<T: 'static> {
    pub name: &'static str,
    /// The default; one of the values below.
    pub default: T,
    /// The words and their values.
    pub words: &'static [(&'static str, T)],
    /// The meaning in one sentence.
    pub summary: &'static str,
}

impl<T: Copy + PartialEq> Setting for Choice<T> {
    type Value = T;
    fn name(&self) -> &'static str {
        self.name
    }
    fn parameter(&self) -> Parameter {
        let words: Vec<&str> = self.words.iter().map(|(word, _)| *word).collect();
        let default = self.words.iter().find(|(_, value)| *value == self.default).map_or("", |(word, _)| word);
        Parameter { name: self.name, default: default.to_owned(), values: words.join(" | "), summary: self.summary }
    }
    fn default(&self) -> T {
        self.default
    }
    fn parse(&self, text: &str) -> Result<T, String> {
        let value = self.words.iter().find(|(word, _)| *word == text).map(|(_, value)| *value);
        value.ok_or_else(|| {
            let words: Vec<&str> = self.words.iter().map(|(word, _)| *word).collect();
            format!("one of {}", words.join(", "))
        })
    }
}

/// A setting that is off or on.
#[derive(Clone, Copy, Debug)]
pub struct Switch {
    pub name: &'static str,
    /// Whether it is on by default.
    pub default: bool,
    /// The meaning in one sentence.
    pub summary: &'static str,
}

impl Switch {
    fn choice(&self) -> Choice<bool> {
        let words = &[("off", false), ("on", true)];
        Choice { name: self.name, default: self.default, words, summary: self.summary }
    }
}

impl Setting for Switch {
    type Value = bool;
    fn name(&self) -> &'static str {
        self.name
    }
    fn parameter(&self) -> Parameter {
        self.choice().parameter()
    }
    fn default(&self) -> bool {
        self.default
    }
    fn parse(&self, text: &str) -> Result<bool, String> {
        self.choice().parse(text)
    }
}

/// A setting with a syntax of its own.
#[derive(Clone, Copy, Debug)]
pub struct Written<T> {
    pub name: &'static str,
    /// The default as text.
    pub default: &'static str,
    /// The syntax, as documentation shows it.
    pub values: &'static str,
    /// What is expected, as an error shows it.
    pub expected: &'static str,
    pub read: fn(&str) -> Option<T>,
    /// The meaning in one sentence.
    pub summary: &'static str,
}

impl<T> Setting for Written<T> {
    type Value = T;
    fn name(&self) -> &'static str {
        self.name
    }
    fn parameter(&self) -> Parameter {
        let (default, values) = (self.default.to_owned(), self.values.to_owned());
        Parameter { name: self.name, default, values, summary: self.summary }
    }
    fn default(&self) -> T {
        (self.read)(self.default).expect("the default is written as all are")
    }
    fn parse(&self, text: &str) -> Result<T, String> {
        (self.read)(text).ok_or_else(|| self.expected.to_owned())
    }
}
