//! The router's own LSAs: their contents, and when they are originated.

pub(crate) mod contents;
pub(crate) mod pace;
pub(crate) mod schedule;
