//! A user's name and password for the local side of the proxy (RFC 1929, RFC 7617).

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

/// Name and password that a client must show.
#[derive(Clone)]
pub struct Credentials {
    user: String,
    password: String,
    /// What follows `Basic ` in HTTP (RFC 7617, section 2).
    basic: String,
}

/// Why these cannot be credentials.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("name and password have 1 to 255 bytes each, and the name has no colon")]
pub struct CredentialsError;

impl Credentials {
    /// Name and password.
    ///
    /// # Errors
    /// [`CredentialsError`]: what neither SOCKS5 nor HTTP could carry.
    pub fn new(user: &str, password: &str) -> Result<Self, CredentialsError> {
        let short = |text: &str| (1..=255).contains(&text.len());
        if !short(user) || !short(password) || user.contains(':') {
            return Err(CredentialsError);
        }
        let basic = STANDARD.encode(format!("{user}:{password}"));
        Ok(Self { user: user.to_owned(), password: password.to_owned(), basic })
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
