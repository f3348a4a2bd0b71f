//! This router's own LSAs: what they say, and when they are originated.

pub(crate) mod contents;
pub(crate) mod schedule;
