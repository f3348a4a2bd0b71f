//! Errors as Python's.

use anabranch_settings::diagnostic::Diagnostic;
use pyo3::PyErr;
use pyo3::exceptions::PyValueError;

/// An error in the scenario, the options or the files; the text has its place.
pub fn failure(error: Diagnostic) -> PyErr {
    let text = error.to_string();
    PyValueError::new_err(text.strip_prefix("error: ").unwrap_or(&text).to_owned())
}

/// Any other error of an argument.
pub fn plain(error: impl std::fmt::Display) -> PyErr {
    PyValueError::new_err(error.to_string())
}
