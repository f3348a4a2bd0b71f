//! Errors as Python's.

use anabranch_settings::diagnostic::Diagnostic;
use pyo3::PyErr;
use pyo3::exceptions::{PyOSError, PyValueError};
use std::path::Path;

/// Options of the command that are arguments here.
const ARGUMENTS: [&str; 5] = ["out", "set", "grid", "policy", "baseline"];

/// An error in the scenario, the arguments or the files; the text has its place.
pub fn failure(error: Diagnostic) -> PyErr {
    let text = error.to_string();
    let text = text.strip_prefix("error: ").unwrap_or(&text).to_owned();
    let name = |text: String, argument: &&str| text.replace(&format!("--{argument}"), argument);
    PyValueError::new_err(ARGUMENTS.iter().fold(text, name))
}

/// An error of the system about a file or directory, as Python's own functions raise it.
pub fn system(error: &std::io::Error, path: &Path) -> PyErr {
    let text = error.to_string();
    let text = text.split(" (os error").next().unwrap_or_default().to_owned();
    PyOSError::new_err((error.raw_os_error(), text, path.display().to_string()))
}

/// Any other error of an argument.
pub fn plain(error: impl std::fmt::Display) -> PyErr {
    PyValueError::new_err(error.to_string())
}

/// A number as Python writes it: very large and very small ones with an exponent.
pub fn number(value: f64) -> String {
    if value == 0.0 || !value.is_finite() || (1e-4..1e16).contains(&value.abs()) {
        value.to_string()
    } else {
        format!("{value:e}")
    }
}
