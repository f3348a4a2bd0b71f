//! `anabranch key`: creates the key shared by a proxy and its server.

use anabranch_proxy::Key;
use anabranch_settings::diagnostic::Diagnostic;
use std::path::Path;

/// Writes a new key to a new file.
///
/// # Errors
/// The file exists or cannot be written.
pub fn key(path: &Path) -> Result<(), Diagnostic> {
    let key = Key::generate().map_err(|error| Diagnostic::plain(format!("no random numbers: {error}")))?;
    key.write(path).map_err(|error| match error.kind() {
        std::io::ErrorKind::AlreadyExists => {
            Diagnostic::plain(format!("{} is there already, and keys are not overwritten", path.display()))
        }
        _ => Diagnostic::file(path, "write", &error),
    })
}
