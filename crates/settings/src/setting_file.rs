//! Values of policies' settings that are in files: `@FILE`.

use crate::diagnostic::reason;
use anabranch_policy::table::Settings;
use std::io::Read;
use std::path::Path;

/// Most bytes of a file.
const MOST: u64 = 16 << 20;

/// Replaces each value `@FILE` by the text of the file, whose name is relative to `directory`. It stays as it was when
/// the policies were read: connections do not read files.
///
/// # Errors
/// A file cannot be read, is no text, or has more than 16 MiB.
pub fn read(settings: &mut Settings, directory: &Path) -> Result<(), String> {
    settings.read_files(|file| {
        let path = directory.join(file);
        let cannot = |why: String| format!("cannot read {}: {why}", path.display());
        let opened = std::fs::File::open(&path).map_err(|error| cannot(reason(&error)))?;
        let mut text = String::new();
        opened.take(MOST + 1).read_to_string(&mut text).map_err(|error| cannot(reason(&error)))?;
        if text.len() as u64 > MOST {
            return Err(cannot(format!("it has more than {} MiB", MOST >> 20)));
        }
        Ok(text)
    })
}
