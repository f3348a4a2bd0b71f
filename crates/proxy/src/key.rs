//! The key that a client and its server share: 32 random bytes in a file that only its owner may read.

use super::private_file::{self, PrivateFileError};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use core::fmt;
use std::fs::{OpenOptions, remove_file};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

/// Bytes of a key.
const LENGTH: usize = 32;

/// A key. `Debug` does not print it.
#[derive(Clone, PartialEq, Eq)]
pub struct Key([u8; LENGTH]);

/// Why there is no key.
#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    /// The file cannot be read, or others can read it.
    #[error(transparent)]
    File(#[from] PrivateFileError),
    /// It is not 32 bytes.
    #[error("its key has {0} bytes instead of 32; make one with `anabranch key FILE`")]
    Length(usize),
    /// It is not base64.
    #[error("it has no key, a line of 44 base64 characters; make one with `anabranch key FILE`")]
    Format,
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key")
    }
}

impl Key {
    /// A new key from the operating system's generator.
    ///
    /// # Errors
    /// If that fails.
    pub fn generate() -> io::Result<Self> {
        let mut bytes = [0; LENGTH];
        getrandom::fill(&mut bytes).map_err(io::Error::other)?;
        Ok(Self(bytes))
    }

    /// Reads a key file: 44 characters of base64 (RFC 4648, section 4) on a line; lines that begin with `#` do not count.
    ///
    /// # Errors [`KeyError`].
    pub fn read(path: &Path) -> Result<Self, KeyError> {
        Self::from_text(&private_file::read(path)?)
    }

    pub(super) fn from_text(text: &str) -> Result<Self, KeyError> {
        let mut lines = private_file::lines(text);
        let (Some(line), None) = (lines.next(), lines.next()) else { return Err(KeyError::Format) };
        let bytes = STANDARD.decode(line).map_err(|_| KeyError::Format)?;
        let length = bytes.len();
        Ok(Self(bytes.try_into().map_err(|_| KeyError::Length(length))?))
    }

    /// Writes a new file that only its owner may read. What could not be written as a whole is removed.
    ///
    /// # Errors
    /// [`io::ErrorKind::AlreadyExists`] if there is a file of that name, or whatever else keeps it from being written.
    pub fn write(&self, path: &Path) -> io::Result<()> {
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
        let line = format!("{}\n", STANDARD.encode(self.0));
        let written = file.write_all(line.as_bytes()).and_then(|()| file.sync_all());
        written.inspect_err(|_| _ = remove_file(path))
    }

    pub fn bytes(&self) -> &[u8; LENGTH] {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_read_from_its_line() {
        let text = format!("# between home and office\n\n {} \n", STANDARD.encode([7; 32]));
        assert_eq!(Key::from_text(&text).expect("a key"), Key([7; 32]));
    }

    #[test]
    fn what_is_no_key_is_refused_with_the_reason() {
        let short = STANDARD.encode([7; 31]);
        assert!(matches!(Key::from_text(&short), Err(KeyError::Length(31))));
        for text in ["", "# only a remark", "secret!", &format!("{short}\n{short}")] {
            assert!(matches!(Key::from_text(text), Err(KeyError::Format)), "{text}");
        }
    }

    #[test]
    fn keys_differ_and_do_not_show_themselves() {
        let (one, other) = (Key::generate().expect("random numbers"), Key::generate().expect("random numbers"));
        assert_ne!(one, other);
        assert_eq!(format!("{one:?}"), "Key");
    }
}
