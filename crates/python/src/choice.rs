//! Built-in policies by name.

use crate::failure::plain;
use anabranch_policy::combination::Combination;
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// A member of a family by name, with settings as keyword arguments, in an otherwise plain combination.
///
/// # Errors
/// There is no such member, or it has no such setting.
pub fn choice(family: &str, name: &str, settings: Option<&Bound<'_, PyDict>>) -> PyResult<Combination> {
    let mut words = vec![format!("{family}={name}")];
    for (key, value) in settings.into_iter().flatten() {
        words.push(format!("{family}.{key}={}", value.str()?));
    }
    words.join(",").parse().map_err(plain)
}
