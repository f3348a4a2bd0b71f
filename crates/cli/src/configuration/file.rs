//! A configuration file as written.

use anabranch_settings::diagnostic::Diagnostic;
use anabranch_settings::tree::{self, Entry, Origin, Source, Value};
use std::path::{Path, PathBuf};

/// A file and its tables.
pub struct File {
    source: Source,
    /// Directory of the file; file names in it are relative to this.
    pub directory: PathBuf,
    /// One table per command.
    pub tables: Vec<Entry>,
}

impl File {
    /// # Errors
    /// The file does not exist, or is not TOML.
    pub fn open(path: &Path) -> Result<Self, Diagnostic> {
        let text = std::fs::read_to_string(path).map_err(|error| Diagnostic::file(path, "read", &error))?;
        let directory = path.parent().map(Path::to_path_buf).unwrap_or_default();
        Self::from_text(&path.display().to_string(), text, directory)
    }

    /// Parses the text of the file `name`.
    ///
    /// # Errors
    /// It is not TOML.
    pub fn from_text(name: &str, text: String, directory: PathBuf) -> Result<Self, Diagnostic> {
        let source = Source { file: name.to_owned(), text, options: Vec::new() };
        match tree::read(&source)?.value {
            Value::Table(tables) => Ok(Self { source, directory, tables }),
            // The root of a TOML document is a table.
            _ => Ok(Self { source, directory, tables: Vec::new() }),
        }
    }

    /// An error message for a position.
    pub fn error(&self, origin: &Origin, message: impl Into<String>) -> Diagnostic {
        self.source.error(origin, message)
    }
}
