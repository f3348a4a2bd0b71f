//! Files with secrets: keys and credentials.

use crate::console::remark;
use anabranch_proxy::{Key, Keys};
use anabranch_settings::diagnostic::Diagnostic;
use anabranch_system::open_at_once;
use std::path::Path;

/// Reads a required key.
pub fn read_key(path: &Path) -> Result<Key, Diagnostic> {
    Key::read(path).map_err(|error| secret(&format!("--key {}", path.display()), &error))
}

/// Parses `--keys FILE`.
///
/// # Errors
/// The file is invalid.
pub fn read_keys(path: &Path) -> Result<Keys, Diagnostic> {
    Keys::read(path).map_err(|error| secret(&format!("--keys {}", path.display()), &error))
}

/// Whether this user may read a file with a secret; prints a message if not.
pub fn is_readable(path: &Path) -> bool {
    let hidden = open_at_once(path).is_err_and(|error| error.kind() == std::io::ErrorKind::PermissionDenied);
    if hidden {
        remark(&format!("note: {} is not this user's to read, and was not looked at", path.display()));
    }
    !hidden
}

/// Error message for a file with a secret.
pub fn secret(option: &str, error: &dyn std::fmt::Display) -> Diagnostic {
    let text = error.to_string();
    let text = text.split(" (os error").next().unwrap_or(&text);
    Diagnostic::option(option, text)
}
