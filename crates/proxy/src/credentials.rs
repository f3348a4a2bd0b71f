//! A user's name and password for the local side of the proxy (RFC 1929, RFC 7617).

use super::private_file::{self, PrivateFileError};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use std::path::Path;

/// Name and password that a client must show.
#[derive(Clone)]
pub struct Credentials {
    user: String,
    password: String,
    /// What follows `Basic ` in HTTP (RFC 7617, section 2).
    basic: String,
}

/// Why there are no credentials.
#[derive(Debug, thiserror::Error)]
pub enum CredentialsError {
    /// The file cannot be read, or others can read it.
    #[error(transparent)]
    File(#[from] PrivateFileError),
    /// What neither SOCKS5 nor HTTP could carry.
    #[error("it needs a line NAME:PASSWORD, each of 1 to 255 bytes")]
    Format,
}

impl Credentials {
    /// Name and password.
    ///
    /// # Errors
    /// [`CredentialsError::Format`].
    pub fn new(user: &str, password: &str) -> Result<Self, CredentialsError> {
        let short = |text: &str| (1..=255).contains(&text.len());
        if !short(user) || !short(password) || user.contains(':') {
            return Err(CredentialsError::Format);
        }
        let basic = STANDARD.encode(format!("{user}:{password}"));
        Ok(Self { user: user.to_owned(), password: password.to_owned(), basic })
    }

    /// Reads a file with a line `NAME:PASSWORD`; lines that begin with `#` do not count.
    ///
    /// # Errors
    /// [`CredentialsError`].
    pub fn read(path: &Path) -> Result<Self, CredentialsError> {
        let text = private_file::read(path)?;
        let mut lines = private_file::lines(&text);
        match (lines.next().and_then(|line| line.split_once(':')), lines.next()) {
            (Some((user, password)), None) => Self::new(user, password),
            _ => Err(CredentialsError::Format),
        }
    }

    /// Whether these are the name and password.
    pub(super) fn are(&self, user: &[u8], password: &[u8]) -> bool {
        same(self.user.as_bytes(), user) & same(self.password.as_bytes(), password)
    }

    /// Whether the value of a `Proxy-Authorization` says the same.
    pub(super) fn authorize(&self, value: &[u8]) -> bool {
        let (scheme, token) = value.split_at_checked(6).unwrap_or_default();
        scheme.eq_ignore_ascii_case(b"basic ") && same(self.basic.as_bytes(), token.trim_ascii())
    }
}

/// Compares in a time that depends on the lengths only.
fn same(a: &[u8], b: &[u8]) -> bool {
    let difference = a.iter().zip(b).fold(0, |difference, (a, b)| difference | (a ^ b));
    a.len() == b.len() && core::hint::black_box(difference) == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_right_words_open_and_others_do_not() {
        // The example of RFC 7617, section 2.
        let credentials = Credentials::new("Aladdin", "open sesame").expect("short");
        assert!(credentials.are(b"Aladdin", b"open sesame"));
        assert!(!credentials.are(b"Aladdin", b"open sesam"));
        assert!(!credentials.are(b"aladdin", b"open sesame"));
        assert!(credentials.authorize(b"Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ=="));
        assert!(credentials.authorize(b"basic  QWxhZGRpbjpvcGVuIHNlc2FtZQ== "));
        for wrong in [&b""[..], b"Basic", b"Basic ", b"Bearer QWxhZGRpbjpvcGVuIHNlc2FtZQ==", b"Basic QWxhZGRpbg=="] {
            assert!(!credentials.authorize(wrong));
        }
    }

    #[test]
    fn what_cannot_be_carried_is_refused() {
        assert!(Credentials::new("", "x").is_err());
        assert!(Credentials::new("x", "").is_err());
        assert!(Credentials::new("a:b", "x").is_err());
        assert!(Credentials::new("x", &"p".repeat(256)).is_err());
    }
}
