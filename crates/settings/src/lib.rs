//! Policies, baselines and settings of connections as users write them, in TOML files and on command lines.
//!
//! A TOML text is parsed into a [`tree`] whose nodes know their place; a [`reader::Reader`] takes values from it and
//! names the place of what is wrong ([`diagnostic::Diagnostic`]). Texts of options go through the same checks.

pub mod baseline;
pub mod choices;
pub mod connection;
pub mod contender;
pub mod diagnostic;
pub mod quantity;
pub mod reader;
pub mod receive_buffer;
mod setting_file;
pub mod tree;
