//! The keys that a server takes, and whose they are.

use super::key::{Key, KeyError};
use super::private_file::{self, PrivateFileError};
use std::path::Path;
use std::sync::Arc;

/// Most keys of a server: each is tried with the first message of a client, until one fits.
const MOST: usize = 256;

/// A file of so many keys is not longer.
const LONGEST: u64 = 64 * 1_024;

/// A client's name; none if all have one key.
pub type Name = Option<Arc<str>>;

/// Keys, at least one.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Keys(Vec<(Name, Key)>);

/// Why there are no keys.
#[derive(Debug, thiserror::Error)]
pub enum KeysError {
    /// The file cannot be read, or others can read it.
    #[error(transparent)]
    File(#[from] PrivateFileError),
    /// A line is not a name and a key.
    #[error("line {0} is not NAME KEY, where a key is what `anabranch key FILE` writes: {1}")]
    Line(usize, KeyError),
    /// Two are the same.
    #[error("line {0} has a name or a key for the second time")]
    Twice(usize),
    /// There are none, or too many.
    #[error("it holds {0} keys; 1 to {MOST} are possible")]
    Count(usize),
}

impl Keys {
    /// The same key for all.
    pub fn one(key: Key) -> Self {
        Self(vec![(None, key)])
    }

    /// Reads a file with a line `NAME KEY` for each client; lines that begin with `#` do not count.
    ///
    /// # Errors
    /// [`KeysError`].
    pub fn read(path: &Path) -> Result<Self, KeysError> {
        Self::from_text(&private_file::read_up_to(path, LONGEST)?)
    }

    fn from_text(text: &str) -> Result<Self, KeysError> {
        let mut keys: Vec<(Name, Key)> = Vec::new();
        for (number, line) in (1..).zip(text.lines()) {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let (name, key) = line.split_once(char::is_whitespace).ok_or(KeysError::Line(number, KeyError::Format))?;
            let key = Key::from_text(key).map_err(|error| KeysError::Line(number, error))?;
            if keys.iter().any(|(known, same)| known.as_deref() == Some(name) || *same == key) {
                return Err(KeysError::Twice(number));
            }
            keys.push((Some(name.into()), key));
        }
        if keys.is_empty() || keys.len() > MOST { Err(KeysError::Count(keys.len())) } else { Ok(Self(keys)) }
    }

    /// All of them, with whose they are.
    pub fn iter(&self) -> impl Iterator<Item = (&Name, &Key)> {
        self.0.iter().map(|(name, key)| (name, key))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: &str = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";
    const OTHER: &str = "HwECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";

    #[test]
    fn each_line_names_a_client_and_its_key() {
        let keys = Keys::from_text(&format!("# ours\n\nann {ONE}\n  bob\t{OTHER}\n")).expect("two keys");
        let names: Vec<_> = keys.iter().map(|(name, _)| name.as_deref()).collect();
        assert_eq!(names, [Some("ann"), Some("bob")]);
    }

    #[test]
    fn what_is_wrong_with_a_file_is_told_with_the_line() {
        let wrong = |text: &str| Keys::from_text(text).expect_err("it is refused").to_string();
        assert!(wrong(&format!("ann {ONE}\n{OTHER}\n")).starts_with("line 2 is not NAME KEY"));
        assert!(wrong("# nobody\n\nann secret").starts_with("line 3 is not NAME KEY"));
        assert!(wrong(&format!("ann {ONE}\nann {OTHER}")).starts_with("line 2 has a name or a key"));
        assert!(wrong(&format!("ann {ONE}\nbob {ONE}")).starts_with("line 2 has a name or a key"));
        assert!(wrong("# nobody").contains("0 keys"));
    }
}
